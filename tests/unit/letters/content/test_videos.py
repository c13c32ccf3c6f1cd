"""Videos: a picture that leads to them where there is one, a link in every other case."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest
from PIL import Image, ImageStat

from mailout.base.errors import SourceUnavailable
from mailout.letters.content import videos
from mailout.letters.content.document import Document, Media
from mailout.letters.content.footer import Footer
from mailout.letters.content.layout import render as laid_out
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.media import keep_media, media_ref
from mailout.letters.content.notion import render
from mailout.letters.content.pictures import prepare
from tests.stubs.notion_pages import Json, block, blocks, column, external, p
from tests.unit.letters.content.test_media import Kept

ID = "dQw4w9WgXcQ"
WATCH = f"https://www.youtube.com/watch?v={ID}"
THUMBNAIL = f"https://i.ytimg.com/vi/{ID}/hqdefault.jpg"
REF = media_ref(1)
FOOTER = Footer("The Gardeners", "1 Garden Lane", "https://example.org/unsubscribe")


def thumbnail(size: tuple[int, int] = (480, 360)) -> bytes:
    """As YouTube gives it: 16:9 within 4:3, black above and below."""
    picture = Image.new("RGB", size, "black")
    picture.paste((60, 120, 180), (0, size[1] // 8, size[0], size[1] * 7 // 8))
    made = BytesIO()
    picture.save(made, "JPEG", quality=95)
    return made.getvalue()


def page(*tree: Json) -> Document:
    return render(blocks(list(tree)), "s")


def letter(body: str) -> Document:
    return videos.with_thumbnails(parse_markdown(f"---\nsubject: s\n---\n{body}", "x.md").document)


def kept(document: Document, store: Kept | None = None) -> Document:
    return keep_media(document, {THUMBNAIL: thumbnail()}.__getitem__, store or Kept(), public=True)


@pytest.mark.parametrize(
    "url",
    [
        WATCH,
        f"{WATCH}&t=42s&list=PL1",
        f"http://m.youtube.com/watch?feature=x&v={ID}",
        f"https://youtu.be/{ID}?si=abc",
        f"https://www.youtube.com/shorts/{ID}",
        f"https://www.youtube.com/live/{ID}?feature=share",
        f"https://www.youtube-nocookie.com/embed/{ID}",
    ],
)
def test_a_youtube_video_is_known_in_every_form_that_people_paste(url: str) -> None:
    assert videos.thumbnail_of(url) == THUMBNAIL


@pytest.mark.parametrize(
    "url",
    [
        "https://vimeo.com/76979871",
        "https://www.youtube.com/playlist?list=PL1",
        "https://www.youtube.com/@channel",
        "https://www.youtube.com/watch?v=../../evil",
        f"https://youtube.com.example.org/watch?v={ID}",
        f"https://example.org/?u={WATCH}",
        f"ftp://youtu.be/{ID}",
        "https://youtu.be/",
        "https://[bad/watch",
    ],
)
def test_nothing_else_is_fetched(url: str) -> None:
    """An address that an author chooses could lead into our own network."""
    assert videos.thumbnail_of(url) is None


@pytest.mark.parametrize(
    "document",
    [
        page(external("video", WATCH)),
        page(block("embed", {"url": WATCH, "caption": []})),
        letter(f"Look:\n\n{WATCH}\n\nAnd?"),
        letter(f"<{WATCH}>"),
    ],
)
def test_a_video_is_its_picture_and_the_picture_leads_to_it(document: Document) -> None:
    store = Kept()
    shown = kept(document, store)
    start = f'<a href="{WATCH}"><img src="https://media/picture.jpg" alt="▶️ {WATCH}"'
    assert f'{start} width="480" height="270"></a>' in shown.html_body
    assert WATCH in shown.text_body
    assert (shown.media, shown.problems) == ((), ())
    assert len(store.kept) == 1
    assert "https://media/picture.jpg" in laid_out(shown, FOOTER).html


def test_what_its_author_says_of_a_video_stands_below_it() -> None:
    shown = kept(page(external("video", WATCH, "How it works & why")))
    assert '<p class="caption">How it works &amp; why</p>' in shown.html_body
    assert "How it works & why" in shown.text_body


def test_in_a_column_its_picture_is_no_wider_than_the_column() -> None:
    """Outlook goes by the attribute alone."""
    columns = block("column_list", {}, column(external("video", WATCH)), column(p("words")))
    html = kept(page(columns)).html_body
    assert 'alt="▶️' in html
    assert 'width="480"' not in html


@pytest.mark.parametrize(
    "body",
    [
        f"[My film]({WATCH})",
        f"See {WATCH} today",
        f"- {WATCH}",
        "https://vimeo.com/76979871",
    ],
)
def test_links_within_words_stay_links(body: str) -> None:
    assert letter(body).media == ()


@pytest.mark.parametrize(
    "answer", [OSError("the file's host answered 404"), SourceUnavailable("503"), b"<html>no picture", b""]
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: page(p("Before"), external("video", WATCH, "The film"), p("After")),
        lambda: letter(f"Before\n\n{WATCH}\n\nAfter"),
    ],
)
def test_a_picture_that_cannot_be_had_stops_no_letter(
    make: Callable[[], Document], answer: Exception | bytes
) -> None:
    """The link stays, and its author is told."""

    def read(source: str) -> bytes:
        if isinstance(answer, Exception):
            raise answer
        return answer

    shown = keep_media(make(), read, Kept(), public=True)
    assert "<img" not in shown.html_body
    assert f'<a href="{WATCH}">' in shown.html_body
    assert "Before" in shown.html_body
    assert "After" in shown.html_body
    assert [(one.code, one.where) for one in shown.problems] == [("video_without_picture", WATCH)]
    laid_out(shown, FOOTER)  # no mark is left over, which would stop it


def test_where_no_reader_could_load_its_picture_a_video_is_a_link() -> None:
    """Nobody had to set PUBLIC_URL for a letter without pictures."""

    class Here(Kept):
        def keep(self, data: bytes, name: str, made_of: bytes | None = None) -> str:
            return f"file:///tmp/{name}"

    shown = kept(letter(WATCH), Here())
    assert "<img" not in shown.html_body
    assert "PUBLIC_URL" in shown.problems[0].message


def test_two_renders_of_a_letter_with_a_video_are_the_same() -> None:
    stores = Kept(), Kept()
    first, second = (kept(letter(f"{WATCH}\n\nand again\n\n{WATCH}"), store) for store in stores)
    assert first == second
    assert stores[0].kept == stores[1].kept
    assert len(stores[0].kept) == 1


def brightness(picture: Image.Image, x: int, y: int) -> int:
    return int(ImageStat.Stat(picture.convert("L").crop((x, y, x + 1, y + 1))).mean[0])


def test_the_play_mark_is_in_the_picture_and_the_black_bars_are_not() -> None:
    """No mail program lays one thing over another, so it cannot be anywhere else."""
    made = prepare(thumbnail(), is_video=True)
    assert made is not None
    picture = Image.open(BytesIO(made.data)).convert("RGB")
    assert picture.size == (480, 270)
    assert brightness(picture, 240, 135) > 240, "white in the middle"
    assert brightness(picture, 212, 135) < 60, "dark around it"
    assert brightness(picture, 5, 2) > 90, "the film, not a bar"
    assert brightness(picture, 5, 267) > 90


def test_a_picture_and_a_video_of_the_same_bytes_have_two_names() -> None:
    """Else whichever came first would be shown for both."""
    store = Kept()
    kept(letter(WATCH), store)
    plain = Kept()
    picture = Document("s", f'<img src="{REF}" alt="a">', "a", media=(Media(REF, "a.jpg", "a.jpg"),))
    keep_media(picture, lambda _: thumbnail(), plain)
    assert not set(store.kept) & set(plain.kept)
