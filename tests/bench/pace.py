"""The rate in real time against the SES stub: kept within 1 %, and no sliding second too full."""

from __future__ import annotations

import bisect
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.bench.sender_ses import sender_loop
from tests.bench.ses import CREDENTIALS
from tests.stubs.ses_control import ses_stub

CASES = {  # rate: mode, lanes, latency in ms
    5: ("single", 2, 0),
    14: ("single", 2, 0),
    50: ("single", 4, 0),
    200: ("single", 8, 0),
    1000: ("bulk", 8, 80),
}


def measured(moments: list[float]) -> tuple[float, int]:
    """The mean rate from first to last, and the fullest sliding second."""
    fullest = max(bisect.bisect_left(moments, start + 1) - i for i, start in enumerate(moments))
    last_call = bisect.bisect_left(moments, moments[-1])  # a bulk call's own messages start together
    return last_call / (moments[-1] - moments[0]), fullest


@contextmanager
def busy_process() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def run(
    seconds: int = 8,
    rates: Sequence[int] = tuple(CASES),
    beside: Sequence[bool] = (False, True),
    rounds: int = 3,
) -> dict[str, Any]:
    """By how many per cent each rate is missed, and the fullest second as a share of what is allowed."""
    results: dict[str, Any] = {}
    with patch.dict(os.environ, CREDENTIALS), tempfile.TemporaryDirectory() as folder:
        for busy in beside:
            fullest, mark = [0.0], " busy" if busy else ""
            for number, rate in product(range(rounds), rates):
                home = Path(folder) / f"{rate}{mark}{number}"
                with busy_process() if busy else nullcontext():
                    mean, most = one(home, rate, seconds)
                results.setdefault(f"{rate}{mark}", []).append(abs(mean / rate - 1) * 100)
                fullest.append(most / (rate + max(1, rate / 100)))
            results[f"fullest{mark}"] = max(fullest)
    return results


def one(home: Path, rate: int, seconds: int) -> tuple[float, int]:
    mode, lanes, latency = CASES[rate]
    with ses_stub("--no-bodies", "--latency-ms", str(latency)) as stub:
        sender_loop(
            stub,
            home,
            rate * seconds,
            mode,
            SEND_RATE_PER_SEC=str(rate),
            SEND_CONCURRENCY=str(lanes),
        )
        return measured(sorted(at for at, _, mails in stub.calls() for _ in range(mails)))
