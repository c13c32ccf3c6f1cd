"""From what a program hands in to a message for the outbox: each fault has its code and its place."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from mailout.base.addresses import Dropped, normalise
from mailout.base.errors import Abort
from mailout.base.ids import transactional_id
from mailout.letters.content.brand import Brand
from mailout.letters.content.checks import MAX_HTML, MAX_SUBJECT, check_content
from mailout.letters.content.document import Document
from mailout.letters.content.footer import Footer
from mailout.letters.content.inert_html import as_fragment
from mailout.letters.content.layout import PLAIN, framed
from mailout.letters.content.model import UNSUBSCRIBE_URL, Content, clean, mark
from mailout.letters.content.plaintext import plain_text
from mailout.outbox.delivery.mime import unstructured
from mailout.outbox.delivery.single_mails import Category, SingleMail

MAX_TO = 320
MAX_TEXT = 512 * 1024
MAX_HEADERS = 20
MAX_HEADER = 900
MAX_NAME = 200

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
SHOWABLE = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")
_HEADER_NAME = re.compile(r"X-[A-Za-z0-9-]{1,70}|References|In-Reply-To", re.IGNORECASE | re.ASCII)
_DOCUMENT = re.compile(r"<(?:!doctype|html|head|body)\b", re.IGNORECASE)
_END = re.compile(r"</body", re.IGNORECASE)
_OURS = re.compile(r"X-(?:Mailout|SES|AMZN?)\b", re.IGNORECASE | re.ASCII)


class Code(StrEnum):
    """Why a mail is refused at the door."""

    INVALID_PAYLOAD = "INVALID_PAYLOAD"  # missing, of the wrong type, too long, contradictory
    INVALID_EMAIL = "INVALID_EMAIL"  # no address
    INVALID_TEMPLATE = "INVALID_TEMPLATE"  # the HTML or the subject
    RECIPIENT_NOT_FOUND = "RECIPIENT_NOT_FOUND"  # not there, deleted, another company's, another address
    OUTBOX_NOT_FOUND = "OUTBOX_NOT_FOUND"  # no such message of this company


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and where."""

    code: Code
    field: str
    message: str


class Faulty(Exception):
    """It is not taken in."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = faults
        super().__init__("; ".join(f"{fault.field}: {fault.message}" for fault in faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class MailRequest:
    """A mail as a program asks for it."""

    to: str
    subject: str
    html: str
    text: str | None = None
    recipient_id: str | None = None
    external_id: str | None = None
    recipient_name: str | None = None
    recipient_email: str | None = None
    names_recipient: bool = False
    from_name: str | None = None
    reply_to: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    category: Category = Category.TRANSACTIONAL
    send_at: float | None = None
    layout: bool = True  # around a fragment; a whole document stays as it is

    @property
    def fingerprint(self) -> str:
        """The same for the same mail, however its JSON was written."""
        given = {name: getattr(self, name) for name in self.__slots__}
        return hashlib.sha256(json.dumps(given, sort_keys=True, default=dict).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class SingleMailIntake:
    """`footer` raises Abort where the settings for it are missing."""

    footer: Callable[[], Footer]
    is_rehearsal: bool
    brand: Brand = PLAIN
    sender: str = ""  # named above a fragment, unless the mail brings a name

    def prepare(self, given: MailRequest, *, company: str, request_id: str, key: str | None) -> SingleMail:
        """The message, or `Faulty` with all that is wrong."""
        faults = [*_faults(given)]
        content = None if faults else self._content(given, faults)
        if content is None or faults:
            raise Faulty(faults)
        email, reply_to = normalise(given.to), normalise(given.reply_to or "")
        return SingleMail(
            id=transactional_id(company, key, rehearsal=self.is_rehearsal) if key else str(uuid.uuid4()),
            company_id=company,
            request_id=request_id,
            email=str(email),
            content=content,
            category=given.category,
            from_name=given.from_name or None,
            reply_to=None if isinstance(reply_to, Dropped) else reply_to,
            headers=given.headers or None,
            recipient_id=given.recipient_id,
            external_id=given.external_id,
            recipient_name=given.recipient_name,
            idempotency_key=key,
            fingerprint=given.fingerprint,
            send_at=given.send_at,
            is_rehearsal=self.is_rehearsal,
        )

    def _content(self, given: MailRequest, faults: list[Fault]) -> Content | None:
        """A whole document as it was given; around a fragment the layout. A footer for marketing alone."""
        subject, html, text = clean(given.subject), clean(given.html), clean(given.text or "")
        try:
            check_content(Content(subject, html, text), local_files=False)  # before anything else reads it
        except Abort as error:
            faults.append(Fault(Code.INVALID_TEMPLATE, "html", error.message.rstrip(".")))
            return None
        words = plain_text(html)
        if not words.strip() and "<img" not in html.lower():
            faults.append(Fault(Code.INVALID_TEMPLATE, "html", "shows nothing: neither words nor a picture"))
            return None
        text = text or words
        content = Content(subject, html, text)
        if given.layout and not _DOCUMENT.search(html):
            return self._framed(given, Document(subject, as_fragment(html), text))
        if given.category is Category.MARKETING:
            footer = self.footer()
            html = _with(html, footer.html())
            if f"({mark(UNSUBSCRIBE_URL)})" not in plain_text(html):
                said = "ends in a comment or in what is not closed: the link to leave by would not be shown"
                faults.append(Fault(Code.INVALID_TEMPLATE, "html", said))
                return None
            content = Content(content.subject, html, content.text + footer.text())
        return content

    def _framed(self, given: MailRequest, document: Document) -> Content:
        """A bare fragment arrives in Times, without margins, white in the dark."""
        footer = self.footer() if given.category is Category.MARKETING else None
        html = framed(
            document,
            clean(given.from_name or self.sender),
            self.brand,
            footer=footer.html() if footer else "",
            as_given=True,
        )
        text = document.text_body + (footer.text() if footer else "")
        return Content(document.subject, html, text)


def _with(html: str, footer: str) -> str:
    """At the end of what is shown."""
    ends = [found.start() for found in _END.finditer(html)]
    return f"{html[: ends[-1]]}{footer}{html[ends[-1] :]}" if ends else f"{html}{footer}"


def _faults(given: MailRequest) -> Iterator[Fault]:
    yield from _text_faults(given)
    yield from _address_faults(given)
    yield from _recipient_faults(given)
    yield from _header_faults(given)
    yield from _template_faults(given)


def _payload(place: str, message: str) -> Fault:
    return Fault(Code.INVALID_PAYLOAD, place, message)


def _text_faults(given: MailRequest) -> Iterator[Fault]:
    """What no header can carry, and what no store can keep."""
    lines = {
        "subject": given.subject,
        "fromName": given.from_name,
        "recipient.name": given.recipient_name,
    }
    for place, value in lines.items():
        if value and _CONTROL.search(value):
            yield _payload(place, "holds a line break or another control character")
    for place, value in (lines | {"html": given.html, "text": given.text, "to": given.to}).items():
        if value and _UNSTORABLE.search(value):
            yield _payload(place, "holds a character that no mail can carry")
    if not given.subject.strip():
        yield _payload("subject", "is empty")
    if given.text is not None and len(given.text.encode(errors="replace")) > MAX_TEXT:
        yield _payload("text", f"has more than {MAX_TEXT:,} bytes")


def external_id_fault(given: str) -> str | None:
    """What is wrong with a company's own name for somebody: it has to fit into the address of a request.

    U+FFFD stands there for what was no UTF-8: two names would become one.
    """
    if not 1 <= len(given) <= MAX_NAME or not SHOWABLE.fullmatch(given) or {"/", "\ufffd"} & set(given):
        return f"has 1 to {MAX_NAME} visible characters, without a slash and U+FFFD"
    if given in (".", ".."):
        return "is a step in a path: no request could name it"
    return None


def _address_faults(given: MailRequest) -> Iterator[Fault]:
    places = {"to": given.to, "replyTo": given.reply_to, "recipient.email": given.recipient_email}
    for place, address in places.items():
        if address is None:
            continue
        if len(address) > MAX_TO:
            yield _payload(place, f"has more than {MAX_TO} characters")
        elif isinstance(why := normalise(address), Dropped):
            yield Fault(Code.INVALID_EMAIL, place, f"is no address that mail can be sent to ({why})")


def _recipient_faults(given: MailRequest) -> Iterator[Fault]:
    if not given.names_recipient:
        return
    if given.recipient_id is None and given.external_id is None:
        yield _payload("recipient", "needs recipientId or externalId")
    if given.external_id is not None and (fault := external_id_fault(given.external_id)):
        yield _payload("recipient.externalId", fault)
    if given.recipient_email is not None:
        named, to = normalise(given.recipient_email), normalise(given.to)
        if named != to and not isinstance(named, Dropped) and not isinstance(to, Dropped):
            yield _payload("recipient.email", "is not the address in `to`")


def _header_faults(given: MailRequest) -> Iterator[Fault]:
    if len(given.headers) > MAX_HEADERS:
        yield _payload("headers", f"has more than {MAX_HEADERS} entries")
        return
    if len({name.lower() for name in given.headers}) < len(given.headers):
        yield _payload("headers", "names one header twice")
    for name, value in given.headers.items():
        place = f"headers.{name[:80]}"
        if not _HEADER_NAME.fullmatch(name) or _OURS.match(name):
            yield _payload(place, "is not allowed: X-… (not X-Mailout-…, X-SES-…), References, In-Reply-To")
        elif not value.strip() or _CONTROL.search(value) or _UNSTORABLE.search(value):
            yield _payload(place, "is empty, or holds a line break or another control character")
        elif len(value if value.isascii() else unstructured(value, len(name) + 2)) > MAX_HEADER:
            yield _payload(place, f"has more than {MAX_HEADER} bytes, as mail encodes it")


def _template_faults(given: MailRequest) -> Iterator[Fault]:
    if len(given.subject) > MAX_SUBJECT:
        yield Fault(Code.INVALID_TEMPLATE, "subject", f"has more than {MAX_SUBJECT} characters")
    if len(given.html.encode(errors="replace")) > MAX_HTML:
        yield Fault(Code.INVALID_TEMPLATE, "html", f"has more than {MAX_HTML:,} bytes")
