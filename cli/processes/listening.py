"""Where to listen: whether it can be done, said before anything is started; and whether somebody does."""

from __future__ import annotations

import socket
import ssl
from functools import cache

import httpx

from mailout.base.errors import UsageError


@cache
def certificates() -> ssl.SSLContext:
    """Read once. `mailout up` asks its server every few seconds, and httpx would read them all each time."""
    return httpx.create_ssl_context()


def answers(url: str, seconds: float = 5.0, *, trust_env: bool = True) -> bool:
    """Within so many seconds; `trust_env`: by way of a proxy, if there is one."""
    try:
        answer = httpx.get(url, timeout=seconds, verify=certificates(), trust_env=trust_env)
    except httpx.TransportError:
        return False
    return answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR


def require_free(option: str, host: str, port: int) -> None:
    listen(option, host, port).close()


def listen(option: str, host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while")[0]  # it repeats the address
        raise UsageError(
            f"{host}:{port} cannot be listened on: {why}.",
            remedy=f"Is mailout up already? Otherwise choose another one: {option}.",
        ) from error
