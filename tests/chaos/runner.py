"""Plays the matrix: several scenes at a time, each lane with a receiver and a database of its own."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.matrix import Row
from tests.chaos.places import Stage
from tests.chaos.verdict import Verdict
from tests.contract.postgres import server


@dataclass(frozen=True)
class Played:
    """One row in one mode on one store."""

    row: Row
    mode: str
    store: str
    verdict: Verdict
    seconds: float
    failure: str = ""

    @property
    def is_good(self) -> bool:
        return not self.failure and self.row.is_good(self.verdict)

    def line(self) -> str:
        v = self.verdict
        said = self.failure.strip().rpartition("\n")[2] or (
            f"struck {v.hits}, accepted {v.accepted}, twice {v.twice}, lost {v.lost}, unknown {v.unknown},"
            f" failed {v.failed}, stuck {v.stuck}, ledger {'off' if v.unbalanced else 'balances'}"
        )
        mark = "ok " if self.is_good else "BAD"
        return f"{mark} {self.row.name:<18} {self.store:<8} {self.mode:<13} {said} ({self.seconds:.0f} s)"


@dataclass
class Run:
    scenes: list[Played] = field(default_factory=list)
    impossible: list[Row] = field(default_factory=list)  # here
    seconds: float = 0.0


def run_rows(rows: Sequence[Row], folder: Path, *, lanes: int = 3, dose: int | None = None) -> Run:
    began = time.monotonic()
    server()  # all lanes share it
    run = Run(impossible=[row for row in rows if not row.possible()])
    local, stages, lock = threading.local(), [], threading.Lock()

    def play(row: Row, mode: str, store: str) -> Played:
        if not hasattr(local, "stage"):
            with lock:
                local.stage = Stage(folder, f"lane{len(stages)}")
                stages.append(local.stage)
        played = play_one(row, local.stage, mode, store, dose)
        with lock:
            print(played.line(), flush=True)
            if played.failure:
                print(played.failure, flush=True)
        return played

    with ThreadPoolExecutor(lanes) as quick, ThreadPoolExecutor(2) as slow:
        asked = [
            (slow if row.is_slow else quick).submit(play, row, mode, store)
            for row in rows
            if row not in run.impossible
            for mode, store in row.played
        ]
        run.scenes = [one.result() for one in asked]
    for stage in stages:
        stage.close()
    run.seconds = time.monotonic() - began
    return run


def play_one(row: Row, stage: Stage, mode: str, store: str, dose: int | None = None) -> Played:
    """A scene that breaks is a bad one; the others go on."""
    began, verdict, failure = time.monotonic(), Verdict(), ""
    try:
        verdict = row.play(stage, mode, store, dose)
    except Exception:  # noqa: BLE001 (whatever it is, it is shown)
        failure = traceback.format_exc()
    return Played(row, mode, store, verdict, time.monotonic() - began, failure)
