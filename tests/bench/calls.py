"""Calls to SES: CPU of a message, how many calls are in flight, and what latencies do to the pace."""

from __future__ import annotations

import bisect
import os
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.bench.sender_ses import sender_loop, sent
from tests.bench.ses import CREDENTIALS
from tests.stubs.ses_control import ses_stub

CALLS = 10
"""In flight, where it is set."""
RATE, LATENCY_MS = 200, 100
"""Where nothing is set: twenty calls in flight are needed."""


def run(seconds: float = 6.0, rounds: int = 3) -> dict[str, Any]:
    found: dict[str, Any] = defaultdict(list)
    with patch.dict(os.environ, CREDENTIALS), tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            home = Path(folder) / str(number)
            _at_once(home, found, round(500 * seconds))
            for latency_ms in (20, 100):
                possible = CALLS / latency_ms * 1000
                n = round(possible * seconds)
                with ses_stub("--no-bodies", "--latency-ms", str(latency_ms)) as stub:
                    rate = sender_loop(stub, home / f"{latency_ms}", n, "single", SEND_CONCURRENCY=str(CALLS))
                found[f"share_{latency_ms}"].append(rate / possible)
            _without_a_setting(home, found, round(RATE * seconds))
    return found


def _at_once(home: Path, found: dict[str, Any], n: int) -> None:
    for mode, size in (("single", n), ("bulk", 5 * n)):
        with ses_stub("--no-bodies") as stub:
            took, cpu = sent(stub, home / mode, size, mode, SEND_CONCURRENCY=str(CALLS))
        found[f"{mode}_a_second"].append(size / took)
        found[f"{mode}_cpu_ms"].append(cpu / size * 1000)


def _without_a_setting(home: Path, found: dict[str, Any], n: int) -> None:
    with ses_stub("--no-bodies", "--latency-ms", str(LATENCY_MS)) as stub:
        rate = sender_loop(stub, home / "auto", n, "single", SEND_RATE_PER_SEC=str(RATE))
        began = sorted(at for at, _, _ in stub.calls())
    found["auto_share"].append(rate / RATE)
    found["auto_calls"].append(
        max(i + 1 - bisect.bisect_right(began, at - LATENCY_MS / 1000) for i, at in enumerate(began))
    )
