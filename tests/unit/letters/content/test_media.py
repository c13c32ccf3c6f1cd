"""Pictures: kept before the mail points to them, or the mailout stops."""

from io import BytesIO

import pytest
from PIL import Image

from mailout.base.errors import Abort, AbortCode
from mailout.letters.content.document import Document, Media
from mailout.letters.content.media import COLUMN, keep_media, media_ref, picture_width, replace_media

A, B = media_ref(1), media_ref(2)
DOCUMENT = Document(
    "s",
    f'<img src="{A}" alt="a > b"><img width="9" src="{A}"><a href="{B}">file</a>',
    f"file ({B})",
    media=(Media(A, "a.png", "a.png"), Media(B, "b.pdf", "b.pdf")),
)


class Kept:
    def keep(self, data: bytes, name: str) -> str:
        return f"https://media/{name}"


def picture(width: int, form: str = "PNG") -> bytes:
    kept = BytesIO()
    Image.new("RGB", (width, 10)).save(kept, form)
    return kept.getvalue()


def test_addresses_stand_where_the_media_stood():
    document = replace_media(DOCUMENT, {A: "https://x/a", B: "https://x/b"})
    assert document.html_body == (
        '<img src="https://x/a" alt="a > b"><img width="9" src="https://x/a"><a href="https://x/b">file</a>'
    )
    assert document.text_body == "file (https://x/b)"
    assert document.media == ()


def test_a_wide_picture_gets_a_width_for_outlook_unless_its_author_gave_one():
    document = keep_media(DOCUMENT, {"a.png": picture(1040), "b.pdf": b"%PDF"}.__getitem__, Kept())
    assert f'<img src="https://media/a.png" alt="a > b" width="{COLUMN}">' in document.html_body
    assert '<img width="9" src="https://media/a.png">' in document.html_body


def test_a_picture_that_cannot_be_kept_stops_the_mailout():
    def read(source: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(Abort, match=r"a\.png.*Permission denied") as caught:
        keep_media(DOCUMENT, read, Kept())
    assert caught.value.code is AbortCode.MEDIA_UNAVAILABLE


@pytest.mark.parametrize(
    ("data", "width"),
    [
        (picture(640), 640),
        (picture(320, "GIF"), 320),
        (picture(800, "JPEG"), 800),
        (picture(800, "WEBP"), None),
        (picture(800, "JPEG")[:20], None),
        (b"<svg>", None),
        (b"", None),
    ],
)
def test_widths_are_read_from_the_bytes(data, width):
    assert picture_width(data) == width
