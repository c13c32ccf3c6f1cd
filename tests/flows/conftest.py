"""One Prefect server for all flow tests, and an engine of its own for each."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.clock import Clock, SystemClock
from mailout.base.settings import load_settings
from mailout.letters.audience.port import SubscriberRow
from tasks.logs import OURS, PREFECTS
from tests.environment import SENDER
from tests.new_sqlite import prepare
from tests.prefect_server import prepare_database
from tests.transports import Delivering


@pytest.fixture(scope="session", autouse=True)
def prefect() -> Iterator[None]:
    from prefect.testing.utilities import prefect_test_harness  # imports all of Prefect's server

    folder = tempfile.mkdtemp()  # the harness removes it
    prepare_database(Path(folder) / "prefect-test.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prefect.testing.utilities.mkdtemp", lambda: folder)
        patch.setenv("PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED", "false")  # there is no automation
        with prefect_test_harness(server_startup_timeout=300):
            yield


@pytest.fixture(autouse=True)
def console() -> Iterator[None]:
    """A flow run sets logging up for its process, which here is the tests': it ends with the test.

    The handlers too: pytest hangs its own, the same for all tests, on Prefect's loggers.
    """
    loggers = [logging.getLogger(name) for name in (None, OURS, *PREFECTS, "httpx")]
    before = [(logger, logger.handlers[:], logger.level) for logger in loggers]
    handlers = [(one, one.filters[:], one.formatter) for _, all, _ in before for one in all]
    yield
    for logger, all, level in before:
        logger.handlers[:] = all
        logger.setLevel(level)
    for handler, filters, formatter in handlers:
        handler.filters[:] = filters
        handler.setFormatter(formatter)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a server that is well takes longer than mail would wait for it."""
    for limit in ("tasks.display.SERVER", "tasks.display.FINISH", "flows.send_queued.SERVER"):
        monkeypatch.setattr(f"{limit}_SECONDS", 300.0)
    monkeypatch.setattr("flows.send_queued.SERVER_RETRIES", 10)
    monkeypatch.setattr("tasks.display.CLIENT_SECONDS", 0.0)  # one with the limits of the test


@pytest.fixture
def engine_with(tmp_path: Path) -> Iterator[Callable[..., Engine]]:
    """An engine with these settings, for this process's flows. Asked again, another over the same store."""
    engines: list[Engine] = []

    def build(
        clock: Clock | None = None, transport: type[Delivering] = Delivering, **settings: Any
    ) -> Engine:
        env = {
            "MAILOUT_HOME": str(tmp_path / "home"),
            **SENDER,
            "SEND_RATE_PER_SEC": "0",
        }
        chosen = load_settings(env=env | {name: str(value) for name, value in settings.items()})
        clock = clock or SystemClock()
        made = transport(chosen.mailout_home / "outbox", clock)
        if not engines:
            prepare(chosen.mailout_home / "mailout.db")
        engine = wiring.build(chosen, clock, transport=made)
        engines.append(engine)
        emails = ("ana@example.org", "bo@example.org", "cy@example.org")
        engine.store.import_subscribers([SubscriberRow(email, email) for email in emails])
        wiring.use(engine)
        return engine

    yield build
    wiring.use(None)
    for engine in engines:
        engine.store.close()


@pytest.fixture
def letter(tmp_path: Path) -> str:
    path = tmp_path / "letter.md"
    path.write_text("---\nid: letter\nsubject: Hello\n---\n\nHow are you?\n", encoding="utf-8")
    return str(path)
