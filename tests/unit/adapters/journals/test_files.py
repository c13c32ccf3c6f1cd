"""Journals as files, which several senders of one machine look after at once."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mailout.adapters.journals.files import KEEP_CLOSED, FileJournals, this_boot
from mailout.adapters.journals.lines import GROWTH_BYTES
from mailout.base.errors import HomeUnwritable, StoreError
from mailout.outbox.delivery.port import DeadJournal
from mailout.outbox.delivery.protocol import Attempt

SESSION = str(uuid.UUID(int=1))
ANN, BOB, CAT = (Attempt(str(uuid.UUID(int=100 + number)), 1) for number in range(3))


def closed(folder: Path, count: int) -> FileJournals:
    made = FileJournals(folder)
    for number in range(count):
        made.open(str(uuid.UUID(int=number))).close(number)
    return made


def left_behind(folder: Path, boot_id: str = "today") -> Path:
    """The journal of a process that died after two calls, one of them answered."""
    journal = FileJournals(folder, boot_id).open(SESSION)
    journal.call([ANN, BOB])
    journal.answered({ANN: "id-1"}, [BOB])
    journal.call([CAT])
    journal.abandon()
    return folder / SESSION


def found(folder: Path, boot_id: str = "today") -> DeadJournal:
    with FileJournals(folder, boot_id).dead() as dead:
        (journal,) = dead
        return journal


def fill_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is not set aside finds room any more."""

    def full(fd: int, start: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)


def test_only_so_many_ended_sessions_stay(tmp_path: Path) -> None:
    """Every start of a sender opens each of them and asks the store for it: after a day of sending, two
    thousand, and more than a process may have open."""
    with closed(tmp_path, KEEP_CLOSED + 3).dead() as dead:
        assert len(dead) == KEEP_CLOSED + 3
        assert {journal.closed_at_step for journal in dead} == set(range(KEEP_CLOSED + 3))
    assert len(list(tmp_path.iterdir())) == KEEP_CLOSED


def test_one_that_another_sender_drops_just_now_is_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers that begin together clear up the same folder: neither may end in a traceback."""
    ours = closed(tmp_path, 1)
    flock = fcntl.flock

    def faster(fd: int, how: int) -> None:
        (tmp_path / str(uuid.UUID(int=0))).unlink(missing_ok=True)
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", faster)
    with ours.dead() as dead:
        assert dead == []


def test_whoever_only_looks_keeps_no_sender_from_a_dead_one_s_journal(tmp_path: Path) -> None:
    """Else what `doctor` looks at would count as alive for a sender that begins meanwhile."""
    left_behind(tmp_path)
    living = FileJournals(tmp_path, "today").open(str(uuid.UUID(int=2)))
    looked = FileJournals(tmp_path, "today").look()
    assert [journal.session for journal in looked] == [SESSION, str(uuid.UUID(int=2))]
    assert looked[0] == found(tmp_path)
    assert looked[0].place == str(tmp_path / SESSION)
    living.close(1)


# ── what it tells ──


def test_it_tells_what_was_called_and_how_it_ended(tmp_path: Path) -> None:
    left_behind(tmp_path)
    journal = found(tmp_path)
    assert (journal.called, journal.accepted, journal.void) == ({ANN, BOB, CAT}, {ANN: "id-1"}, {BOB})
    assert (journal.closed_at_step, journal.incomplete) == (None, None)


@pytest.mark.parametrize("message_id", ["a b", "a\nb", "a\r\nclosed 7", "", "%0A", "ünï\u2028x", "x" * 5000])
def test_any_id_of_a_provider_comes_back_as_it_was(tmp_path: Path, message_id: str) -> None:
    """One with a space stopped every later start."""
    journal = FileJournals(tmp_path).open(SESSION)
    journal.call([ANN])
    journal.answered({ANN: message_id}, [])
    journal.abandon()
    with FileJournals(tmp_path).dead() as dead:
        assert [(one.accepted, one.incomplete, one.closed_at_step) for one in dead] == [
            ({ANN: message_id}, None, None)
        ]


def test_after_a_restart_of_the_machine_lines_may_be_missing(tmp_path: Path) -> None:
    left_behind(tmp_path, "yesterday")
    journal = found(tmp_path)
    assert journal.incomplete == "the machine was restarted since it was written"
    assert journal.accepted == {ANN: "id-1"}


def test_where_a_restart_cannot_be_noticed_no_journal_is_complete(tmp_path: Path) -> None:
    left_behind(tmp_path, "")
    assert found(tmp_path, "").incomplete is not None


def test_the_start_of_the_machine_is_told_by_linux_by_macos_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "boot_id").write_text("1-2-3\n")
    (tmp_path / "sysctl").write_text('#!/bin/sh\n[ "$2" = kern.bootsessionuuid ] && echo 4-5-6\n')
    (tmp_path / "sysctl").chmod(0o700)
    assert this_boot(tmp_path / "boot_id") == "1-2-3"
    assert this_boot(tmp_path / "none", str(tmp_path / "sysctl")) == "4-5-6"
    assert this_boot(tmp_path / "none", str(tmp_path / "none")) == ""


def test_of_a_journal_from_before_headers_only_what_was_accepted_counts(tmp_path: Path) -> None:
    (tmp_path / SESSION).write_text(
        f"call {ANN.id} 1\ncall {BOB.id} 1\ndone {ANN.id} 1 id-1\nvoid {BOB.id} 1\ndone {CAT.id} 1"
    )
    journal = found(tmp_path)
    assert journal.accepted == {ANN: "id-1"}
    assert journal.called == {ANN, BOB}  # a store that was set back shows by them
    assert journal.incomplete is not None
    (tmp_path / SESSION).write_text("closed 7\n")
    assert found(tmp_path).closed_at_step == 0  # the store may not have had the seventh


# ── damage ──

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "not text": lambda data: bytes(range(256)) * 20,
    "a line by somebody else": lambda data: data.rstrip(b"\0") + b"hello\n" + data[-1000:],
    "no header": lambda data: data.partition(b"\n")[2],
    "a number that is none": lambda data: data.replace(b" 1", b" one", 1),
    "a changed byte": lambda data: data[:120] + bytes([data[120] ^ 1]) + data[121:],
    "a hole": lambda data: data[:100] + bytes(60) + data[160:],
    "cut in the middle": lambda data: data[:200],
    "twice": lambda data: data.rstrip(b"\0") + data,
    "only zeros": lambda data: bytes(GROWTH_BYTES),
    "another version": lambda data: data.replace(b" journal 2 ", b" journal 9 "),
    "a surrogate": lambda data: data.replace(b"done", b"\xed\xa0\x80 "),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_journal_is_incomplete_and_ends_nothing(tmp_path: Path, damage: str) -> None:
    """Four of ten kinds of damage ended in a traceback, at every start."""
    path = left_behind(tmp_path)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    journal = found(tmp_path)
    assert journal.incomplete is not None
    assert set(journal.accepted.items()) <= {(ANN, "id-1")}
    FileJournals(tmp_path).forget(SESSION, 3)
    assert found(tmp_path).closed_at_step == 3


def test_no_damage_at_all_makes_something_up(tmp_path: Path) -> None:
    """In place, in the same start of the machine: what is read is what was written, or it says so."""
    path = left_behind(tmp_path)
    whole, chance = path.read_bytes(), random.Random(15)
    length = len(whole.rstrip(b"\0"))
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(length)] = chance.randrange(256)
        with path.open("r+b") as file:
            file.write(data)
        journal = found(tmp_path)
        assert set(journal.accepted.items()) <= {(ANN, "id-1")}
        assert journal.closed_at_step is None
        assert journal.incomplete is not None or journal.called == {ANN, BOB, CAT}


def test_other_things_in_the_folder_are_not_journals(tmp_path: Path) -> None:
    left_behind(tmp_path)
    (tmp_path / ".DS_Store").write_bytes(b"\0\1")
    (tmp_path / "README").write_text("hello\n")
    (tmp_path / str(uuid.UUID(int=7))).mkdir()
    os.mkfifo(tmp_path / str(uuid.UUID(int=8)))
    assert found(tmp_path).session == SESSION


def test_one_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_behind(tmp_path)

    def broken(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fdopen", broken)
    with pytest.raises(StoreError, match=f"{SESSION} cannot be read: Input/output error") as told:
        found(tmp_path)
    assert told.value.remedy


# ── a full disk ──


def test_it_grows_by_steps_and_gives_back_what_it_did_not_need(tmp_path: Path) -> None:
    journal = FileJournals(tmp_path).open(SESSION)
    path = tmp_path / SESSION
    assert path.stat().st_size == GROWTH_BYTES
    for number in range(1000):
        attempt = Attempt(str(uuid.UUID(int=number)), 1)
        journal.call([attempt])
        journal.answered({attempt: "id"}, [])
    assert path.stat().st_size == 2 * GROWTH_BYTES
    assert path.stat().st_blocks * 512 >= 2 * GROWTH_BYTES
    journal.close(5)
    assert path.stat().st_size < 200


def test_on_a_full_disk_a_call_is_refused_before_it_is_made_and_its_answers_find_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a line was taken for a call that was never made: 79 people had the letter twice."""
    journal = FileJournals(tmp_path, "today").open(SESSION)
    fill_the_disk(monkeypatch)
    calls: list[list[Attempt]] = []

    def call_until_it_is_full() -> None:
        for number in range(10_000):
            group = [Attempt(str(uuid.UUID(int=50 * number + one)), 1) for one in range(50)]
            journal.call(group)
            calls.append(group)

    with pytest.raises(HomeUnwritable, match="The disk is full") as told:
        call_until_it_is_full()
    assert "Free some space" in str(told.value)
    for group in calls:  # all of them are answered only now
        journal.answered(dict.fromkeys(group, "0100018c-6f0a-4d1e-9b1f-0a1b2c3d4e5f-000000"), [])
    journal.abandon()
    read = found(tmp_path)
    assert read.incomplete is None
    assert read.called == set(read.accepted) == {attempt for group in calls for attempt in group}


def short_write(monkeypatch: pytest.MonkeyPatch, keep: int) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, data[:keep], at))


def test_half_a_line_is_no_line_and_nothing_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = FileJournals(tmp_path, "today").open(SESSION)
    journal.call([ANN])
    with monkeypatch.context() as cut:
        short_write(cut, 20)
        with pytest.raises(HomeUnwritable):
            journal.call([BOB])
    with pytest.raises(HomeUnwritable):
        journal.call([CAT])
    journal.abandon()
    read = found(tmp_path)
    assert (read.called, read.incomplete) == ({ANN}, "its last line is cut")


def test_an_answer_that_cannot_be_written_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The letter has left; the store is told of it in the next step."""
    journal = FileJournals(tmp_path, "today").open(SESSION)
    journal.call([ANN])
    with monkeypatch.context() as cut:
        short_write(cut, 5)
        journal.answered({ANN: "id-1"}, [])
    journal.abandon()
    journal.answered({ANN: "id-1"}, [])
    assert "could not be written" in caplog.text
    assert (found(tmp_path).called, found(tmp_path).accepted) == ({ANN}, {})


@pytest.mark.parametrize("name", ["posix_fallocate", "fsync", "pwrite"])
def test_a_journal_that_cannot_be_opened_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, name, full)
    with pytest.raises(HomeUnwritable, match="The disk is full"):
        FileJournals(tmp_path).open(SESSION)
    assert list(tmp_path.iterdir()) == []


def test_where_space_cannot_be_promised_it_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(*arguments: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", unable)
    path = left_behind(tmp_path)
    assert path.stat().st_blocks * 512 >= GROWTH_BYTES
    assert found(tmp_path).incomplete is None


def test_its_header_and_its_name_are_synced_and_no_call_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sync for each call would cost most of the speed."""
    synced: list[bool] = []
    fsync = os.fsync

    def watched(fd: int) -> None:
        synced.append(Path(f"/proc/self/fd/{fd}").is_dir())
        fsync(fd)

    monkeypatch.setattr(os, "fsync", watched)
    left_behind(tmp_path)
    assert synced == [False, True]


def test_without_its_file_nothing_is_called(tmp_path: Path) -> None:
    """MAILOUT_HOME was deleted: who knows what else goes with it."""
    journal = FileJournals(tmp_path).open(SESSION)
    (tmp_path / SESSION).unlink()
    with pytest.raises(HomeUnwritable, match="deleted or moved"):
        journal.call([ANN])
