"""Starts a stub in a process of its own and waits until it says where it is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]


class NotionStub:
    """The test's side of the stub: where it is, and what may be asked of it beside the API."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=url, trust_env=False, timeout=300)

    def load(self, workspace: dict[str, Any]) -> None:
        """Another workspace, nothing scripted, no calls remembered."""
        self._http.post("/control/load", json=workspace).raise_for_status()

    def script(self, *faults: dict[str, Any]) -> None:
        """What goes wrong next, call by call."""
        self._http.post("/control/script", json=list(faults)).raise_for_status()

    def calls(self, method: str | None = None) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = self._http.get("/control/calls").json()
        return [call for call in calls if method in (None, call["method"])]

    def edit(self, page: str, *, status: str, is_test: bool, blocks: list[Any]) -> None:
        """What a person writes into it now."""
        edited = {"page": page, "status": status, "is_test": is_test, "blocks": blocks}
        self._http.post("/control/edit", json=edited).raise_for_status()

    def comments(self, page: str) -> list[dict[str, Any]]:
        """What stands beside a page now."""
        kept: dict[str, list[dict[str, Any]]] = self._http.get("/control/comments").json()
        return kept.get(page, [])

    def expire_files(self) -> None:
        self._http.post("/control/expire").raise_for_status()

    def close(self) -> None:
        self._http.close()


@contextmanager
def notion_stub() -> Iterator[NotionStub]:
    command = [sys.executable, "-m", "tests.stubs.notion"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url, "the stub did not start"
            stub = NotionStub(url)
            yield stub
            stub.close()
        finally:
            process.kill()
