"""Ctrl-C in the middle of a million: how long until the command returns."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mailout.app.engine import Engine
from mailout.outbox.queue import queue_rows
from tests.bench.homes import engine_with

ROWS = 1_000_000
PATIENCE = 300.0


def interrupted(
    engine: Engine, letter: str, number: signal.Signals, *arguments: str, after: int = 2_000
) -> dict[str, Any]:
    """`mailout send`, signalled once so many more are sent: seconds to its end, exit code and last words."""
    before = _sent(engine)
    command = subprocess.Popen(
        [sys.executable, "-m", "cli", "send", letter, "--real", "--yes", *arguments],
        env=_environment(engine),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        until = time.monotonic() + PATIENCE
        while _sent(engine) < before + after:
            if command.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"it does not send: {command.communicate()[0]}")
            time.sleep(0.1)
        command.send_signal(number)
        started = time.perf_counter()
        told, _ = command.communicate(timeout=PATIENCE)
        took = time.perf_counter() - started
    finally:
        command.kill()
    return {"seconds": took, "exit_code": command.returncode, "words": _last_words(told)}


def _last_words(told: str) -> str:
    lines = [line.strip() for line in re.split(r"[\r\n]+", told) if line.strip()]
    return " / ".join(lines[-3:])


def _environment(engine: Engine) -> dict[str, str]:
    settings: Mapping[str, str] = {
        "MAILOUT_HOME": str(engine.settings.mailout_home),
        "FROM_EMAIL": "news@example.org",
        "ORG_NAME": "The Gardeners",
        "ORG_ADDRESS": "1 Garden Lane",
        "UNSUBSCRIBE_BASE_URL": "https://example.org/unsubscribe",
        "UNSUBSCRIBE_SECRET": "not a secret",
        "SEND_RATE_PER_SEC": "0",
        "NO_COLOR": "1",
    }
    return {**os.environ, **settings}


def _sent(engine: Engine) -> int:
    return sum(mailout.ledger.sent for mailout in queue_rows.mailouts(engine.store))


def run(rows: int = ROWS) -> dict[str, Any]:
    """Through the folder transport; Prefect stays out of it, its own end is not what is measured here."""
    with tempfile.TemporaryDirectory() as folder:
        engine, letter = engine_with(Path(folder) / "home", rows)
        engine.sending.freeze(engine.intake.enqueue(letter, False).id)
        ended = [interrupted(engine, letter, signal.SIGINT, "--direct") for _ in range(3)]
        engine.store.close()
    return {"interrupt_seconds": [one["seconds"] for one in ended]}
