"""`GET /media/{name}`: pictures of mails, and not a byte of anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from httpx import Client

from mailout.adapters.media_folder import MediaFolder


@pytest.fixture
def folder(tmp_path: Path) -> MediaFolder:
    return MediaFolder(tmp_path / "media", media_base_url=None, public_url="http://gateway")


def path(url: str) -> str:
    return url.removeprefix("http://gateway")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.png", "image/png"),
        ("a.JPG", "image/jpeg"),
        ("a.svg", "image/svg+xml"),
        ("a.pdf", "application/pdf"),
    ],
)
def test_what_was_kept_is_served_with_its_type(
    gateway: Client, folder: MediaFolder, name: str, kind: str
) -> None:
    answer = gateway.get(path(folder.keep(b"bytes of " + name.encode(), name)))
    assert (answer.status_code, answer.content) == (200, b"bytes of " + name.encode())
    assert answer.headers["content-type"] == kind
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "immutable" in answer.headers["cache-control"]
    assert "sandbox" in answer.headers["content-security-policy"]
    head = gateway.head(answer.url.path)
    assert (head.status_code, head.headers["content-length"]) == (200, answer.headers["content-length"])


@pytest.mark.parametrize("name", ["a.html", "a.js", "a.xyz", "nothing"])
def test_what_a_browser_should_not_show_is_a_download(
    gateway: Client, folder: MediaFolder, name: str
) -> None:
    """A page on our own host would speak in our name."""
    answer = gateway.get(path(folder.keep(b"<script>", name)))
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "name",
    [
        "mailout.db",
        "../mailout.db",
        "..%2fmailout.db",
        "%2e%2e/mailout.db",
        "a" * 64 + ".png",
        "A" * 64 + ".png",
        "a" * 63 + ".png",
        "a" * 64 + ".toolong",
        "a" * 64 + ".png%0a",
        "a" * 64 + ".png%00",
        "",
    ],
)
def test_no_other_file_can_be_reached(gateway: Client, tmp_path: Path, name: str) -> None:
    (tmp_path / "media").mkdir(exist_ok=True)
    answer = gateway.get(f"/media/{name}")
    assert (answer.status_code, answer.json()) == (404, {"error": "not found"})


def test_a_link_within_the_folder_leads_nowhere(gateway: Client, tmp_path: Path) -> None:
    (tmp_path / "media").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "media" / ("b" * 64 + ".png")).symlink_to(tmp_path / "secret")
    assert gateway.get("/media/" + "b" * 64 + ".png").status_code == 404
