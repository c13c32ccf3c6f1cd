"""Supabase away in mid-send, or not as it should be: nothing lost or sent twice, and a line that says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from mailout.outbox.delivery.states import State
from tests.chaos.senders import PATIENCE, nobody_twice_and_nobody_lost, wait_for
from tests.contract.postgres import empty
from tests.e2e.supabase_lite.machines import Machine, machine
from tests.e2e.supabase_lite.server import PUBLISHABLE, Lite
from tests.ports import free_port

NewMachine = Callable[..., Machine]


@pytest.fixture
def new_machine(lite: Lite, tmp_path: Path) -> NewMachine:
    empty(lite.database)
    return lambda recipients, **settings: machine(lite, tmp_path / "here", recipients, **settings)


def test_an_outage_is_waited_for(lite: Lite, new_machine: NewMachine) -> None:
    """A restart of the project in mid-send: nobody has to notice, and nobody gets it twice."""
    here = new_machine(150, SEND_RATE_PER_SEC="50", LOCK_SECONDS="60")
    process = here.send()
    assert wait_for(lambda: len(here.files()) >= 20, process)
    with lite.away():
        time.sleep(4)
        assert process.poll() is None
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    assert output.count("waiting for the store: Supabase does not answer") == 1
    assert "the store is back after" in output
    nobody_twice_and_nobody_lost(here, here.accepted(), unknown=0)


def test_an_outage_after_which_others_had_given_us_up(lite: Lite, new_machine: NewMachine) -> None:
    """Longer than the lease: its results still count, and what it had not sent is sent once."""
    here = new_machine(150, SEND_RATE_PER_SEC="50", LOCK_SECONDS="3")
    process = here.send()
    assert wait_for(lambda: len(here.files()) >= 20, process)
    with lite.away():
        time.sleep(3.5)
        store = here.store()
        wait_for(lambda: bool(store.reap(0.0)))
        assert State.UNKNOWN in here.states().values()
        store.close()
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    assert "the session was given up" in output
    nobody_twice_and_nobody_lost(here, here.accepted(), unknown=0)


def test_an_outage_before_anything_is_one_line(new_machine: NewMachine) -> None:
    """A command that a person waits for says so at once, and does not hang."""
    here = new_machine(3)
    ended = here("send", here.letter, "--direct", SUPABASE_URL=f"http://127.0.0.1:{free_port()}")
    assert ended.code == 1
    assert "Supabase does not answer" in ended.one_line


@pytest.mark.parametrize("key", ["sb_secret_of_another_project", PUBLISHABLE])
def test_a_key_that_does_not_open_it_is_named(new_machine: NewMachine, key: str) -> None:
    here = new_machine(3)
    ended = here("send", here.letter, "--direct", SUPABASE_SERVICE_ROLE_KEY=key)
    assert ended.code == 2
    assert "SUPABASE_SERVICE_ROLE_KEY" in ended.one_line
    assert key not in ended.one_line
    assert here.files() == []


def test_a_missing_migration_names_the_command_to_run(lite: Lite, new_machine: NewMachine) -> None:
    here = new_machine(3)
    _rename(lite, "mailout_schema_version", "set_aside")
    try:
        ended = here("send", here.letter, "--direct")
    finally:
        _rename(lite, "set_aside", "mailout_schema_version")
    assert ended.code == 2
    assert "supabase db push" in ended.one_line
    assert here.files() == []


def _rename(lite: Lite, name: str, other: str) -> None:
    """While it is away: it remembers which functions there are."""
    with lite.away(), psycopg.connect(lite.database) as admin:
        admin.execute(
            sql.SQL("alter function {} rename to {}").format(sql.Identifier(name), sql.Identifier(other))
        )


@pytest.mark.parametrize(("version", "remedy"), [(0, "supabase db push"), (1000, "newer mailout")])
def test_another_schema_stops_it_before_anything_is_sent(
    lite: Lite, new_machine: NewMachine, version: int, remedy: str
) -> None:
    here = new_machine(3)
    with _schema_version(lite, version):
        ended = here("send", here.letter, "--direct")
    assert ended.code == 2
    assert remedy in ended.one_line
    assert here.files() == []


@contextmanager
def _schema_version(lite: Lite, version: int) -> Iterator[None]:
    pretend = "create or replace function mailout_schema_version() returns integer return {}"
    with psycopg.connect(lite.database, autocommit=True) as admin:
        (before,) = admin.execute("select mailout_schema_version()").fetchone() or ()
        admin.execute(sql.SQL(pretend).format(version))
        try:
            yield
        finally:
            admin.execute(sql.SQL(pretend).format(before))
