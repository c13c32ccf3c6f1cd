"""`mailout subscribers import` that is stopped, and `undo-import` by the beginning of an id."""

from __future__ import annotations

import errno
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.commands import subscribers
from mailout.adapters.sqlite import SqliteStore
from mailout.app import wiring
from mailout.base.errors import StoreUnavailable
from mailout.base.settings import load_settings
from mailout.letters.audience.people_import import import_people, read_people
from mailout.letters.audience.port import ImportCounts, ImportRecord, SubscriberRow
from mailout.letters.audience.subscriber_rows import IMPORT_TABLE
from tests.clocks import FakeClock
from tests.environment import SENDER
from tests.new_sqlite import open_new
from tests.unit.cli.conftest import Run


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {**SENDER, "MAILOUT_HOME": str(folder / "home")}.items():
        monkeypatch.setenv(name, value)
    return folder / "home"


# ── Undo ──

ONE, OTHER = "25ea0000-0000-4000-8000-000000000001", "25eb0000-0000-4000-8000-000000000002"


@pytest.fixture
def imports(home: Path) -> None:
    with closing(wiring.build(load_settings()).store) as store:
        for n, id in enumerate((ONE, OTHER)):
            store.put(IMPORT_TABLE, [ImportRecord(id, "test", f"{n}.csv", {}, {})])
            person = f"p{n}@example.org"
            store.import_subscribers([SubscriberRow(person, person)], import_id=id)


@pytest.mark.parametrize("id", ["25ea", "25EA0000-00", "25ea00000000", ONE])
@pytest.mark.usefixtures("imports")
def test_an_import_is_undone_by_the_beginning_of_its_id(run: Run, id: str) -> None:
    ended = run("subscribers", "undo-import", id, "--yes")
    assert (ended.code, "1 person and 0 list entries removed." in ended.out) == (0, True)
    assert [one["email"] for one in run("subscribers", "list", "--json").data] == ["p1@example.org"]


@pytest.mark.usefixtures("imports")
def test_a_beginning_of_two_ids_or_of_none_undoes_nothing(run: Run, home: Path) -> None:
    with closing(wiring.build(load_settings()).store) as store:
        store.put(IMPORT_TABLE, [ImportRecord(ONE.replace("1", "3"), "test", "2.csv", {}, {})])
    both = run("subscribers", "undo-import", "25ea", "--yes")
    assert (both.code, "25ea could be any of 2: " in both.err, "0.csv" in both.err) == (2, True, True)
    for unknown in ("25e", "77", "ffff", "people.csv"):
        none = run("subscribers", "undo-import", unknown, "--yes")
        assert f"There is no import {unknown}." in none.err
    assert len(run("subscribers", "list", "--json").data) == 2


# ── Ctrl-C ──


@pytest.mark.parametrize(
    ("number", "times", "written"),
    [(signal.SIGINT, 1, 5000), (signal.SIGTERM, 1, 5000), (signal.SIGINT, 2, 0)],
)
def test_an_import_that_is_stopped_says_how_far_it_came_and_how_it_goes_on(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, number: int, times: int, written: int
) -> None:
    """Part of it is written, so to end without a word would leave people to find out."""
    write = SqliteStore.import_subscribers

    def stopped(self: SqliteStore, *args: Any, **kwargs: Any) -> ImportCounts:
        for _ in range(times):
            signal.raise_signal(number)
        return write(self, *args, **kwargs)

    people = home.parent / "people.csv"
    people.write_text("email\n" + "".join(f"p{n}@example.org\n" for n in range(5001)))
    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "import_subscribers", stopped)
        ended = run("subscribers", "import", people, "--yes")
    (record,) = run("subscribers", "undo-import", "--json").data
    assert ended.code == 128 + number
    assert f"Stopped: {written:,} of 5,001 people are imported. Run the same command again" in ended.err
    assert f"to undo: mailout subscribers undo-import {record['id']}" in ended.err
    assert record["counts"].get("added", 0) == written
    again = run("subscribers", "import", people, "--yes", "--json").data
    assert (again["unchanged"], again["added"]) == (written, 5001 - written)


# ── Again ──


def test_an_import_whose_answer_was_lost_goes_on_as_the_same_one_and_can_be_undone(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each of the two calls its people the other's, and undoing both removes nobody."""
    write = SqliteStore.import_subscribers

    def lost(self: SqliteStore, *args: Any, **kwargs: Any) -> ImportCounts:
        write(self, *args, **kwargs)
        raise StoreUnavailable

    people = home.parent / "people.csv"
    people.write_text("email\nann@example.org\nbob@example.org\n")
    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "import_subscribers", lost)
        ended = run("subscribers", "import", people, "--yes")
    assert "Stopped: at least 0 of 2 people are imported. Run the same command again" in ended.err
    again = run("subscribers", "import", people, "--yes", "--json").data
    assert f"to undo: mailout subscribers undo-import {again['import']}" in ended.err
    assert "2 people" in run("subscribers", "undo-import", again["import"], "--yes").out
    assert run("subscribers", "list", "--json").data == []
    anew = run("subscribers", "import", people, "--yes", "--json").data
    assert (anew["import"] != again["import"], anew["added"]) == (True, 2)


def test_another_file_other_answers_and_another_day_are_other_imports(folder: Path) -> None:
    clock, people, others = FakeClock(), folder / "people.csv", folder / "others.csv"
    people.write_text("email\nann@example.org\n")
    others.write_text("email\nbob@example.org\n")

    def imported(path: Path, list_key: str | None = None) -> str:
        return import_people(store, read_people(path), by="test", list_key=list_key)[0]

    with closing(open_new(folder / "mailout.db", clock)) as store:
        ids = [imported(people), imported(people), imported(others), imported(people, "weekly")]
        clock.sleep(86_400)
        ids.append(imported(people))
        assert (ids[0] == ids[1], len(set(ids))) == (True, 4)


def test_an_export_that_fails_leaves_the_last_one_whole(
    run: Run, home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "people.csv").write_text("the last one")

    def full(*_: object) -> Iterator[str]:
        yield "email\n"
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(subscribers, "people_lines", full)
    said = run("subscribers", "export", "--out", "people.csv")
    assert (said.code, "The disk is full: people.csv" in said.err) == (1, True), said.err
    assert [one.name for one in folder.glob("people*")] == ["people.csv"]
    assert (folder / "people.csv").read_text() == "the last one"


def test_an_export_to_where_no_file_can_be_is_told(run: Run, home: Path, folder: Path) -> None:
    (folder / "people.csv").touch()
    said = run("subscribers", "export", "--out", "people.csv/x.csv")
    assert (said.code, "people.csv/x.csv cannot be written: Not a directory." in said.err) == (2, True)


def test_the_demos_are_shown_one_at_a_time(run: Run) -> None:
    assert run("demo", "--article", "--notify").code == 2
