"""The two databases that mailout works with: what they hold, made under a page that somebody has shared with
it, an error as a row of theirs, and what `doctor` asks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from mailout.adapters.notion.calls import Json, NotionCalls, NotionConfig
from mailout.adapters.notion.notes import STATUS_NOTE
from mailout.base.clock import Clock
from mailout.base.error_log import ErrorRecord
from mailout.base.errors import SourceUnavailable, UsageError
from mailout.insight.doctor.checks import Check
from mailout.letters.content.notion.page import (
    DECIDING,
    KINDS,
    OPTIONAL,
    Value,
    iso,
    plain_name,
    property_value,
    title_of,
)
from mailout.letters.content.refs import page_id_of

PERCENT = frozenset({"bounce_rate", "unsub_rate"})
COLOURS = {"draft": "gray", "ready": "yellow", "sending": "blue", "send": "green", "failed": "red"}
ERROR_PROPERTIES = {
    "timestamp": "date",
    "mailout": "relation",
    "stage": "select",
    "provider": "select",
    "email": "email",
    "code": "select",
    "message": "rich_text",
    "attempts": "number",
}
"""The errors database's properties beside its title, by the types that they are made with."""


class NotionDatabases:
    """One call each: what was made is known before the next one is asked for."""

    def __init__(self, config: NotionConfig, clock: Clock) -> None:
        self._config = config
        self._calls = NotionCalls(config, clock)

    def close(self) -> None:
        self._calls.close()

    def parent(self, ref: str) -> str:
        """The page's id. SourceNotFound: it is not there, or not shared with us."""
        id = page_id_of(ref)
        if id is None:
            raise UsageError(f"{ref} is no Notion page.", remedy="Give its id or its address.")
        self._calls.make(f"reading the page {id}", lambda api: api.pages.retrieve(id))
        return id

    def make_mailouts(self, page: str) -> str:
        """With every property that a mailout can have. The status is a select: the API makes no status
        options."""
        names, statuses = self._config.properties, self._config.statuses
        made: dict[str, Any] = {name: {KINDS[key][0]: {}} for key, name in names.items()}
        for key in PERCENT:
            made[names[key]] = {"number": {"format": "percent"}}
        options = [{"name": statuses[name], "color": colour} for name, colour in COLOURS.items()]
        made |= {names["status"]: {"select": {"options": options}}, STATUS_NOTE: {"rich_text": {}}}
        return self._make(page, "Mailouts", made)

    def make_errors(self, page: str, mailouts: str) -> str:
        """With a relation to the mailouts, so that an error leads to its page."""
        id = page_id_of(mailouts) or mailouts
        database = self._calls.make(f"reading the database {id}", lambda api: api.databases.retrieve(id))
        source = str(database["data_sources"][0]["id"])
        made: dict[str, Any] = {name: {kind: {}} for name, kind in ERROR_PROPERTIES.items()}
        made["mailout"] = {"relation": {"data_source_id": source, "single_property": {}}}
        return self._make(page, "Mailout errors", {"error": {"title": {}}, **made})

    def _make(self, page: str, title: str, properties: Mapping[str, Any]) -> str:
        body = {
            "parent": {"type": "page_id", "page_id": page},
            "title": [{"type": "text", "text": {"content": title}}],
            "initial_data_source": {"properties": properties},
        }
        try:
            made = self._calls.make(
                f"making the database “{title}”", lambda api: api.databases.create(**body), repeatable=False
            )
        except SourceUnavailable as error:
            error.remedy = f"Look under the page whether “{title}” is there; if not, run this again."
            raise
        return str(made["id"])


def error_properties(
    row: ErrorRecord, schema: Json, page_id: str | None, subject: str | None, now: float
) -> dict[str, Any]:
    """One row as the errors database's own types take it. What has no page is named in the message, where
    `mailout` is a relation."""
    relates = (schema.get("mailout") or {}).get("type") == "relation"
    if relates and row.mailout and not page_id:
        row = replace(row, message=f"{row.mailout}: {row.message}")
    values: dict[str, Value] = {
        one.name: getattr(row, one.name) for one in fields(row) if one.name in ERROR_PROPERTIES
    }
    values["timestamp"] = iso(row.at or now)
    body: dict[str, Any] = {}
    for name, value in values.items():
        kind = str((schema.get(name) or {}).get("type"))
        if name == "mailout" and kind == "relation":
            written = {"relation": [{"id": page_id}]} if page_id else None
        else:
            written = property_value(kind, value) if value is not None else None
        if written is not None:
            body[name] = written
    title = next((name for name, one in schema.items() if one.get("type") == "title"), "title")
    about = ", ".join(one for one in (subject or row.mailout, row.email) if one) or row.stage
    body[title] = property_value("title", f"{row.code}: {about}")
    return body


def option_names(property: Json) -> frozenset[str]:
    """Of a status or a select, as the data source describes it."""
    options = (property.get(str(property.get("type"))) or {}).get("options") or ()
    return frozenset(str(one.get("name")) for one in options)


# ── doctor ──────────────────────────────────────────────────────────────────────────────────────────


def mailouts_checks(schema: Json, names: Mapping[str, str], statuses: Mapping[str, str]) -> list[Check]:
    """Does the mailouts database have what a mailout needs?"""
    found = [_property_check(key, name, schema) for key, name in names.items()]
    status = schema.get(names["status"])
    if isinstance(status, Mapping) and status.get("type") in KINDS["status"]:
        found.append(_options_check(status, names["status"], statuses))
    return found


def sources_checks(sources: Sequence[Json]) -> list[Check]:
    """Nobody looks for letters in any but the first."""
    names = [f"“{one.get('name') or one.get('id')}”" for one in sources]
    if len(names) == 1:
        return []
    said = f"the database has {len(names)} ({', '.join(names)}); mailout reads only {names[0]}"
    return [Check("data sources", "fail", said, f"Move all letters into {names[0]}.")]


def _property_check(key: str, name: str, schema: Json) -> Check:
    line = f"property {name}"
    wanted = " or ".join(KINDS[key])
    property = schema.get(name) or (title_of(schema) if key == "subject" else None)
    if not property:
        remedy = f"Add a property {name!r} of type {wanted}, or set NOTION_PROP_{key.upper()}."
        others = [other for other in schema if plain_name(other) == plain_name(name)]
        if others and key in DECIDING:
            return Check(
                line, "fail", f"is called {others[0]}", f"Call it {name}, or set NOTION_PROP_{key.upper()}."
            )
        if key in OPTIONAL:
            return Check(line, "ok", "not there; it is optional")
        # Without these nobody could say what is sent, or that it was sent.
        needed = key in ("subject", "status", "sent_at", "is_test")
        return Check(line, "fail" if needed else "warn", "is missing", remedy)
    kind = str(property.get("type"))
    if kind not in KINDS[key]:
        return Check(line, "fail", f"is of type {kind}", f"Make it {wanted}.")
    return Check(line, "ok", kind)


def _options_check(status: Json, name: str, statuses: Mapping[str, str]) -> Check:
    """A select makes its options as they are written, but the one that people choose; a status does not."""
    there = option_names(status)
    needed = statuses.values() if status.get("type") == "status" else [statuses["ready"]]
    missing = [option for option in needed if option not in there]
    line = f"options of {name}"
    if missing:
        remedy = "Add them in Notion, spelt exactly so, or set NOTION_STATUS_*."
        return Check(line, "fail", f"missing: {', '.join(missing)}", remedy)
    return Check(line, "ok", "all there")


def notes_check(schema: Json, *, readable: bool) -> Check:
    """Can a page say why its letter failed, or why it waits?"""
    if readable:
        return Check("comments", "ok", "can be read")
    if (schema.get(STATUS_NOTE) or {}).get("type") == "rich_text":
        return Check("comments", "ok", f"may not be read; {STATUS_NOTE} is written instead")
    return Check(
        "comments",
        "warn",
        f"may not be read, and there is no {STATUS_NOTE}: a page could not say why its letter failed",
        "Give the integration the capabilities to read and to insert comments, or add a text property"
        f" {STATUS_NOTE}.",
    )


def errors_checks(schema: Json) -> list[Check]:
    """The errors database may lack anything but a title: what is missing is not written."""
    missing = [name for name in ERROR_PROPERTIES if name not in schema]
    if not missing:
        return [Check("properties of the errors database", "ok", "all there")]
    remedy = "Add them, so that the errors say everything."
    return [Check("properties of the errors database", "warn", f"missing: {', '.join(missing)}", remedy)]
