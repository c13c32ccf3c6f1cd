"""Articles: 100,000 people over 200 slices, counted, put together and written into the outbox, on SQLite."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from mailout.adapters.sqlite import SqliteStore
from mailout.audience.port import SubscriberRow
from mailout.clock import SystemClock
from mailout.intake.articles import ArticleIntake
from tests.clocks import FakeClock
from tests.contract.articles import OHIO, US, engine_on, order, part

PEOPLE, SLICES, COUNTIES = 100_000, 200, 88


def people() -> Iterator[SubscriberRow]:
    for n in range(PEOPLE):
        email = f"reader{n:06}@example.org"
        county = f"{OHIO}/county:county_{n % COUNTIES}"
        places = (US, OHIO, county, f"{OHIO}/place:place_{n % 110}", f"{OHIO}/cd:{n % 15}")
        yield SubscriberRow(email, email, ocd_ids=places)


def slices() -> list[object]:
    made = [part(1, US, "The nation. " * 40, is_headline=True, title="The budget"), part(2, OHIO, "The state.")]
    for n in range(SLICES - 2):
        scope = f"{OHIO}/county:county_{n}" if n < COUNTIES else f"{OHIO}/place:place_{n - COUNTIES}"
        made.append(part(3 + n % 5, scope, f"What place {n} decided. " * 20, title=f"Place {n}"))
    return list(made)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "mailout.db", SystemClock())
        store.import_slices(slices())  # type: ignore[arg-type]
        everybody = list(people())
        for start in range(0, PEOPLE, 20_000):
            store.import_subscribers(everybody[start : start + 20_000])
        del everybody
        engine = engine_on(store, FakeClock(), Path(folder))
        began, wall = time.process_time(), time.perf_counter()
        mailout = ArticleIntake(engine).enqueue(order())
        assert mailout is not None
        counted = time.process_time() - began
        engine.freeze(mailout.id)
        took = time.process_time() - began
        variants = len(store.article_batch(mailout.id).contents)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        recipients = store.mailout(mailout.id).ledger.recipients
        print(
            f"article: {recipients:,} people, {SLICES} slices, {variants:,} variants:"
            f" census {counted:.1f} s, with freezing {took:.1f} s of CPU"
            f" ({time.perf_counter() - wall:.1f} s), process {peak:.0f} MB"
        )
        store.close()


if __name__ == "__main__":
    main()
