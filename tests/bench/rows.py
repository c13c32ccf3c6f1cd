"""Every row of the table: what is measured together, under which key each number is found, what is asked."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Asked:
    """What a number should be."""

    least: float | None = None
    most: float | None = None

    def holds(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        return f"≥ {self.least:g}" if self.least is not None else f"≤ {self.most:g}"


@dataclass(frozen=True)
class Row:
    """One number: a sample for each round, or one."""

    name: str
    what: str
    key: str
    asked: Asked | None = None
    unit: str = ""
    bound: str = ""  # what a profile shows to hold it back, where it is not met


@dataclass(frozen=True)
class Subject:
    """What is measured together: `run(**sizes)` of a module beside this one returns numbers by key."""

    name: str
    rows: Sequence[Row]
    module: str = ""
    sizes: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] | None = None  # None: not part of a quick run

    @property
    def is_quick(self) -> bool:
        return self.quick is not None

    def measured(self, quick: bool) -> Mapping[str, Any]:
        module = importlib.import_module(f"tests.bench.{self.module or self.name}")
        found: Mapping[str, Any] = module.run(
            **(self.quick if quick and self.quick is not None else self.sizes)
        )
        return found


def least(value: float) -> Asked:
    return Asked(least=value)


def most(value: float) -> Asked:
    return Asked(most=value)


RATES = (5, 14, 50, 200, 1000)
LATE = """moments in which the machine runs none of us: a slot that is late by more than half an interval is
given up rather than caught up in a burst"""
ONE_CALL_MORE = """a call that comes some milliseconds sooner after the one before than it was begun: at 1,000
a second a call carries 50, and a 21st of them falls into the second"""
ONE_CORE = """the CPU of one core: three fifths of it the mail (layout, inlined CSS, plain text, checks), the
rest HTTP and the store"""
PREFECTS_OWN = """Prefect's server: four fifths of it, for its own loops and the worker's question every four
seconds"""
PREFECTS_END = """the same for every letter, 20,000 mails or one: when they are out, Prefect waits up to a
second for the thread of its own heartbeats"""
MORE_IDS = """each result is found by its id: in an index of a million, a process reads 45 MB of pages that it
has not seen yet"""
A_MESSAGE = """CPU: four fifths of it the call (composing, signing, writing, reading the answer), a fifth the
store's step, the journal, CSV and log"""
SHARED_CORES = "two cores that the sender, its store and the stand-in for SES share"
RANDOM_IDS = """a message's id is a hash and has to be found by it, so each part changes nearly every page of
the index of ids: for a million, 1.5 GB are written in parts of 100,000 (4.2 GB in parts of 20,000, as they
are while somebody sends)"""
BESIDE_IT = """the disk: the CPU a recipient does not grow (14 to 17 µs of 10,000, 15 µs of a million), nor
what is logged for one; but beside a million, checkpoints and autovacuum write, too"""

SUBJECTS = (
    Subject(
        "sender",
        (
            Row("sender-single", "sender, one by one ÷ bare boto3 loop", "single_to_bare", least(0.95)),
            Row(
                "sender-bulk",
                "sender, in bulk ÷ bare boto3 loop",
                "bulk_to_bare",
                least(10),
                bound="the CPU of one process: a third of it the store's step, a third the request to SES,"
                " a third putting each mail together, its journal, CSV line and log",
            ),
        ),
        "sender_ses",
        quick={"n": 300, "rounds": 2},
    ),
    Subject(
        "calls",
        (
            Row(
                "single-cpu",
                "one by one: CPU a message",
                "single_cpu_ms",
                most(0.5),
                "ms",
                bound=A_MESSAGE,
            ),
            Row(
                "single-at-once",
                "one by one, ten calls in flight, answered at once",
                "single_a_second",
                least(2_000),
                "/s",
                bound=SHARED_CORES,
            ),
            Row(
                "single-20-ms",
                "the same after 20 ms ÷ what that allows",
                "share_20",
                least(0.9),
                bound=SHARED_CORES,
            ),
            Row("single-100-ms", "the same after 100 ms ÷ what that allows", "share_100", least(0.9)),
            Row("bulk-cpu", "in bulk: CPU a message", "bulk_cpu_ms", None, "ms"),
            Row(
                "bulk-at-once",
                "in bulk, ten calls in flight, answered at once",
                "bulk_a_second",
                least(6_000),
                "/s",
                bound=SHARED_CORES,
            ),
            Row(
                "auto-rate",
                "200 a second allowed, answered after 100 ms, nothing set: reached ÷ allowed",
                "auto_share",
                least(0.9),
            ),
            Row("auto-calls", "and the calls in flight at its fullest moment (20 are needed)", "auto_calls"),
        ),
        quick={"seconds": 1.0, "rounds": 1},
    ),
    Subject(
        "flow",
        (
            Row(
                "flow-core",
                "a mailout of 20,000 as a Prefect flow ÷ without Prefect",
                "flow_to_core",
                most(1.1),
                bound=PREFECTS_END,
            ),
        ),
        "prefect",
    ),
    Subject(
        "stores",
        (
            Row("postgres-sqlite", "sender over Postgres ÷ over SQLite", "postgres_to_sqlite", least(0.6)),
            Row(
                "http-sqlite",
                "sender over Supabase's HTTP API ÷ over SQLite",
                "http_to_sqlite",
                least(0.5),
                bound="the stand-in for Supabase: an empty call costs 3–5 ms of its own CPU, though steps are"
                " up to ten times as large for it",
            ),
        ),
        "supabase",
        quick={"recipients": 1_000, "rounds": 2},
    ),
    Subject(
        "pace",
        (
            *(
                Row(
                    f"rate-{rate}", f"rate of {rate:,} a second, alone: off by", f"{rate}", most(1), "%", LATE
                )
                for rate in RATES
            ),
            Row(
                "fullest-second",
                "fullest second of all those ÷ what is allowed",
                "fullest",
                most(1),
                bound=ONE_CALL_MORE,
            ),
            *(
                Row(
                    f"rate-{rate}-busy",
                    f"rate of {rate:,} a second, beside a busy process: off by",
                    f"{rate} busy",
                    most(1),
                    "%",
                    LATE,
                )
                for rate in RATES
            ),
            Row(
                "fullest-second-busy",
                "fullest second of all those ÷ what is allowed",
                "fullest busy",
                most(1),
                bound=ONE_CALL_MORE,
            ),
        ),
        quick={"seconds": 4, "rates": (14, 200), "beside": (False,), "rounds": 1},
    ),
    Subject(
        "audience",
        (
            Row(
                "audience-seconds", "a million rows of CSV checked, deduped, sorted", "seconds", most(10), "s"
            ),
            Row("audience-memory", "memory of the whole process", "memory_mb", most(500), "MB"),
            Row("audience-plain", "plain Python ÷ that", "plain_to_frame"),
            Row("audience-import", "the same file imported into SQLite", "sqlite_seconds", None, "s"),
        ),
        quick={"rows": 100_000},
    ),
    Subject(
        "million",
        (
            Row(
                "freeze-sqlite",
                "freezing a recipient of 1,000,000 ÷ of 10,000, SQLite",
                "freeze_growth",
                most(1.2),
                bound=RANDOM_IDS,
            ),
            Row(
                "freeze-sqlite-100k",
                "freezing a recipient of 100,000 ÷ of 10,000, SQLite",
                "freeze_growth_100k",
                most(1.2),
                bound=RANDOM_IDS,
            ),
            Row(
                "freeze-postgres",
                "freezing a recipient of 1,000,000 ÷ of 10,000, Postgres",
                "postgres_growth",
                most(1.2),
                bound=BESIDE_IT,
            ),
            Row(
                "freeze-postgres-100k",
                "freezing a recipient of 100,000 ÷ of 10,000, Postgres",
                "postgres_growth_100k",
                most(1.2),
                bound=BESIDE_IT,
            ),
            Row("freeze-seconds", "freezing 1,000,000 on SQLite", "freeze_seconds", None, "s"),
            Row(
                "outbox-million",
                "sender over an outbox of 1,000,000 ÷ of 20,000",
                "sender_speed",
                least(0.95),
                bound=MORE_IDS,
            ),
            Row("outbox-memory", "its memory: more than over 20,000", "sender_memory_mb", most(50), "MB"),
        ),
        sizes={"rows": 1_000_000},
    ),
    Subject(
        "segments",
        (
            *(
                Row(
                    f"segment-count-{store}",
                    f"a segment over 1,000,000 people counted, {name}",
                    f"{store}_count",
                    most(2),
                    "s",
                )
                for store, name in (("sqlite", "SQLite"), ("postgres", "Postgres"))
            ),
            *(
                Row(
                    f"segment-freeze-{store}",
                    f"freezing 1,000,000 with a segment ÷ without, {name}",
                    f"{store}_freeze",
                    most(1.2),
                )
                for store, name in (("sqlite", "SQLite"), ("postgres", "Postgres"))
            ),
        ),
        quick={"rows": 100_000},
    ),
    Subject(
        "dashboard",
        (
            Row(
                "page-slowest",
                "dashboard: slowest page over 1,000,000 messages",
                "slowest page, ms",
                most(200),
                "ms",
            ),
            Row(
                "page-largest",
                "dashboard: largest page over 1,000,000 messages",
                "largest page, KB",
                most(150),
                "KB",
            ),
        ),
    ),
    Subject(
        "interrupt",
        (
            Row(
                "interrupt",
                "Ctrl-C in the middle of 1,000,000: until the command ends",
                "interrupt_seconds",
                most(5),
                "s",
            ),
        ),
    ),
    Subject(
        "feedback",
        (
            Row(
                "sns-posts", "verified SNS posts through the gateway, one core", "posts_a_second", None, "/s"
            ),
            Row("events", "events applied", "events_a_second", None, "/s"),
            Row(
                "sns-burst",
                "4,000 SNS posts, 200 at once: the slowest answer",
                "burst_slowest_seconds",
                most(15),
                "s",
            ),
        ),
        quick={"posts": 500, "events": 5_000, "rounds": 2},
    ),
    Subject(
        "single",
        (
            Row(
                "single-requests",
                "single mails accepted by the gateway, one core",
                "accepted_a_second",
                least(800),
                "/s",
                bound=ONE_CORE,
            ),
            Row(
                "single-latency",
                "single mail on an idle `mailout up`: from the request to the transport, median",
                "median_seconds",
                most(1),
                "s",
            ),
            Row("single-latency-99", "the same, 99th of 500", "p99_seconds", most(2), "s"),
        ),
        "single_mails",
        quick={"requests": 480, "rounds": 2, "mails": 0},
    ),
    Subject(
        "articles",
        (
            Row(
                "articles-seconds",
                "an article for 100,000 over 200 slices: CPU, census and freezing",
                "cpu_seconds",
                most(10),
                "s",
            ),
            Row("articles-memory", "memory of the whole process", "memory_mb", most(500), "MB"),
            Row("articles-postgres", "the same on Postgres, by the clock", "postgres_seconds", None, "s"),
            Row("articles-postgres-memory", "and its memory", "postgres_memory_mb", most(500), "MB"),
        ),
    ),
    Subject(
        "notifications",
        (
            Row("notifications", "notifications a second of CPU", "a_second", least(300), "/s"),
            Row(
                "notifications-growth",
                "the same behind 100,000 that are done ÷ behind none",
                "growth",
                least(0.9),
            ),
            Row(
                "notifications-longest",
                "the longest transaction on the producer's database",
                "longest_ms",
                None,
                "ms",
            ),
            Row("notifications-p99", "the 99th of 100 of them", "p99_ms", most(50), "ms"),
        ),
        quick={"rounds": 2, "long": 10_000},
    ),
    Subject(
        "idle",
        (
            Row(
                "idle-cpu",
                "`mailout up`, idle: CPU a minute",
                "cpu_seconds_a_minute",
                most(1.8),
                "s",
                bound=PREFECTS_OWN,
            ),
            Row("idle-memory", "`mailout up`, idle: memory", "memory_mb", most(450), "MB"),
            Row("idle-runs", "scheduled flow runs a day", "runs_a_day", most(300)),
            Row(
                "post-to-mail",
                "from POST /send-mailout to the first mail",
                "post_to_mail_seconds",
                most(10),
                "s",
            ),
            Row(
                "ready-to-mail",
                "from Ready in Notion to the first mail",
                "ready_to_mail_seconds",
                most(75),
                "s",
            ),
        ),
    ),
)
