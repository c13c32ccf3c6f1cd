"""The gateway with its dashboard, over a real store and a real socket."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.app import create_app
from gateway.dashboard.desk import Tools
from mailout.adapters.sqlite import SqliteStore
from mailout.app import forgetting, notification_wiring
from mailout.app.drafts import Drafts
from mailout.app.examination import examine
from mailout.base.clock import SystemClock
from mailout.base.settings import Settings
from tests.dashboard.scene import fill, real_forecast
from tests.gateway.serving import served

ADMIN, EDITOR = "the administrator's words", "the editor's own words"


class NoCertificates:
    def known(self, url: str) -> None:
        return None

    def key(self, url: str) -> None:
        return None


@dataclass
class Site:
    """A dashboard that runs, what is in its store, and somebody who looks at it."""

    client: httpx.Client
    store: SqliteStore
    ids: dict[str, str]
    home: Path
    settings: Settings

    @property
    def address(self) -> str:
        return str(self.client.base_url).rstrip("/")

    def sign_in(self, password: str = ADMIN) -> httpx.Response:
        return self.client.post("/login", data={"password": password})

    def csrf(self, page: str = "/") -> str:
        found = re.search(r'name="csrf" value="([0-9a-f]{64})"', self.client.get(page).text)
        assert found
        return found[1]

    def act(self, path: str, **fields: str) -> httpx.Response:
        """With the form's token; what comes of it is said on the next page."""
        return self.client.post(path, data={"csrf": self.csrf(), **fields}, follow_redirects=True)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scene, made once; every site begins with a copy of it."""
    home = tmp_path_factory.mktemp("scene")
    store = SqliteStore(home / "mailout.db", SystemClock())
    (home / "ids.json").write_text(json.dumps(fill(store, home)))
    store.close()
    return home


@contextmanager
def site(
    filled: Path,
    home: Path,
    *,
    run_address: Callable[[str], str | None] = lambda run: None,
    port: int = 0,
    **changes: Any,
) -> Iterator[Site]:
    shutil.copytree(filled, home)
    store = SqliteStore(home / "mailout.db", SystemClock())
    ids = json.loads((home / "ids.json").read_text())
    values: dict[str, Any] = {
        "mailout_home": home,
        "admin_password": ADMIN,
        "editor_password": EDITOR,
        "send_timezone": "Europe/Lisbon",
        "org_name": "Harbour Association",
        "test_emails": "me@example.org",
    }
    settings = Settings(**values | changes)
    drafts = Drafts(settings, store)
    app = create_app(
        settings,
        store,
        real_forecast(store),
        certificates=NoCertificates(),
        confirm=lambda topic, token: None,
        answer_seconds=300.0,  # a machine six times overloaded is no reason for a 503
        tools=Tools(
            partial(examine, settings),
            partial(forgetting.forget_here, settings),
            partial(notification_wiring.producer_queue, settings),
            partial(notification_wiring.requeue_notification, settings),
            run_address,
            drafts,
        ),
    )
    with served(app, port=port) as client:
        yield Site(client, store, ids, home, settings)
    drafts.close()
    store.close()


@pytest.fixture
def dashboard(filled: Path, tmp_path: Path) -> Iterator[Site]:
    with site(filled, tmp_path / "home") as opened:
        yield opened
