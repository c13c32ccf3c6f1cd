"""Reading a Markdown file and keeping its pictures."""

import io
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image

from mailout.adapters.markdown_file import read_markdown, read_picture
from mailout.adapters.media_folder import MediaFolder
from mailout.base.errors import Abort, AbortCode, UsageError
from mailout.letters.content.checks import check_content
from mailout.letters.content.footer import Footer
from mailout.letters.content.layout import render
from mailout.letters.content.media import keep_media


def picture(kind: str = "PNG") -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (2, 3), "teal").save(data, format=kind)
    return data.getvalue()


EXAMPLE = Path(__file__).parents[3] / "examples" / "newsletter.md"


def test_the_shipped_newsletter_can_be_sent(tmp_path):
    """`make demo` sends it."""
    mailout = read_markdown(EXAMPLE)
    assert mailout.options.id
    store = MediaFolder(tmp_path / "media", media_base_url=None, public_url="https://example.org/")
    document = keep_media(mailout.document, read_picture, store)
    content = render(document, Footer("Org", "Address", "https://example.org/u"))
    assert document.problems == check_content(content) == ()
    (kept,) = (tmp_path / "media").iterdir()
    with Image.open(kept) as shown:
        assert shown.format == "PNG"
    assert f'src="https://example.org/media/{kept.name}"' in content.html
    assert "субботу" in content.text


def test_a_missing_picture_stops_the_mailout_before_the_first_send(tmp_path):
    (tmp_path / "n.md").write_text("![x](gone.png)")
    with pytest.raises(Abort, match=r"gone\.png") as caught:
        read_markdown(tmp_path / "n.md")
    assert caught.value.code is AbortCode.MEDIA_UNAVAILABLE


def test_a_picture_is_found_beside_its_file(tmp_path, monkeypatch):
    (tmp_path / "pics").mkdir()
    (tmp_path / "pics" / "a b.png").write_bytes(picture())
    (tmp_path / "n.md").write_text("![x](pics/a%20b.png)")
    monkeypatch.chdir("/")
    (media,) = read_markdown(tmp_path / "n.md").document.media
    assert read_picture(media.source) == picture()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "AVIF"])
def test_every_kind_that_mail_programs_show_is_a_picture(tmp_path, kind):
    (tmp_path / "a").write_bytes(picture(kind))
    assert read_picture(str(tmp_path / "a")) == picture(kind)


def _bomb() -> bytes:
    """A small file that says it has ten thousand million pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0" * 100)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "data",
    [
        b"SES_SECRET=topsecret\n",
        b"",
        b"\x89PNG\r\n\x1a\nSES_SECRET=topsecret",
        b"GIF89aSES_SECRET=topsecret",
        b"\xff\xd8\xff\xe0SES_SECRET=topsecret",
        b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        picture()[:50],
        _bomb(),
    ],
)
def test_what_is_no_picture_is_not_published_whatever_it_is_called(tmp_path, data):
    """`![](.env)` would put the keys where everybody can read them."""
    for name in (".env", "boat.png"):
        (tmp_path / name).write_bytes(data)
        (tmp_path / "n.md").write_text(f"![x]({name})")
        with pytest.raises(Abort, match=r"not a picture|million pixels") as caught:
            read_markdown(tmp_path / "n.md")
        assert caught.value.code is AbortCode.MEDIA_UNAVAILABLE
        with pytest.raises(Abort, match=r"not a picture|million pixels"):
            read_picture(str(tmp_path / name))


@pytest.mark.parametrize(
    "address",
    ["../boat.png", "pics/../../boat.png", "%2E%2E/boat.png", "link.png", "out/boat.png", "%2Fetc%2Fpasswd"],
)
def test_a_picture_from_outside_of_the_letters_folder_is_not_published(tmp_path, address):
    folder = tmp_path / "letters"
    (folder / "pics").mkdir(parents=True)
    (tmp_path / "boat.png").write_bytes(picture())
    (folder / "link.png").symlink_to(tmp_path / "boat.png")
    (folder / "out").symlink_to(tmp_path)
    (folder / "n.md").write_text(f"![x]({address})")
    with pytest.raises(Abort, match="outside of its folder") as caught:
        read_markdown(folder / "n.md")
    assert caught.value.code is AbortCode.MEDIA_UNAVAILABLE


def test_a_link_that_stays_in_the_folder_is_followed(tmp_path):
    (tmp_path / "boat.png").write_bytes(picture())
    (tmp_path / "latest.png").symlink_to("boat.png")
    (tmp_path / "n.md").write_text("![x](latest.png)")
    (media,) = read_markdown(tmp_path / "n.md").document.media
    assert media.source == str(tmp_path / "boat.png")


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(UsageError, match="no file"):
        read_markdown(tmp_path / "gone.md")
    with pytest.raises(UsageError, match="cannot be read"):
        read_markdown(tmp_path)
    (tmp_path / "n.md").write_bytes("Привет".encode("cp1251"))
    with pytest.raises(UsageError, match="UTF-8"):
        read_markdown(tmp_path / "n.md")
