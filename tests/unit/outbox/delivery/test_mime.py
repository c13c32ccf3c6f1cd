"""The message on the wire: what was written is what a mail program reads, whoever it goes to."""

from dataclasses import replace
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.policy import compat32, default
from email.utils import mktime_tz, parseaddr, parsedate_tz

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailout.letters.content.document import one_line
from mailout.letters.content.model import Content, clean, mark
from mailout.outbox.delivery.mime import Envelope, display_name, unstructured
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Attempt

URL = "https://example.org/unsubscribe?token=eyJlbWFpbCI6ImFubkBleGFtcGxlLm9yZyJ9.7p_hkS0XjdXd1LOrSZE2rbqM"
MAIL = Mail(
    attempt=Attempt("8f14e45f-ceea-867a-9a36-dedd4bea2543", 3),
    mailout_id="c1",
    to="ann@example.org",
    from_email="news@birch.example",
    from_name="Birch Hill",
    reply_to="hello@birch.example",
    content=Content("Hello", "<p>x</p>", "x"),
    values={},
    unsubscribe_url=URL,
)
texts = st.text(
    st.sampled_from("abc .=\t\r\n-я🌒é\u00a0_?<>")
    | st.characters(codec="utf-8", exclude_characters="\ue000\ue001")
)
one_liners = st.text(st.characters(codec="utf-8"), max_size=150)


def parsed(mail: Mail, date: float = 1_762_000_000) -> EmailMessage:
    message = message_from_bytes(Envelope(mail.content).splice(mail, date), policy=default)
    assert isinstance(message, EmailMessage)
    return message


def body(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    assert part is not None
    return part.get_content().replace("\r\n", "\n")


@given(literals=st.lists(texts, min_size=1, max_size=4), values=st.lists(texts, min_size=3, max_size=3))
@example(literals=["a ", " b", ""], values=["trailing ", "", ""])
@example(literals=["", "", ""], values=["x", "y\n", "z"])
@example(literals=["a\r", "\nb"], values=["\n", "", ""])
@example(literals=[".\n..\nFrom x\n" + "я" * 300, "--=_\n"], values=["=" * 200, "", ""])
@example(literals=["x" * 75 + " ", " " * 80], values=["y" * 76, "", ""])
def test_a_reader_sees_exactly_the_filled_text(literals, values):
    names = [f"v{index}" for index in range(len(literals) - 1)]
    text = literals[0] + "".join(
        mark(name) + literal for name, literal in zip(names, literals[1:], strict=True)
    )
    content = Content("s", text, f"t{text}")
    mail = replace(MAIL, content=content, values=dict(zip(("v0", "v1", "v2"), values, strict=True)))
    wire = Envelope(content).splice(mail, 0)
    message = message_from_bytes(wire, policy=default)
    assert body(message, "html") == content.html_segments.fill(mail.values)
    assert body(message, "plain") == content.text_segments.fill(mail.values)
    lines = wire.partition(b"\r\n\r\n")[2].split(b"\r\n")
    assert max(map(len, lines)) <= 76
    assert not any(b"\r" in line or b"\n" in line for line in lines)


def test_the_headers_are_the_documented_ones():
    message = parsed(replace(MAIL, content=Content("Привет, мир", "<p>x</p>", "x")))
    assert message["From"] == "Birch Hill <news@birch.example>"
    assert message["To"] == "ann@example.org"
    assert message["Reply-To"] == "hello@birch.example"
    assert message["Subject"] == "Привет, мир"
    assert message["Message-ID"] == "<8f14e45f-ceea-867a-9a36-dedd4bea2543.3@birch.example>"
    assert mktime_tz(parsedate_tz(message["Date"])) == 1_762_000_000
    assert message["List-Unsubscribe"] == f"<{URL}>"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert message["X-Mailout-Message"] == MAIL.attempt.id
    assert message["X-Mailout-Epoch"] == "3"
    assert message["X-Mailout-Campaign"] == "c1"
    assert message["MIME-Version"] == "1.0"
    assert message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    assert not message.defects


def test_a_transactional_mail_has_nothing_to_leave():
    message = parsed(replace(MAIL, unsubscribe_url=None, mailout_id=None, reply_to=None))
    assert {"List-Unsubscribe", "List-Unsubscribe-Post", "X-Mailout-Campaign", "Reply-To"}.isdisjoint(
        message.keys()
    )


@given(subject=one_liners, name=one_liners)
@example(subject="=?utf-8?q?x?=", name='A "quoted" \\ name, Inc.')
@example(subject="a " * 75, name="Очень " * 20)
@example(subject="x" * 150, name="x" * 150)
@example(subject="two  spaces   in " * 9, name="Dr. (comment) <x@y.z>")
def test_any_subject_and_name_arrive_whole(subject, name):
    content = Content(clean(subject), "x", "x")
    wire = Envelope(content).splice(replace(MAIL, content=content, from_name=name), 0)
    head = wire.partition(b"\r\n\r\n")[0]
    assert head.isascii()
    message = message_from_bytes(wire, policy=compat32)
    assert _decoded(message["Subject"]) == one_line(clean(subject))
    shown, address = parseaddr(message["From"].replace("\r\n", ""))
    assert address == "news@birch.example"
    assert _decoded(shown) == one_line(name)


def _decoded(value: str) -> str:
    """The older parser: the newer one puts a space between encoded words of a name, against RFC 2047."""
    return str(make_header(decode_header(value.replace("\r\n", ""))))


@pytest.mark.parametrize("break_", ["\r\n", "\n", "\r", "\u2028", "\x0b"])
def test_no_value_can_write_a_header_of_its_own(break_):
    """Else a subject, a name or an address could add recipients or a body."""
    evil = f"x{break_}Bcc: victim@example.org{break_}{break_}body"
    content = Content(evil, "x", "x")
    mail = replace(
        MAIL,
        content=content,
        from_name=evil,
        to=f"a{break_}Bcc:b@example.org",
        reply_to=f"a{break_}Bcc:b@example.org",
        unsubscribe_url=f"{URL}{break_}Bcc: b",
    )
    message = parsed(mail)
    assert "Bcc" not in message
    assert body(message, "plain") == "x"


def test_long_headers_fold():
    content = Content("A subject of many words " * 6, "x", "x")
    mail = replace(MAIL, content=content, from_name="Обсерватория на Берёзовом холме, отдел писем")
    head = Envelope(content).splice(mail, 0).partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert all(len(line) <= 78 for line in head if b"https:" not in line)
    assert sum(line.startswith(b" ") for line in head) >= 3


def test_international_domains_go_as_punycode():
    message = parsed(replace(MAIL, to="ann@почта.рф", from_email="news@холм.рф"))
    assert message["To"] == "ann@xn--80a1acny.xn--p1ai"
    assert message["Message-ID"].endswith("@xn--k1ace1a.xn--p1ai>")


def test_the_same_attempt_makes_the_same_bytes_and_another_epoch_another_id():
    assert Envelope(MAIL.content).splice(MAIL, 5.2) == Envelope(MAIL.content).splice(MAIL, 5.9)
    again = replace(MAIL, attempt=Attempt(MAIL.attempt.id, 4))
    assert parsed(again)["Message-ID"] != parsed(MAIL)["Message-ID"]


def test_a_value_that_is_missing_is_an_error_and_no_hole():
    with pytest.raises(KeyError):
        Envelope(Content("s", mark("name"), "x")).splice(MAIL, 0)


def test_plain_names_and_subjects_stay_legible():
    assert display_name("Birch Hill") == "Birch Hill"
    assert display_name("Hill, Birch") == '"Hill, Birch"'
    assert unstructured("Hello there", 9) == "Hello there"


def test_a_producers_link_is_no_one_click_link_and_its_tags_are_one_safe_line():
    tags = {"traceId": "a\r\nBcc: x@example.org", "campus": "NB"}
    message = parsed(replace(MAIL, one_click=False, tags=tags))
    assert message["List-Unsubscribe"] is not None
    assert message["List-Unsubscribe-Post"] is None
    assert message["Bcc"] is None
    assert message["X-Mailout-Tags"] == "traceId=a--Bcc:-x-example.org; campus=NB"
