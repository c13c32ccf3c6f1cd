"""An import with a preview: the file is kept for a while, shown, and written when that is right."""

from __future__ import annotations

import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.forms import MOST_FIELDS, Form
from gateway.dashboard.views import go_to
from mailout.base.errors import MailoutError
from mailout.insight.history.port import Act
from mailout.letters.audience.columns import FIELDS
from mailout.letters.audience.csv_import import Choices, CsvImport, read_subscribers
from mailout.letters.audience.marks import BY_NAME
from mailout.letters.audience.plan import IN_WORDS
from mailout.letters.audience.port import ImportCounts

MOST_BYTES = 20 * 1024 * 1024
KEPT_SECONDS = 3600.0
NAME_LENGTH = 60
"""Characters of a file's name: of up to four bytes each, and disks take 255."""
TOO_LARGE = "Files up to 20 MB are imported here; a larger one with `mailout subscribers import`."
MOST_COLUMNS = MOST_FIELDS - 100
TOO_MANY_COLUMNS = (
    "This file has {columns:,} columns, too many for a form. Delete those that you do not need, or use"
    " `mailout subscribers import`."
)
"""Each is a field of the form; the others are for words that stand for a status."""
_TOKEN = re.compile(r"[0-9a-f]{32}")


def router(desk: Desk, now: Callable[[], float] = time.time) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))
    kept = KeptFiles(desk.settings.mailout_home / "imports", now)

    @routes.get("/people/import")
    def choose(request: Request) -> Response:
        session = desk.visitor(request, admin=True)
        return desk.views.page(request, "import.html.j2", session)

    @routes.post("/people/import")
    async def upload(request: Request) -> Response:
        desk.visitor(request, admin=True)
        if int(request.headers.get("content-length") or 0) > MOST_BYTES:
            return go_to("/people/import", TOO_LARGE)
        _, form = await desk.acting(request, file_bytes=MOST_BYTES)
        if not form.file:
            return go_to("/people/import", "Choose a file first.")
        token = await run_in_threadpool(kept.keep, form.file_name, form.file)
        return go_to("/people/import/preview?" + urlencode({"file": token}))

    @routes.get("/people/import/preview")
    def preview(request: Request, file: str = "") -> Response:
        session = desk.visitor(request, admin=True)
        path = kept.path(file)
        if path is None:
            return go_to("/people/import", "That file is no longer here: choose it again.")
        chosen = Form(request.query_params.multi_items())
        found: CsvImport | None = None
        problem, status = "", 200
        try:
            found = read_subscribers(path, _choices(chosen))
        except MailoutError as error:
            problem, status = _for_this_page(error), 400
        if found is not None and (columns := len(_headers(found, chosen))) > MOST_COLUMNS:
            found, problem = None, TOO_MANY_COLUMNS.format(columns=columns)
        return desk.views.page(
            request,
            "import_preview.html.j2",
            session,
            status,
            file=file,
            name=path.name,
            plan=found.plan if found else None,
            people=found.people if found else 0,
            problem=problem,
            fields=FIELDS,
            in_words=IN_WORDS,
            meanings=BY_NAME,
            chosen=chosen.beginning("column:"),
            words=chosen.beginning("word:"),
            listed=chosen.get("list"),
            headers=_headers(found, chosen),
        )

    @routes.post("/people/import/confirm")
    async def confirm(request: Request) -> Response:
        session, form = await desk.acting(request)
        path = kept.path(form.get("file"))
        if path is None:
            return go_to("/people/import", "That file is no longer here: choose it again.")
        try:
            found, counts = await run_in_threadpool(_import, desk, path, form)
        except MailoutError as error:
            return go_to("/people/import", _for_this_page(error))
        kept.remove(form.get("file"))
        what = f"imported {found.people:,} people"
        await run_in_threadpool(desk.store.write_act, Act(desk.who(request, session), what, path.name))
        return go_to("/people", _said(found, counts))

    return routes


def in_a_while(seconds: float, do: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, do)
    timer.daemon = True
    timer.start()


def _choices(form: Form) -> Choices:
    return Choices(
        fields={column: field for column, field in form.beginning("column:").items() if field in FIELDS},
        statuses={word: BY_NAME[to] for word, to in form.beginning("word:").items() if to in BY_NAME},
    )


def _headers(found: CsvImport | None, chosen: Form) -> list[tuple[str, str]]:
    """Every column and what it is taken for; of a file that was not understood, what a person said."""
    if found is None:
        return list(chosen.beginning("column:").items())
    taken = [(one.column, one.field) for one in found.plan.columns]
    names = {column for column, _ in taken}
    return taken + [(name, "attribute") for name in found.plan.attributes if name not in names]


def _import(desk: Desk, path: Path, form: Form) -> tuple[CsvImport, ImportCounts]:
    found = read_subscribers(path, _choices(form))
    listed = form.get("list").strip()
    totals = asdict(ImportCounts())
    for batch in found.batches():
        rows = [replace(row, lists=(*row.lists, listed)) for row in batch] if listed else batch
        for name, n in asdict(desk.store.import_subscribers(rows)).items():
            totals[name] += n
    return found, ImportCounts(**totals)


def _said(found: CsvImport, counts: ImportCounts) -> str:
    said = f"{found.people:,} people: {counts.added:,} new, {counts.updated:,} changed,"
    said += f" {counts.unchanged:,} as before."
    if counts.kept_status:
        said += f" {counts.kept_status:,} had left or bounced before and stay so."
    if counts.forgotten:
        said += f" {counts.forgotten:,} had asked to be forgotten and were not brought back."
    return said


def _for_this_page(error: MailoutError) -> str:
    """Without the remedy where it names an option of the command line: the page has fields for it."""
    return error.message if error.remedy and "--" in error.remedy else str(error)


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
            if place.stat().st_mtime <= self._now() - KEPT_SECONDS:
                shutil.rmtree(place, ignore_errors=True)
        if any(place.exists() for place in kept) and not self._waits:
            self._waits = True
            self._later(KEPT_SECONDS, self._again)

    def _again(self) -> None:
        self._waits = False
        self.clear_up()
