"""What a form sends: fields, and at most one file, which is kept for a while."""

from __future__ import annotations

import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from gateway.answers import read_body
from gateway.multipart import MOST_FIELDS, MULTIPART, Parts, kind_of

MAX_FORM_BYTES = 64 * 1024
UPLOAD_KEPT_SECONDS = 3600.0
NAME_LENGTH = 60
"""Characters of a file's name: of up to four bytes each, and disks take 255."""
_TOKEN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Form:
    fields: list[tuple[str, str]] = field(default_factory=list)
    file_name: str = ""
    file: bytes = b""

    def get(self, name: str) -> str:
        return next((value for one, value in self.fields if one == name), "")

    def beginning(self, prefix: str) -> dict[str, str]:
        """Fields whose names begin so, by the rest of their names."""
        return {name.removeprefix(prefix): value for name, value in self.fields if name.startswith(prefix)}


async def read_form(request: Request) -> Form:
    """Fields alone, urlencoded: nothing else is read, whatever it calls itself."""
    if kind_of(request)[0] not in (b"", b"application/x-www-form-urlencoded"):
        raise HTTPException(415)
    raw = await read_body(request, MAX_FORM_BYTES)
    try:
        fields = parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except (UnicodeDecodeError, ValueError):
        raise HTTPException(400) from None
    return Form(fields)


async def read_upload(request: Request, most: int) -> Form:
    """A file beside the fields, as multipart/form-data. Only for those who are signed in."""
    kind, boundary = kind_of(request)
    if kind != MULTIPART:
        return await read_form(request)
    raw = await read_body(request, most)
    try:
        parts = await run_in_threadpool(Parts.read, boundary, raw)
    except ValueError:
        raise HTTPException(400) from None
    return Form(parts.fields, *(parts.files[0] if parts.files else ()))


def in_a_while(seconds: float, do: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, do)
    timer.daemon = True
    timer.start()


class KeptFiles:
    """Uploaded files, each in a folder of its own under its own name: the name may say who is in it."""

    def __init__(
        self,
        folder: Path,
        now: Callable[[], float] = time.time,
        later: Callable[[float, Callable[[], None]], None] = in_a_while,
    ) -> None:
        self._later = later
        self._folder = folder
        self._now = now
        self._waits = False
        self.clear_up()

    def keep(self, name: str, data: bytes) -> str:
        token = secrets.token_hex(16)
        place = self._folder / token
        place.mkdir(mode=0o700, parents=True)
        plain = re.sub(r"[^\w .()-]+", "_", name.replace("\\", "/").rpartition("/")[2]).lstrip(". ")
        path = place / (plain[-NAME_LENGTH:] or "people.csv")
        path.touch(mode=0o600)
        path.write_bytes(data)
        self.clear_up()
        return token

    def path(self, token: str) -> Path | None:
        if not _TOKEN.fullmatch(token):
            return None
        folder = self._folder / token
        return next(iter(folder.iterdir()), None) if folder.is_dir() else None

    def remove(self, token: str) -> None:
        if _TOKEN.fullmatch(token):
            shutil.rmtree(self._folder / token, ignore_errors=True)

    def clear_up(self) -> None:
        """What nobody has imported goes; what is too young for that is looked at again later."""
        places = list(self._folder.iterdir()) if self._folder.is_dir() else []
        kept = [place for place in places if _TOKEN.fullmatch(place.name)]
        for place in kept:
            with suppress(FileNotFoundError):  # imported meanwhile
                if place.stat().st_mtime <= self._now() - UPLOAD_KEPT_SECONDS:
                    shutil.rmtree(place, ignore_errors=True)
        if any(place.exists() for place in kept) and not self._waits:
            self._waits = True
            self._later(UPLOAD_KEPT_SECONDS, self._again)

    def _again(self) -> None:
        self._waits = False
        self.clear_up()
