"""Plays the matrix: several scenes at a time, each lane with a receiver and a database of its own."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.matrix import LANES, Row
from tests.chaos.places import Stage
from tests.chaos.verdict import Verdict
from tests.contract.postgres import server


@dataclass(frozen=True)
class Scene:
    """One row of the matrix in one mode on one store."""

    row: Row
    mode: str
    store: str
    dose: int | None = None  # how often it strikes; None: as the row says
    seed: int = 0

    @property
    def name(self) -> str:
        return f"{self.row.name}:{self.store}:{self.mode.replace(' ', '-')}"

    @property
    def replay(self) -> str:
        options = {"--dose": self.dose, "--seed": self.seed}
        words = [self.name, *(f"{option} {value}" for option, value in options.items() if value)]
        return f'make chaos ARGS="{" ".join(words)}"'


@dataclass(frozen=True)
class Played:
    """A scene that was played to its end, or broke off."""

    scene: Scene
    verdict: Verdict
    seconds: float
    failure: str = ""

    @property
    def row(self) -> Row:
        return self.scene.row

    @property
    def problems(self) -> Sequence[str]:
        if self.failure:
            return [f"broke off: {self.failure.strip().splitlines()[-1]}"]
        return self.row.problems(self.verdict, self.scene.dose)

    def line(self) -> str:
        v = self.verdict
        counted = (
            f"struck {v.hits}, accepted {v.accepted}, twice {v.twice}, lost {v.lost}, unknown {v.unknown},"
            f" failed {failures(v)}, stuck {v.stuck}, misreported {v.misreported},"
            f" ledger {'off' if v.unbalanced else 'balances'}"
        )
        line = f"{'BAD' if self.problems else 'ok '} {self.scene.name:<35} {counted} ({self.seconds:.0f} s)"
        if self.problems:
            line += f"\n    {'; '.join(self.problems)}\n    again: {self.scene.replay}"
        return line


def failures(verdict: Verdict) -> str:
    """How many, and with which codes."""
    total = verdict.failed.total()
    return f"{total} ({', '.join(sorted(verdict.failed))})" if total else "0"


@dataclass
class Run:
    asked: int = 0  # scenes
    played: list[Played] = field(default_factory=list)
    impossible: list[Row] = field(default_factory=list)  # here
    seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        return len(self.played) == self.asked

    @property
    def kills(self) -> int:
        return sum(one.verdict.hits for one in self.played if one.row.kills)

    @property
    def bad(self) -> Sequence[Played]:
        return [one for one in self.played if one.problems]


def run_scenes(scenes: Sequence[Scene], folder: Path, lanes: Mapping[str, int] = LANES) -> Run:
    """All of them; after an interrupt only those that had begun."""
    began = time.monotonic()
    server()  # all lanes share it
    impossible = {scene.row.name: scene.row for scene in scenes if not scene.row.possible()}
    asked = [scene for scene in scenes if scene.row.name not in impossible]
    run = Run(len(asked), impossible=list(impossible.values()))
    local, stages, lock = threading.local(), list[Any](), threading.Lock()

    def play(scene: Scene) -> Played:
        if not hasattr(local, "stage"):
            with lock:
                local.stage = Stage(folder, f"lane{len(stages)}")
                stages.append(local.stage)
        return play_one(scene, local.stage)

    with ExitStack() as pools:
        pool = {kind: pools.enter_context(ThreadPoolExecutor(number)) for kind, number in lanes.items()}
        futures = [pool[scene.row.lane].submit(play, scene) for scene in asked]
        with _interruptible(futures) as interrupted:
            for future in as_completed(futures):
                if future.cancelled() or (interrupted.is_set() and future.result().failure):
                    continue  # the interrupt may have ended its processes, too
                run.played.append(future.result())
                print(f"{run.played[-1].line()}\n{run.played[-1].failure}".rstrip(), flush=True)
    for stage in stages:
        stage.close()
    order = {scene: number for number, scene in enumerate(asked)}
    run.played.sort(key=lambda one: order[one.scene])
    run.seconds = time.monotonic() - began
    return run


@contextmanager
def _interruptible(futures: Sequence[Future[Played]]) -> Iterator[threading.Event]:
    """The first Ctrl-C lets the scenes that have begun end; the second ends everything."""
    interrupted = threading.Event()

    def interrupt(number: int, frame: object) -> None:
        print("\nNo more scenes begin; those that have begun end first.", flush=True)
        interrupted.set()
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_DFL)
        for future in futures:
            future.cancel()

    before = {one: signal.signal(one, interrupt) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def play_one(scene: Scene, stage: Stage) -> Played:
    """A scene that breaks is a bad one; the others go on."""
    began, verdict, failure = time.monotonic(), Verdict(), ""
    try:
        verdict = scene.row.play(stage, scene.mode, scene.store, scene.dose, scene.seed)
    except (Exception, pytest.skip.Exception):  # noqa: BLE001 (whatever it is, it is shown)
        failure = traceback.format_exc()
    return Played(scene, verdict, time.monotonic() - began, failure)
