"""The settings of Notion's API."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo

from mailout.base.settings import Settings
from mailout.letters.content.notion.page import PropertyNames, StatusNames


@dataclass(frozen=True, slots=True)
class NotionConfig:
    """What is needed to talk to one workspace."""

    token: str
    db_mailouts: str | None = None
    db_errors: str | None = None
    base_url: str | None = None
    properties: PropertyNames = field(default_factory=PropertyNames)
    statuses: StatusNames = field(default_factory=StatusNames)
    zone: tzinfo = UTC  # where a `send_at` without a time has its midnight
    timeout: float = 30.0
    attempts: int = 5

    @classmethod
    def of(cls, settings: Settings) -> NotionConfig:
        return cls(
            token=settings.notion_token.get_secret_value() if settings.notion_token else "",
            db_mailouts=settings.notion_db_mailouts,
            db_errors=settings.notion_db_errors,
            base_url=settings.notion_base_url,
            properties=PropertyNames(
                **{one.name: getattr(settings, f"notion_prop_{one.name}") for one in fields(PropertyNames)}
            ),
            statuses=StatusNames(
                **{one.name: getattr(settings, f"notion_status_{one.name}") for one in fields(StatusNames)}
            ),
            zone=ZoneInfo(settings.send_timezone),
        )
