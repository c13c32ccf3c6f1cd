"""Where a scene is played: a home, a store, a receiver, and the processes that work there."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from mailout.base.clock import SystemClock
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.delivery.states import WAITING, State
from mailout.outbox.queue import queue_rows
from mailout.store import Store
from tests.chaos.jobs import MAILOUTS, Job, open_store, send, start
from tests.contract.articles import FRANKLIN, OHIO, SLICES, US
from tests.contract.postgres import database, empty, migrate
from tests.producer.database import ProducerDatabase
from tests.stubs.ses_control import SesStub, ses_stub

PATIENCE = 300.0
"""How long a process may take to do what it surely does; only a hang ever waits so long."""
LONGEST_WAIT = 120.0
"""Seconds after which something still waits for no reason: all of mailout's own waits are shorter here."""
LETTER = "---\nid: chaos\nsubject: Hello\n---\n\nHello, all of you.\n"
SETTINGS = {
    "FROM_EMAIL": "news@example.org",
    "ORG_NAME": "The Gardeners",
    "ORG_ADDRESS": "1 Garden Lane",
    "UNSUBSCRIBE_BASE_URL": "https://example.org/unsubscribe",
    "UNSUBSCRIBE_SECRET": "a secret of some length",
    "NOTIFY_SOURCE": "chaos",
    "NOTIFY_BASE_URL": "https://app.example.org",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "eu-west-1",
    "SEND_RATE_PER_SEC": "0",
    "SEND_CONCURRENCY": "2",
    "BATCH_SIZE": "10",
    "LOCK_SECONDS": "60",  # a quarter of it is a call's limit
    "RETRY_DELAYS": "0.05,0.05,0.1,0.1,0.2",
    "CIRCUIT_FAILURES": "10000",  # a bad day is to go on
}


class Place:
    """One job, the processes that do it, and whoever receives."""

    def __init__(self, job: Job, ses: SesStub, chance: random.Random) -> None:
        self.job = job
        self.ses = ses
        self.chance = chance
        self.producer: ProducerDatabase | None = None
        self.task: Callable[[Job], None] = send
        self.notion: Any = None
        self.strangers: Any = None
        self.readers: Any = None
        self.server_name = ""  # of a Postgres of its own
        self._started: list[BaseProcess] = []
        self.delivered = False  # an event says of each accepted mail that it was delivered

    # ── processes ──

    def start(self, what: Callable[..., None] | None = None, *more: object) -> BaseProcess:
        """Its own task, or something else."""
        self._started.append(start(what or self.task, self.job, *more))
        return self._started[-1]

    def end(self) -> None:
        """Nobody of it goes on into the next scene, also if this one broke off."""
        for process in self._started:
            kill(process)

    def reach(self, more: int, process: BaseProcess | None = None) -> bool:
        """Until so many more are accepted; False: the process ended first."""
        target = self.total() + more
        return wait_for(lambda: self.total() >= target, process)

    def halt(self, process: BaseProcess) -> None:
        """SIGSTOP, but not within a transaction on SQLite: that would keep everybody else out."""
        self.stop(process)
        while not self._can_be_written_to():
            os.kill(_pid(process), signal.SIGCONT)
            time.sleep(0.01)
            self.stop(process)

    def stop(self, process: BaseProcess) -> None:
        """SIGSTOP, at any moment."""
        os.kill(_pid(process), signal.SIGSTOP)
        wait_for(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2][0] in "TZX")

    def _can_be_written_to(self) -> bool:
        kind, _, where = self.job.address.partition(":")
        if kind != "sqlite":
            return True
        with closing(sqlite3.connect(where, timeout=0)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            return True

    def finish(self, is_over: Callable[[], bool] | None = None) -> None:
        """The same again, until it is over; what waits for a person is resumed, as a person would."""
        until, pause = time.monotonic() + LONGEST_WAIT, 0.2
        while time.monotonic() < until:
            self.free_locks()
            process = self.start()
            process.join(PATIENCE)
            if process.exitcode is None:
                kill(process)
                raise AssertionError(f"it hangs: {self.job}")
            if (is_over or self.is_over)():
                return
            with closing(self.store()) as store:
                for mailout in queue_rows.mailouts(store):
                    if mailout.defer_reason is not None:
                        store.resume(mailout.id)
            time.sleep(pause)
            pause = min(2.0, 1.5 * pause)

    def free_locks(self, *dead: BaseProcess) -> None:
        """A producer's rows that dead workers held (or all of them): their time is over at once."""
        if self.producer is not None:
            for worker in [f"%-{process.pid}-%" for process in dead] or ["%"]:
                self.producer.free_locks(worker)

    # ── what is found ──

    def store(self) -> Store:
        return open_store(replace(self.job, slow=0.0, jumps=()), SystemClock())

    def accepted(self) -> Counter[str]:
        """How often each address was accepted: by the stub's record, or by the files in the folder."""
        if self.job.env["MAILOUT_TRANSPORT"] == "ses":
            return Counter(self.ses.accepted()["by_address"])
        files = (self.job.home / "outbox").glob("*/[!.]*.eml")
        return Counter(path.name.split("--")[0] for path in files)

    def total(self) -> int:
        """How many were accepted so far."""
        if self.job.env["MAILOUT_TRANSPORT"] == "ses":
            return self.ses.total()
        return sum(1 for _ in (self.job.home / "outbox").glob("*/[!.]*.eml"))

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """From behind the store."""
        kind, _, where = self.job.address.partition(":")
        if kind == "sqlite":
            with closing(sqlite3.connect(where, timeout=60)) as db:
                db.row_factory = sqlite3.Row
                return [dict(row) for row in db.execute(sql)]
        with psycopg.connect(where, row_factory=dict_row) as connection:
            return connection.execute(sql).fetchall()

    def states(self) -> dict[str, State]:
        found = self.rows("select email, state from email_outbox")
        return {row["email"]: State(row["state"]) for row in found}

    def said(self) -> str:
        """The end of what its processes had to say."""
        log = self.job.home.parent / f"{self.job.home.name}.log"
        return log.read_text(encoding="utf-8")[-3000:] if log.exists() else ""

    def all_called(self) -> bool:
        """Nothing waits or is in the air any more, of all the mails that a person gets."""
        rows = self.rows("select email, state from email_outbox")
        everybody = len({row["email"] for row in rows}) >= self.job.people
        return everybody and not still_open(State(row["state"]) for row in rows)

    def is_over(self) -> bool:
        done = self.all_called()
        if done and self.job.mode in MAILOUTS:
            return {row["status"] for row in self.rows("select status from campaign_queue")} == {"COMPLETED"}
        return done and not self.owed()

    def owed(self) -> int:
        """Rows that the producer has not been told of."""
        rows = self.producer.rows() if self.producer is not None else ()
        return sum(row["fanout_status"] not in ("sent", "failed") for row in rows)


def still_open(states: Iterable[State]) -> int:
    return sum(state in (*WAITING, State.SENT_ATTEMPT) for state in states)


def _pid(process: BaseProcess) -> int:
    assert process.pid is not None
    return process.pid


def kill(process: BaseProcess) -> None:
    process.kill()
    process.join(PATIENCE)


def wait_for(
    condition: Callable[[], bool],
    process: BaseProcess | None = None,
    *,
    every: float = 0.003,
    patience: float = PATIENCE,
) -> bool:
    """Until it is so; False if the process ended first."""
    until = time.monotonic() + patience
    while not condition():
        if process is not None and not process.is_alive():
            return condition()
        if time.monotonic() > until:
            raise AssertionError("it never came to that")
        time.sleep(every)
    return True


@dataclass
class Stage:
    """A receiver and a database; scenes are played on it one after the other."""

    folder: Path
    name: str
    server: str | None = None  # a Postgres of its own; None: the one that all share
    address: str = ""  # of a database with mailout's tables; empty: one is made
    seed: str = ""  # of all that is left to chance in the scenes
    bodies: bool = False  # the receiver keeps what it accepts, not only who got it
    made: int = 0
    _open: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.ses = self._open.enter_context(ses_stub(*(() if self.bodies else ("--no-bodies",))))

    def close(self) -> None:
        self._open.close()

    def place(self, mode: str, store: str, people: int, home: Path | None = None, **settings: str) -> Place:
        """A new home with its people and its order, over an empty store."""
        self.made += 1
        home = home or self.folder / f"{self.name}-{self.made}"
        home.mkdir(exist_ok=True)
        env = SETTINGS | {
            "MAILOUT_HOME": str(home),
            "MAILOUT_TRANSPORT": "folder" if mode == "folder" else "ses",
            "SES_MODE": "bulk" if mode == "bulk" else "single",
            "AWS_ENDPOINT_URL_SESV2": self.ses.url,
            **settings,
        }
        address = f"sqlite:{home / 'mailout.db'}" if store == "sqlite" else f"supabase:{self._database()}"
        self.ses.reset()
        self.ses.script(latency_ms=5)
        place = Place(Job(home, mode, address, people, env), self.ses, random.Random(self.seed))
        _furnish(place)
        return place

    def _database(self) -> str:
        if not self.address:
            self.address = database(f"chaos_{self.name}", self.server)
            migrate(self.address)
        empty(self.address)
        return self.address


def _furnish(place: Place) -> None:
    job = place.job
    (job.home / "letter.md").write_text(LETTER, encoding="utf-8")
    if job.mode == "notifications":
        place.producer = ProducerDatabase(job.home / "producer.db")
        place.producer.many(job.emails)
    with closing(place.store()) as store:
        if job.mode in ("single mails", "notifications", "sign-ups"):
            return  # its tables are there
        where = (US, OHIO, FRANKLIN) if job.mode == "articles" else ()
        store.import_subscribers([SubscriberRow(email, email, ocd_ids=where) for email in job.emails])
        if job.mode == "articles":
            store.import_slices(SLICES)


def clear(place: Place) -> None:
    """Its home is not needed any more."""
    shutil.rmtree(place.job.home, ignore_errors=True)
