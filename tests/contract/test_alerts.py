"""What a person has been told of: once, whoever looks, and again if it comes back."""

from __future__ import annotations

import threading
from datetime import UTC
from typing import Any

import pytest

from mailout.base.errors import MailoutError, SourceRefused, SourceUnavailable
from mailout.insight.alerts import alert_rows
from mailout.insight.alerts.conditions import EVENTS_UNHEARD_SECONDS, alerts
from mailout.insight.alerts.port import AlertKind, Facts, KnownAlert
from mailout.insight.history.notion_troubles import PAGE, READING, forget, keep
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Claimed
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.port import Received
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import DeferReason, Status
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import ACCOUNT, Sender, enqueue, mailout, result
from tests.contract.stores import StoreFactory
from tests.contract.test_events import hear
from tests.contract.test_single_mails import mail
from tests.ses_events import ses_event

ANN, BOB, CAT = "ann@example.org", "bob@example.org", "cat@example.org"

# ── what was told ──


def test_what_holds_is_kept_with_its_beginning_until_it_ends(store: Store, factory: StoreFactory) -> None:
    assert store.alerts_hold(["b", "a"], NOON) == [KnownAlert("a", NOON), KnownAlert("b", NOON)]
    factory.set_now(NOON + 60)
    assert store.alerts_hold(["a"], NOON + 60) == [KnownAlert("a", NOON)]
    assert alert_rows.alert_signs(store, ACCOUNT).holding == {"a"}
    assert store.alerts_hold(["a", "a"], NOON + 90) == [KnownAlert("a", NOON)]  # twice is once
    assert store.alerts_hold([], NOON + 120) == []
    assert store.alerts_hold(["c", "c"], NOON + 150) == [KnownAlert("c", NOON + 150)]
    assert store.alerts_hold([], NOON + 160) == []
    assert alert_rows.alert_signs(store, ACCOUNT).holding == frozenset()


def test_only_one_of_two_workers_tells_it(store: Store, factory: StoreFactory) -> None:
    """Both have seen that it is due; the administrator would get it twice."""
    (known,) = store.alerts_hold(["a"], NOON)
    other = factory.open_again()
    assert store.claim_alert(known)
    assert not other.claim_alert(known)
    store.alert_sent("a")
    assert not other.claim_alert(known)
    factory.set_now(NOON + 60)
    assert store.alerts_hold(["a"], NOON + 60) == [KnownAlert("a", NOON, 1, 0, NOON, NOON)]


def test_a_try_that_nobody_called_told_has_failed(store: Store, factory: StoreFactory) -> None:
    """Its mail was refused, or its process was killed: it has to be tried again."""
    (known,) = store.alerts_hold(["a"], NOON)
    assert store.claim_alert(known)
    (known,) = store.alerts_hold(["a"], NOON)
    assert known == KnownAlert("a", NOON, 1, 1, NOON, None)
    factory.set_now(NOON + 60)
    assert store.claim_alert(known)
    (known,) = store.alerts_hold(["a"], NOON + 60)
    assert known == KnownAlert("a", NOON, 2, 2, NOON + 60, None)


def test_what_comes_back_has_not_been_told(store: Store, factory: StoreFactory) -> None:
    """The second refusal of a week is news, too."""
    (known,) = store.alerts_hold(["a"], NOON)
    store.claim_alert(known)
    store.alert_sent("a")
    store.alerts_hold([], NOON + 60)
    (again,) = store.alerts_hold(["a"], NOON + 120)
    assert again == KnownAlert("a", NOON + 120, 1, 0, None, None)
    assert not store.claim_alert(known)
    assert store.claim_alert(again)


def test_whoever_looked_earlier_and_comes_late_changes_nothing(store: Store) -> None:
    """A slow worker would otherwise end what has just begun, or tell again what is over."""
    store.alerts_hold(["begun"], NOON + 60)
    store.alerts_hold([], NOON)
    assert alert_rows.alert_signs(store, ACCOUNT).holding == {"begun"}
    store.alerts_hold([], NOON + 120)
    assert store.alerts_hold(["begun"], NOON + 90) == []
    assert alert_rows.alert_signs(store, ACCOUNT).holding == frozenset()


def test_what_has_ended_is_not_told_any_more(store: Store) -> None:
    (known,) = store.alerts_hold(["a"], NOON)
    store.alerts_hold([], NOON + 60)
    assert not store.claim_alert(known)


def test_workers_at_once_tell_each_alert_once(store: Store, factory: StoreFactory) -> None:
    keys = [f"alert {n}" for n in range(10)]
    told: list[str] = []
    all_have_looked = threading.Barrier(4)

    def work(mine: Store) -> None:
        seen = mine.alerts_hold(keys, NOON)
        all_have_looked.wait()
        for known in seen:
            if mine.claim_alert(known):
                told.append(known.key)
                mine.alert_sent(known.key)

    threads = [threading.Thread(target=work, args=(factory.open_again(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == sorted(keys)


# ── what there is to see ──


def test_mailouts_that_need_a_person_are_found_and_no_others(store: Store) -> None:
    enqueue(store, "waits for its turn")
    for reason in (DeferReason.REPUTATION, DeferReason.PAUSED):
        store.defer(enqueue(store, f"held: {reason}"), reason, None, "note")
    store.defer(enqueue(store, "waits for an hour"), DeferReason.RATE_PER_HOUR, NOON + 60)
    resumed = enqueue(store, "resumed")
    store.defer(resumed, DeferReason.REPUTATION, None)
    store.resume(resumed)
    found = queue_rows.needing_a_person(store)
    assert {one.ref for one in found} == {"held: reputation", "held: paused"}
    assert {one.defer_note for one in found} == {"note"}


def test_whatever_was_sent_lately_is_looked_at_for_complaints(store: Store, factory: StoreFactory) -> None:
    """However many tests and small mailouts have come since."""
    ids = []
    for ref, people in (("ended", 2), ("open", 2), ("small", 1)):
        ids.append(id := mailout(store, *(f"{ref}{n}@example.org" for n in range(people)), ref=ref))
        sender = Sender(store, id)
        sender.step(results=[result(one) for one in sender.begin(people)], close=True)
    assert store.complete(ids[0]).status is Status.COMPLETED
    for n in range(101):
        enqueue(store, f"newer {n}", is_test=True)
    assert {one.ref for one in queue_rows.lately_sent(store, NOON, 2)} == {"ended", "open"}
    assert {one.ref for one in queue_rows.lately_sent(store, NOON + 1, 2)} == {"open"}


def test_a_mailout_with_messages_in_doubt_needs_a_person_until_they_are_settled(store: Store) -> None:
    """Also when it is done: it stays failed, and nobody would ever say what became of them."""
    id = mailout(store, ANN)
    sender = Sender(store, id)
    sender.step(results=[result(sender.begin_one(), State.UNKNOWN)])
    assert [one.ledger.unknown for one in queue_rows.needing_a_person(store)] == [1]
    store.complete(id)
    assert [one.id for one in queue_rows.needing_a_person(store)] == [id]
    store.settle(id, State.SENT, wait=0)
    assert queue_rows.needing_a_person(store) == []


def test_of_a_cancelled_one_nothing_is_asked(store: Store) -> None:
    id = mailout(store, ANN, BOB)
    sender = Sender(store, id)
    sender.step(results=[result(sender.begin_one(), State.UNKNOWN)])
    store.cancel(id)
    assert queue_rows.needing_a_person(store) == []


def test_the_provider_tells_how_much_there_is_to_spend(store: Store, factory: StoreFactory) -> None:
    factory.set_now(NOON)
    assert alert_rows.alert_signs(store, ACCOUNT).quota_most is None
    store.set_quota(ACCOUNT, 40, NOON, most=50_000)
    signs = alert_rows.alert_signs(store, ACCOUNT)
    assert (signs.now, signs.quota_most, outbox_rows.quota(store, ACCOUNT)) == (NOON, 50_000, 40)
    assert alert_rows.alert_signs(store, "another account").quota_most is None
    store.set_quota(ACCOUNT, None, NOON)
    assert alert_rows.alert_signs(store, ACCOUNT).quota_most is None


def test_events_that_wait_are_counted_from_the_oldest(store: Store, factory: StoreFactory) -> None:
    assert alert_rows.alert_signs(store, ACCOUNT).events_waiting_since is None
    store.receive_events([Received("1", "sns", "{}")])
    factory.set_now(NOON + 60)
    store.receive_events([Received("2", "sns", "{}")])
    signs = alert_rows.alert_signs(store, ACCOUNT)
    assert (signs.events_waiting, signs.events_waiting_since) == (2, NOON)


def test_what_keeps_letters_in_notion_waiting_is_told_while_it_lasts(
    store: Store, factory: StoreFactory
) -> None:
    """At once what a person has to put right; after ten minutes what may pass by itself."""

    def told() -> list[tuple[str, float]]:
        found = alerts(Facts(alert_rows.alert_signs(store, ACCOUNT)), UTC)
        assert {alert.kind for alert in found} <= {AlertKind.NOTION}
        return [(alert.subject, alert.text.count("12:00 UTC")) for alert in found]

    factory.set_now(NOON)
    keep(store, READING, {"": SourceUnavailable("Notion answered 502.")})
    assert told() == []
    keep(store, PAGE, {"p1": SourceRefused("Notion answered 403."), "p2": SourceUnavailable()})
    assert told() == [("The page p1 waits", 1)]
    factory.set_now(NOON + 600)
    keep(store, READING, {"": SourceUnavailable("Notion answered 503.")})
    assert told() == [("The page p1 waits", 1), ("The page p2 waits", 1), ("Notion cannot be read", 1)]
    keep(store, PAGE, {"p2": SourceUnavailable()})
    keep(store, READING, {})
    assert told() == [("The page p2 waits", 1)]
    forget(store)
    assert told() == []


def test_of_two_machines_the_one_that_can_read_notion_does_not_take_back_what_the_other_says(
    store: Store, factory: StoreFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or each of its looks would be another alert."""

    def look(host: str, error: MailoutError | None = None) -> list[float]:
        monkeypatch.setattr("socket.gethostname", lambda: host)
        keep(store, READING, {"": error} if error else {})
        return [one.since for one in alert_rows.alert_signs(store, ACCOUNT).notion]

    refused = SourceRefused("Notion answered 401.")
    factory.set_now(NOON)
    assert look("old", refused) == [NOON]
    for minutes in range(10, 70, 10):
        factory.set_now(NOON + minutes * 60)
        assert look("new") == [NOON]
        assert look("old", refused) == [NOON]
    assert look("new", refused) == [NOON], "once, for both"
    assert look("old") == [NOON]
    assert look("new") == []
    look("old", refused)
    factory.set_now(NOON + 2 * 3600)
    assert look("new") == [], "a machine that is gone says nothing more"


def _sent_through(store: Store, id: str, transport: str, *, accepted: bool = True) -> None:
    sender = Sender(store, id)
    sender.session = store.open_session(id, worker="worker", transport=transport, lease=60.0)
    results = [result(claimed, State.SENT if accepted else State.FAILED) for claimed in sender.begin(want=10)]
    sender.step(results=results, close=True)


def test_mail_through_ses_is_unheard_of_until_an_event_comes(store: Store, factory: StoreFactory) -> None:
    """Bounces and complaints would go unnoticed for as long as nobody looks into AWS."""
    assert alert_rows.alert_signs(store, ACCOUNT).unheard_since is None
    factory.set_now(NOON + 10)
    id = mailout(store, ANN, BOB)
    _sent_through(store, id, "ses")
    factory.set_now(NOON + 4000)
    assert alert_rows.alert_signs(store, ACCOUNT).unheard_since == pytest.approx(NOON + 10)
    store.receive_events([Received("1", "sns", "{}")])
    assert alert_rows.alert_signs(store, ACCOUNT).unheard_since is None


def _single_mail_sent(store: Store, *, is_rehearsal: bool = False, state: State = State.SENT) -> Claimed:
    store.accept_single_mails([mail("receipt", is_rehearsal=is_rehearsal)])
    sender = Sender(store, None)
    transport = "folder" if is_rehearsal else "ses"
    sender.session = store.open_session(None, worker="worker", transport=transport, lease=60.0)
    claimed = sender.begin_one()
    sender.step(results=[result(claimed, state)], close=True)
    return claimed


def test_a_single_mail_is_unheard_of_until_an_event_comes(store: Store, factory: StoreFactory) -> None:
    """Where only receipts are sent, nobody would notice either."""
    _single_mail_sent(store)
    factory.set_now(NOON + EVENTS_UNHEARD_SECONDS - 1)
    assert alert_rows.alert_signs(store, ACCOUNT).unheard_since is None
    factory.set_now(NOON + EVENTS_UNHEARD_SECONDS)
    assert alert_rows.alert_signs(store, ACCOUNT).unheard_since == pytest.approx(NOON)
    factory.set_now(NOON + 2 * EVENTS_UNHEARD_SECONDS)
    store.receive_events([Received("1", "sns", "{}")])
    assert alert_rows.alert_signs(store, ACCOUNT).unheard_since is None


def test_a_single_mail_that_ses_reported_on_was_heard_of_when_the_inbox_is_trimmed(
    store: Store, factory: StoreFactory
) -> None:
    claimed = _single_mail_sent(store)
    hear(store, ses_event("Delivery", attempt=claimed.attempt))
    factory.set_now(NOON + 4000)
    factory.raw("DELETE FROM events_inbox")
    assert alert_rows.alert_signs(store, ACCOUNT).unheard_since is None


@pytest.mark.parametrize("unlike", [{"is_rehearsal": True}, {"state": State.FAILED}])
def test_no_events_are_expected_of_single_mails_that_ses_has_not_taken(
    store: Store, factory: StoreFactory, unlike: dict[str, Any]
) -> None:
    _single_mail_sent(store, **unlike)
    factory.set_now(NOON + 4000)
    assert alert_rows.alert_signs(store, ACCOUNT).unheard_since is None


def test_a_single_mail_of_last_week_is_no_sign(store: Store, factory: StoreFactory) -> None:
    """Events may have been set up since."""
    _single_mail_sent(store)
    factory.set_now(NOON + 7 * 86_400)
    assert alert_rows.alert_signs(store, ACCOUNT).unheard_since is None


def test_no_events_are_expected_of_a_folder(store: Store, factory: StoreFactory) -> None:
    """Whoever tries it on a folder and then turns to SES would be told at once that nothing comes back."""
    _sent_through(store, mailout(store, ANN), "folder")
    assert alert_rows.alert_signs(store, ACCOUNT).unheard_since is None


def test_no_events_are_expected_of_what_ses_refused(store: Store, factory: StoreFactory) -> None:
    """In the sandbox everything is refused: the failures are told already."""
    _sent_through(store, mailout(store, ANN), "ses", accepted=False)
    assert alert_rows.alert_signs(store, ACCOUNT).unheard_since is None


def test_a_retry_in_vain_of_a_mailout_that_was_heard_of_is_no_sign(
    store: Store, factory: StoreFactory
) -> None:
    id = mailout(store, ANN, BOB, CAT)
    _sent_through(store, id, "ses")
    store.receive_events([Received("1", "sns", "{}")])
    factory.raw("UPDATE campaign_queue SET metrics = ?", ('{"delivered": 1, "bounced": 1}',))
    factory.set_now(NOON + 600)
    _sent_through(store, id, "ses")
    assert alert_rows.alert_signs(store, ACCOUNT).unheard_since is None
