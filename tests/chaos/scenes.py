"""Faults: each takes a place and how often to strike, strikes while mail goes out, and says how often it did.

What remains is finished by the runner, without a fault, and judged.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace

from tests.chaos.places import PATIENCE, Place, kill

Fault = Callable[[Place, int], int]


def killed(place: Place, dose: int) -> int:
    """kill -9 at the start, while freezing, between messages and within them."""
    hits = 0
    while hits < dose:
        process = place.start()
        if place.chance.random() < 0.3:
            time.sleep(place.chance.uniform(0, 0.15))  # anywhere in its start
        else:
            place.reach(place.chance.randint(1, 8), process)
            time.sleep(place.chance.uniform(0, 0.03))
        over = not process.is_alive()
        kill(process)
        if over:
            return hits
        hits += 1
        place.free_locks()
    return hits


def suspended(place: Place, dose: int) -> int:
    """SIGSTOP, as a laptop does it: another takes over; what wakes must not send what is not its own.

    It wakes once the other has sent everything else; the last one only when all is given up and reported.
    """
    frozen = place.start()
    if not place.reach(place.chance.randint(2, 20), frozen):
        return 0
    place.halt(frozen)
    place.finish(place.all_called if dose > 1 else None)
    os.kill(frozen.pid or 0, signal.SIGCONT)
    frozen.join(PATIENCE)
    return 1


def terminated(place: Place, dose: int) -> int:
    """SIGTERM, as a deploy or a reboot sends it: nothing may be in doubt afterwards."""
    hits = 0
    while hits < dose:
        process = place.start()
        if not place.reach(place.chance.randint(1, 12), process):
            return hits
        process.terminate()
        process.join(PATIENCE)
        hits += 1
        place.free_locks()
    return hits


def senders(count: int) -> Fault:
    """Several at once, by design or by mistake; now and then one is killed and another takes its place."""

    def scene(place: Place, dose: int) -> int:
        at_work, hits = [place.start() for _ in range(count)], 0
        while hits < dose and not place.is_over():
            place.reach(place.chance.randint(5, 15), at_work[0])
            victim = at_work.pop(0)
            hits += victim.is_alive()
            kill(victim)
            place.free_locks(victim)
            at_work.append(place.start())
        for one in at_work:
            one.join(PATIENCE)
        return hits

    return scene


def machine_lost(place: Place, dose: int) -> int:
    """Killed, and its journal is gone with its disk: what it had begun is in doubt, and stays so."""
    process = place.start()
    if not place.reach(place.chance.randint(2, 20), process):
        return 0
    kill(process)
    for journal in (place.job.home / "journal").rglob("*"):
        if journal.is_file():
            journal.unlink()
    return 1


def clock_jumps(place: Place, dose: int) -> int:
    """The machine's clock (and with Postgres the database's) jumps by hours, forward and back."""
    steady = place.job
    place.job = replace(steady, jumps=(0.0, 7200.0, -7200.0, 90_000.0, -90_000.0))
    hits = killed(place, dose)
    process = place.start()
    place.reach(20, process)
    kill(process)
    place.job = steady
    return hits + 1


def slow_store(place: Place, dose: int) -> int:
    """Every call of the store takes 400 ms longer, half of it after the commit; some senders are killed."""
    quick = place.job
    place.job = replace(quick, slow=0.4)
    hits = killed(place, dose)
    process = place.start()
    process.join(20)
    kill(process)
    place.job = quick
    return hits + 1


def answers(*rules: dict[str, object], **control: object) -> Fault:
    """SES misbehaves by these rules while everything is sent."""

    def scene(place: Place, dose: int) -> int:
        place.ses.script(*rules, seed=place.chance.randint(0, 10_000), latency_ms=1, **control)
        for _ in range(dose):
            process = place.start()
            process.join(PATIENCE)
            place.free_locks()
            if place.is_over():
                break
        hits = place.ses.misbehaved()
        place.ses.script(same_id=False)
        return hits

    return scene
