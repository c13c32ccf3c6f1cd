"""Reading a Markdown file and keeping its pictures."""

from pathlib import Path

import pytest

from mailout.adapters.markdown_file import read_markdown, read_picture
from mailout.adapters.media_folder import MediaFolder
from mailout.content.checks import check_content
from mailout.content.footer import Footer
from mailout.content.layout import render
from mailout.content.media import keep_media
from mailout.errors import Abort, AbortCode, UsageError

EXAMPLE = Path(__file__).parents[3] / "examples" / "newsletter.md"


def test_the_shipped_newsletter_can_be_sent(tmp_path):
    """`make demo` sends it."""
    mailout = read_markdown(EXAMPLE)
    assert mailout.front.id
    store = MediaFolder(tmp_path / "media", media_base_url=None, public_url="https://example.org/")
    document = keep_media(mailout.document, read_picture, store)
    content = render(document, Footer("Org", "Address", "https://example.org/u"))
    assert document.problems == check_content(content) == ()
    (kept,) = (tmp_path / "media").iterdir()
    assert kept.read_bytes() == (EXAMPLE.parent / "birch-hill.png").read_bytes()
    assert f'src="https://example.org/media/{kept.name}"' in content.html
    assert "субботу" in content.text


def test_a_missing_picture_stops_the_mailout_before_the_first_send(tmp_path):
    (tmp_path / "n.md").write_text("![x](gone.png)")
    with pytest.raises(Abort, match=r"gone\.png") as caught:
        read_markdown(tmp_path / "n.md")
    assert caught.value.code is AbortCode.MEDIA_UNAVAILABLE


def test_a_picture_is_found_beside_its_file(tmp_path, monkeypatch):
    (tmp_path / "pics").mkdir()
    (tmp_path / "pics" / "a b.png").write_bytes(b"x")
    (tmp_path / "n.md").write_text("![x](pics/a%20b.png)")
    monkeypatch.chdir("/")
    (media,) = read_markdown(tmp_path / "n.md").document.media
    assert read_picture(media.source) == b"x"


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(UsageError, match="no file"):
        read_markdown(tmp_path / "gone.md")
    with pytest.raises(UsageError, match="cannot be read"):
        read_markdown(tmp_path)
    (tmp_path / "n.md").write_bytes("Привет".encode("cp1251"))
    with pytest.raises(UsageError, match="UTF-8"):
        read_markdown(tmp_path / "n.md")
