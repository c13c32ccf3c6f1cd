"""The rate in real time against the SES stub: kept within 1 %, and no sliding second too full."""

from __future__ import annotations

import bisect
import os
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.bench.sender_ses import sender_loop
from tests.bench.ses import CREDENTIALS
from tests.stubs.ses_control import ses_stub

SECONDS = 20
CASES = (  # rate, mode, lanes, latency in ms
    (5, "single", 2, 0),
    (14, "single", 2, 0),
    (50, "single", 4, 0),
    (200, "single", 8, 0),
    (300, "single", 40, 80),
    (1000, "bulk", 8, 80),
)


def measured(moments: list[float], rate: float) -> tuple[float, int]:
    """The mean rate from first to last, and the fullest sliding second."""
    fullest = max(bisect.bisect_left(moments, start + 1) - i for i, start in enumerate(moments))
    last_call = bisect.bisect_left(moments, moments[-1])  # a bulk call's own messages start together
    return last_call / (moments[-1] - moments[0]), fullest


def run(seconds: int = SECONDS) -> dict[str, Any]:
    results: dict[str, Any] = {}
    with patch.dict(os.environ, CREDENTIALS), tempfile.TemporaryDirectory() as folder:
        for rate, mode, pool, latency in CASES:
            with ses_stub("--no-bodies", "--latency-ms", str(latency)) as stub:
                sender_loop(
                    stub,
                    Path(folder) / f"{rate}-{mode}",
                    rate * seconds,
                    mode,
                    SEND_RATE_PER_SEC=str(rate),
                    SEND_CONCURRENCY=str(pool),
                )
                moments = [at for at, operation, mails in stub.calls() if mails for _ in range(mails)]
            mean, fullest = measured(sorted(moments), rate)
            allowed = rate + max(1, rate / 100)
            results[f"{rate} a second, {mode}, {latency} ms"] = (
                f"{mean:.1f} ({mean / rate - 1:+.1%}), fullest second {fullest} of {allowed:g} allowed"
            )
    return results
