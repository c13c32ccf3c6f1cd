"""Transports for tests that are about mail to people, and need none to leave."""

from __future__ import annotations

from mailout.adapters.folder import FolderTransport
from mailout.base.clock import Clock
from mailout.base.settings import Settings


class Delivering(FolderTransport):
    """Writes files as the folder does, and counts as a provider: what it takes is sent, not rehearsed."""

    name = "stub"


def delivering(settings: Settings, clock: Clock) -> Delivering:
    return Delivering(settings.mailout_home / "outbox", clock)
