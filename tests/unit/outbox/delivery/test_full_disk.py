"""A disk without room, a home that is gone: the run stops with words, and nobody is harmed by it."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mailout.adapters.journals import files as files
from mailout.adapters.journals.files import FileJournals
from mailout.base.errors import HomeUnwritable
from mailout.insight.metrics import metric_rows
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.options import Ended
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Attempt, Outcome, OutcomeKind, Step, StepReply
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.mailout import DeferReason, Status
from tests.unit.outbox.delivery.sending import MAILOUT, MemoryJournal, Scene, scene
from tests.unit.outbox.queue.driving import drive


class Full(MemoryJournal):
    """Has room for so many calls."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def call(self, attempts: Sequence[Attempt]) -> None:
        if self.room <= 0:
            raise HomeUnwritable.full(Path("journal"))
        self.room -= 1
        super().call(attempts)


def with_room_for(it: Scene, calls: int) -> None:
    it.journals.open = lambda session: it.journals.journals.setdefault(session, Full(calls))  # type: ignore[method-assign]


@pytest.mark.parametrize("max_batch", [1, 50])
@pytest.mark.parametrize("inline", [True, False])
def test_a_call_that_cannot_be_journaled_is_not_made_and_the_run_stops_with_words(
    tmp_path: Path, max_batch: int, inline: bool
) -> None:
    """Those messages never left: they wait again, and nothing is in doubt."""
    it = scene(tmp_path, 200, max_batch=max_batch)
    with_room_for(it, 2)
    with pytest.raises(HomeUnwritable, match="Free some space"):
        it.sender(inline=inline, concurrency=3).run(MAILOUT)
    sent = 2 * max_batch
    assert it.states() == {State.SENT: sent, State.PENDING: 200 - sent}
    assert it.transport.accepted.total() == sent
    assert outbox_rows.usage(it.store, "all", "hour", "h") == sent
    del it.journals.open
    assert it.sender().run(MAILOUT).ended is Ended.DONE  # there is space again
    assert it.transport.accepted == dict.fromkeys(it.people, 1)


def test_a_session_without_a_journal_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the mailout would look as if somebody were sending it, until the lease has run out."""

    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    it = scene(tmp_path, 10)
    it.journals = FileJournals(tmp_path / "journal")  # type: ignore[assignment]
    with monkeypatch.context() as disk:
        disk.setattr(os, "posix_fallocate", full)
        with pytest.raises(HomeUnwritable, match="The disk is full"):
            it.sender().run(MAILOUT)
    assert metric_rows.vitals(it.store, "list").sessions == 0
    assert it.store.release(MAILOUT).status is Status.PENDING
    it.store.start(MAILOUT, "test")
    assert it.sender().run(MAILOUT).ended is Ended.DONE


class FullStore:
    """The store's own disk is full from one step to another."""

    def __init__(self, store: Any, since: int, until: int) -> None:
        self.store, self.since, self.until, self.steps = store, since, until, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def step(self, step: Step) -> StepReply:
        self.steps += 1
        if self.since <= self.steps < self.until:
            raise HomeUnwritable.full(Path("mailout.db"))
        return self.store.step(step)


@pytest.mark.parametrize("since", [1, 2, 3])
def test_what_a_full_store_could_not_be_told_the_journal_tells_the_next_run(
    tmp_path: Path, since: int
) -> None:
    """In the same process, too: a run of the queue comes every minute."""
    it = scene(tmp_path, 60)
    it.journals = FileJournals(tmp_path / "journal")  # type: ignore[assignment]
    store = FullStore(it.store, since, since + 3)
    for _ in range(2):  # the second one cannot tell the store what the first has done
        with pytest.raises(HomeUnwritable, match="The disk is full"):
            it.sender(store, rate=20).run(MAILOUT)
    assert it.sender(store, rate=20).run(MAILOUT).ended is Ended.DONE
    assert it.transport.accepted == dict.fromkeys(it.people, 1)
    assert it.states() == {State.SENT: 60}


def test_the_queue_goes_on_by_itself_when_there_is_space(tmp_path: Path) -> None:
    it = drive(tmp_path)
    id = it.add("news", 120)
    room = iter([3, 0, 2])
    journals: Any = it.journals
    journals.open = lambda session: journals.journals.setdefault(session, Full(next(room, 1000)))
    for _ in range(3):
        with pytest.raises(HomeUnwritable, match="The disk is full"):
            it.run()
        assert it.store.mailout(id).status is Status.PENDING  # nobody sends it, and it says so
        it.clock.sleep(60)
    mailout = it.run_to_the_end(id)
    assert (mailout.status, mailout.ledger.sent) == (Status.COMPLETED, 120)
    assert set(it.transport.accepted.values()) == {1}


def test_a_folder_without_room_for_mails_waits_by_itself(tmp_path: Path) -> None:
    full = Outcome(OutcomeKind.STOP, code="FOLDER_FULL", message="outbox took no mail. Free some space")
    it = drive(tmp_path)
    id = it.add("news", 20)
    it.transport.answer = lambda mail, nth: full if nth == 5 else None
    it.run()
    mailout = it.store.mailout(id)
    assert (mailout.defer_reason, mailout.deferred_until) == (
        DeferReason.TRANSIENT_ERRORS,
        pytest.approx(it.clock.now() + 60, abs=5),
    )
    assert "Free some space" in (mailout.defer_note or "")
    assert it.run_to_the_end(id).ledger.sent == 20


def test_a_report_that_cannot_be_written_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    it = drive(tmp_path)
    id = it.add("news", 5)
    it.run()
    with monkeypatch.context() as disk, caplog.at_level(logging.WARNING):
        disk.setattr(os, "fsync", full)
        reports = it.engine.report(id)
    assert reports.summary.mailout.ledger.sent == 5
    assert "The report was not written" in caplog.text
    assert "Free some space" in caplog.text
    assert "Traceback" not in caplog.text
    assert list((tmp_path / "reports").glob("*.csv")) == []
    it.engine.report(id)
    assert reports.csv.exists()


@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_a_home_that_is_gone_stops_the_run_with_words(tmp_path: Path, how: str) -> None:
    """Sending on, all that was done would be written to a file that nobody can find again."""
    home = tmp_path / "home"
    home.mkdir()

    def answer(mail: Mail, nth: int) -> None:
        if nth == 7:
            shutil.rmtree(home) if how == "deleted" else home.rename(tmp_path / "elsewhere")

    it = scene(home, 60, answer=answer)
    it.journals = FileJournals(home / "journal")  # type: ignore[assignment]
    with pytest.raises(HomeUnwritable, match="deleted or moved while mailout was at work"):
        it.sender(rate=5).run(MAILOUT)
    assert it.transport.calls <= 12  # at most what it held: a second of sending
    assert not home.exists()


@pytest.mark.parametrize("max_batch", [1, 20, 50])
def test_the_circuit_opens_by_messages_in_doubt_not_by_calls(tmp_path: Path, max_batch: int) -> None:
    """Twenty lost calls of fifty would leave a thousand people of whom nobody knows."""
    lost = Outcome(OutcomeKind.UNKNOWN, code="SES_TIMEOUT", category="TIMEOUT_ERROR", message="no answer")
    it = scene(tmp_path, 1000, answer=lambda mail, nth: lost, max_batch=max_batch)
    report = it.sender(rate=500, circuit_failures=20).run(MAILOUT)
    assert report.ended is Ended.CIRCUIT
    assert it.states()[State.UNKNOWN] == max(20, max_batch)
    assert it.states()[State.PENDING] == 1000 - max(20, max_batch)


def test_a_bulk_call_that_surely_failed_is_one_failure(tmp_path: Path) -> None:
    busy = Outcome(OutcomeKind.TRANSIENT, code="SES_SERVICE_UNAVAILABLE", message="try again")
    it = scene(tmp_path, 500, answer=lambda mail, nth: busy if nth <= 50 else None, max_batch=50)
    assert it.sender(circuit_failures=20).run(MAILOUT).ended is Ended.DONE
    assert it.states() == {State.SENT: 500}
