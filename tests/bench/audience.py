"""A million subscribers: from a CSV file to a checked, deduped, sorted audience, and through the import.

Memory is a whole process's peak, so each measurement runs in a process of its own.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.bench.memory import peak_mb

ROWS = 1_000_000

ODD = (
    "",
    "no-at-sign",
    "Ana <ana{n}@example.org>",
    "josé{n}@example.org",
    "two@@example.org",
    "a..b{n}@example.org",
    "n{n}@example",
    "printer{n}@office.local",
    "u{n}@bücher.example",
    "u{n}@xn--bcher-kva.example",
    " Spaced{n}@Example.ORG ",
    "USER{n}@EXAMPLE.COM",
)


def write_csv(path: Path, rows: int = ROWS) -> None:
    """Every fiftieth row is odd, every hundredth repeats one that was there, in no order at all."""
    statuses = ("active",) * 17 + ("unsubscribed", "unsubscribed", "bounced")
    with path.open("w", encoding="utf-8") as file:
        file.write("email,status,from_name,city\n")
        for n in range(rows):
            key = n * 2_654_435_761 % 4_294_967_296
            if n % 50 == 7:
                email = ODD[n // 50 % len(ODD)].format(n=n)
            elif n % 100 == 13:
                email = f"User{(n - 13) * 2_654_435_761 % 4_294_967_296}@Example.com"
            else:
                email = f"user{key}@example.com"
            file.write(f"{email},{statuses[n % 20]},{'Ana Souza' if n % 10 == 0 else ''},City {n % 500}\n")


def _frame(path: Path) -> dict[str, Any]:
    import polars as pl

    from mailout.letters.audience.frame import FRAME_ROWS, check, merge

    rows = pl.scan_csv(path, infer_schema=False).select("email", "status", "from_name")
    batches = rows.collect_batches(chunk_size=FRAME_ROWS, maintain_order=True)
    audience = merge(map(check, batches))
    return {"kept": audience.frame.height, "dropped": audience.dropped}


def _plain(path: Path) -> dict[str, Any]:
    """The same in a loop, as one would write it: the same rules, one address at a time."""
    from mailout.base.addresses import Dropped, normalise

    people: dict[str, tuple[int, str]] = {}
    dropped: Counter[Dropped] = Counter()
    ranks = {"active": 0, "unsubscribed": 1, "bounced": 2}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            email = normalise(row["email"])
            if isinstance(email, Dropped):
                dropped[email] += 1
            else:
                rank, name = people.get(email, (0, ""))
                people[email] = (max(rank, ranks[row["status"]]), name or row["from_name"])
    return {"kept": len(sorted(people.items())), "dropped": dropped}


def _sqlite(path: Path) -> dict[str, Any]:
    from mailout.adapters.sqlite import SqliteStore
    from mailout.base.clock import SystemClock
    from mailout.letters.audience.people_import import read_people
    from mailout.letters.audience.wishes import Answers

    store = SqliteStore(path.parent / "store" / "mailout.db", SystemClock())
    told = Answers.from_options(
        mail_if=[("status", "active")], no_mail_if=[("status", "unsubscribed"), ("status", "bounced")]
    )
    kept = sum(store.import_subscribers(batch).added for batch in read_people(path, told).batches())
    store.close()
    return {"kept": kept}


def _measure(what: str, path: Path) -> dict[str, Any]:
    """In a fresh interpreter: the seconds of the work, and the peak of the whole process."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.audience", what, str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def run(rows: int = ROWS) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "subscribers.csv"
        write_csv(path, rows)
        frame, plain, stored = (_measure(what, path) for what in ("frame", "plain", "sqlite"))
    if frame["kept"] != plain["kept"]:
        raise AssertionError(f"they do not agree: {frame['kept']:,} and {plain['kept']:,} kept")
    return {
        "seconds": frame["seconds"],
        "memory_mb": frame["peak_mb"],
        "plain_to_frame": plain["seconds"] / frame["seconds"],
        "sqlite_seconds": stored["seconds"],
    }


def _child(what: str, path: Path) -> None:
    start = time.perf_counter()
    result = {"frame": _frame, "plain": _plain, "sqlite": _sqlite}[what](path)
    result["seconds"] = time.perf_counter() - start
    result["peak_mb"] = peak_mb()
    print(json.dumps(result))


if __name__ == "__main__":
    _child(sys.argv[1], Path(sys.argv[2]))
