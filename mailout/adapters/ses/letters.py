"""From a mail to what SES is handed: checked, encoded, and put together into calls."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from mailout.adapters.ses import error_map, headers
from mailout.adapters.ses.headers import one_line
from mailout.base.addresses import IN_WORDS, Dropped, checked
from mailout.letters.content.model import Content, Segments
from mailout.outbox.delivery import error_codes
from mailout.outbox.delivery.mime import Envelope
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind

BULK_ENTRIES = 50
BULK_BYTES = 900_000  # SES takes 1 MB of template and values in a call
BULK_DATA_BYTES = 262_144  # and so much of values in an entry
ENTRY_BYTES = 1_000  # address, tags and headers of an entry, without its link
_BRACES = re.compile(r"[{}\\]+")


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


def _why_not(address: str) -> str:
    dropped = checked(address)
    why = IN_WORDS[dropped] if isinstance(dropped, Dropped) else None
    return f"SES cannot take this address: {why or 'it holds what no address may hold'}."


def _invalid(code: str, message: str) -> Outcome:
    return Outcome(OutcomeKind.INVALID, code=code, category=error_codes.VALIDATION_ERROR, message=message)


# ── Content made ready once and used for every message that shares it ──


@dataclass(frozen=True)
class PreparedContent:
    """One content, cut at its marks."""

    subject: Segments
    html: Segments
    text: Segments

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset((*self.subject.names, *self.html.names, *self.text.names))

    @cached_property
    def template(self) -> BulkTemplate:
        return BulkTemplate.of(self)

    def simple(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Subject and Body of a SendEmail call."""
        body: dict[str, Any] = {}
        if self.html.parts != ("",):
            body["Html"] = {"Data": self.html.fill(values), "Charset": "UTF-8"}
        if self.text.parts != ("",):
            body["Text"] = {"Data": self.text.fill(values), "Charset": "UTF-8"}
        subject = one_line(self.subject.fill(values))
        return {"Subject": {"Data": subject, "Charset": "UTF-8"}, "Body": body}


@lru_cache(maxsize=64)
def prepare(content: Content) -> PreparedContent:
    return PreparedContent(content.subject_segments, content.html_segments, content.text_segments)


@dataclass(frozen=True, slots=True)
class BulkTemplate:
    """The same content as an inline template of SendBulkEmail.

    SES reads `{{name}}` as a variable, and a brace or a backslash beside one changes its meaning. So every
    run of braces that could be read so is itself carried by a variable: values are put in once and not read
    again. Variables are numbered, because a name with a dot would be a path.
    """

    content: Mapping[str, str]
    variables: tuple[tuple[str, str], ...]  # SES's name, ours
    subject_variables: tuple[tuple[str, str], ...]  # the same, on one line
    fixed: Mapping[str, str]  # runs of braces
    default_data: str
    size: int  # of the template in a request, in bytes

    @classmethod
    def of(cls, prepared: PreparedContent) -> BulkTemplate:
        fixed: dict[str, str] = {}  # run → SES's name
        names = tuple(dict.fromkeys((*prepared.html.names, *prepared.text.names)))
        in_body = {name: f"v{index}" for index, name in enumerate(names)}
        in_subject = {name: f"s{index}" for index, name in enumerate(dict.fromkeys(prepared.subject.names))}
        content = {
            "Subject": one_line(_template(prepared.subject, in_subject, fixed)),
            "Html": _template(prepared.html, in_body, fixed),
            "Text": _template(prepared.text, in_body, fixed),
        }
        content = {part: text for part, text in content.items() if text or part == "Subject"}
        runs = {name: run for run, name in fixed.items()}
        default_data = json.dumps(runs)
        return cls(
            content=content,
            variables=tuple((theirs, ours) for ours, theirs in in_body.items()),
            subject_variables=tuple((theirs, ours) for ours, theirs in in_subject.items()),
            fixed=runs,
            default_data=default_data,
            size=len(json.dumps(content)) + len(json.dumps(default_data)),
        )

    def data(self, values: Mapping[str, str]) -> str:
        """One recipient's values: all of them, since SES does not promise to merge defaults in."""
        filled = {theirs: values[ours] for theirs, ours in self.variables}
        for theirs, ours in self.subject_variables:
            filled[theirs] = one_line(values[ours])
        filled.update(self.fixed)
        return json.dumps(filled)


def _template(segments: Segments, names: Mapping[str, str], fixed: dict[str, str]) -> str:
    last = len(segments.parts) - 1
    written: list[str] = []
    for index, part in enumerate(segments.parts):
        if index % 2:
            written.append("{{" + names[part] + "}}")
        else:
            written.append(_literal(part, fixed, after_mark=index > 0, before_mark=index < last))
    return "".join(written)


def _literal(text: str, fixed: dict[str, str], *, after_mark: bool, before_mark: bool) -> str:
    def carried(match: re.Match[str]) -> str:
        run = match.group()
        touches = (after_mark and match.start() == 0) or (before_mark and match.end() == len(text))
        if len(run) == 1 and not touches:
            return run
        return "{{" + fixed.setdefault(run, f"b{len(fixed)}") + "}}"

    return _BRACES.sub(carried, text)
