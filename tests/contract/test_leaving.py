"""People who leave: at once, for good if they complained, and without a trace if they ask for it."""

from __future__ import annotations

import hmac
import json
from hashlib import sha256

import pytest

from mailout.base import error_log
from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.base.errors import NotFound, StoreError
from mailout.base.ids import uuid_of
from mailout.insight.history import history_rows
from mailout.insight.history.history_rows import ACT_TABLE
from mailout.insight.history.port import Act
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import Choice, ImportCounts, SubscriberRow
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.port import UNDO_SECONDS
from mailout.outbox.queue.port import Recipient
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import (
    Sender,
    assert_ledger,
    dead_event,
    handed_mailout,
    mailout,
    result,
    states,
    subscribe,
)
from tests.contract.stores import StoreFactory
from tests.contract.test_events import hear
from tests.contract.test_join import confirm
from tests.ses_events import ses_event

ANN, BOB = "ann@example.org", "bob@example.org"
HASH = "forgotten:0123456789abcdef"


def sent(store: Store, *emails: str, ref: str = "page", **fields: str) -> str:
    id = mailout(store, *emails, ref=ref, **fields)
    sender = Sender(store, id)
    sender.step(results=[result(one) for one in sender.begin(len(emails))])
    return id


def list_of(store: Store, email: str) -> dict[str, float | None]:
    return {
        entry["list_key"]: entry["unsubscribed_at"]
        for entry in subscriber_rows.subscriber(store, email)["lists"]
    }


def test_who_was_forgotten_and_is_on_the_list_again_can_leave(store: Store, factory: StoreFactory) -> None:
    """Somebody wrote them into the table by hand: a letter's link must not answer and do nothing."""
    subscribe(store, ANN)
    store.forget(ANN, HASH)
    store.unsubscribe(ANN, None)
    assert not subscriber_rows.is_known(store, ANN)
    row = (uuid_of("by hand"), ANN, ANN, NOON)
    factory.raw("INSERT INTO subscribers (id, email, email_norm, created_at) VALUES (?, ?, ?, ?)", row)
    store.unsubscribe(ANN, "weekly")
    assert list(list_of(store, ANN)) == ["weekly"]
    store.unsubscribe(ANN, None)
    assert subscriber_rows.subscriber(store, ANN)["status"] == "unsubscribed"


def test_leaving_everything_is_done_once(store: Store, factory: StoreFactory) -> None:
    subscribe(store, ANN, lists=["weekly"])
    assert store.unsubscribe(ANN, None)
    factory.set_now(NOON + 60)
    assert store.unsubscribe(ANN, None)
    found = subscriber_rows.subscriber(store, ANN)
    assert (found["status"], found["status_updated_at"]) == ("unsubscribed", NOON)
    assert [row["event_type"] for row in feedback_rows.delivery_events(store, email=ANN)] == ["unsubscribe"]


def test_leaving_one_list_leaves_the_others(store: Store, factory: StoreFactory) -> None:
    subscribe(store, ANN, lists=["weekly", "daily"])
    store.unsubscribe(ANN, "weekly")
    factory.set_now(NOON + 60)
    store.unsubscribe(ANN, "weekly")
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active"
    assert list_of(store, ANN) == {"daily": None, "weekly": NOON}


@pytest.mark.parametrize("list_key", [None, "weekly"])
def test_who_was_not_known_is_remembered_as_gone(store: Store, list_key: str | None) -> None:
    """They got mail from somewhere and do not want it: the next import must not bring them back."""
    store.unsubscribe(ANN, list_key)
    subscribe(store, ANN, lists=["weekly"])
    id = mailout(store, BOB, list_key="weekly")
    assert set(states(store, id)) == {BOB}


def test_who_leaves_before_their_turn_gets_nothing(store: Store) -> None:
    id = mailout(store, ANN, BOB)
    store.unsubscribe(ANN, None)
    assert [row.email for row in Sender(store, id).begin(2)] == [BOB]
    assert states(store, id)[ANN] is State.SUPPRESSED


def test_an_unsubscribe_counts_for_the_last_mailout_that_reached_him(
    store: Store, factory: StoreFactory
) -> None:
    first = sent(store, ANN, BOB, ref="first")
    factory.set_now(NOON + 3600)
    second = sent(store, ANN, BOB, ref="second")
    third = mailout(store, ANN, ref="third")  # has not reached Ann yet
    store.unsubscribe(ANN, None)
    store.unsubscribe(ANN, None)
    metrics = [store.mailout(id).metrics.get("unsubscribed", 0) for id in (first, second, third)]
    assert metrics == [0, 1, 0]


def message_to(store: Store, id: str, email: str) -> str:
    return next(row["id"] for row in outbox_rows.messages(store, id) if row["email"] == email)


@pytest.mark.parametrize("list_key", [None, "weekly"])
def test_an_unsubscribe_counts_for_the_mailout_whose_link_was_followed(
    store: Store, factory: StoreFactory, list_key: str | None
) -> None:
    fields = {"list_key": list_key} if list_key else {}
    first = sent(store, ANN, BOB, ref="first", **fields)
    factory.set_now(NOON + 3600)
    second = sent(store, ANN, BOB, ref="second", **fields)
    for _ in range(2):
        store.unsubscribe(ANN, list_key, message_to(store, first, ANN))
    assert [store.mailout(id).metrics.get("unsubscribed", 0) for id in (first, second)] == [1, 0]
    assert store.resubscribe(ANN, list_key)
    assert store.mailout(first).metrics == {"unsubscribed": 0}


def test_a_link_from_a_message_that_is_not_there_any_more_blames_no_other(store: Store) -> None:
    """Archived, forgotten, or somebody else's: whoever follows it leaves all the same."""
    id = sent(store, ANN, BOB)
    for message in ("00000000-0000-8000-8000-000000000000", message_to(store, id, BOB)):
        assert store.unsubscribe(ANN, None, message)
    assert subscriber_rows.subscriber(store, ANN)["status"] == "unsubscribed"
    assert store.mailout(id).metrics == {}
    assert store.resubscribe(ANN, None)
    assert store.mailout(id).metrics == {}


def test_an_unsubscribe_from_a_list_counts_for_that_list_s_mailout(store: Store) -> None:
    weekly = sent(store, ANN, ref="weekly", list_key="weekly")
    other = sent(store, ANN, ref="other")
    store.unsubscribe(ANN, "weekly")
    assert store.mailout(weekly).metrics == {"unsubscribed": 1}
    assert store.mailout(other).metrics == {}


@pytest.mark.parametrize("list_key", [None, "weekly"])
def test_a_mistake_can_be_taken_back_with_all_it_changed(store: Store, list_key: str | None) -> None:
    id = sent(store, ANN, list_key=list_key) if list_key else sent(store, ANN)
    for _ in range(2):
        store.unsubscribe(ANN, list_key)
        assert store.mailout(id).metrics == {"unsubscribed": 1}
        assert store.resubscribe(ANN, list_key)
        assert store.mailout(id).metrics == {"unsubscribed": 0}
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active"
    assert set(list_of(store, ANN).values()) <= {None}


def test_taking_one_unsubscribe_back_leaves_the_others_counted(store: Store, factory: StoreFactory) -> None:
    """Who left after one letter and came back later did leave; the mistake was the second time."""
    first = sent(store, ANN, ref="first", list_key="weekly")
    store.unsubscribe(ANN, "weekly", message_to(store, first, ANN))
    factory.set_now(NOON + 3600)
    store.choose(ANN, Choice(joins={"weekly": "Weekly news"}, source="https://x.org"))
    second = sent(store, ANN, ref="second", list_key="weekly")
    store.unsubscribe(ANN, "weekly", message_to(store, second, ANN))
    assert store.resubscribe(ANN, "weekly")
    assert [store.mailout(id).metrics["unsubscribed"] for id in (first, second)] == [1, 0]
    assert store.resubscribe(ANN, "weekly")
    assert store.mailout(first).metrics["unsubscribed"] == 1


def test_a_message_that_another_unsubscribe_answers_stays_counted(store: Store) -> None:
    id = sent(store, ANN, list_key="weekly")
    for list_key in ("weekly", None):
        store.unsubscribe(ANN, list_key, message_to(store, id, ANN))
    assert store.resubscribe(ANN, None)
    assert store.mailout(id).metrics == {"unsubscribed": 1}
    assert store.resubscribe(ANN, "weekly")
    assert store.mailout(id).metrics == {"unsubscribed": 0}


def test_keeping_what_was_never_left_changes_nothing(store: Store) -> None:
    subscribe(store, ANN, lists=["weekly"])
    before = subscriber_rows.subscriber(store, ANN)
    assert store.resubscribe(ANN, None)
    assert store.resubscribe(ANN, "weekly")
    assert subscriber_rows.subscriber(store, ANN) == before


@pytest.mark.parametrize("list_key", [None, "weekly"])
@pytest.mark.parametrize("name", ["Complaint", "Bounce"])
@pytest.mark.parametrize("complaint_first", [True, False])
def test_after_a_complaint_or_a_bounce_there_is_no_way_back(
    store: Store, name: str, complaint_first: bool, list_key: str | None
) -> None:
    """Undoing is only from `unsubscribed`, never after a complaint."""
    subscribe(store, ANN, lists=["weekly"])
    steps = [lambda: hear(store, ses_event(name)), lambda: store.unsubscribe(ANN, list_key)]
    for step in steps if complaint_first else reversed(steps):
        step()
    before = subscriber_rows.subscriber(store, ANN)
    assert not store.unsubscribe(ANN, list_key)
    assert not store.resubscribe(ANN, list_key)
    assert subscriber_rows.subscriber(store, ANN) == before
    assert before["status"] == ("bounced" if name == "Bounce" else "unsubscribed")


def test_nobody_comes_back_to_a_list_while_gone_from_everything(store: Store) -> None:
    subscribe(store, ANN, lists=["weekly"])
    store.unsubscribe(ANN, "weekly")
    store.unsubscribe(ANN, None)
    assert not store.resubscribe(ANN, "weekly")


def test_who_was_never_active_has_nothing_to_come_back_to(store: Store) -> None:
    """An editor who tries the links of a test mail must not end up on the list."""
    assert not store.unsubscribe("stranger@example.net", None)
    assert not store.resubscribe("stranger@example.net", None)
    subscribe(store, BOB, status="unsubscribed")
    assert not store.resubscribe(BOB, None)
    assert subscriber_rows.subscriber_counts(store)["active"] == 0


@pytest.mark.parametrize("list_key", [None, "weekly"])
def test_whoever_left_long_ago_is_not_offered_what_would_be_refused(
    store: Store, factory: StoreFactory, list_key: str | None
) -> None:
    subscribe(store, ANN, lists=["weekly"])
    assert store.unsubscribe(ANN, list_key)
    factory.set_now(NOON + 86_000)
    assert store.unsubscribe(ANN, list_key), "again, within a day"
    factory.set_now(NOON + 87_000)
    assert not store.unsubscribe(ANN, list_key)
    assert not store.resubscribe(ANN, list_key, 86_400.0)


def test_a_stranger_cannot_subscribe_himself(store: Store) -> None:
    assert not store.resubscribe("stranger@example.net", None)
    with pytest.raises(NotFound):
        subscriber_rows.subscriber(store, "stranger@example.net")


# ── Forgetting ───────────────────────────────────────────────────────────────────────────────────


def test_a_forgotten_person_is_nowhere_and_the_counts_stay(store: Store, factory: StoreFactory) -> None:
    """The right to be erased: searched for in every table, not only where we think of it."""
    subscribe(store, ANN, lists=["weekly"], from_name="Ann's", attributes={"city": "Perm"})
    id = sent(store, ANN, BOB)
    waiting = mailout(store, ANN, BOB, ref="waits")
    ann = next(row for row in outbox_rows.messages(store, id) if row["email"] == ANN)
    hear(store, ses_event("Bounce", ses_id=ann["ses_message_id"]))
    store.put(ERROR_TABLE, [ErrorRecord("x", f"could not reach {ANN}", stage="delivery", email=ANN)])
    dead_event(store, json.dumps({"email": ANN}))
    store.put(ACT_TABLE, [Act(f"{ANN} (192.0.2.1)", "signed in")])
    before = store.mailout(id)

    done = store.forget(ANN, HASH)
    assert (done.subscribers, done.messages, done.errors) == (1, 2, 1)
    assert set(done.mailouts) == {id, waiting}
    for table in ("subscribers", "subscriptions", "email_outbox", "delivery_events", "error_records"):
        assert ANN not in str(factory.raw(f"SELECT * FROM {table}"))
    assert ANN not in str(factory.raw("SELECT * FROM dead_letters"))
    assert [act.who for act in history_rows.acts(store)] == [f"{HASH} (192.0.2.1)"]
    assert "Ann's" not in str(factory.raw("SELECT * FROM email_outbox"))
    after = store.mailout(id)
    assert (after.ledger, after.metrics) == (before.ledger, before.metrics)
    assert states(store, waiting) == {HASH: State.SUPPRESSED, BOB: State.PENDING}
    assert_ledger(store, id)
    assert_ledger(store, waiting)


def test_forgetting_somebody_changes_nothing_of_who_has_a_longer_address(
    store: Store, factory: StoreFactory
) -> None:
    other = f"jo{ANN}"
    store.put(ERROR_TABLE, [ErrorRecord("x", f"neither {other} nor {ANN}.", stage="delivery")])
    dead_event(store, json.dumps({"emails": [other, ANN, f"{ANN}.au"], "said": f"550:\n{ANN}\t{ANN}"}))
    factory.raw(f"UPDATE dead_letters SET error = 'refused: {other}, {ANN}' RETURNING id")
    store.forget(ANN, HASH)
    assert f"neither {other} nor {HASH}." in [one.message for one in error_log.errors(store)]
    (dead,) = factory.raw("SELECT payload, error FROM dead_letters")
    assert dead["error"] == f"refused: {other}, {HASH}"
    kept = str(dead["payload"]).replace("\\", "").replace("'", '"')
    assert f'"{other}", "{HASH}", "{ANN}.au"' in kept
    assert kept.count(HASH) == 3


def test_a_late_event_does_not_bring_the_address_back(store: Store, factory: StoreFactory) -> None:
    id = sent(store, ANN)
    (ann,) = outbox_rows.messages(store, id)
    store.forget(ANN, HASH)
    hear(store, ses_event("Delivery", ses_id=ann["ses_message_id"]))
    assert ANN not in str(factory.raw("SELECT * FROM delivery_events"))
    assert store.mailout(id).metrics == {"delivered": 1}


@pytest.mark.parametrize("tried", [False, True])
def test_what_was_not_sent_for_being_forgotten_says_so(
    store: Store, factory: StoreFactory, tried: bool
) -> None:
    """Not nothing, and not why an earlier try failed."""
    sender = Sender(store, mailout(store, ANN))
    if tried:
        later = result(sender.begin_one(), State.RETRY_SCHEDULED, code="BUSY", message="busy", retry_in=5.0)
        sender.step(results=[later])
    store.forget(ANN, "forgotten:1")
    (row,) = factory.raw("SELECT state, error_message FROM email_outbox")
    assert (row["state"], row["error_message"]) == ("SUPPRESSED", "forgotten")


def test_nobody_is_forgotten_while_a_message_to_him_is_in_the_air(store: Store) -> None:
    """A retry would go to the hash."""
    id = handed_mailout(store, Recipient(ANN), is_test=True)
    Sender(store, id).begin_one()
    with pytest.raises(StoreError, match="on its way"):
        store.forget(ANN, HASH)
    assert set(states(store, id)) == {ANN}


def test_forgetting_somebody_unknown_forgets_nothing(store: Store) -> None:
    sent(store, ANN)
    done = store.forget("stranger@example.net", HASH)
    assert (done.subscribers, done.messages, done.events, done.mailouts) == (0, 0, 0, ())


def test_an_import_does_not_bring_back_whom_we_forgot(store: Store, factory: StoreFactory) -> None:
    """Somebody's old file has the address; who asked to be erased would get mail again."""
    subscribe(store, ANN, BOB)
    store.forget(ANN, HASH)
    counts = store.import_subscribers([SubscriberRow("Ann@example.org", ANN), SubscriberRow(BOB, BOB)])
    assert counts == ImportCounts(unchanged=1, forgotten=1)
    with pytest.raises(NotFound):
        subscriber_rows.subscriber(store, ANN)
    again = factory.open_again()  # what is remembered is the store's, not the process's
    assert again.import_subscribers([SubscriberRow(ANN, ANN, lists=["weekly"])]).forgotten == 1
    assert ANN not in str(factory.raw("SELECT * FROM subscriptions"))


def test_who_was_forgotten_may_sign_up_and_is_then_like_everybody(store: Store) -> None:
    subscribe(store, ANN)
    store.forget(ANN, HASH)
    counts = store.import_subscribers([SubscriberRow(ANN, ANN)], own_sign_up=True)
    assert counts == ImportCounts(added=1)
    assert store.import_subscribers([SubscriberRow(ANN, ANN)]) == ImportCounts(unchanged=1)


@pytest.mark.parametrize("how", ["themselves", "file", "dashboard"])
def test_who_signs_up_again_gets_everything_that_they_asked_for(
    store: Store, factory: StoreFactory, how: str
) -> None:
    """`subscribers add --signed-up`: whoever said no before, and from which list they were taken."""
    subscribe(store, ANN, lists=["weekly"])
    factory.set_now(NOON + 60)
    store.unsubscribe(ANN, "weekly")
    if how == "themselves":
        store.unsubscribe(ANN, None)
    elif how == "file":
        subscribe(store, ANN, status="unsubscribed")
    else:
        store.unsubscribe_by_hand(ANN, None)
    subscribe(store, ANN, lists=["weekly"])
    assert store.audience_size(None) + store.audience_size("weekly") == 0, "no import brings them back"
    store.import_subscribers([SubscriberRow(ANN, ANN, lists=["weekly"])], own_sign_up=True)
    assert (store.audience_size(None), store.audience_size("weekly")) == (1, 1)


@pytest.mark.parametrize("how", ["complaint", "bounce"])
def test_not_even_their_own_sign_up_at_the_desk_passes_a_complaint_or_a_bounce(
    store: Store, how: str
) -> None:
    subscribe(store, ANN)
    sent(store, ANN)
    hear(store, ses_event(how.title()))
    store.import_subscribers([SubscriberRow(ANN, ANN)], own_sign_up=True)
    assert store.audience_size(None) == 0


def test_what_is_kept_of_a_forgotten_address_tells_nobody_whose_it_was(
    store: Store, factory: StoreFactory
) -> None:
    """A plain hash could be found by trying out addresses."""
    subscribe(store, ANN)
    store.forget(ANN, HASH)
    (kept,) = factory.raw("SELECT hash FROM forgotten")
    text = kept["hash"] if isinstance(kept["hash"], str) else bytes(kept["hash"]).hex()
    assert len(text) == 64
    assert text != sha256(ANN.encode()).hexdigest()
    assert text == hmac.digest(_key(factory), ANN.encode(), "sha256").hex()


def _key(factory: StoreFactory) -> bytes:
    (secret,) = factory.raw("SELECT * FROM store_secrets")
    if "value" in secret:
        return bytes(secret["value"])
    return bytes(byte ^ 0x36 for byte in bytes(secret["inner_pad"]))


# ── Unsubscribed by somebody at the dashboard ──


@pytest.mark.parametrize("list_key", [None, "weekly"])
def test_what_the_dashboard_ended_can_be_undone_there_for_a_day(
    store: Store, factory: StoreFactory, list_key: str | None
) -> None:
    """A slip of the hand must not cost a reader; a day later it is nobody's slip any more."""
    subscribe(store, ANN, lists=["weekly"])
    id = sent(store, ANN, list_key="weekly") if list_key else sent(store, ANN)
    assert store.unsubscribe_by_hand(ANN, list_key)
    assert not store.unsubscribe_by_hand(ANN, list_key)
    assert subscriber_rows.unsubscribed_by_hand(store, ANN) == {list_key or "": NOON}
    assert store.mailout(id).metrics["unsubscribed"] == 1
    factory.set_now(NOON + 86_399)
    assert store.undo_unsubscribe(ANN, list_key)
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active"
    assert list_of(store, ANN) == {"weekly": None}
    assert store.mailout(id).metrics.get("unsubscribed", 0) == 0
    assert not store.undo_unsubscribe(ANN, list_key)
    assert store.unsubscribe_by_hand(ANN, list_key)
    factory.set_now(NOON + 86_399 + 86_400)
    assert not store.undo_unsubscribe(ANN, list_key)


def test_a_reader_s_own_unsubscribe_is_never_undone_by_others(store: Store, factory: StoreFactory) -> None:
    subscribe(store, ANN, lists=["weekly"])
    store.unsubscribe(ANN, None)
    assert not store.undo_unsubscribe(ANN, None)
    subscribe(store, BOB)
    assert store.unsubscribe_by_hand(BOB, None)
    store.unsubscribe(BOB, None)  # and then he does it himself, too
    assert not store.undo_unsubscribe(BOB, None)


def test_who_is_on_general_as_everybody_is_can_be_taken_off_it_alone(store: Store) -> None:
    subscribe(store, ANN, lists=["weekly"])
    assert not store.unsubscribe_by_hand(BOB, "general"), "a stranger is on no list"
    assert store.unsubscribe_by_hand(ANN, "general")
    assert not store.unsubscribe_by_hand(ANN, "general")
    assert (store.audience_size(None), store.audience_size("weekly")) == (0, 1)
    assert store.undo_unsubscribe(ANN, "general")
    assert store.audience_size(None) == 1


@pytest.mark.parametrize("list_key", [None, "staff"])
def test_what_the_dashboard_ended_is_not_undone_by_an_old_letter(store: Store, list_key: str | None) -> None:
    """Who was taken off a private list has its letters still, and so has whoever they forwarded them to."""
    subscribe(store, ANN, lists=["staff"])
    assert store.unsubscribe_by_hand(ANN, list_key)
    assert not store.resubscribe(ANN, list_key, UNDO_SECONDS)
    assert store.audience_size("staff") == 0
    assert store.undo_unsubscribe(ANN, list_key)
    assert store.resubscribe(ANN, list_key, UNDO_SECONDS), "they had not left at all"


@pytest.mark.parametrize("again", [None, "staff"])
@pytest.mark.parametrize("list_key", [None, "staff"])
def test_who_unsubscribes_too_after_the_dashboard_did_does_not_come_back_so(
    store: Store, list_key: str | None, again: str | None
) -> None:
    subscribe(store, ANN, lists=["staff"])
    assert store.unsubscribe_by_hand(ANN, list_key)
    may_return = store.unsubscribe(ANN, again)
    assert may_return is (list_key is not None and again is None)
    assert store.resubscribe(ANN, again, UNDO_SECONDS) is may_return
    assert not store.resubscribe(ANN, list_key, UNDO_SECONDS)
    assert store.audience_size("staff") == 0
    said_so = again in (list_key, None)
    assert store.undo_unsubscribe(ANN, list_key) is not said_so


@pytest.mark.parametrize("how", ["desk", "form", "preferences"])
def test_who_came_back_themselves_may_take_their_own_unsubscribe_back(store: Store, how: str) -> None:
    subscribe(store, ANN, lists=["weekly"])
    assert store.unsubscribe_by_hand(ANN, "weekly")
    if how == "desk":
        store.import_subscribers([SubscriberRow(ANN, ANN, lists=["weekly"])], own_sign_up=True)
    elif how == "form":
        confirm(store, ANN, "weekly", at=NOON)
    else:
        store.choose(ANN, Choice(joins={"weekly": "Weekly"}))
    assert subscriber_rows.unsubscribed_by_hand(store, ANN) == {}
    assert store.audience_size("weekly") == 1
    assert store.unsubscribe(ANN, "weekly")
    assert store.resubscribe(ANN, "weekly", UNDO_SECONDS)


@pytest.mark.parametrize("how", ["complaint", "file"])
def test_what_something_else_has_ended_since_stays_ended(store: Store, how: str) -> None:
    subscribe(store, ANN)
    sent(store, ANN)
    assert store.unsubscribe_by_hand(ANN, None)
    if how == "complaint":
        hear(store, ses_event("Complaint"))
    else:
        store.import_subscribers([SubscriberRow(ANN, ANN, status="unsubscribed")])
    assert not store.undo_unsubscribe(ANN, None)
    assert subscriber_rows.subscriber(store, ANN)["status"] == "unsubscribed"


def test_a_forgotten_person_has_no_trace_of_a_dashboard_s_act(store: Store) -> None:
    subscribe(store, ANN)
    store.unsubscribe_by_hand(ANN, None)
    store.forget(ANN, HASH)
    assert subscriber_rows.unsubscribed_by_hand(store, ANN) == {}


@pytest.mark.parametrize("list_key", [None, "weekly"])
def test_an_old_letter_s_link_writes_no_erased_address_down(store: Store, list_key: str | None) -> None:
    subscribe(store, ANN)
    store.forget(ANN, "forgotten")
    assert not store.unsubscribe(ANN, list_key, None)
    assert subscriber_rows.subscribers(store) == []
    assert feedback_rows.delivery_events(store, email=ANN) == []


@pytest.mark.parametrize("list_key", [None, "weekly"])
def test_who_left_long_ago_is_not_brought_back_by_a_letter(
    store: Store, factory: StoreFactory, list_key: str | None
) -> None:
    subscribe(store, ANN, lists=("weekly",))
    assert store.resubscribe(ANN, list_key, 60.0)  # they had not left at all
    store.unsubscribe(ANN, list_key, None)
    factory.set_now(NOON + 3600)
    assert not store.resubscribe(ANN, list_key, 60.0)
    assert store.resubscribe(ANN, list_key, 7200.0)
