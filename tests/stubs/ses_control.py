"""A test's hand on the SES stub."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.stubs.process import start_stub


class SesStub:
    def __init__(self, url: str) -> None:
        self.url = url
        # A new connection each time: a test may have told the stub to treat old ones badly.
        fresh = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.Client(base_url=url, trust_env=False, timeout=300, limits=fresh)
        self._plain: HTTPConnection | None = None

    def script(self, *rules: dict[str, Any], seed: int = 0, **control: Any) -> None:
        """Replace the rules (see `tests.stubs.ses_script.Rule`) and change whatever else is named."""
        told = {"rules": list(rules), "seed": seed, **control}
        self._http.post("/_control", json=told).raise_for_status()

    def reset(self) -> None:
        self._http.post("/_reset").raise_for_status()

    def accepted(self) -> dict[str, Any]:
        return self._get("/_accepted")

    def by_message(self) -> Counter[str]:
        """How often each message was accepted, by its id."""
        return Counter(self._get("/_ids"))

    def total(self) -> int:
        """How many were accepted. Cheap, for who asks many times a second: over one plain connection."""
        if self._plain is None:
            self._plain = HTTPConnection(urlsplit(self.url).netloc, timeout=300)
        self._plain.request("GET", "/_total")
        return int(self._plain.getresponse().read())

    def misbehaved(self) -> int:
        """How often it did what the rules say, since they were given."""
        return int(self.accepted()["misbehaved"])

    def messages(self, to: str | None = None) -> list[dict[str, Any]]:
        """The accepted mails, as a reader would see them."""
        query = {"messages": "1"} | ({"to": to} if to else {})
        found: list[dict[str, Any]] = self._get("/_accepted", **query)["messages"]
        return found

    def calls(self) -> list[tuple[float, str, int]]:
        return [(at, operation, mails) for at, operation, mails in self._get("/_times")]

    def open(self) -> int:
        """How many connections others have to it."""
        return int(self._get("/_open")) - 1

    def _get(self, path: str, **query: str) -> Any:
        return self._http.get(path, params=query).json()

    def close(self) -> None:
        self._http.close()
        if self._plain is not None:
            self._plain.close()


@contextmanager
def ses_stub(*args: str) -> Iterator[SesStub]:
    with start_stub("tests.stubs.ses", *args) as stub:
        control = SesStub(stub.url)
        try:
            yield control
        finally:
            control.close()
