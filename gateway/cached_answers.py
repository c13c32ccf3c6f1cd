"""Answers that are the same for everybody: any cache may keep them, and whoever has one is told so."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from email.utils import formatdate, parsedate_to_datetime

from fastapi import Request
from fastapi.responses import Response

CACHE_SECONDS = 30


def cached(
    request: Request,
    text: str,
    policy: str | None = None,
    more: Mapping[str, str] | None = None,
    *,
    kind: str = "text/html",
    changed: float | None = None,
) -> Response:
    """An answer that caches may keep; 304, if whoever asks has it."""
    data = text.encode()
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": f"public, max-age={CACHE_SECONDS}", **(more or {})}
    if policy is not None:
        headers["Content-Security-Policy"] = policy
    if changed is not None:
        headers["Last-Modified"] = formatdate(changed, usegmt=True)
    if _has_it(request, tag, changed):
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers, media_type=kind)


def _has_it(request: Request, tag: str, changed: float | None) -> bool:
    known = request.headers.get("if-none-match")
    if known is not None:
        return any(one.strip().removeprefix("W/") in (tag, "*") for one in known.split(","))
    try:
        since = parsedate_to_datetime(request.headers.get("if-modified-since", ""))
    except (ValueError, TypeError):
        return False
    return changed is not None and since.tzinfo is not None and int(changed) <= since.timestamp()
