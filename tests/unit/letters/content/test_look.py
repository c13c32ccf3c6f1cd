"""What a letter looks like: logo, colour, date, title, language, and no spam points."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.base.errors import UsageError
from mailout.letters.content.brand import DARK_PAPER, Brand
from mailout.letters.content.colors import READABLE, contrast, readable_on, words_on
from mailout.letters.content.document import Document, preheader_of
from mailout.letters.content.footer import Footer
from mailout.letters.content.languages import language, preferred, shipped
from mailout.letters.content.layout import language_asked_for, render
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.model import UNSUBSCRIBE_URL, mark
from mailout.letters.content.notion import Block
from mailout.letters.content.notion import render as page
from mailout.outbox.delivery.mime import Envelope
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Attempt

FOOTER = Footer("Org & Co", "Street", "https://example.org/u")
EXAMPLE = Path(__file__).parents[4] / "examples" / "newsletter.md"


def letter(front: str, body: str = "Words", brand: Brand = Brand()) -> str:  # noqa: B008 (frozen)
    return render(
        parse_markdown(f"---\nsubject: The title\n{front}\n---\n{body}", "x.md").document, FOOTER, brand
    ).html


def test_a_letter_has_its_subject_for_a_headline_unless_it_brings_one_or_wants_none() -> None:
    assert ">The title</h1>" in letter("")
    assert ">The title</h1>" in letter("", "## A heading\n\nWords")
    assert letter("", "# Its own\n\nWords").count("<h1") == 1
    assert "<h1" not in letter("headline: false")
    assert ">Other &amp; words</h1>" in letter("title: Other & words")
    assert ">Other</h1>" in letter("headline: Other")


def test_a_headline_that_is_given_stands_above_the_letters_own_and_the_same_one_once() -> None:
    """Every word that was written is read."""
    document = parse_markdown(
        "---\nsubject: S\ntitle: Given & first\n---\n# Its *own*\n\nWords.", "x.md"
    ).document
    content = render(document, FOOTER)
    assert re.findall(r"<h1[^>]*>(.*?)</h1>", content.html) == ["Given &amp; first", "Its <em>own</em>"]
    assert content.text.startswith("Given & first\n=============\n\nIts own\n=======\n\nWords.")
    assert render(document, FOOTER) == content
    same = parse_markdown("---\nsubject: S\ntitle: Its own\n---\n# Its *own*\n\nWords.", "x.md").document
    assert render(same, FOOTER).html.count("<h1") == 1
    assert render(same, FOOTER).text.startswith("Its own\n=======\n\nWords.")


def test_what_stands_below_the_headline_is_in_html_and_text() -> None:
    front = "title: Up\nexcerpt: In one <sentence>\nbyline: Ida Holm\ndate: 2026-12-04"
    html = letter(front, "# Own\n\nWords")
    below = r"</h1>\s*<p class=\"excerpt\".*?>In one &lt;sentence&gt;</p>"
    assert re.search(f"Up{below}", html)
    assert re.search(f"Own{below}", letter(front.removeprefix("title: Up\n"), "# Own\n\nWords"))
    assert ">Ida Holm · 4 December 2026</p>" in html
    document = parse_markdown(f"---\nsubject: s\n{front}\n---\nWords", "x.md").document
    text = render(document, FOOTER).text
    assert text.startswith("Up\n==\n\nIn one <sentence>\n\nIda Holm · 4 December 2026\n\nWords\n")
    assert document.preheader == "In one <sentence>"
    for body, heading in (("# Own\n\nWords", "Own\n===\n\n"), ("# ![](https://x.y/z.png)\n\nWords", "")):
        own = parse_markdown(f"---\nsubject: s\nexcerpt: In one\nbyline: Ida\n---\n{body}", "x.md").document
        assert render(own, FOOTER).text.startswith(f"{heading}In one\n\nIda\n\nWords\n")


def test_the_date_is_the_letters_own_in_its_language() -> None:
    assert ">4 December 2026</p>" in letter("date: 2026-12-04")
    assert ">4. Dezember 2026</p>" in letter("date: 2026-12-04T10:00:00\nlanguage: de")
    assert 'class="byline"' not in letter("")
    with pytest.raises(UsageError, match="line 3: `date` is no day"):
        letter("date: tomorrow")


def test_links_stand_above_the_footer_and_the_logo_leads_home() -> None:
    """Seed 000's footer stays last and as it is, whatever else a sender puts there."""
    links = (("Website", "https://example.org/?a=1&b=2"), ("Mastodon", "https://hill.example/@dome"))
    brand = Brand("https://x.y/l.png", None, "Why", logo_dark="https://x.y/d.png", links=links)
    content = render(Document("s", "<p>b</p>", "b"), FOOTER, brand)
    assert content.html.count('<a href="https://example.org/?a=1&amp;b=2"') == 2
    assert content.html.index(">Mastodon</a>") < content.html.index(">Why</p>") < content.html.rindex("<hr")
    assert re.search(r'<img class="in-the-dark"[^>]* src="https://x.y/d.png"[^>]*display: none', content.html)
    assert content.text == (
        "b\n\nWebsite: https://example.org/?a=1&b=2\nMastodon: https://hill.example/@dome\n\nWhy\n"
        + FOOTER.text()
    )
    end = "<hr" + content.html.rpartition("<hr")[2].partition("</td>")[0].rstrip()
    assert re.sub(r' style="[^"]*"', "", end) == FOOTER.html()


def test_the_sender_has_a_logo_a_colour_and_a_reason() -> None:
    brand = Brand("https://example.org/logo.png", "#f2c14e", "You signed up <at> the fair.")
    html = letter("", "[link](https://x.y)\n\n> [Go](https://x.y)", brand)
    assert re.search(
        r'<img class="on-a-plate"[^>]* src="https://example.org/logo.png" alt="Org &amp; Co"', html
    )
    assert "You signed up &lt;at&gt; the fair." in html
    link = re.search(r'<a href="https://x.y" style="color: (#\w{6})', html)
    assert link is not None
    assert contrast(link[1], "#ffffff") >= READABLE
    text = render(Document("s", "<p>b</p>", "b"), FOOTER, brand).text
    assert text == "b\n\nYou signed up <at> the fair.\n" + FOOTER.text()


def test_a_link_alone_in_a_quote_or_a_callout_is_a_button() -> None:
    assert 'class="button-in"' in letter("", "> [Book **now**](https://x.y)")
    assert 'class="button-in"' not in letter("", "> See [this](https://x.y)")
    text = parse_markdown(
        "> [Book **now**](https://x.y)\n\n> [Said](https://x.y) so", "x.md"
    ).document.text_body
    assert text == "→ Book now (https://x.y)\n\n> Said (https://x.y) so"
    go = {"type": "text", "plain_text": "Book", "href": "https://x.y", "annotations": {}}
    assert 'class="button-in"' in page([Block("1", "callout", {"rich_text": [go]})]).html_body
    assert "→ Book (https://x.y)" in page([Block("1", "callout", {"rich_text": [go]})]).text_body
    both = [go, {"type": "text", "plain_text": " or not", "annotations": {}}]
    assert "button" not in page([Block("1", "callout", {"rich_text": both})]).html_body


@pytest.mark.parametrize("color", ["#123a55", "#000000", "#ffffff", "#e0a030", None])
def test_a_button_can_be_seen_and_read_in_the_dark(color: str | None) -> None:
    dark = Brand(color=color).styles.rpartition("prefers-color-scheme")[2]
    ground, words = re.findall(r"(?:background-color|\bcolor): (#\w{6}) !important", dark)
    assert contrast(ground, DARK_PAPER) >= 3.0
    assert contrast(words, ground) >= READABLE


def test_a_quote_has_a_bar_in_its_own_colour() -> None:
    words = [{"type": "text", "plain_text": "q", "annotations": {}}]
    quote = page([Block("1", "quote", {"rich_text": words, "color": "red"})], "s")
    assert "border-left-color: #bb2d24" in render(quote, FOOTER, Brand(color="#00ff00")).html


def test_short_cells_are_not_broken() -> None:
    assert re.search(
        r"<td[^>]* nowrap[^>]*>13 Dec</td>", letter("", "|a|b|\n|-|-|\n|13 Dec|A long cell, really|")
    )


@given(st.from_regex(r"#[0-9a-f]{6}", fullmatch=True), st.sampled_from(["#ffffff", "#211f1c"]))
def test_any_colour_can_be_made_readable(color: str, background: str) -> None:
    assert contrast(readable_on(background, color), background) >= READABLE
    assert contrast(words_on(color), color) >= READABLE


# ── Languages ────────────────────────────────────────────────────────────────────────────────────


def test_every_language_says_everything() -> None:
    english = language("en")
    assert shipped() == ("de", "en", "es", "fr", "pt", "ru")
    for code in shipped():
        words = language(code)
        assert words.code == code
        assert len(words.months) == 12
        assert words.pages.keys() == english.pages.keys()
        for key, sentence in words.pages.items():
            assert set(re.findall(r"\{(\w+)\}", sentence)) == set(
                re.findall(r"\{(\w+)\}", english.pages[key])
            ), key


def test_the_footer_stays_to_the_byte_unless_a_language_is_asked_for() -> None:
    russian = Document("s", "<p>Привет, друзья</p>", "Привет, друзья", lang="ru")
    assert render(russian, FOOTER).text.endswith(
        f"\n--\nOrg & Co — Street\nUnsubscribe: {mark(UNSUBSCRIBE_URL)}"
    )
    asked = render(russian, FOOTER, Brand(language="ru"))
    assert asked.text.endswith(f"\nОтписаться: {mark(UNSUBSCRIBE_URL)}")
    assert ">Отписаться</a>" in asked.html
    own = render(replace(russian, language="de"), FOOTER, Brand(language="ru"))
    assert ">Abmelden</a>" in own.html
    assert '<html lang="de"' in own.html
    other = render(replace(russian, language="ja"), FOOTER)
    assert ">Unsubscribe</a>" in other.html
    assert '<html lang="ja"' in other.html


@pytest.mark.parametrize(
    ("own", "brand", "word"),
    [
        (None, None, "Test"),
        ("de", "pt", "Test"),
        (None, "ru", "Тест"),
        ("es", None, "Prueba"),
        ("ja", "ru", "Test"),
    ],
)
def test_a_test_is_marked_in_the_letters_language(own: str | None, brand: str | None, word: str) -> None:
    """Guessed it is not: the words around a letter are English until somebody asks for another language."""
    document = Document("Привет", "<p>Как дела?</p>", "Как дела?", lang="ru", language=own)
    content = render(document, FOOTER, Brand(language=brand))
    assert language(language_asked_for(content) or "en").test == word


@pytest.mark.parametrize(
    ("accept", "code"),
    [
        ("de-DE,de;q=0.9,en;q=0.8", "de"),
        ("ja, fr;q=0.5, pt-BR;q=0.7", "pt"),
        ("ru;q=0, en", "en"),
        ("", "en"),
        ("*", "en"),
        ("x" * 10_000, "en"),
    ],
)
def test_a_page_follows_the_browsers_wish(accept: str, code: str) -> None:
    assert preferred(accept).code == code


# ── Before it is opened ──────────────────────────────────────────────────────────────────────────


def test_a_preheader_is_the_authors_own_or_the_first_prose() -> None:
    assert "Read me first" in letter("preheader: Read me first")
    assert preheader_of("Title\n=====") == "Title"
    for address in (
        "https://x.y/Foo_(bar)",
        "https://x.y/Foo_(bar",
        "us@x.y",
        "https://x.y/\ue000url:a b\ue001",
    ):
        assert preheader_of(f"see wiki ({address}) and this") == "see wiki and this"
    assert (
        preheader_of("Title\n=====\n\n[A picture of a very small observatory on a hill]\n\nShort.") == "Title"
    )


def test_two_renders_are_the_same_bytes_whatever_is_set() -> None:
    brand = Brand("https://x.y/l.png", "#123456", "why", "pt")
    assert letter("date: 2026-01-02", brand=brand) == letter("date: 2026-01-02", brand=brand)


@pytest.mark.skipif(not shutil.which("spamassassin"), reason="SpamAssassin is not installed")
def test_spamassassin_finds_nothing_in_the_demo_letter() -> None:
    document = parse_markdown(EXAMPLE.read_text(encoding="utf-8"), EXAMPLE.name).document
    html = re.sub(rf"{mark('media 1')}", "https://example.org/birch-hill.png", document.html_body)
    content = render(replace(document, html_body=html, media=()), FOOTER)
    url = "https://mail.example.org/unsubscribe?token=x"
    mail = Mail(
        Attempt("m", 1), "c", "ann@example.org", "news@example.org", "Birch Hill", None, content,
        {UNSUBSCRIBE_URL: url}, url, list_id="general.example.org",
    )  # fmt: skip
    judged = subprocess.run(
        ["spamassassin", "--local", "--test-mode"],
        input=Envelope(content).splice(mail, 1_790_000_000),
        capture_output=True,
        check=True,
        timeout=300,
    ).stdout.decode("utf-8", "replace")
    score = re.search(r"score=(-?[\d.]+)", judged) or re.search(r"\((-?[\d.]+) points", judged)
    assert score is not None, judged[-2000:]
    assert float(score[1]) <= 0.0, judged[-2000:]
