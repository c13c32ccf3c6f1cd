"""From a mail to what SES is handed: checked, encoded, and put together into calls."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mailout.adapters.ses import error_map, headers
from mailout.adapters.ses.prepared import PreparedContent, prepare
from mailout.base.addresses import Dropped, checked
from mailout.outbox.delivery import error_codes
from mailout.outbox.delivery.mime import Envelope
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind

BULK_ENTRIES = 50
BULK_BYTES = 900_000  # SES takes 1 MB of template and values in a call
BULK_DATA_BYTES = 262_144  # and so much of values in an entry
ENTRY_BYTES = 1_000  # address, tags and headers of an entry, without its link


@dataclass(frozen=True)
class SesLetter:
    """A mail that SES can take. Both modes are built from it, so they cannot differ."""

    index: int
    to: str
    from_email: str
    sender: str  # with its name
    reply_to: str | None
    headers: list[dict[str, str]]
    tags: list[dict[str, str]]
    prepared: PreparedContent
    values: Mapping[str, str]
    raw: bytes | None = None

    @cached_property
    def data(self) -> str:
        return self.prepared.template.data(self.values)

    @cached_property
    def entry_bytes(self) -> int:
        # JSON within JSON: quotes and backslashes are escaped twice, so values may count double.
        return 2 * len(self.data) + sum(len(header["Value"]) for header in self.headers) + ENTRY_BYTES

    @property
    def fits_bulk(self) -> bool:
        size = self.prepared.template.size + self.entry_bytes
        return self.raw is None and len(self.data) <= BULK_DATA_BYTES and size <= BULK_BYTES


def letter_of(index: int, mail: Mail) -> SesLetter | Outcome:
    """The letter, or why SES is not even asked."""
    to = headers.address(mail.to)
    if to is None:
        return _invalid("INVALID_EMAIL", _why_not(mail.to))
    sender = headers.sender(mail.from_name, mail.from_email)
    reply_to = headers.address(mail.reply_to) if mail.reply_to else None
    if sender is None or (mail.reply_to and reply_to is None):
        return error_map.classify("BadFromAddress", "SES cannot take FROM_EMAIL or REPLY_TO.", None, False)
    unsubscribe = headers.list_headers(mail)
    if unsubscribe is None:
        return _invalid("INVALID_PAYLOAD", "The unsubscribe link does not fit into a header.")
    own = headers.own_headers(mail.headers)
    if own is None:
        return _invalid("INVALID_PAYLOAD", "A header is too long for SES.")
    prepared = prepare(mail.content)
    missing = [name for name in prepared.names if not isinstance(mail.values.get(name), str)]
    if missing:
        return _invalid("INVALID_TEMPLATE", f"No value for {', '.join(sorted(missing))}.")
    all_headers = [*unsubscribe, *own]
    raw = None
    if len(all_headers) > headers.MAX_HEADERS:  # more than SES lets us name: then it gets the whole message
        raw = Envelope(mail.content).splice(mail, time.time())
    return SesLetter(
        index,
        to,
        mail.from_email,
        sender,
        reply_to,
        all_headers,
        headers.tags(mail),
        prepared,
        mail.values,
        raw,
    )


def bulk_batches(letters: Sequence[SesLetter]) -> Iterable[list[SesLetter]]:
    """One From, one Reply-To and one content a call; as many entries as SES takes."""
    groups: dict[tuple[str, str | None, int], list[SesLetter]] = {}
    for letter in letters:
        groups.setdefault((letter.sender, letter.reply_to, id(letter.prepared)), []).append(letter)
    for group in groups.values():
        yield from _cut(group)


def _cut(group: Sequence[SesLetter]) -> Iterable[list[SesLetter]]:
    batch: list[SesLetter] = []
    size = 0
    for letter in group:
        if not letter.fits_bulk:
            yield [letter]
            continue
        if len(batch) == BULK_ENTRIES or size + letter.entry_bytes > BULK_BYTES:
            yield batch
            batch = []
        if not batch:
            size = letter.prepared.template.size
        batch.append(letter)
        size += letter.entry_bytes
    if batch:
        yield batch


WHY_NOT = {
    Dropped.EMPTY: "there is none",
    Dropped.NO_AT: "it has no @-sign",
    Dropped.DISPLAY_NAME: "it has a name beside it",
    Dropped.BAD_LOCAL: "what stands before the @-sign is wrong",
    Dropped.NON_ASCII_LOCAL: "SES takes only ASCII before the @-sign",
    Dropped.BAD_DOMAIN: "what stands after the @-sign is wrong",
    Dropped.TOO_LONG: "it is too long",
}


def _why_not(address: str) -> str:
    dropped = checked(address)
    why = WHY_NOT.get(dropped) if isinstance(dropped, Dropped) else None
    return f"SES cannot take this address: {why or 'it holds what no address may hold'}."


def _invalid(code: str, message: str) -> Outcome:
    return Outcome(OutcomeKind.INVALID, code=code, category=error_codes.VALIDATION_ERROR, message=message)
