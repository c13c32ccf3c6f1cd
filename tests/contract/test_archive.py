"""Old mailouts leave the store: all of it or nothing, once, and never so that they could be sent again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mailout.base.errors import NotFound, StoreError, StoreRolledBack, UsageError
from mailout.base.ids import mailout_id, message_id
from mailout.insight.retention.archive_file import ArchiveFolder, path_of
from mailout.insight.retention.archiving import Archived, Kept
from mailout.letters.audience import subscriber_rows
from mailout.letters.content import content_rows
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Attempt
from mailout.outbox.delivery.recovery import reap
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue import actions, queue_rows
from mailout.outbox.queue.mailout import Status
from mailout.store import Store
from tests.clocks import NOON, FakeClock
from tests.contract.archives import (
    DAY,
    ENDS,
    LATER,
    Death,
    Killed,
    Mortal,
    archive,
    archiving,
    events_in,
    hidden,
    over,
    read,
    visible,
)
from tests.contract.scenes import Sender, assert_ledger, enqueue, mailout, result
from tests.contract.stores import StoreFactory
from tests.contract.test_events import hear
from tests.ses_events import ses_event
from tests.unit.outbox.delivery.sending import MemoryJournals

ANN, BOB = "ann@example.org", "bob@example.org"


def remaining(factory: StoreFactory) -> tuple[int, int]:
    """Messages and events in the store."""
    tables = ("email_outbox", "delivery_events")
    counts = [factory.raw(f"SELECT count(*) AS n FROM {table}")[0]["n"] for table in tables]
    return counts[0], counts[1]


def attempt(store: Store, id: str, email: str) -> Attempt:
    rows = {row["email"]: row for row in outbox_rows.messages(store, id)}
    return Attempt(rows[email]["id"], rows[email]["epoch"])


# ── what is in it ──


def test_everything_of_it_is_in_the_archive_and_its_row_stays(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    """A column that is left out is gone for good."""
    id = over(store, factory)
    before, was = store.mailout(id), {row["email"]: row for row in outbox_rows.messages(store, id)}
    steps = {row["id"]: outbox_rows.message_events(store, row["id"]) for row in was.values()}
    assert any(len(told) > 4 for told in steps.values())  # one has a history
    (done,) = archive(store, folder)
    assert isinstance(done, Archived)
    assert (done.messages, done.events) == (5, 2)
    assert remaining(factory) == (0, 1)  # eve's unsubscribe was no answer to a message
    found = store.mailout(id)
    assert (found.ledger, found.metrics, found.status) == (before.ledger, before.metrics, before.status)
    assert (found.archived_at, found.archived_to) == (LATER, done.place)
    messages = read(done.place)
    assert messages["email"].to_list() == sorted(ENDS)
    for row in messages.iter_rows(named=True):
        known = was[row["email"]]
        assert row["transport"] == (None if row["session_id"] is None else "folder")
        for name, value in known.items():
            assert plain(row[name]) == plain(value), name
    assert {event["event_type"] for event in events_in(done.place)} == {"delivered", "open"}
    assert found.content_hash
    assert content_rows.content(store, found.content_hash).html  # the letter itself stays


def plain(value: Any) -> Any:
    """Moments as seconds, JSON as what it says."""
    if hasattr(value, "timestamp"):
        return pytest.approx(value.timestamp(), abs=1e-5)
    if isinstance(value, str) and value[:1] in "[{":
        return json.loads(value)
    return value


def test_many_pages_make_one_file_and_nobody_is_missing(
    store: Store, factory: StoreFactory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailout.outbox.delivery.outbox_rows.MESSAGES_A_PAGE", 7)
    monkeypatch.setattr("mailout.insight.retention.archive_file.ROWS_A_PART", 10)
    monkeypatch.setattr("mailout.insight.retention.archiving.CHUNK", 4)
    people = [f"p{number:03}@example.org" for number in range(45)]
    id = mailout(store, *people)
    sender = Sender(store, id)
    claimed = sender.begin(45)
    sender.step(results=[result(one) for one in claimed], close=True)
    events = [ses_event("Open", one.email, attempt=one.attempt, campaign=id) for one in claimed]
    hear(store, *events)
    store.complete(id)
    factory.set_now(LATER)
    (done,) = archive(store, folder)
    assert isinstance(done, Archived)
    assert len(visible(folder)) == 1
    assert read(done.place)["email"].to_list() == people
    assert len({event["id"] for event in events_in(done.place)}) == 45
    assert remaining(factory) == (0, 0)


def test_archives_of_several_mailouts_read_as_one_table(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    """The one line in docs/archive.md: a type that differs from archive to archive would stop it."""
    over(store, factory, ref="first")
    factory.set_now(NOON)
    empty = enqueue(store, "second")
    store.freeze_recipients(empty, [])
    store.complete(empty)
    factory.set_now(LATER)
    archive(store, folder)
    assert len(visible(folder)) == 2
    assert pl.read_parquet(folder / "archive/*.parquet").height == 5


# ── what may go ──


def test_what_is_not_over_or_not_old_stays(store: Store, factory: StoreFactory, folder: Path) -> None:
    """A message in doubt that nobody can settle any more would stay in doubt for ever."""
    doubt, waits = mailout(store, ANN, ref="in doubt"), mailout(store, ANN, ref="waits")
    sender = Sender(store, doubt)
    sender.step(results=[result(sender.begin_one(), State.UNKNOWN)], close=True)
    store.complete(doubt)
    factory.set_now(NOON + 50 * DAY)
    untold = enqueue(store, "untold")
    store.cancel(untold)
    young = enqueue(store, "young")
    factory.set_now(NOON + 51 * DAY)
    store.cancel(young)
    factory.set_now(NOON + 140.5 * DAY)
    kept = archive(store, folder, waits={untold})
    assert [(type(one), one.mailout.id) for one in kept] == [(Kept, doubt), (Kept, untold)]
    assert "settle" in kept[0].why  # type: ignore[union-attr]
    assert "page" in kept[1].why  # type: ignore[union-attr]
    assert store.mailout(waits).status is Status.PROCESSING
    assert store.archive_state(doubt) is None
    assert store.archive_state(waits) is None


def test_nothing_leaves_while_its_bounces_still_count(store: Store, folder: Path) -> None:
    """And not within the 7 days in which the same content is held back."""
    with pytest.raises(UsageError, match="30"):
        list(archiving(store, folder).run(29.9))


def test_a_cancelled_mailout_is_archived_too(store: Store, factory: StoreFactory, folder: Path) -> None:
    id = mailout(store, ANN, BOB)
    store.cancel(id)
    factory.set_now(LATER)
    (done,) = archive(store, folder)
    assert isinstance(done, Archived)
    assert set(read(done.place)["state"]) == {"SUPPRESSED"}


# ── killed, and run again ──


def test_killed_at_any_step_and_run_again_nothing_is_lost(factory: StoreFactory, folder: Path) -> None:
    """Each time before an answer is seen. Killed before the next call, it would have done just as much."""
    survived, at = False, 0
    while not survived:
        at += 1
        store, place = factory.make(FakeClock()), folder / str(at)
        place.mkdir()
        id = over(store, factory)
        everybody = {row["id"] for row in outbox_rows.messages(store, id)}
        death = Death(at, after=True)
        try:
            archive(Mortal(store, death), place, wrap=lambda files, death=death: Mortal(files, death))
        except Killed:
            pass
        else:
            survived = True
        here = {row["id"] for row in outbox_rows.messages(store, id)}
        there = set(read(path)["id"]) if (path := next(iter(visible(place)), None)) else set()
        assert here | there == everybody, death.calls
        assert here == everybody or there == everybody, death.calls
        archive(store, place)
        (path,) = visible(place)
        assert set(read(path)["id"]) == everybody, death.calls
        assert len(events_in(path)) == 2
        assert remaining(factory) == (0, 1), death.calls
        assert hidden(place) == []
        assert store.mailout(id).archived_to is not None
    assert at > 12


def test_a_damaged_archive_deletes_nothing_more(store: Store, factory: StoreFactory, folder: Path) -> None:
    id = over(store, factory)
    kill_at(store, folder, "delete_archived_messages")
    (part,) = visible(folder)
    pl.read_parquet(part).head(2).write_parquet(part)
    (kept,) = archive(store, folder)
    assert isinstance(kept, Kept)
    assert kept.trouble
    assert "damaged" in kept.why
    assert len(outbox_rows.messages(store, id)) == 5
    part.write_bytes(b"no parquet")
    with pytest.raises(StoreError, match="cannot be written or read"):
        archive(store, folder)
    assert len(outbox_rows.messages(store, id)) == 5


def kill_at(store: Store, folder: Path, name: str, *, after: bool = False) -> None:
    """Die before the first call of this name, or before its answer is seen."""

    class At(Death):
        @property
        def struck(self) -> bool:
            return name in self.calls

    death = At(1, after)
    with pytest.raises(Killed):
        archive(Mortal(store, death), folder, wrap=lambda files: Mortal(files, death))


def test_an_archive_that_is_elsewhere_is_named(store: Store, factory: StoreFactory, folder: Path) -> None:
    id = over(store, factory)
    kill_at(store, folder, "delete_archived_messages")
    (path,) = visible(folder)
    path.rename(folder / "elsewhere")
    (kept,) = archive(store, folder)
    assert isinstance(kept, Kept)
    assert "not here" in kept.why
    assert len(outbox_rows.messages(store, id)) == 5
    (folder / "elsewhere").rename(path)
    assert isinstance(archive(store, folder)[0], Archived)


def test_a_store_that_was_set_back_does_not_spoil_the_archive_there_is(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    older = folder / "archive" / f"{over(store, factory)}.{0:08x}.parquet"
    older.parent.mkdir()
    older.write_bytes(b"precious")
    (done,) = archive(store, folder)
    assert isinstance(done, Archived)
    assert older.read_bytes() == b"precious"
    assert read(done.place).height == 5


def test_killed_before_it_has_its_name_an_archive_of_nobody_is_found_too(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    """There is nothing to delete then: nothing else would lead back to it."""
    empty = enqueue(store, "nobody")
    store.cancel(empty)
    factory.set_now(LATER)
    kill_at(store, folder, "mark_archived", after=True)
    assert visible(folder) == []
    archive(store, folder)
    assert [str(path) for path in visible(folder)] == [str(path_of(store.mailout(empty).archived_to or ""))]


# ── two at once ──


def test_two_machines_archive_a_mailout_once(store: Store, factory: StoreFactory, folder: Path) -> None:
    """Each into its own folder: the first to tell the store wins, the other removes its own."""
    id = over(store, factory)
    seen: list[list[Archived | Kept]] = []
    late = Before(store, "mark_archived", lambda: seen.append(archive(store, folder, into="other")))
    assert [type(one) for one in archive(late, folder)] == [Kept]
    assert [type(one) for one in seen[0]] == [Archived]
    assert visible(folder) == hidden(folder) == []
    (path,) = (folder / "other").glob("[!.]*")
    assert read(path).height == 5
    assert store.mailout(id).archived_to == seen[0][0].place  # type: ignore[union-attr]


class Before:
    """A part in front of one of whose calls something else happens, once."""

    def __init__(self, part: Any, name: str, happens: Callable[[], object]) -> None:
        self._part, self._name, self._happens = part, name, [happens]

    def __getattr__(self, name: str) -> Any:
        if name == self._name and self._happens:
            self._happens.pop()()
        return getattr(self._part, name)


def test_a_second_archiver_in_this_folder_is_told_so(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    over(store, factory)
    files = ArchiveFolder(folder / "archive")
    with files.alone(), pytest.raises(UsageError, match="Another"), files.alone():
        raise AssertionError
    with files.alone():
        pass


# ── what happens meanwhile ──


def test_what_changes_while_it_is_read_stays_in_the_store(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    """Else the archive would tell an older truth, and the newer one would be deleted."""
    id = over(store, factory)
    changed = Before(store, "mark_archived", lambda: store.retry_failed(id))
    (kept,) = archive(changed, folder)
    assert isinstance(kept, Kept)
    assert "changed" in kept.why
    assert visible(folder) == []
    assert len(outbox_rows.messages(store, id)) == 5
    assert store.mailout(id).status is Status.PENDING


def test_an_event_that_comes_while_it_is_read_is_not_deleted_with_the_others(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    id = over(store, factory)
    again = ses_event("Open", attempt=attempt(store, id, ANN), campaign=id, at=LATER)
    (done,) = archive(Before(store, "mark_archived", lambda: hear(store, again)), folder)
    assert isinstance(done, Archived)
    assert len(events_in(done.place)) == 2
    (kept,) = feedback_rows.delivery_events(store, message_id=message_id(id, ANN))
    assert (kept["event_type"], kept["event_at"]) == ("open", LATER)


def test_who_is_forgotten_while_it_is_read_is_not_in_the_archive(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    """Erased from the store, and kept in a file that nobody looks into."""
    over(store, factory)
    meanwhile = Before(store, "mark_archived", lambda: store.forget(ANN, "forgotten:1"))
    assert [type(one) for one in archive(meanwhile, folder)] == [Kept]
    (done,) = archive(store, folder)
    assert isinstance(done, Archived)
    assert ANN not in set(read(done.place)["email"])


# ── afterwards ──


def test_what_was_archived_is_never_sent_again(store: Store, factory: StoreFactory, folder: Path) -> None:
    """The whole point of a queue's row that stays."""
    id = over(store, factory)
    archive(store, folder)
    assert enqueue(store, "page") == id == mailout_id("page")
    assert store.start(id, "worker").status is Status.COMPLETED
    assert store.freeze_subscribers(id) is None
    assert store.freeze_recipients(id, []) == 0
    assert store.retry_failed(id) == 0
    assert store.release(id).status is store.cancel(id).status is store.resume(id).status is Status.COMPLETED
    assert queue_rows.due_mailouts(store, 0.0) == []
    assert Sender(store, id).begin(5) == []
    assert remaining(factory)[0] == 0
    for act in (actions.retry, lambda store, id: actions.settle(store, id, actions.SettleVerdict.SENT, None)):
        with pytest.raises(UsageError, match="archived"):
            act(store, id)


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE campaign_queue SET status = 'PENDING', outcome = NULL",
        "UPDATE campaign_queue SET archived_at = NULL",
        "UPDATE campaign_queue SET sent = 0, recipients = recipients - sent",
        "DELETE FROM campaign_queue",
    ],
)
def test_an_archived_mailout_stays_known_whoever_writes(
    store: Store, factory: StoreFactory, folder: Path, harm: str
) -> None:
    over(store, factory)
    archive(store, folder)
    with pytest.raises(Exception, match="archived mailout"):
        factory.raw(harm)


def test_nothing_moves_between_the_mark_and_the_end(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    """The archive is the truth, though some of its messages are still in the store."""
    id = over(store, factory)
    ann = attempt(store, id, ANN)
    kill_at(store, folder, "delete_archived_messages")
    before = store.mailout(id)
    reject = ses_event("Reject", attempt=ann, campaign=id, at=LATER)
    assert hear(store, reject).revoked == 0
    with pytest.raises(StoreError, match="archived mailout"):
        store.retry_failed(id)
    assert store.mailout(id) == before
    archive(store, folder)
    assert [row["event_type"] for row in feedback_rows.delivery_events(store, message_id=ann.id)] == [
        "rejected"
    ]


@pytest.mark.parametrize("tagged", [True, False], ids=["tagged", "untagged"])
def test_a_late_bounce_still_ends_mail_to_the_address(
    store: Store, factory: StoreFactory, folder: Path, tagged: bool
) -> None:
    """Else the next mailout goes to a dead address, and the account's reputation with it."""
    id = over(store, factory)
    ann = attempt(store, id, ANN)
    archive(store, folder)
    metrics = store.mailout(id).metrics
    tags: dict[str, Any] = {"attempt": ann, "campaign": id} if tagged else {}
    applied = hear(store, ses_event("Bounce", ANN, at=LATER, ses_id="ses-late", **tags))
    assert (applied.events, applied.statuses, applied.strangers) == (1, 1, 0 if tagged else 1)
    assert subscriber_rows.subscriber(store, ANN)["status"] == "bounced"
    (row,) = [row for row in feedback_rows.delivery_events(store, email=ANN) if row["event_type"] == "bounce"]
    assert row["provider_message_id"] == "ses-late"
    assert (row["message_id"], row["campaign_id"]) == ((ann.id, id) if tagged else (None, None))
    assert store.mailout(id).metrics == metrics


def test_a_late_bounce_of_a_forwarded_message_is_the_subscribers(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    """The outbox knew whom the message was for; now the event's own tags have to prove it."""
    id = over(store, factory)
    ann = attempt(store, id, ANN)
    archive(store, folder)
    forwarded = [{"emailAddress": "ann@forwarded.example"}]
    hear(store, ses_event("Bounce", ANN, attempt=ann, campaign=id, at=LATER, bouncedRecipients=forwarded))
    assert subscriber_rows.subscriber(store, ANN)["status"] == "bounced"


def test_soft_bounces_are_counted_on_after_their_mailouts_are_archived(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    """Of letters months apart, the first would be gone before the third bounces."""
    for number in range(3):
        factory.set_now(NOON + 2 * number * (LATER - NOON))
        id = mailout(store, ANN, BOB, ref=f"letter {number}")
        sender = Sender(store, id)
        ann, bob = sender.begin(2)
        sender.step(results=[result(ann), result(bob)], close=True)
        full: dict[str, Any] = {"bounceType": "Transient", "bounceSubType": "MailboxFull"}
        common: dict[str, Any] = {"campaign": id, "at": store.now(), "ses_id": f"ses-{number}"}
        bounce = ses_event("Bounce", ANN, attempt=ann.attempt, **common, **full)
        hear(store, bounce, ses_event("Delivery", BOB, attempt=bob.attempt, **common), policy="smart")
        store.complete(id)
        assert subscriber_rows.subscriber(store, ANN)["status"] == ("bounced" if number == 2 else "active")
        factory.set_now(store.now() + LATER - NOON)
        archive(store, folder)
    kept = factory.raw("select email, count(*) as n from delivery_events group by email")
    assert [(row["email"], row["n"]) for row in kept] == [(ANN, 3)]


def test_people_leave_and_return_after_their_messages_are_archived(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    id = over(store, factory)
    store.unsubscribe(ANN, None)
    counted = store.mailout(id).metrics["unsubscribed"]
    archive(store, folder)
    store.unsubscribe(ANN, None)
    assert subscriber_rows.subscriber(store, ANN)["status"] == "unsubscribed"
    assert store.resubscribe(ANN, None)
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active"
    assert store.mailout(id).metrics["unsubscribed"] == counted


def test_a_machine_that_comes_back_does_not_take_an_archive_for_a_lost_store(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    """It died while it was sending; others finished; months later it would refuse to send anything."""
    journals = MemoryJournals()
    id = mailout(store, ANN)
    sender = Sender(store, id)
    ann = sender.begin_one().attempt
    journals.open(sender.session).call([ann])
    journals.die()
    sender.step(results=[result(ann)], close=True)
    store.complete(id)
    factory.set_now(LATER)
    archive(store, folder)
    assert reap(store, journals, 0.0, check_closed=True) == 0
    lost = MemoryJournals()
    lost.open(Sender(store, None).session).call([ann])
    lost.die()
    with pytest.raises(StoreRolledBack):
        reap(store, lost, 0.0, check_closed=True)


def test_counters_and_the_rest_of_the_store_are_as_they_were(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    over(store, factory)
    factory.set_now(NOON)
    other = mailout(store, ANN, BOB, ref="other")
    factory.set_now(LATER)
    archive(store, folder)
    assert feedback_rows.usage_drift(store) == []
    assert_ledger(store, other)
    assert store.mailout(other).ledger.pending == 4
    with pytest.raises(NotFound):
        outbox_rows.message(store, message_id(mailout_id("page"), ANN))


def test_the_ids_of_old_events_go_and_those_of_new_ones_stay(
    store: Store, factory: StoreFactory, folder: Path
) -> None:
    """SNS and SQS repeat an event for days: so long its id must be known."""
    over(store, factory)
    late = ses_event("Delivery", BOB, at=LATER)
    hear(store, late)
    assert len(factory.raw("SELECT 1 FROM events_inbox")) == 3
    archive(store, folder)
    assert len(factory.raw("SELECT 1 FROM events_inbox")) == 1
    assert hear(store, late).events == 0


def test_a_person_is_erased_from_an_archive(store: Store, factory: StoreFactory, folder: Path) -> None:
    over(store, factory)
    (done,) = archive(store, folder)
    assert isinstance(done, Archived)
    files = ArchiveFolder(folder / "archive")
    before = read(done.place)
    assert files.forget(done.place, "nobody@example.org", "forgotten:1") is False
    assert files.forget(done.place, ANN, "forgotten:1") is True
    assert files.forget(done.place, ANN, "forgotten:1") is False
    messages = read(done.place)
    assert ANN not in str(messages.to_dicts())
    assert [event["email"] for event in events_in(done.place)] == ["forgotten:1"] * 2
    (erased,) = messages.filter(pl.col("email") == "forgotten:1").to_dicts()
    assert (erased["state"], erased["variables"], erased["from_name"]) == ("SENT", None, None)
    others = pl.col("email") != ANN
    assert messages.filter(pl.col("email") != "forgotten:1").equals(before.filter(others))
    assert files.forget("elsewhere:/nowhere", ANN, "forgotten:1") is None
