"""Makes the two databases that mailout works with, under a page that somebody has shared with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mailout.adapters.notion.calls import NotionCalls
from mailout.adapters.notion.config import NotionConfig
from mailout.adapters.notion.error_rows import ERROR_PROPERTIES
from mailout.adapters.notion.notes import STATUS_NOTE
from mailout.base.clock import Clock
from mailout.base.errors import SourceUnavailable, UsageError
from mailout.letters.content.notion.page import KINDS, PropertyNames, StatusNames
from mailout.letters.content.refs import page_id_of

PERCENT = frozenset({"bounce_rate", "unsub_rate"})
COLOURS = {"draft": "gray", "ready": "yellow", "sending": "blue", "send": "green", "failed": "red"}
ERROR_KINDS = {"timestamp": "date", "email": "email", "message": "rich_text", "attempts": "number"}
"""The others are selects, but for the relation to the mailout."""


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
        return self._make(
            page, "Mailouts", mailout_properties(self._config.properties, self._config.statuses)
        )

    def make_errors(self, page: str, mailouts: str) -> str:
        """With a relation to the mailouts, so that an error leads to its page."""
        id = page_id_of(mailouts) or mailouts
        database = self._calls.make(f"reading the database {id}", lambda api: api.databases.retrieve(id))
        source = str(database["data_sources"][0]["id"])
        return self._make(page, "Mailout errors", error_properties(source))

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


def mailout_properties(names: PropertyNames, statuses: StatusNames) -> dict[str, Any]:
    """Every property that a mailout can have. The status is a select: the API makes no status options."""
    made = {str(getattr(names, one.name)): _property(one.name, statuses) for one in fields(names)}
    return made | {STATUS_NOTE: {"rich_text": {}}}


def _property(key: str, statuses: StatusNames) -> dict[str, Any]:
    if key == "status":
        options = [{"name": getattr(statuses, name), "color": colour} for name, colour in COLOURS.items()]
        return {"select": {"options": options}}
    kind = KINDS[key][0]
    return {kind: {"format": "percent"} if key in PERCENT else {}}


def error_properties(mailouts_source: str) -> dict[str, Any]:
    made: dict[str, Any] = {"error": {"title": {}}}
    for name in ERROR_PROPERTIES:
        if name == "mailout":
            made[name] = {"relation": {"data_source_id": mailouts_source, "single_property": {}}}
        else:
            made[name] = {ERROR_KINDS.get(name, "select"): {}}
    return made
