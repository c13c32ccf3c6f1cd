"""A test's hand on the SES stub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.stubs.process import start_stub


class SesStub:
    def __init__(self, url: str) -> None:
        self.url = url

    def script(self, *rules: dict[str, Any], seed: int = 0, **control: Any) -> None:
        """Replace the rules (see `tests.stubs.ses_script.Rule`) and change whatever else is named."""
        told = {"rules": list(rules), "seed": seed, **control}
        httpx.post(f"{self.url}/_control", json=told, trust_env=False).raise_for_status()

    def reset(self) -> None:
        httpx.post(f"{self.url}/_reset", trust_env=False).raise_for_status()

    def accepted(self) -> dict[str, Any]:
        return self._get("/_accepted")

    def messages(self, to: str | None = None) -> list[dict[str, Any]]:
        """The accepted mails, as a reader would see them."""
        query = {"messages": "1"} | ({"to": to} if to else {})
        found: list[dict[str, Any]] = self._get("/_accepted", **query)["messages"]
        return found

    def calls(self) -> list[tuple[float, str, int]]:
        return [(at, operation, mails) for at, operation, mails in self._get("/_times")]

    def _get(self, path: str, **query: str) -> Any:
        return httpx.get(f"{self.url}{path}", params=query, trust_env=False, timeout=60).json()


@contextmanager
def ses_stub(*args: str) -> Iterator[SesStub]:
    with start_stub("tests.stubs.ses", *args) as stub:
        yield SesStub(stub.url)
