"""A port for a server of a test."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from contextlib import suppress

PROCESSES = 8
"""As many as one would let the tests run in; with more, some share their ports."""


SHARE = "PYTEST_XDIST_WORKER"
"""The variable that says whose ports these are: gw0, gw1, …"""


def _in_turn() -> Iterator[int]:
    worker = int(os.environ.get(SHARE, "gw0").removeprefix("gw"))
    ports = range(20_000 + worker % PROCESSES, 32_000, PROCESSES)
    yield from random.SystemRandom().sample(ports, len(ports))


_ours = _in_turn()


def free_port() -> int:
    """Below those that the system hands out for connections: nobody takes it before the server does, or
    while the server is away. Nor does another test: each process has ports of its own, and each but once."""
    for port in _ours:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("there is no free port")
