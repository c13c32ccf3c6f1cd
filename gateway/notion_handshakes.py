"""The first call of an integration's webhook brings a token, which a person has to enter in Notion.

Anybody may make such a call: it changes nothing by itself, and none of its words get into the log. The tokens
are kept in a file, one for each address, so that whoever floods us hides nobody else's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from gateway.access import site_in
from gateway.refusals import RefusalLog
from mailout.base.settings import Settings

HANDSHAKE_FILE = "notion-webhook-tokens.txt"
ADDRESSES_KEPT = 20
IS_SET = "Notion asks to verify a webhook, but NOTION_WEBHOOK_TOKEN is set. For a new one, unset it first."
SEE_FILE = (
    "Notion, or a stranger, asks to verify a webhook. If you have just made one: {path} has its token, in the"
    " last line that Notion accepts. Enter it in Notion, then set NOTION_WEBHOOK_TOKEN to it and start the"
    " gateway again."
)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{8,200}")


class NotionHandshakes:
    def __init__(self, settings: Settings) -> None:
        self._path = settings.mailout_home / HANDSHAKE_FILE
        self._is_set = settings.notion_webhook_token is not None
        self._log = RefusalLog()
        self._tokens: dict[str, str] = {}  # by address, the newest last

    async def take(self, request: Request, body: Mapping[str, Any]) -> bool:
        """Whether it is a handshake. Raises HTTPException 400 for a token that Notion would not write."""
        if set(body) != {"verification_token"}:
            return False
        token = body["verification_token"]
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise HTTPException(400)
        if self._is_set:
            self._log.handshake(IS_SET)
            return True
        site = site_in(request)
        self._tokens.pop(site, None)
        self._tokens[site] = token
        while len(self._tokens) > ADDRESSES_KEPT:
            del self._tokens[next(iter(self._tokens))]
        lines = "".join(f"{token} (from {site})\n" for site, token in self._tokens.items())
        await run_in_threadpool(self._write, lines)
        self._log.handshake(SEE_FILE.format(path=self._path))
        return True

    def _write(self, lines: str) -> None:
        self._path.touch(mode=0o600)
        self._path.write_text(lines)
