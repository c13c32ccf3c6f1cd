"""Pictures: kept before the mail points to them, or the mailout stops."""

from dataclasses import replace
from io import BytesIO

import pytest
from PIL import Image

from mailout.base.errors import Abort, AbortCode
from mailout.letters.content.document import Document, Media
from mailout.letters.content.media import keep_media, kept_name, media_ref, replace_media
from mailout.letters.content.pictures import COLUMN

A, B = media_ref(1), media_ref(2)
DOCUMENT = Document(
    "s",
    f'<img src="{A}" alt="a > b"><img width="9" src="{A}"><a href="{B}">file</a>',
    f"file ({B})",
    media=(Media(A, "a.png", "a.png"), Media(B, "b.pdf", "b.pdf")),
)


class Kept:
    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def keep(self, data: bytes, name: str, made_of: bytes | None = None) -> str:
        self.kept[kept_name(made_of or data, name)] = data
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
    source = 'src="https://media/picture.png"'
    assert f'<img {source} alt="a > b" width="{COLUMN}" height="5">' in document.html_body
    assert f'<img {source} width="9" height="1">' in document.html_body


def test_a_picture_that_cannot_be_kept_stops_the_mailout():
    def read(source: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(Abort, match=r"a\.png.*Permission denied") as caught:
        keep_media(DOCUMENT, read, Kept())
    assert caught.value.code is AbortCode.MEDIA_UNAVAILABLE


def test_the_same_picture_has_the_same_name_whoever_makes_it_smaller() -> None:
    """Two renders are byte-identical, also with another version of the encoder: the source gives the name."""
    names = []
    for _ in range(2):
        store = Kept()
        keep_media(DOCUMENT, {"a.png": picture(1040), "b.pdf": b"%PDF"}.__getitem__, store)
        names.append(sorted(store.kept))
    assert names[0] == names[1]
    assert all(name != kept_name(data, "x.png") for name, data in store.kept.items() if name.endswith("png"))


def test_heavy_moving_and_unreadable_pictures_are_told() -> None:
    """Nobody sees on their own machine what a phone has to load."""
    noise = Image.effect_noise((1500, 3000), 90).convert("RGB")
    data = BytesIO()
    noise.save(data, "JPEG", quality=95)
    found = keep_media(DOCUMENT, {"a.png": data.getvalue(), "b.pdf": b""}.__getitem__, Kept()).problems
    assert [one.code for one in found] == ["pictures_heavy"]
    frames = BytesIO()
    Image.new("RGB", (9, 9)).save(
        frames, "WEBP", save_all=True, append_images=[Image.new("RGB", (9, 9), "red")]
    )
    for given, code in ((frames.getvalue(), "picture_stopped"), (b"<svg/>", "picture_unreadable")):
        found = keep_media(DOCUMENT, {"a.png": given, "b.pdf": b""}.__getitem__, Kept()).problems
        assert [(one.code, one.where) for one in found] == [(code, "a.png")]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html><svg>login</svg>",
        b"<!DOCTYPE html><p>gone",
        picture(1040)[:60],
        picture(99, "JPEG")[:-90],
        b"BM",
    ],
)
def test_what_no_mail_program_can_show_stops_the_mailout(data: bytes) -> None:
    """Readers would see a broken picture; nobody sees that in Notion, which shows its own copy."""
    store = Kept()
    with pytest.raises(Abort, match=r"a\.png is damaged, or not a picture") as caught:
        keep_media(DOCUMENT, {"a.png": data, "b.pdf": b"%PDF"}.__getitem__, store)
    assert caught.value.code is AbortCode.MEDIA_UNAVAILABLE
    assert not store.kept


@pytest.mark.parametrize(
    "data",
    [
        b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- Made by hand -->\n'
        b'<!DOCTYPE svg PUBLIC "a" "b" [\n<!ENTITY c "d">\n]>\n<svg xmlns="x"/>',
        b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
        b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic",
        picture(9, "TIFF"),
        picture(9, "BMP"),
        picture(9, "ICO"),
    ],
)
def test_a_picture_that_few_programs_show_goes_to_test_readers_alone(data: bytes) -> None:
    """It would be broken for nearly everybody, and tell where it was taken."""
    (problem,) = keep_media(DOCUMENT, {"a.png": data, "b.pdf": b""}.__getitem__, Kept()).problems
    assert (problem.code, problem.stops) == ("picture_unreadable", AbortCode.MEDIA_UNAVAILABLE)


def test_an_emoji_that_few_programs_show_stops_nothing() -> None:
    """It has its name in its place."""
    sign = replace(DOCUMENT, html_body=DOCUMENT.html_body.replace("<img ", '<img class="n-emoji" '))
    assert sign != DOCUMENT
    (problem,) = keep_media(sign, {"a.png": b"<svg/>", "b.pdf": b""}.__getitem__, Kept()).problems
    assert (problem.code, problem.stops) == ("picture_unreadable", None)
