"""Headers are made from what people typed: none of it may become a line, a recipient or an encoded word."""

from __future__ import annotations

from dataclasses import replace
from email.header import decode_header, make_header
from email.utils import parseaddr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.adapters.ses.headers import address, list_headers, one_line, own_headers, sender, tags
from mailout.letters.content.model import Content
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Attempt

MAIL = Mail(
    Attempt("m", 1),
    "campaign",
    "a@e.org",
    "news@e.org",
    "",
    None,
    Content("s", "h", "t"),
    {},
    "https://e.org/u",
)


def read_back(line: str) -> tuple[str, str]:
    name, mailbox = parseaddr(line)
    return str(make_header(decode_header(name))), mailbox


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("The Example", "The Example <news@example.org>"),
        ("", "news@example.org"),
        ("Smith, John", '"Smith, John" <news@example.org>'),
        ('The "Example"', '"The \\"Example\\"" <news@example.org>'),
        ("Ünï", "=?utf-8?b?w5xuw68=?= <news@example.org>"),
        ("=?UTF-8?B?w5w=?=", "=?utf-8?b?PT9VVEYtOD9CP3c1dz0/PQ==?= <news@example.org>"),
        ("A\r\nBcc: victim@example.org", '"A  Bcc: victim@example.org" <news@example.org>'),
    ],
)
def test_readers_see_the_name_that_was_set(name, line):
    assert sender(name, "news@example.org") == line


@given(st.text(max_size=120))
def test_a_from_line_is_one_ascii_line_with_one_address_and_the_same_name(name):
    line = sender(name, "news@example.org")
    assert line is not None
    assert line.isascii()
    assert line.isprintable()
    assert all(len(word) <= 75 for word in line.split() if word.startswith("=?"))
    shown, mailbox = read_back(line)
    assert mailbox == "news@example.org"
    expected = one_line(name).strip().encode("utf-8", "replace").decode()
    assert " ".join(shown.split()) == " ".join(expected.split())


@pytest.mark.parametrize(
    ("email", "taken"),
    [
        ("reader@example.org", "reader@example.org"),
        ("o'neil+tag@example.org", "o'neil+tag@example.org"),
        ("reader@bücher.example", "reader@xn--bcher-kva.example"),
        ("почта@example.org", None),
        ("two@example.org,three@example.org", None),
        ("a b@example.org", None),
        ("reader@example.org\r\nBcc: x@example.org", None),
        ("Reader <reader@example.org>", None),
        ("reader", None),
        ("@example.org", None),
        ("reader@", None),
        ("reader@exa mple.org", None),
        ("re..ader@example.org", None),
        (".reader@example.org", None),
        ("reader.@example.org", None),
        ("reader@example..org", None),
        ("reader@example.org.", None),
        ("reader@example-.org", None),
        ("reader@localhost", None),
        ("reader@" + "b" * 64 + ".org", None),
        ("a" * 65 + "@example.org", None),
        ("a" * 64 + "@" + ("b" * 61 + ".") * 3 + "org", "a" * 64 + "@" + ("b" * 61 + ".") * 3 + "org"),
        ("a" * 64 + "@" + ("b" * 62 + ".") * 3 + "org", None),
    ],
)
def test_only_what_ses_can_take_reaches_it_and_never_two_recipients_in_one(email, taken):
    assert address(email) == taken


@given(st.text(max_size=60))
def test_an_address_is_plain_ascii_or_refused(email):
    taken = address(email)
    if taken is not None:
        assert taken.isascii()
        assert taken.count("@") == 1
        assert not set(taken) & set(' ,;<>\r\n\t"')


def test_the_one_click_pair_stands_in_every_mailing_and_in_no_transactional_mail():
    url = "https://example.org/unsubscribe?token=abc"
    pair = list_headers(replace(MAIL, unsubscribe_url=url))
    assert pair is not None
    assert [header["Value"] for header in pair] == [f"<{url}>", "List-Unsubscribe=One-Click"]
    assert list_headers(replace(MAIL, unsubscribe_url=None, list_id="weekly.example.org")) == []


def test_a_lists_id_has_a_readable_name() -> None:
    """Gmail shows it beside its own button to unsubscribe."""
    mail = replace(
        MAIL, unsubscribe_url="https://x.y/u", list_id="weekly.example.org", list_name="Möwe: weekly"
    )
    (value,) = [one["Value"] for one in list_headers(mail) or () if one["Name"] == "List-Id"]
    assert read_back(value) == ("Möwe: weekly", "weekly.example.org")
    assert value.isascii()


def test_a_list_has_an_id_a_mailbox_to_leave_by_and_a_feedback_id():
    mail = replace(
        MAIL,
        unsubscribe_url="https://e.org/u",
        unsubscribe_mailbox="leave+us@example.org",
        list_id="weekly.example.org",
    )
    named = {header["Name"]: header["Value"] for header in list_headers(mail) or ()}
    assert named["List-Id"] == "<weekly.example.org>"
    assert (
        named["List-Unsubscribe"] == "<https://e.org/u>, <mailto:leave%2Bus@example.org?subject=unsubscribe>"
    )
    feedback = {tag["Name"]: tag["Value"] for tag in tags(mail)}
    assert (feedback["ses:feedback-id-a"], feedback["ses:feedback-id-b"]) == ("weekly", "campaign")


@pytest.mark.parametrize(
    "url", ["https://e.org/a b", "https://e.org/>", "https://e.org/\r\nX: y", "https://e.org/ü", "x" * 994]
)
def test_a_link_that_no_header_can_carry_is_refused(url):
    assert list_headers(replace(MAIL, unsubscribe_url=url)) is None


def test_a_single_mails_own_headers_fit_into_ses_or_are_refused() -> None:
    made = own_headers({"X-Order": "7", "X-Name": "Zoë " * 20, "X-Lines": "a\r\nBcc: b"})
    assert made is not None
    assert made[0] == {"Name": "X-Order", "Value": "7"}
    assert all(one["Value"].isascii() and "\n" not in one["Value"] for one in made)
    assert own_headers({"X-Long": "x" * 995}) is None
    assert own_headers({"X-Empty": " "}) is None


def test_a_producers_link_goes_without_the_promise_of_a_post():
    assert list_headers(replace(MAIL, one_click=False)) == [
        {"Name": "List-Unsubscribe", "Value": "<https://e.org/u>"}
    ]


def test_a_notifications_tags_travel_beside_ours_in_letters_that_ses_takes():
    given = {"traceId": "a b/c", "campus": "NB"}
    mail = Mail(
        Attempt("m", 1),
        None,
        "a@example.org",
        "n@example.org",
        "",
        None,
        Content("", "", ""),
        {},
        None,
        tags=given,
    )
    assert tags(mail)[2:] == [{"Name": "traceId", "Value": "a-b-c"}, {"Name": "campus", "Value": "NB"}]
