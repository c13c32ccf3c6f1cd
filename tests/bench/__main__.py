"""`make bench`: what things cost, one table; `make bench ARGS=sender-bulk`: one row; `--quick`: small sizes.

Numbers of machines differ, so a row is a ratio taken side by side in one run where that is possible. A whole
run writes docs/benchmarks.md and bench.json.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path

from tests.bench.report import as_json, as_rows, page, table, with_rows_again
from tests.bench.rows import SUBJECTS
from tests.bench.runner import run_subjects
from tests.conftest import forget_the_machine

ROOT = Path(__file__).parents[2]


def main() -> int:
    asked = argparse.ArgumentParser(prog="make bench", description="what things cost")
    asked.add_argument("rows", nargs="*", help="names of rows or of what they are measured together with")
    asked.add_argument("--quick", action="store_true", help="some of them, smaller: under two minutes")
    asked.add_argument("--keep", action="store_true", help="put them into the table of the last whole run")
    asked.add_argument("--measure", metavar="SUBJECT", help=argparse.SUPPRESS)
    told = asked.parse_args()
    if told.measure:
        return measure(told.measure, told.quick)
    known = {row.name for subject in SUBJECTS for row in subject.rows} | {one.name for one in SUBJECTS}
    if strange := set(told.rows) - known:
        asked.error(f"no such row: {', '.join(sorted(strange))}. There are: {', '.join(sorted(known))}")
    results = run_subjects(SUBJECTS, told.rows, quick=told.quick)
    rows, kept = as_rows(results), ROOT / "bench.json"
    print("\n" + table(rows))
    if told.quick:
        print("\nSmaller sizes and fewer rounds than the rows say: to see that it works, not how fast it is.")
    if (not told.rows or told.keep) and not told.quick:
        if told.rows:
            order = (row.name for subject in SUBJECTS for row in subject.rows)
            before = json.loads(kept.read_text(encoding="utf-8"))["rows"]
            rows = with_rows_again(order, before, rows)
        (ROOT / "docs" / "benchmarks.md").write_text(page(rows), encoding="utf-8")
        kept.write_text(as_json(rows), encoding="utf-8")
        print("\nWritten: docs/benchmarks.md and bench.json")
    return 1 if any(one.failure for one in results) else 0


def measure(name: str, quick: bool) -> int:
    """In a process of its own: what one subject needs or breaks is nobody else's."""
    forget_the_machine()
    logging.disable(logging.WARNING)
    subject = next(one for one in SUBJECTS if one.name == name)
    found = subject.measured(quick)
    print(
        "\n"
        + json.dumps({key: value for key, value in found.items() if isinstance(value, int | float | list)})
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
