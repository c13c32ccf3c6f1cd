"""Counters, limits and the provider's quota: what is charged, what is returned, what leaves no room."""

from __future__ import annotations

import pytest

from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.states import State
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import ACCOUNT, GRACE, LEASE, Sender, buckets, mailout, result
from tests.contract.stores import StoreFactory

PEOPLE = [f"{letter}@example.org" for letter in "abcdef"]
HOUR, NEXT_HOUR, DAY = "2026-11-16T12", "2026-11-16T13", "2026-11-16"


def charged(store: Store, scope: str = "all", hour: str = HOUR) -> tuple[int, int]:
    return outbox_rows.usage(store, scope, "hour", hour), outbox_rows.usage(store, scope, "day", DAY)


def test_an_attempt_is_charged_when_it_begins(store: Store) -> None:
    """Limits count what may have been sent, so also what nobody has heard of yet."""
    id = mailout(store, *PEOPLE, company_id="acme")
    assert charged(store) == (0, 0)
    Sender(store, id).begin(4, buckets=buckets(NOON))
    assert charged(store) == charged(store, "acme") == (4, 4)
    assert charged(store, "other") == (0, 0)


@pytest.mark.parametrize("kind", ["hour", "day"])
def test_a_limit_grants_what_it_leaves_and_says_when_it_leaves_nothing(store: Store, kind: str) -> None:
    id = mailout(store, *PEOPLE)
    sender = Sender(store, id)
    limits = buckets(NOON, **{kind: 4})
    first = sender.step(want=3, buckets=limits)
    second = sender.step(want=3, buckets=limits)
    third = sender.step(want=3, buckets=limits)
    assert [len(reply.rows) for reply in (first, second, third)] == [3, 1, 0]
    assert [reply.limited for reply in (first, second, third)] == [None, None, kind]
    assert third.next_slot_at is None


def test_the_next_hour_has_room_again_and_the_day_goes_on(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, *PEOPLE)
    sender = Sender(store, id, lease=7200.0)
    limits = buckets(NOON, hour=2, day=3)
    sender.begin(6, buckets=limits)
    assert sender.step(want=6, buckets=limits).limited == "hour"
    factory.set_now(NOON + 3600)
    assert len(sender.begin(6, buckets=limits)) == 1
    assert sender.step(want=6, buckets=limits).limited == "day"
    assert charged(store) == (2, 3)
    assert charged(store, hour=NEXT_HOUR) == (1, 3)


def test_a_limit_holds_over_all_mailouts_and_companies(store: Store) -> None:
    one = mailout(store, *PEOPLE, ref="one", company_id="acme")
    other = mailout(store, ref="other", company_id="zoo")
    limits = buckets(NOON, hour=4)
    assert len(Sender(store, one).begin(3, buckets=limits)) == 3
    assert len(Sender(store, other).begin(3, buckets=limits)) == 1


def test_a_full_company_is_limited_though_there_is_room_for_all(store: Store, factory: StoreFactory) -> None:
    """The limit is each company's too: what it used does not vanish with the others' withdrawals."""
    id = mailout(store, *PEOPLE, company_id="acme")
    sender = Sender(store, id)
    sender.begin(2, buckets=buckets(NOON))
    factory.raw("UPDATE usage SET n = 0 WHERE scope = 'all'")
    reply = sender.step(want=3, buckets=buckets(NOON, hour=2))
    assert (list(reply.rows), reply.limited) == ([], "hour")


@pytest.mark.parametrize("how", ["withdraw", "give_back", "uncharge"])
def test_what_was_surely_not_sent_is_returned_to_the_hour_it_was_charged_to(
    store: Store, factory: StoreFactory, how: str
) -> None:
    """Returned to the wrong hour, one hour would send too few and the other too many."""
    id = mailout(store, *PEOPLE, company_id="acme")
    sender = Sender(store, id, lease=7200.0)
    store.set_quota(ACCOUNT, 100, NOON)
    limits = buckets(NOON)
    first, _ = sender.begin(2, buckets=limits)
    factory.set_now(NOON + 3601)
    sender.begin(1, buckets=limits)
    if how == "withdraw":
        sender.step(withdraw=[first.attempt])
    elif how == "give_back":
        sender.step(results=[result(first, State.PENDING, give_back=True)])
    else:
        sender.step(results=[result(first, State.RETRY_SCHEDULED, retry_in=1.0, uncharge=True)])
    for scope in ("all", "acme"):
        assert charged(store, scope) == (1, 2)
        assert charged(store, scope, NEXT_HOUR) == (1, 2)
    assert outbox_rows.quota(store, ACCOUNT) == 98


@pytest.mark.parametrize("kind", ["hour", "day", "quota"])
def test_what_a_step_gives_back_the_same_step_may_begin_again(store: Store, kind: str) -> None:
    """Else a limit of 100 ends at 99: the sender hears that nothing is left, and gives up."""
    id = mailout(store, *PEOPLE)
    limits = buckets(NOON, **({} if kind == "quota" else {kind: 3}))
    if kind == "quota":
        store.set_quota(ACCOUNT, 3, NOON)
    sender = Sender(store, id)
    first, second, third = sender.begin(3, buckets=limits)
    reply = sender.step(
        want=3,
        buckets=limits,
        results=[result(first), result(second, State.RETRY_SCHEDULED, retry_in=60.0, uncharge=True)],
        withdraw=[third.attempt],
    )
    assert (len(reply.rows), reply.limited) == (2, None)


def test_an_attempt_is_returned_once(store: Store) -> None:
    id = mailout(store, *PEOPLE)
    sender = Sender(store, id)
    first, second = sender.begin(2, buckets=buckets(NOON))
    back = result(first, State.PENDING, give_back=True, uncharge=True)
    for _ in range(3):
        sender.step(results=[back], withdraw=[first.attempt])
    sender.step(results=[result(second, State.UNKNOWN, uncharge=True)])
    assert charged(store) == (1, 1)
    sender.step(withdraw=[second.attempt])
    assert charged(store) == (0, 0)


@pytest.mark.parametrize("state", [State.SENT, State.FAILED, State.UNKNOWN, State.RETRY_SCHEDULED])
def test_what_may_have_been_sent_stays_charged(store: Store, factory: StoreFactory, state: State) -> None:
    id = mailout(store, *PEOPLE)
    sender = Sender(store, id)
    sender.step(results=[result(sender.begin_one(buckets=buckets(NOON)), state)])
    assert charged(store) == (1, 1)


def test_what_a_dead_sender_began_stays_charged(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, *PEOPLE)
    Sender(store, id).begin(2, buckets=buckets(NOON))
    factory.set_now(NOON + LEASE + GRACE + 1)
    store.reap(GRACE)
    store.settle(id, State.PENDING, wait=0.0)
    assert charged(store) == (2, 2)
    Sender(store, id).begin(2, buckets=buckets(NOON))
    assert charged(store) == (4, 4)


def test_the_quota_is_what_was_left_less_what_was_begun_since(store: Store, factory: StoreFactory) -> None:
    """Without the subtraction every worker would spend the same allowance again."""
    id = mailout(store, *PEOPLE)
    sender = Sender(store, id)
    assert outbox_rows.quota(store, ACCOUNT) is None
    store.set_quota(ACCOUNT, 4, NOON)
    assert outbox_rows.quota(store, ACCOUNT) == 4
    first = sender.begin(3, buckets=buckets(NOON))
    assert outbox_rows.quota(store, ACCOUNT) == 1
    assert len(sender.begin(3, buckets=buckets(NOON))) == 1
    reply = sender.step(want=3, buckets=buckets(NOON))
    assert (list(reply.rows), reply.limited, outbox_rows.quota(store, ACCOUNT)) == ([], "quota", 0)
    sender.step(withdraw=[first[0].attempt])
    assert outbox_rows.quota(store, ACCOUNT) == 1


def test_a_withdrawal_is_returned_to_the_quota_also_without_limits(store: Store) -> None:
    """A sender that sets no hourly or daily limit has a quota all the same."""
    id = mailout(store, *PEOPLE)
    sender = Sender(store, id)
    store.set_quota(ACCOUNT, 10, NOON)
    sender.step(withdraw=[row.attempt for row in sender.begin(3)])
    assert outbox_rows.quota(store, ACCOUNT) == 10


def test_asked_again_the_quota_forgets_what_the_provider_has_counted(
    store: Store, factory: StoreFactory
) -> None:
    """Five minutes overlap: the provider may not have counted the last ones yet."""
    id = mailout(store, *PEOPLE)
    sender = Sender(store, id, lease=7200.0)
    sender.begin(2)
    factory.set_now(NOON + 600)
    sender.begin(1)
    factory.set_now(NOON + 660)
    store.set_quota(ACCOUNT, 50, NOON + 660)
    assert outbox_rows.quota(store, ACCOUNT) == 49
    store.set_quota(ACCOUNT, None, NOON + 660)
    assert outbox_rows.quota(store, ACCOUNT) is None
    assert len(sender.begin(6)) == 3
