"""`mailout send --direct` as a process of its own, over a home with some subscribers."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mailout.adapters.sqlite import SqliteStore
from mailout.base.clock import SystemClock
from mailout.base.errors import NotFound
from mailout.insight.metrics import metric_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout, Status
from tests.warm_commands import Command

PROJECT = Path(__file__).parents[2]
LETTER = "---\nid: chaos\nsubject: Hello\n---\n\nHello, all of you.\n"
PATIENCE = 300.0
"""How long a process may take to do what it surely does; only a hang ever waits so long."""


def only_mailout(store: SqliteStore) -> Mailout:
    for mailout in queue_rows.mailouts(store):
        if not mailout.is_test:
            return mailout
    raise NotFound("There is no mailout yet.")


@dataclass
class Home:
    """A MAILOUT_HOME with its letter and its people."""

    path: Path
    people: list[str]
    settings: Mapping[str, str]

    @property
    def letter(self) -> Path:
        return self.path / "letter.md"

    def mailout(self) -> Mailout:
        store = self.store()
        try:
            return only_mailout(store)
        finally:
            store.close()

    def store(self) -> SqliteStore:
        return SqliteStore(self.path / "mailout.db", SystemClock())

    def files(self) -> list[Path]:
        return [path for path in (self.path / "outbox").glob("*/*.eml") if not path.name.startswith(".")]

    def accepted(self) -> Counter[str]:
        """How often each address was accepted: every accept is a file of its own."""
        return Counter(path.name.split("--")[0] for path in self.files())

    def states(self) -> Mapping[str, str]:
        store = self.store()
        try:
            rows = outbox_rows.messages(store, only_mailout(store).id, limit=1_000_000)
            return {row["email"]: row["state"] for row in rows}
        finally:
            store.close()

    def senders(self) -> int:
        """How many are at it just now."""
        with closing(self.store()) as store:
            return metric_rows.vitals(store, "folder").sessions

    @property
    def environment(self) -> dict[str, str]:
        return {**_plain_environment(), **self.settings}

    def send(self) -> Command:
        """The command, in a session of its own."""
        arguments = ["send", str(self.letter), "--direct", "--yes"]
        return Command(arguments, cwd=self.path, env=self.environment, one_stream=True)

    def freeze(self, process: Command) -> None:
        """SIGSTOP, but not within a transaction: that would keep everybody else out of the store."""
        stop(process)
        while not self._can_be_written_to():
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
            stop(process)

    def _can_be_written_to(self) -> bool:
        with closing(sqlite3.connect(self.path / "mailout.db", timeout=0)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            return True

    def finish(self) -> int:
        """The same command, to its end; its exit code."""
        process = self.send()
        output, _ = process.communicate(timeout=PATIENCE)
        if process.returncode not in (0, 1):
            raise AssertionError(output)
        return process.returncode


def _plain_environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "PYTHONPATH": str(PROJECT), "PYTHONUNBUFFERED": "1"}


def make_home(path: Path, recipients: int, **settings: str) -> Home:
    people = [f"p{index:04}@example.org" for index in range(recipients)]
    path.mkdir(parents=True, exist_ok=True)
    home = Home(
        path,
        people,
        {
            "MAILOUT_HOME": str(path),
            "FROM_EMAIL": "news@example.org",
            "ORG_NAME": "The Gardeners",
            "ORG_ADDRESS": "1 Garden Lane",
            "UNSUBSCRIBE_BASE_URL": "https://example.org/unsubscribe",
            "UNSUBSCRIBE_SECRET": "not a secret",
            "LOCK_SECONDS": "4",
            **settings,
        },
    )
    home.letter.write_text(LETTER, encoding="utf-8")
    store = home.store()
    store.import_subscribers([SubscriberRow(email, email) for email in people])
    store.close()
    return home


def nobody_twice_and_nobody_lost(home: Home, accepted: Mapping[str, int], unknown: int) -> None:
    """What it is all about. `unknown`: how many may be in doubt at the most."""
    states, mailout = home.states(), home.mailout()
    assert max(accepted.values()) == 1
    assert sorted(states) == home.people
    assert set(states.values()) <= {State.SENT, State.FAILED, State.UNKNOWN}
    assert all(accepted.get(email) == 1 for email, state in states.items() if state == State.SENT)
    assert not [email for email, state in states.items() if state == State.FAILED and email in accepted]
    assert mailout.status is Status.COMPLETED
    assert mailout.ledger.balances
    assert mailout.ledger.settled
    assert mailout.ledger.unknown <= unknown


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str] | Command | None = None) -> bool:
    """Until it is so; False if the process ended first."""
    until = time.monotonic() + PATIENCE
    while not condition():
        if process is not None and process.poll() is not None:
            return False
        if time.monotonic() > until:
            raise AssertionError("it never came to that")
        time.sleep(0.005)
    return True


def stop(process: Command) -> None:
    """Until every thread of it stands still."""
    process.send_signal(signal.SIGSTOP)
    threads = Path(f"/proc/{process.pid}/task")
    wait_for(lambda: {_state(thread) for thread in threads.iterdir()} <= {"T", None}, process)


def _state(thread: Path) -> str | None:
    try:
        return (thread / "stat").read_text().rpartition(") ")[2][0]
    except FileNotFoundError:
        return None  # it has just ended


def end(process: subprocess.Popen[str] | Command, how: signal.Signals) -> None:
    process.send_signal(how)
    process.communicate(timeout=PATIENCE)
