"""`make chaos`: faults over stores and modes, as a table; `make chaos ARGS="kill ses-5xx"`: some rows.

A whole run writes docs/reliability.md. It ends with 1 if anybody got a mail twice, was lost or got stuck, or
a ledger did not balance.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.chaos.matrix import ROWS
from tests.chaos.report import page, table
from tests.chaos.runner import run_rows
from tests.conftest import forget_the_machine

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def main() -> int:
    asked = argparse.ArgumentParser(prog="make chaos", description="faults, as a table")
    asked.add_argument("rows", nargs="*", help=", ".join(row.name for row in ROWS))
    asked.add_argument("--dose", type=int, help="how often each strikes in each mode on each store")
    asked.add_argument("--lanes", type=int, default=3, help="how many scenes are played at a time")
    told = asked.parse_args()
    unknown = set(told.rows) - {row.name for row in ROWS}
    if unknown:
        asked.error(f"no such row: {', '.join(sorted(unknown))}")
    forget_the_machine()
    rows = [row for row in ROWS if not told.rows or row.name in told.rows]
    with tempfile.TemporaryDirectory(prefix="mailout-chaos-") as folder:
        played = run_rows(rows, Path(folder), lanes=told.lanes, dose=told.dose)
    print("\n" + table(played))
    if not told.rows and told.dose is None:
        PAGE.write_text(page(played), encoding="utf-8")
        print(f"\nWritten: {PAGE}")
    return 0 if all(one.is_good for one in played.scenes) else 1


if __name__ == "__main__":
    sys.exit(main())
