"""A workspace for the Notion stub: mailouts, errors, and the letter that has everything."""

from __future__ import annotations

import base64
from typing import Any

from tests.stubs.notion_letter import every_block
from tests.stubs.notion_pages import Json, id_of, rich

MAILOUTS, ERRORS, LETTER = id_of("mailouts"), id_of("errors"), id_of("letter")

PIXEL = base64.b64encode(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
).decode()

STATUSES = ("Draft", "Ready", "Sending", "Send", "Failed")


def schema(**kinds: str) -> Json:
    """Property types by name, as a data source tells them."""
    options = {"options": [{"name": name} for name in STATUSES]}
    return {name: {"type": kind, kind: options if kind == "status" else {}} for name, kind in kinds.items()}


MAILOUT_SCHEMA = schema(
    subject="title",
    status="status",
    is_test="checkbox",
    sent_at="date",
    send_at="date",
    list="select",
    sent_count="number",
    failed_count="number",
    delivered_count="number",
    bounce_rate="number",
    unsub_rate="number",
)
ERROR_SCHEMA = schema(
    Name="title",
    timestamp="date",
    mailout="rich_text",
    stage="select",
    provider="select",
    email="email",
    code="select",
    message="rich_text",
    attempts="number",
)


def mailout_page(subject: str, status: str = "Draft", **values: Any) -> Json:
    """A page of the mailouts database; values as the API gives them, by property name."""
    given = {"subject": rich(subject), "status": {"name": status}, "is_test": False} | values
    properties = {
        name: {"type": property["type"], property["type"]: given.get(name)}
        for name, property in MAILOUT_SCHEMA.items()
    }
    return {"database": MAILOUTS, "properties": properties}


def workspace(**more: Any) -> Json:
    return {
        "databases": {
            MAILOUTS: {"data_source": id_of("mailouts source"), "properties": dict(MAILOUT_SCHEMA)},
            ERRORS: {"data_source": id_of("errors source"), "properties": dict(ERROR_SCHEMA)},
        },
        "pages": {LETTER: mailout_page("The November letter", "Ready", list={"name": "news"})},
        "blocks": {LETTER: every_block()},
        "files": {
            name: {
                "type": "image/png" if name.endswith("png") else "application/octet-stream",
                "base64": PIXEL,
            }
            for name in (
                "harbour%20at%20dawn.png",
                "chart.png",
                "party.png",
                "icon.png",
                "tour.mp4",
                "episode.mp3",
                "minutes.txt",
            )
        },
    } | more
