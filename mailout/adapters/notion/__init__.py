"""Notion's API, by way of `notion-client`."""

from __future__ import annotations

from mailout.adapters.notion.calls import NotionConfig
from mailout.adapters.notion.databases import NotionDatabases
from mailout.adapters.notion.pages import NotionPages
from mailout.adapters.notion.source import NotionSource

__all__ = ["NotionConfig", "NotionDatabases", "NotionPages", "NotionSource"]
