"""A page's properties: what they say of a mailout, and how what we report is written into them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from itertools import islice
from typing import Any

from mailout.base.clock import YEAR_3000, timestamp_of
from mailout.letters.content.front_matter import LetterOptions
from mailout.letters.content.notion.blocks import as_mapping, mailable
from mailout.letters.content.refs import page_id_of

TEXT_LIMIT = 2_000
"""Characters in one item of rich text, counted as Notion does (UTF-16)."""
ITEMS_LIMIT = 100
OPTION_LIMIT = 100

NO_HEADLINE = frozenset({"false", "no", "none", "-"})

Value = str | int | float | bool | None

_OPTIONAL = "send_at list segment public preheader from_name reply_to language headline excerpt byline date"
OPTIONAL = frozenset(_OPTIONAL.split())
"""Properties that a database may do without."""

KINDS: Mapping[str, tuple[str, ...]] = {
    "subject": ("title",),
    "status": ("status", "select"),
    "is_test": ("checkbox",),
    "sent_at": ("date",),
    "send_at": ("date",),
    "list": ("select", "rich_text"),
    "segment": ("select", "rich_text"),
    "public": ("checkbox",),
    "preheader": ("rich_text",),
    "from_name": ("rich_text", "select"),
    "reply_to": ("email", "rich_text", "select"),
    "language": ("select", "rich_text"),
    "headline": ("rich_text", "select"),
    "excerpt": ("rich_text",),
    "byline": ("rich_text", "select", "people"),
    "date": ("date",),
    "sent_count": ("number",),
    "failed_count": ("number",),
    "delivered_count": ("number",),
    "bounce_rate": ("number",),
    "unsub_rate": ("number",),
}
"""What a database has for a mailout, and the types that each of these properties may have."""
COMPUTED = ("formula", "rollup")
"""Nobody writes into them."""
DECIDING = ("is_test", "send_at", "list", "segment")
"""They say to whom a letter goes and when: one that cannot be read must not count as empty."""
_IN_WORDS = {"rich_text": "text", "multi_select": "multi-select"}
PROPERTY_NAMES: Mapping[str, str] = {key: key for key in KINDS}
"""What the database calls them, unless `NOTION_PROP_*` says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotionPage(LetterOptions):
    """A mailout as its page describes it. Moments are seconds since the epoch."""

    id: str
    status: str | None = None
    sent_at: float | None = None
    send_at: float | None = None
    unreadable: str = ""  # why it cannot be told to whom it goes, or when

    @property
    def asks_from(self) -> float:
        """Once it is Ready: when its time has come. A test has none, and what cannot be read is refused now,
        not when nobody looks any more."""
        return 0.0 if self.unreadable or self.is_test else self.send_at or 0.0


def page_of(
    answer: Mapping[str, Any], names: Mapping[str, str] = PROPERTY_NAMES, zone: tzinfo = UTC
) -> NotionPage:
    """From the API's JSON. A day without a time begins at midnight in `zone`."""
    properties = as_mapping(answer.get("properties"))
    found = {key: as_mapping(properties.get(name)) for key, name in names.items()}
    # Every page has exactly one title, whatever it is called.
    found["subject"] = found["subject"] or title_of(properties)
    id = str(answer.get("id") or "")
    send_at, no_time = _date(found["send_at"], zone), ""
    written = as_mapping(found["send_at"].get("date")).get("start")
    if written and (send_at is None or send_at >= YEAR_3000):  # were it empty, it would go out now
        no_time = f"The page's property {names['send_at']} is no time before the year 3000: {written}."
    return NotionPage(
        id=page_id_of(id) or id,
        subject=_line(found["subject"]),
        status=text_of(found["status"]) or None,
        is_test=found["is_test"].get("checkbox") is True,
        sent_at=_date(found["sent_at"], zone),
        send_at=send_at,
        list=text_of(found["list"]).strip() or None,
        segment=_line(found["segment"]) or None,
        public=found["public"].get("checkbox") is True or None,  # an empty box is no wish
        preheader=_line(found["preheader"]),
        from_name=_line(found["from_name"]) or None,
        reply_to=_line(found["reply_to"]) or None,
        language=_line(found["language"]) or None,
        headline=_headline(_line(found["headline"])),
        excerpt=_line(found["excerpt"]),
        byline=_line(found["byline"]),
        date=_day(found["date"]),
        unreadable=next(_unreadable(properties, names), "") or no_time,
    )


def _unreadable(properties: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[str]:
    """Nobody sees that a ticked “Test” is not our `is_test`, until everybody has the test."""
    for key in DECIDING:
        name = names[key]
        if (there := as_mapping(properties.get(name))) and there.get("type") not in KINDS[key]:
            kind = str(there.get("type"))
            wanted = " or ".join(_IN_WORDS.get(one, one) for one in KINDS[key])
            yield f"The page's property {name} has the type {_IN_WORDS.get(kind, kind)}, not {wanted}."
        for other, property in properties.items():
            alike = other != name and plain_name(other) == plain_name(name)
            computed = bool(there) and as_mapping(property).get("type") in COMPUTED
            if alike and not computed and is_filled(as_mapping(property)) and not is_filled(there):
                yield f"The page's property {other} has to be called {name}."


def plain_name(name: str) -> str:
    """“Send at” and `send_at` are meant to be the same."""
    return re.sub(r"[\s_-]", "", name).casefold()


def is_filled(property: Mapping[str, Any]) -> bool:
    return bool(property.get(str(property.get("type"))))


def _line(property: Mapping[str, Any]) -> str:
    return " ".join(mailable(text_of(property)).split())


def _headline(written: str) -> str | None:
    """Nothing written is no wish; `false` and `no` leave it out."""
    return "" if written.lower() in NO_HEADLINE else written or None


def _day(property: Mapping[str, Any]) -> date | None:
    """As it is written: a letter's date has no time zone."""
    start = str(as_mapping(property.get("date")).get("start") or "")
    try:
        return date.fromisoformat(start[:10])
    except ValueError:
        return None


def title_of(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return next((one for one in properties.values() if as_mapping(one).get("type") == "title"), {})


def text_of(property: Mapping[str, Any]) -> str:
    """What a title, text, select, status, e-mail address or people say."""
    value = property.get(str(property.get("type")))
    if isinstance(value, Mapping):
        return str(value.get("name") or "")
    if isinstance(value, list):
        if property.get("type") == "people":
            # Without the right to read users, Notion tells their ids alone.
            return ", ".join(name for one in value if (name := str(as_mapping(one).get("name") or "")))
        return "".join(str(as_mapping(run).get("plain_text") or "") for run in value)
    return value if isinstance(value, str) else ""


def _date(property: Mapping[str, Any], zone: tzinfo) -> float | None:
    return timestamp_of(as_mapping(property.get("date")).get("start"), zone)


# ── Writing ──────────────────────────────────────────────────────────────────────────────────────


def property_value(kind: str, value: Value) -> dict[str, Any] | None:
    """A value as a property of this type takes it; None: such a property cannot hold it."""
    match kind:
        case "status" | "select":
            return {kind: {"name": option_name(str(value))} if value is not None else None}
        case "number":
            return {kind: value} if value is None or isinstance(value, int | float) else None
        case "checkbox":
            return {kind: bool(value)}
        case "date":
            return {kind: {"start": iso(value)} if value is not None else None}
        case "rich_text" | "title":
            return {kind: text_items("" if value is None else str(value))}
        case "email" | "url" | "phone_number":
            return {kind: str(value) if value else None}
        case _:
            return None


def holds(property: Mapping[str, Any] | None, value: Value) -> bool:
    """Whether a property says this already, so that writing it would only add to the page's history."""
    property = property or {}
    kind = str(property.get("type"))
    if kind == "date" and isinstance(value, int | float):
        moment = _date(property, UTC)
        return moment is not None and int(moment) == int(value)
    if kind in ("status", "select") and isinstance(value, str):
        return text_of(property) == option_name(value)
    return kind in ("number", "checkbox") and property.get(kind) == value


def iso(value: Value) -> str:
    """A moment as Notion shows it: to the second, in UTC. Text is taken as it is."""
    if isinstance(value, str):
        return value
    return datetime.fromtimestamp(float(value or 0), UTC).isoformat(timespec="seconds")


def option_name(name: str) -> str:
    """Notion refuses commas in the names of options, and long ones."""
    return name.replace(",", ";")[:OPTION_LIMIT]


def text_items(text: str) -> list[dict[str, Any]]:
    """Rich text cut into items that Notion accepts; what does not fit into a hundred is left out."""
    return [{"type": "text", "text": {"content": piece}} for piece in islice(_pieces(text), ITEMS_LIMIT)]


def _pieces(text: str) -> Iterator[str]:
    """At most `TEXT_LIMIT` UTF-16 units each; a letter that takes two is never cut."""
    piece, used = "", 0
    for letter in text:
        size = 2 if ord(letter) > 0xFFFF else 1
        if used + size > TEXT_LIMIT:
            yield piece
            piece, used = "", 0
        piece, used = piece + letter, used + size
    if piece:
        yield piece
