"""A Notion over HTTP, a page in it, and mailout before it: as commands, and as an engine in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.clock import SystemClock
from mailout.base.settings import load_settings
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.delivery.port import Mail, Transport
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind
from tests.e2e.conftest import Commands
from tests.environment import SENDER
from tests.stubs.notion import TOKEN
from tests.stubs.notion_pages import id_of, p
from tests.stubs.notion_workspace import ERRORS, MAILOUTS, mailout_page, workspace
from tests.stubs.running import NotionStub, notion_stub
from tests.transports import Delivering, delivering

PAGE = id_of("a page to send")
PEOPLE = ("ana@example.org", "bo@example.org", "cy@example.org")


@pytest.fixture(scope="module")
def running() -> Iterator[NotionStub]:
    with notion_stub() as stub:
        yield stub


@dataclass
class Notion:
    """The test's hand on the workspace, and its eye on what was written there."""

    stub: NotionStub

    def load(self, *blocks: Any, subject: str = "Hello", status: str = "Draft", **more: Any) -> None:
        """A workspace with one page that says this; properties by name, or whole parts of the workspace."""
        parts = {name: more.pop(name) for name in ("files", "databases") if name in more}
        pages = {PAGE: mailout_page(subject, status, **more)}
        self.stub.load(workspace(pages=pages, blocks={PAGE: list(blocks) or [p("How are you?")]}, **parts))

    def written(self, page: str = PAGE) -> list[dict[str, Any]]:
        """What was written on a page, call by call: the plain values by property."""
        calls = [call for call in self.stub.calls("PATCH") if page in call["path"]]
        return [{name: plain(value) for name, value in call["body"]["properties"].items()} for call in calls]

    def statuses(self, page: str = PAGE) -> list[Any]:
        return [write["status"] for write in self.written(page) if "status" in write]

    def errors(self) -> list[dict[str, Any]]:
        """The pages of the errors database, as they were created."""
        calls = [call for call in self.stub.calls("POST") if call["path"] == "/v1/pages"]
        return [{name: plain(value) for name, value in call["body"]["properties"].items()} for call in calls]

    def comments(self) -> list[str]:
        """What was said beside the page, in order."""
        calls = [call["body"] for call in self.stub.calls("POST") if call["path"] == "/v1/comments"]
        return ["".join(item["text"]["content"] for item in body["rich_text"]) for body in calls]

    def settings(self) -> dict[str, str]:
        return {
            "NOTION_TOKEN": TOKEN,
            "NOTION_BASE_URL": self.stub.url,
            "NOTION_DB_MAILOUTS": MAILOUTS,
            "NOTION_DB_ERRORS": ERRORS,
        }


def plain(value: dict[str, Any]) -> Any:
    """`{"status": {"name": "Send"}}` → `"Send"`."""
    (content,) = value.values()
    if isinstance(content, dict):
        return content.get("name") or content.get("start")
    if isinstance(content, list):
        return "".join(item["text"]["content"] for item in content)
    return content


@pytest.fixture
def notion(running: NotionStub) -> Notion:
    scene = Notion(running)
    scene.load()
    return scene


@pytest.fixture
def commands(mailout: Commands, notion: Notion) -> Commands:
    """`mailout …` with Notion, and three people on the list."""
    mailout.settings |= notion.settings()
    mailout.people(*PEOPLE)
    return mailout


class QuickClock(SystemClock):
    """Waits for Notion as a test can afford it."""

    def sleep(self, seconds: float) -> None:
        super().sleep(min(seconds, 0.01))


class Refusing:
    """A transport that takes nothing for some, and never answers for others."""

    name, scope, max_batch = Delivering.name, Delivering.scope, Delivering.max_batch

    def __init__(self, *refused: str, lost: Sequence[str] = ()) -> None:
        self.inner: Any = None
        self.refused, self.lost = set(refused), set(lost)

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        return [self._one(mail) for mail in mails]

    def _one(self, mail: Mail) -> Outcome:
        if mail.to in self.refused:
            return Outcome(
                OutcomeKind.PERMANENT, code="MESSAGE_REJECTED", category="PERMANENT", message="No such box"
            )
        if mail.to in self.lost:
            return Outcome(OutcomeKind.UNKNOWN, code="TIMEOUT", category="TRANSIENT", message="No answer")
        (outcome,) = self.inner.send([mail])
        return outcome

    def allowance(self) -> None:
        return None

    def close(self) -> None:
        self.inner.close()


Build = Callable[..., Engine]


@pytest.fixture
def engine_with(tmp_path: Path, notion: Notion, monkeypatch: pytest.MonkeyPatch) -> Iterator[Build]:
    """An engine with these settings. Asked again, another over the same store, as a later process is."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    engines: list[Engine] = []

    def build(people: Sequence[str] = PEOPLE, refusing: Refusing | None = None, **settings: str) -> Engine:
        env = {
            "MAILOUT_HOME": str(tmp_path / "home"),
            **SENDER,
            "SEND_RATE_PER_SEC": "0",
            "PUBLIC_URL": "https://mail.example.org",
        }
        chosen, clock = load_settings(env=env | notion.settings() | settings), QuickClock()
        transport: Transport = delivering(chosen, clock)
        if refusing is not None:
            refusing.inner = transport
            transport = refusing
        engine = wiring.build(chosen, clock, transport=transport)
        engine.store.import_subscribers([SubscriberRow(email, email) for email in people])
        engines.append(engine)
        return engine

    yield build
    for engine in engines:
        engine.store.close()
        if engine.pages.reporter is not None:
            engine.pages.reporter.close()  # type: ignore[attr-defined]


@pytest.fixture
def engine(engine_with: Build) -> Engine:
    return engine_with()


def mails(engine: Engine) -> list[Path]:
    return sorted(engine.settings.mailout_home.glob("outbox/*/*.eml"))
