from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from mailout.adapters.notion import NotionConfig, NotionSource
from tests.stubs.notion import TOKEN
from tests.stubs.notion_workspace import ERRORS, LETTER, MAILOUTS, workspace
from tests.stubs.running import NotionStub, notion_stub

NOW = 1_794_700_800.0  # 2026-11-15T00:00:00Z


class TestClock:
    """Waits nowhere and remembers how long it would have."""

    __test__ = False

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return NOW

    def monotonic(self) -> float:
        return NOW

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Notion:
    """A stub, a clock and a source that talks to them."""

    def __init__(self, stub: NotionStub, **config: Any) -> None:
        self.stub, self.clock = stub, TestClock()
        wanted: dict[str, Any] = {
            "token": TOKEN,
            "db_mailouts": MAILOUTS,
            "db_errors": ERRORS,
            "base_url": stub.url,
            "timeout": 5.0,
        }
        self.source = NotionSource(NotionConfig(**(wanted | config)), self.clock)

    def update(self, values: dict[str, Any]) -> None:
        self.source.update_page(LETTER, values, self.source.page(LETTER))


Start = Callable[..., Notion]


@pytest.fixture(scope="module")
def stub() -> Iterator[NotionStub]:
    with notion_stub() as running:
        yield running


@pytest.fixture
def start(stub: NotionStub, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """A workspace of the test's own: `start(content, **NotionConfig)`."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ExitStack() as stack:

        def started(content: dict[str, Any] | None = None, **config: Any) -> Notion:
            stub.load(content or workspace())
            notion = Notion(stub, **config)
            stack.callback(notion.source.close)
            return notion

        yield started


@pytest.fixture
def notion(start: Start) -> Notion:
    return start()
