"""The whole sender against the SES stub: store, ledger, history and CSV written, beside a bare boto3 loop."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mailout.outbox.queue.mailout import Status
from tests.bench.homes import engine_with
from tests.bench.ses import CREDENTIALS, bare_loop
from tests.stubs.ses_control import SesStub, ses_stub


def sender_loop(stub: SesStub, home: Path, recipients: int, mode: str, **settings: str) -> float:
    """Messages a second."""
    return recipients / sent(stub, home, recipients, mode, **settings)[0]


def sent(stub: SesStub, home: Path, recipients: int, mode: str, **settings: str) -> tuple[float, float]:
    """Seconds and CPU seconds from the first step to the last, freezing and the report not counted."""
    engine, letter = engine_with(
        home,
        recipients,
        MAILOUT_TRANSPORT="ses",
        SES_MODE=mode,
        AWS_ENDPOINT_URL_SESV2=stub.url,
        AWS_REGION="us-east-1",
        **settings,
    )
    mailout = engine.intake.enqueue(letter)
    engine.sending.freeze(mailout.id)
    engine.sending.start(mailout.id)
    started, cpu = time.perf_counter(), time.process_time()
    report = engine.sending.send_for(mailout.id)
    took, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert engine.sending.conclude(mailout.id, report).status is Status.COMPLETED, report
    engine.store.close()
    return took, cpu


def run(n: int = 1_200, rounds: int = 5) -> dict[str, Any]:
    """In turns, so that a busy moment hits all alike; the first round is to warm up."""
    single, bulk = [], []
    with (
        patch.dict(os.environ, CREDENTIALS),
        tempfile.TemporaryDirectory() as folder,
        ses_stub("--no-bodies") as stub,
    ):
        for number in range(rounds + 1):
            home, size = Path(folder) / str(number), n if number else 100
            bare = bare_loop(stub.url, size)
            stub.reset()
            one_by_one = sender_loop(stub, home / "single", size, "single")
            stub.reset()
            in_bulk = sender_loop(stub, home / "bulk", size * 6, "bulk")
            stub.reset()
            if number:
                single.append(one_by_one / bare)
                bulk.append(in_bulk / bare)
    return {"single_to_bare": single, "bulk_to_bare": bulk}
