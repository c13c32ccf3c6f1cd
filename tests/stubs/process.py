"""Stubs run in processes of their own: a killed client cannot hurt them, and they do not share our GIL."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Stub:
    """A running stub: where it listens, and everything else it said at its start."""

    url: str
    process: subprocess.Popen[bytes]
    told: Mapping[str, Any]


@contextmanager
def start_stub(module: str, *args: str) -> Iterator[Stub]:
    """Start `python -m module args`, wait for its one line of JSON with a `url`, stop it in the end."""
    process = subprocess.Popen([sys.executable, "-m", module, *args], stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{module} ended with {process.wait()} before it said where it listens")
        told = json.loads(line)
        yield Stub(told["url"], process, told)
    finally:
        process.terminate()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
