"""A power cut takes what was not synced: the store's commits stay, the journal's lines may be gone."""

from __future__ import annotations

import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.options import Ended
from mailout.outbox.delivery.states import State
from mailout.store import Store
from tests.contract.crashes import Machine, Provider, die_sending, new_mailout, people, send
from tests.contract.scenes import assert_ledger, states

COUNT = 15
MODES = pytest.mark.parametrize(("max_batch", "dies_at"), [(1, 6), (5, 2)], ids=["single", "bulk"])


def cuts(journal: bytes) -> list[int]:
    """After each line, in the middle of each, within the header, and nothing at all."""
    ends = [0]
    while (end := journal.find(b"\n", ends[-1])) >= 0:
        ends.append(end + 1)
    middles = [(start + end) // 2 for start, end in pairwise(ends)]
    return sorted({*ends, *middles})


def told_accepted(journal: bytes) -> set[str]:
    """The messages that whole lines call accepted."""
    lines = [line.split(b" ") for line in journal.split(b"\n")[:-1]]
    return {words[2].decode() for words in lines if words[1] == b"done"}


@MODES
@pytest.mark.parametrize("left", ["nothing", "zeros"])
def test_nobody_gets_it_twice_whatever_of_the_journal_is_left(
    store: Store, folder: Path, max_batch: int, dies_at: int, left: str
) -> None:
    """ "Not in the journal" was taken for "never called": up to fifty people had the letter twice."""
    at, points = 0, [0]
    while at < len(points):
        id, provider = new_mailout(store, COUNT), Provider(max_batch, dies_at)
        place = folder / f"journal{at}"
        die_sending(store, provider, Machine(place, "before"), id)
        (file,) = place.iterdir()
        whole = file.read_bytes()
        points = cuts(whole.rstrip(b"\0"))
        kept = whole[: points[at]]
        file.write_bytes(kept if left == "nothing" else kept.ljust(len(whole), b"\0"))
        begun = {row["id"] for row in outbox_rows.messages(store, id) if row["state"] == State.SENT_ATTEMPT}

        report = send(store, provider, Machine(place, "after"), id)
        assert report.ended is Ended.DONE
        assert max(provider.accepted.values()) == 1
        unknown = {row["id"] for row in outbox_rows.messages(store, id) if row["state"] == State.UNKNOWN}
        assert unknown == begun - told_accepted(kept)
        sent = [email for email, state in states(store, id).items() if state is State.SENT]
        assert len(sent) == COUNT - len(unknown)
        assert set(sent) <= set(provider.accepted)
        assert_ledger(store, id)
        at += 1
    assert len(points) > 8


@MODES
def test_after_a_kill_on_a_machine_that_stayed_on_only_the_call_is_in_doubt(
    store: Store, folder: Path, max_batch: int, dies_at: int
) -> None:
    """The same journal, all of it there: what was never called waits again."""
    id, provider = new_mailout(store, COUNT), Provider(max_batch, dies_at)
    die_sending(store, provider, Machine(folder / "journal", "today"), id)
    assert send(store, provider, Machine(folder / "journal", "today"), id).ended is Ended.DONE
    assert provider.accepted == dict.fromkeys(people(COUNT), 1)
    found = Counter(states(store, id).values())
    assert found == {State.SENT: COUNT - max_batch, State.UNKNOWN: max_batch}


def test_a_copied_or_shortened_journal_is_not_trusted_in_the_same_start_of_the_machine(
    store: Store, folder: Path
) -> None:
    """A file system that is mounted again after it was lost, a folder that was copied meanwhile."""
    for number, damage in enumerate(("copied", "cut")):
        id, provider = new_mailout(store, COUNT), Provider(dies_at=6)
        place = folder / f"journal{number}"
        die_sending(store, provider, Machine(place), id)
        (file,) = place.iterdir()
        if damage == "copied":
            shutil.copyfile(file, place / "copy")
            (place / "copy").rename(file)
        else:
            with file.open("r+b") as open_file:
                open_file.truncate(len(file.read_bytes().rstrip(b"\0")))
        send(store, provider, Machine(place), id)
        assert max(provider.accepted.values()) == 1
        assert Counter(states(store, id).values())[State.UNKNOWN] > 1
