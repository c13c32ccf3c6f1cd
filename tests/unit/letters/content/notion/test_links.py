"""Which links a mail carries, and which page a person means by what was pasted."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.letters.content.notion.links import safe_url, short, site_of, title_of
from mailout.letters.content.refs import page_id_of, page_url

ID = "0f0e0d0c-0b0a-4908-8706-050403020100"
HEX = ID.replace("-", "")


@pytest.mark.parametrize(
    "ref",
    [
        ID,
        HEX,
        HEX.upper(),
        f"  {ID}\n",
        f"https://www.notion.so/{HEX}",
        f"https://www.notion.so/The-November-letter-{HEX}",
        f"https://www.notion.so/acme/The-November-letter-{HEX}?pvs=4",
        f"https://www.notion.so/acme/{HEX}#11112222333344445555666677778888",
        f"https://www.notion.so/acme/11112222333344445555666677778888?v=9999&p={HEX}&pm=s",
        f"https://app.notion.com/p/{ID}",
        f"https://app.notion.com/p/acme/Letter-{HEX}?source=copy_link",
        f"https://acme.notion.site/The-letter-{HEX}",
        f"https://acme.notion.site/caf%C3%A9-{HEX}",
        f"https://acme.notion.site/the-letter-{HEX}/",
        f"www.notion.so/{HEX}",
        f"notion://www.notion.so/{HEX}",
    ],
)
def test_whatever_form_of_a_page_is_pasted_is_understood(ref: str) -> None:
    assert page_id_of(ref) == ID


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "letter.md",
        HEX[:-1],
        HEX + "0",
        f"https://example.org/{HEX}",
        f"https://notion.so.example.org/{HEX}",
        f"https://evilnotion.so/{HEX}",
        "https://www.notion.so/product",
        f"https://www.notion.so/{HEX}0",
        "https://[bad/notion.so",
    ],
)
def test_what_names_no_page_is_not_taken_for_one(ref: str) -> None:
    """A wrong guess would send the wrong letter."""
    assert page_id_of(ref) is None


@given(st.uuids())
def test_an_id_survives_the_way_to_an_address_and_back(id: uuid.UUID) -> None:
    address = page_url(str(id))
    assert address
    assert page_id_of(address) == page_id_of(id.hex) == str(id)


@pytest.mark.parametrize(
    ("href", "kept"),
    [
        ("https://example.org/a?b=1#c", "https://example.org/a?b=1#c"),
        ("HTTP://example.org", "HTTP://example.org"),
        ("mailto:us@example.org", "mailto:us@example.org"),
        ("tel:+49301234", "tel:+49301234"),
        (f"/{HEX}?pvs=4", f"https://www.notion.so/{HEX}?pvs=4"),
        ("https://example.org/two words", "https://example.org/two%20words"),
        ("java\nscript:alert(1)", None),
        (" javascript:alert(1)", None),
        ("data:text/html,x", None),
        ("file:///etc/passwd", None),
        ("//example.org", None),
        ("/\\example.org", None),
        ("https://", None),
        ("#block", None),
        ("", None),
        (None, None),
    ],
)
def test_only_links_that_a_mail_may_carry_survive(href: object, kept: str | None) -> None:
    assert safe_url(href) == kept


def test_a_label_made_from_an_address_is_short() -> None:
    assert short("https://www.example.org/a/?utm=1") == "example.org/a"
    assert len(short("https://example.org/" + "a" * 500)) == 60


@pytest.mark.parametrize(
    ("url", "title"),
    [
        ("https://example.org/2026/11/why-gardens-matter", "Why gardens matter"),
        ("https://example.org/Harbour_news.html?utm=x#top", "Harbour news"),
        (
            "https://example.org/wiki/%D0%A1%D0%B0%D0%B4_%D0%B8_%D0%BE%D0%B3%D0%BE%D1%80%D0%BE%D0%B4",
            "Сад и огород",
        ),
        ("https://example.org/a-page-0f0e0d0c0b0a49088706050403020100", ""),
        ("https://example.org/news", ""),
        ("https://example.org/12345-67", ""),
        ("https://example.org/", ""),
        ("https://[bad/a-long-read", ""),
    ],
)
def test_a_bookmark_without_a_caption_is_called_by_the_words_of_its_address(url: str, title: str) -> None:
    """An id or a number is no title: then the address itself is shown."""
    assert title_of(url) == title


def test_a_site_is_called_as_people_say_it() -> None:
    assert site_of("https://www.example.org:8080/a") == "example.org"
    assert site_of("https://[bad") == ""
