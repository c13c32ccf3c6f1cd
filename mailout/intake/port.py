"""What intake needs: a request, and the part of the store that keeps requests."""

from __future__ import annotations

from typing import Protocol

from mailout.audience.port import Subscribers
from mailout.content.port import Contents
from mailout.page_status.port import PageStore
from mailout.queue.port import Requests


class IntakeStore(Requests, Contents, Subscribers, PageStore, Protocol):
    """What intake reads and writes."""
