"""`make chaos`: faults over stores and modes, as a table; `make chaos ARGS="kill ses-5xx"`: some rows.

One scene of a row: `make chaos ARGS=stop:supabase:single-mails`. A whole run writes docs/reliability.md. It
ends with 1 if anybody got a mail twice, was lost or got stuck, if a record, a report or a ledger is wrong, or
if a fault did not strike as often as it should.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.matrix import LANES, ROWS
from tests.chaos.report import PAGE, table, write_page
from tests.chaos.runner import Run, Scene, run_scenes
from tests.conftest import forget_the_machine

INTERRUPTED = 130


def scenes_named(names: Sequence[str], dose: int | None = None, seed: int = 0) -> Sequence[Scene]:
    """Of whole rows, or single ones as ROW:STORE:MODE; no name: all. A name that fits nothing is an error."""
    every = [Scene(row, mode, store, dose, seed) for row in ROWS for mode, store in row.played]
    chosen = {name: [one for one in every if name in (one.row.name, one.name)] for name in names}
    for name, found in chosen.items():
        if not found:
            raise ValueError(f"no such row or scene: {name}")
    return [one for one in every if not names or any(one in found for found in chosen.values())]


def conclusion(run: Run) -> int:
    """The exit code, and in words what is wrong and how to see it again."""
    for one in run.bad:
        print(f"\nNot as it should be: {one.scene.name}: {'; '.join(one.problems)}")
        print(f"  again: {one.scene.replay}")
    if not run.is_whole:
        print(f"\nInterrupted: {len(run.played)} of {run.asked} scenes were played.")
        return INTERRUPTED
    return 1 if run.bad else 0


def main() -> int:
    asked = argparse.ArgumentParser(prog="make chaos", description="faults, as a table")
    asked.add_argument("rows", nargs="*", help=f"ROW or ROW:STORE:MODE of {', '.join(r.name for r in ROWS)}")
    asked.add_argument("--dose", type=int, help="how often each strikes in each mode on each store")
    asked.add_argument("--seed", type=int, default=0, help="another one: other moments to strike at")
    asked.add_argument("--times", type=int, default=1, help="so often, each time with the next seed")
    asked.add_argument("--lanes", type=int, help="so many scenes of each kind at a time")
    told = asked.parse_args()
    forget_the_machine()
    try:
        seeds = range(told.seed, told.seed + told.times)
        scenes = [scene for seed in seeds for scene in scenes_named(told.rows, told.dose, seed)]
    except ValueError as error:
        asked.error(str(error))
    with tempfile.TemporaryDirectory(prefix="mailout-chaos-") as folder:
        run = run_scenes(scenes, Path(folder), dict.fromkeys(LANES, told.lanes) if told.lanes else LANES)
    print("\n" + table(run))
    if run.is_whole and not sys.argv[1:]:
        write_page(run)
        print(f"\nWritten: {PAGE}")
    return conclusion(run)


if __name__ == "__main__":
    sys.exit(main())
