"""Notion's API, by way of `notion-client`."""

from __future__ import annotations

from mailout.adapters.notion.checks import Check
from mailout.adapters.notion.source import NotionConfig, NotionSource

__all__ = ["Check", "NotionConfig", "NotionSource"]
