"""The pictures of videos, over HTTP: fetched when the letter is read, in Markdown and in Notion."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mailout.adapters.notion import NotionConfig, NotionPages
from mailout.app import wiring
from mailout.base.settings import load_settings
from mailout.letters.content import videos
from mailout.letters.content.media import keep_media
from tests.clocks import FakeClock
from tests.environment import SENDER
from tests.stubs.notion import TOKEN
from tests.stubs.notion_pages import block
from tests.stubs.notion_workspace import LETTER, MAILOUTS, workspace
from tests.stubs.running import notion_stub
from tests.unit.letters.content.test_media import Kept
from tests.unit.letters.content.test_videos import ID, WATCH, thumbnail

GONE, MOVED = "g" * 11, "m" * 11


class Thumbnails(BaseHTTPRequestHandler):
    """What stands in for YouTube's host of pictures."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        status = 404 if GONE in self.path else 302 if MOVED in self.path else 200
        body = thumbnail()  # YouTube sends one with its 404, too
        self.send_response(status)
        if status == 302:
            self.send_header("Location", f"/vi/{ID}/hqdefault.jpg")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was asked of the host that stands in for YouTube's."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    paths: list[str] = []
    handler = type("Asked", (Thumbnails,), {"asked": paths})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/vi/{{id}}/hqdefault.jpg"
        monkeypatch.setattr(videos, "THUMBNAILS", url)
        yield paths
        server.shutdown()
        thread.join()


def drafted(folder: Path, body: str) -> tuple[str, list[str]]:
    """The letter's HTML and the codes of its findings, as `mailout preview` makes it."""
    (folder / "letter.md").write_text(f"---\nsubject: Film\n---\n{body}\n", encoding="utf-8")
    env = {**SENDER, "MAILOUT_HOME": str(folder / "home"), "PUBLIC_URL": "https://mail.example.org"}
    engine = wiring.build(load_settings(env=env), FakeClock(), inline=True)
    try:
        document, content = engine.intake.letters.draft(engine.intake.letters.read(str(folder / "letter.md")))
    finally:
        engine.store.close()
    return content.html, [problem.code for problem in document.problems]


def test_a_bare_link_in_a_markdown_file_is_shown_as_the_video(asked: list[str], tmp_path: Path) -> None:
    html, problems = drafted(tmp_path, f"Look:\n\n{WATCH}")
    assert f'<a href="{WATCH}"' in html
    assert 'src="https://mail.example.org/media/' in html
    assert asked == [f"/vi/{ID}/hqdefault.jpg"]
    assert "video_without_picture" not in problems
    (kept,) = (tmp_path / "home" / "media").iterdir()
    assert kept.suffix == ".jpg"
    assert drafted(tmp_path, f"Look:\n\n{WATCH}")[0] == html


@pytest.mark.parametrize("id", [GONE, MOVED])
def test_a_video_that_is_gone_is_a_link_and_no_redirect_is_followed(
    asked: list[str], tmp_path: Path, id: str
) -> None:
    """Where an answer leads is nothing that we chose."""
    html, problems = drafted(tmp_path, f"Look:\n\nhttps://youtu.be/{id}")
    assert f'<a href="https://youtu.be/{id}"' in html
    assert "<img" not in html
    assert "video_without_picture" in problems
    assert asked == [f"/vi/{id}/hqdefault.jpg"]


def test_an_embedded_video_of_a_notion_page_is_shown_as_the_video(asked: list[str]) -> None:
    with notion_stub() as stub:
        embed = block("embed", {"url": WATCH, "caption": []})
        stub.load(workspace(blocks={LETTER: [embed]}))
        config = NotionConfig(token=TOKEN, db_mailouts=MAILOUTS, base_url=stub.url, timeout=5.0)
        pages = NotionPages(config, FakeClock())
        found = pages.load(LETTER)
        shown = keep_media(found.document, found.read_media, Kept(), public=True)
        pages.close()
    assert f'<a href="{WATCH}"><img src="https://media/picture.jpg"' in shown.html_body
    assert asked == [f"/vi/{ID}/hqdefault.jpg"]
