"""Drafts: the pages in Notion that are written or Ready, as the gateway's watch read them last."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from fastapi import Request, Response

from gateway.dashboard.desk import Desk
from gateway.dashboard.sessions import LoginSession
from mailout.insight.history import history_rows


def drafts(desk: Desk, request: Request, session: LoginSession, *, filters: Mapping[str, str]) -> Response:
    return desk.views.page(
        request,
        "drafts.html.j2",
        session,
        filters=filters,
        read=history_rows.written_pages(desk.store),
        now=desk.store.now(),
        has_notion=bool(desk.settings.notion_token and desk.settings.notion_db_mailouts),
        in_notion=in_notion,
    )


def in_notion(ref: str) -> str:
    """The page's address."""
    try:
        return f"https://www.notion.so/{UUID(ref).hex}"
    except ValueError:
        return ""
