"""A port for a server of a test."""

from __future__ import annotations

import random
import socket
from contextlib import suppress


def free_port() -> int:
    """Below those that the system hands out for connections: nobody takes it before the server does, or
    while the server is away."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("there is no free port")
