"""An error as a page of the errors database."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from mailout.adapters.notion.calls import Json
from mailout.base.error_log import ErrorRecord
from mailout.letters.content.notion.page import Value, property_value

ERROR_PROPERTIES = ("timestamp", "mailout", "stage", "provider", "email", "code", "message", "attempts")
"""The errors database's properties beside its title."""


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
    values["timestamp"] = row.at or now
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
