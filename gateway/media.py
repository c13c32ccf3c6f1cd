"""`GET /media/{name}`: the pictures and files of mails, kept under the hash of their bytes."""

from __future__ import annotations

import re
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from gateway.answers import errors
from gateway.parts import own
from mailout.letters.content.media import DOWNLOAD, content_type

_NAME = re.compile(r"[0-9a-f]{64}(?:\.[a-z0-9]{1,5})?")

HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",  # the name is the hash: it never changes
    # An SVG opened by itself is a page, and could bring a script.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "Cross-Origin-Resource-Policy": "cross-origin",  # webmail shows it on pages of its own
}


class Media:
    def __init__(self, folder: FilePath) -> None:
        self._folder = folder

    async def media(
        self: Own,
        name: Annotated[
            str, Path(description="64 hex digits, and mostly an extension", examples=["0a…0a.png"])
        ],
    ) -> FileResponse:
        """One file of `MAILOUT_HOME/media`, with its right type; it may be kept for ever."""
        path = self._folder / name
        if not _NAME.fullmatch(name) or not await run_in_threadpool(_is_plain_file, path):
            raise HTTPException(404)
        # What a browser may show; all else is a download: HTML on our own host would speak in our name.
        kind = content_type(name)
        shown = kind != DOWNLOAD
        return FileResponse(
            path,
            media_type=kind,
            headers=HEADERS,
            filename=None if shown else name,
            content_disposition_type="inline" if shown else "attachment",
        )


Own = Annotated[Media, own(Media)]
routes = APIRouter(tags=["media"])
routes.get(
    "/media/{name}",
    response_class=FileResponse,
    responses={200: {"description": "The file", "content": {"*/*": {}}}, **errors(404)},
)(Media.media)
routes.head("/media/{name}", response_class=FileResponse, include_in_schema=False)(Media.media)


def _is_plain_file(path: FilePath) -> bool:
    return path.is_file() and not path.is_symlink()
