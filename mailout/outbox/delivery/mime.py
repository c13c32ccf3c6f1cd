"""A whole RFC 5322 message: built and encoded once per content, spliced per recipient.

`email.message.EmailMessage` costs 2–3 ms a message; this costs some tens of microseconds. Literals are
quoted-printable before the first recipient comes; only values are encoded per recipient, each on lines of its
own between soft line breaks, so no line passes 76 characters and decoding gives the filled text exactly.
"""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import b2a_qp
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from urllib.parse import quote

from mailout.base.addresses import punycode
from mailout.letters.content.document import one_line
from mailout.letters.content.model import Content, Segments
from mailout.outbox.delivery.port import Mail

CRLF = b"\r\n"
SOFT_BREAK = b"=\r\n"
LINE_CHARS = 76
_NEVER_IN_BRACKETS = re.compile(r"[\s<>\x00-\x1f\x7f]")
"""What an address or a link may not hold between `<` and `>`: it could end there and begin a header."""


class Envelope:
    """One content, ready to be addressed."""

    def __init__(self, content: Content) -> None:
        # "=_" cannot stand in quoted-printable text, so no part can hold the boundary.
        boundary = f"=_{content.hash[:40]}"
        self._subject = content.subject_segments
        self._same_subject = None if self._subject.names else _subject(content.subject)
        self._fixed = (
            b"MIME-Version: 1.0\r\n"
            + f'Content-Type: multipart/alternative;\r\n boundary="{boundary}"\r\n\r\n'.encode()
        )
        self._text_head = _part_head(boundary, "plain")
        self._html_head = CRLF + _part_head(boundary, "html")
        self._end = f"\r\n--{boundary}--\r\n".encode()
        self._text = _Encoded(content.text_segments)
        self._html = _Encoded(content.html_segments)

    def splice(self, mail: Mail, date: float) -> bytes:
        """The message for one recipient. KeyError: the mail lacks a value that the content asks for."""
        attempt = mail.attempt
        domain = mail.from_email.rpartition("@")[2]
        return b"".join(
            (
                _sender(mail.from_name, mail.from_email, mail.reply_to),
                header("To", f"<{_address(mail.to)}>"),
                _date(int(date)),
                header("Message-ID", f"<{attempt.id}.{attempt.epoch}@{_domain(domain)}>"),
                _leave(mail),
                *(header(name, unstructured(value, len(name) + 2)) for name, value in mail.headers.items()),
                header("X-Mailout-Message", attempt.id),
                header("X-Mailout-Epoch", str(attempt.epoch)),
                header("X-Mailout-Campaign", mail.mailout_id) if mail.mailout_id else b"",
                self._same_subject or _subject(self._subject.fill(mail.values)),
                _tags(mail.tags) if mail.tags else b"",
                self._fixed,
                self._text_head,
                *self._text.fill(mail.values),
                self._html_head,
                *self._html.fill(mail.values),
                self._end,
            )
        )


# ── Bodies ───────────────────────────────────────────────────────────────────────────────────────


class _Encoded:
    """Segments in quoted-printable: literals with their soft breaks at even places, names at odd ones."""

    def __init__(self, segments: Segments) -> None:
        last = len(segments.parts) - 1
        self._literals = []
        self._names = segments.names
        for index in range(0, last + 1, 2):
            literal = quoted_printable(segments.parts[index])
            before = SOFT_BREAK if index > 0 and literal else b""
            after = SOFT_BREAK if index < last and literal and not literal.endswith(CRLF) else b""
            # Two values in a row need a break between them too.
            between = SOFT_BREAK if 0 < index < last and not literal else b""
            self._literals.append(before + literal + after + between)

    def fill(self, values: Mapping[str, str]) -> list[bytes]:
        if not self._names:
            return self._literals
        filled = [b""] * (2 * len(self._names) + 1)
        filled[::2] = self._literals
        filled[1::2] = [quoted_printable(values[name]) for name in self._names]
        return filled


def quoted_printable(text: str) -> bytes:
    """Line breaks stay line breaks (CRLF); a lone CR is `=0D`; blanks at the end of a line are encoded.

    The last line leaves room for the `=` of a soft break.
    """
    encoded = CRLF.join(
        b2a_qp(line.encode(), istext=False).replace(b"=\n", SOFT_BREAK) for line in text.split("\n")
    )
    if len(encoded) - encoded.rfind(b"\n") - 1 < LINE_CHARS:
        return encoded
    end = -3 if encoded[-3:-2] == b"=" else -1  # `=20` is not to be torn apart
    return encoded[:end] + SOFT_BREAK + encoded[end:]


def _part_head(boundary: str, subtype: str) -> bytes:
    return (
        f"--{boundary}\r\n"
        f'Content-Type: text/{subtype}; charset="utf-8"\r\n'
        "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
    ).encode()


# ── Headers ──────────────────────────────────────────────────────────────────────────────────────


def header(name: str, value: str) -> bytes:
    """One header, its value already encoded and folded. Addresses stay on its line however long they are:
    some mail programs lose a value that begins on the second."""
    return f"{name}: {value}\r\n".encode()


def unstructured(text: str, column: int) -> str:
    """A subject: as it is when it is plain ASCII, folded at spaces; else in encoded words."""
    text = one_line(text)
    if text.isascii() and "=?" not in text:
        folded = _folded(text, column)
        if all(len(line) <= LINE_CHARS for line in f"{' ' * column}{folded}".split("\r\n")):
            return folded
    return _encoded_words(text, column)


def _subject(text: str) -> bytes:
    return header("Subject", unstructured(text, len("Subject: ")))


def display_name(name: str) -> str:
    """Of a sender: bare, quoted, or in encoded words."""
    name = one_line(name)
    if not name.isascii() or "=?" in name or len(name) > LINE_CHARS - 10:
        return _encoded_words(name, len("Reply-To: "))
    if re.fullmatch(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]*", name):
        return name
    escaped = re.sub(r'(["\\])', r"\\\1", name)
    return f'"{escaped}"'


def _folded(text: str, column: int) -> str:
    """Broken before single spaces, so that unfolding gives the same text."""
    lines, line = [], ""
    for word in re.split(r"(?<=\S) (?=\S)", text):
        if line and column + len(line) + 1 + len(word) > LINE_CHARS:
            lines.append(line)
            line, column = word, 1
        else:
            line = f"{line} {word}" if line else word
    return "\r\n ".join([*lines, line])


def _encoded_words(text: str, column: int) -> str:
    """RFC 2047: base64, whole characters in each word, one word a line."""
    words, chunk = [], b""
    room = (LINE_CHARS - column - len("=?utf-8?b??=")) // 4 * 3
    for character in text:
        encoded = character.encode()
        if len(chunk) + len(encoded) > room:
            words.append(chunk)
            chunk, room = b"", 45
        chunk += encoded
    words.append(chunk)
    return "\r\n ".join(f"=?utf-8?b?{b64encode(word).decode()}?=" for word in words)


@lru_cache(maxsize=256)
def _sender(name: str, email: str, reply_to: str | None) -> bytes:
    """The same for thousands in a row, so it is worth keeping."""
    shown = display_name(name)
    address = f"<{_address(email)}>"
    if not shown:
        value = address
    else:
        line = len("From: ") + len(shown.rpartition("\r\n")[2]) + 1 + len(address)
        value = f"{shown} {address}" if line <= LINE_CHARS else f"{shown}\r\n {address}"
    reply = header("Reply-To", f"<{_address(reply_to)}>") if reply_to else b""
    return header("From", value) + reply


@lru_cache(maxsize=16)
def _date(second: int) -> bytes:
    return header("Date", formatdate(second))


def _tags(tags: Mapping[str, str]) -> bytes:
    pairs = (f"{name}={re.sub(r'[^A-Za-z0-9_.:-]', '-', value)}" for name, value in tags.items())
    return header("X-Mailout-Tags", "; ".join(pairs))


def _leave(mail: Mail) -> bytes:
    """RFC 8058 and RFC 2919. A transactional mail has nothing to unsubscribe from."""
    if mail.unsubscribe_url is None:
        return b""
    mailbox = mail.unsubscribe_mailbox and unsubscribe_by_mail(mail.unsubscribe_mailbox)
    ways = [_NEVER_IN_BRACKETS.sub("", way) for way in (mail.unsubscribe_url, mailbox) if way]
    return (
        (header("List-Id", _list_id(mail.list_name, mail.list_id)) if mail.list_id else b"")
        + header("List-Unsubscribe", ", ".join(f"<{way}>" for way in ways))
        + (b"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" if mail.one_click else b"")
    )


@lru_cache(maxsize=64)
def _list_id(name: str, id: str) -> str:
    shown, safe = display_name(name), _NEVER_IN_BRACKETS.sub("", id)
    return f"{shown}\r\n <{safe}>" if shown else f"<{safe}>"


def unsubscribe_by_mail(mailbox: str) -> str:
    return f"mailto:{quote(mailbox, safe='@')}?subject=unsubscribe"


def _address(email: str) -> str:
    local, at, domain = _NEVER_IN_BRACKETS.sub("", email).rpartition("@")
    return f"{local}{at}{_domain(domain)}"


def _domain(domain: str) -> str:
    """A header is ASCII: international names go as punycode."""
    return _NEVER_IN_BRACKETS.sub("", domain) if domain.isascii() else punycode(domain) or domain
