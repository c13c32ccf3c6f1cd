"""What Prefect costs: the same mailout through the core alone and in the flow, the server already up."""

from __future__ import annotations

import logging
import tempfile
import time
from pathlib import Path
from typing import Any

from mailout.app import wiring
from tests.bench.homes import engine_with


def run(recipients: int = 20_000, rounds: int = 5) -> dict[str, Any]:
    """In turns; the first is to warm up."""
    from prefect.testing.utilities import prefect_test_harness

    from flows.send_mailout import send_mailout

    logging.getLogger("prefect").setLevel(logging.WARNING)
    core, flow = [], []
    with tempfile.TemporaryDirectory() as folder, prefect_test_harness(server_startup_timeout=120):
        for number in range(rounds + 1):  # the first is to warm up
            recipients_now = recipients if number else 100
            engine, letter = engine_with(Path(folder) / f"core-{number}", recipients_now)
            started = time.perf_counter()
            engine.deliver(engine.intake.enqueue(letter).id)
            core.append(time.perf_counter() - started)
            engine.store.close()

            engine, letter = engine_with(Path(folder) / f"flow-{number}", recipients_now)
            wiring.use(engine)
            started = time.perf_counter()
            state = send_mailout(letter, return_state=True)
            flow.append(time.perf_counter() - started)
            assert state.is_completed(), state
            wiring.use(None)
            engine.store.close()
    return {"flow_to_core": [one / other for one, other in zip(flow[1:], core[1:], strict=True)]}
