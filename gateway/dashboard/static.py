"""The dashboard's own files: a style sheet, htmx and its event extension. Read once, named by their hash."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from mailout.insight.reporting.plot import STYLE

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
NAMES = ("dashboard.css", "dashboard.js", "htmx.min.js", "sse.min.js", "icon.svg")


def _read() -> dict[str, bytes]:
    folder = files("gateway.dashboard") / "static"
    found = {name: (folder / name).read_bytes() for name in NAMES}
    found["dashboard.css"] += STYLE.encode()
    return found


_FILES = _read()
_ADDRESSES = {
    name: f"/assets/{name}?{hashlib.sha256(data).hexdigest()[:12]}" for name, data in _FILES.items()
}


def address_of_asset(name: str) -> str:
    return _ADDRESSES[name]


def router() -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    @routes.get("/assets/{name}")
    async def asset(name: str) -> Response:
        if name not in _FILES:
            raise HTTPException(404)
        headers = {"Cache-Control": "public, max-age=31536000, immutable"}
        return Response(_FILES[name], media_type=TYPES[name.rpartition(".")[2]], headers=headers)

    return routes
