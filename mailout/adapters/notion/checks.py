"""What `doctor` asks of Notion: the token, the two databases, their properties and the types of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mailout.adapters.notion.error_rows import ERROR_PROPERTIES
from mailout.insight.doctor.checks import Check
from mailout.letters.content.notion.page import KINDS, OPTIONAL, PropertyNames, StatusNames, title_of


def mailouts_checks(schema: Mapping[str, Any], names: PropertyNames, statuses: StatusNames) -> list[Check]:
    """Does the mailouts database have what a mailout needs?"""
    found = [_property(one.name, str(getattr(names, one.name)), schema) for one in fields(names)]
    status = schema.get(names.status)
    if isinstance(status, Mapping) and status.get("type") == "status":
        found.append(_options(status, names, statuses))
    return found


def _property(key: str, name: str, schema: Mapping[str, Any]) -> Check:
    line = f"property {name}"
    wanted = " or ".join(KINDS[key])
    property = schema.get(name)
    if key == "subject" and property is None:
        property = title_of(schema)
    if property is None:
        remedy = f"Add a property {name!r} of type {wanted}, or set NOTION_PROP_{key.upper()}."
        if key in OPTIONAL:
            return Check(line, "ok", "not there; it is optional")
        # Without these nobody could say what is sent, or that it was sent.
        needed = key in ("subject", "status", "sent_at", "is_test")
        return Check(line, "fail" if needed else "warn", "is missing", remedy)
    kind = str(property.get("type"))
    if kind not in KINDS[key]:
        return Check(line, "fail", f"is of type {kind}", f"Make it {wanted}.")
    return Check(line, "ok", kind)


def _options(status: Mapping[str, Any], names: PropertyNames, statuses: StatusNames) -> Check:
    """A select makes its options as they are written; a status does not."""
    there = {option.get("name") for option in (status.get("status") or {}).get("options") or ()}
    missing = [
        str(getattr(statuses, one.name))
        for one in fields(statuses)
        if getattr(statuses, one.name) not in there
    ]
    line = f"options of {names.status}"
    if missing:
        remedy = "Add them in Notion (the API cannot), or set NOTION_STATUS_*."
        return Check(line, "fail", f"missing: {', '.join(missing)}", remedy)
    return Check(line, "ok", "all there")


def errors_checks(schema: Mapping[str, Any]) -> list[Check]:
    """The errors database may lack anything but a title: what is missing is not written."""
    missing = [name for name in ERROR_PROPERTIES if name not in schema]
    if not missing:
        return [Check("properties of the errors database", "ok", "all there")]
    remedy = "Add them, so that the errors say everything."
    return [Check("properties of the errors database", "warn", f"missing: {', '.join(missing)}", remedy)]
