"""An import with a preview: the file is kept for a while, shown, and written when that is right."""

from __future__ import annotations

import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.forms import MOST_FIELDS, Form
from gateway.dashboard.views import go_to
from mailout.base.errors import MailoutError, StoreError, StoreUnavailable, UsageError
from mailout.insight.history.port import Act
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.columns import ATTRIBUTE, FIELDS, value_key
from mailout.letters.audience.plan import IN_WORDS
from mailout.letters.audience.port import Subscribers
from mailout.letters.audience.wishes import ANY, EVERYBODY, Answers, Meaning, Verdicts, in_words, refused

if TYPE_CHECKING:
    from mailout.letters.audience.people_import import PeopleImport

MAX_UPLOAD_BYTES = 20 * 1024 * 1024
UPLOAD_KEPT_SECONDS = 3600.0
NAME_LENGTH = 60
"""Characters of a file's name: of up to four bytes each, and disks take 255."""
TOO_LARGE = "Files up to 20 MB are imported here; a larger one with `mailout subscribers import`."
MOST_COLUMNS = MOST_FIELDS - 100
TOO_MANY_COLUMNS = (
    "This file has {columns:,} columns, too many for a form. Delete those that you do not need, or use"
    " `mailout subscribers import`."
)
"""Each is a field of the form; the others are for the questions."""
GONE = "That file is no longer here: choose it again."
WHO = ("everybody", "with", "without", "values")
"""What may be answered to a column that may say who wants mail."""
_TOKEN = re.compile(r"[0-9a-f]{32}")


def router(desk: Desk, now: Callable[[], float] = time.time) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))
    kept = KeptFiles(desk.settings.mailout_home / "imports", now)

    @routes.get("/people/import")
    def choose(request: Request) -> Response:
        session = desk.visitor(request, admin=True)
        return desk.views.page(
            request, "import.html.j2", session, imports=subscriber_rows.imports(desk.store, 20)
        )

    @routes.post("/people/import")
    async def upload(request: Request) -> Response:
        desk.visitor(request, admin=True)
        if int(request.headers.get("content-length") or 0) > MAX_UPLOAD_BYTES:
            return go_to("/people/import", TOO_LARGE)
        _, form = await desk.acting(request, file_bytes=MAX_UPLOAD_BYTES)
        if not form.file:
            return go_to("/people/import", "Choose a file first.")
        token = await run_in_threadpool(kept.keep, form.file_name, form.file)
        return go_to("/people/import/preview?" + urlencode({"file": token}))

    @routes.get("/people/import/preview")
    def preview(request: Request, file: str = "") -> Response:
        session = desk.visitor(request, admin=True)
        path = kept.path(file)
        if path is None:
            return go_to("/people/import", GONE)
        from mailout.letters.audience.people_import import read_people  # polars: 25 MB, for this page alone

        chosen = Form(request.query_params.multi_items())
        found: PeopleImport | None = None
        problem, status = "", 200
        try:
            found = read_people(path, _answers(chosen))
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
            value_in_words=in_words,
            who_choices=WHO,
            chosen=chosen,
            ticked=[(name, value) for name, value in chosen.fields if name.startswith("mail:")],
            headers=_headers(found, chosen),
        )

    @routes.post("/people/import/confirm")
    async def confirm(request: Request) -> Response:
        session, form = await desk.acting(request)
        path = kept.path(form.get("file"))
        if path is None:
            return go_to("/people/import", GONE)
        try:
            said = await run_in_threadpool(_import, desk.store, path, form, desk.who(request, session))
        except MailoutError as error:
            return go_to("/people/import", _for_this_page(error))
        kept.remove(form.get("file"))
        act = Act(desk.who(request, session), "imported people", path.name)
        await run_in_threadpool(desk.store.write_act, act)
        return go_to("/people", said)

    @routes.post("/people/import/undo")
    async def undo(request: Request) -> Response:
        session, form = await desk.acting(request)
        try:
            done = await run_in_threadpool(desk.store.undo_import, form.get("id"))
        except StoreUnavailable:
            raise
        except StoreError as error:
            return go_to("/people/import", _for_this_page(error))
        act = Act(desk.who(request, session), "undid an import", form.get("id"))
        await run_in_threadpool(desk.store.write_act, act)
        said = f"{done.people:,} people and {done.lists:,} list entries were removed."
        if done.kept:
            said += f" {done.kept:,} stay: they have spoken for themselves since, or came again."
        return go_to("/people/import", said)

    return routes


def in_a_while(seconds: float, do: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, do)
    timer.daemon = True
    timer.start()


def _answers(form: Form) -> Answers:
    fields = {column: to for column, to in form.beginning("column:").items() if to in FIELDS}
    columns = {
        column: _verdicts(who, [value for name, value in form.fields if name == f"mail:{column}"])
        for column, who in form.beginning("who:").items()
        if who in WHO
    }
    return Answers(columns, fields, form.get("encoding") or None)


def _verdicts(who: str, ticked: Sequence[str]) -> Verdicts:
    """As the page puts it. What is not ticked is a no."""
    if who == "everybody":
        return EVERYBODY
    no = {"": refused(""), ANY: refused(ANY)}
    yes = {"with": [ANY], "without": [""], "values": [value_key(value) for value in ticked]}[who]
    return no | dict.fromkeys(yes, Meaning.ACTIVE)


def _headers(found: PeopleImport | None, chosen: Form) -> list[tuple[str, str]]:
    """Every column and what it is taken for; of a file that was not understood, what a person said."""
    if found is None:
        return list(chosen.beginning("column:").items())
    taken = {column: "email" if to.startswith("email") else to for column, to in found.plan.columns}
    return [(name, taken.get(name, chosen.get(f"column:{name}") or ATTRIBUTE)) for name in found.plan.headers]


def _import(store: Subscribers, path: Path, form: Form, by: str) -> str:
    from mailout.letters.audience.people_import import import_people, read_people

    found = read_people(path, _answers(form))
    if found.plan.agreement() and not form.get("agreed"):
        raise UsageError("Nothing was imported: somebody has to say that these people agreed to get mail.")
    agreed = by if found.plan.agreement() else ""
    _, counts = import_people(store, found, by=by, agreed=agreed, list_key=form.get("list").strip() or None)
    said = f"{found.people:,} people: {counts.added:,} new, {counts.updated:,} changed,"
    said += f" {counts.unchanged:,} as before."
    if counts.kept_status:
        said += f" {counts.kept_status:,} had unsubscribed or bounced before and stay so."
    if counts.forgotten:
        said += f" {counts.forgotten:,} had asked to be forgotten and were not brought back."
    return said


def _for_this_page(error: MailoutError) -> str:
    """Without the remedy where it names a command or an option: the page has fields for it."""
    return error.message if error.remedy and ("--" in error.remedy or "`" in error.remedy) else str(error)


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
            if place.stat().st_mtime <= self._now() - UPLOAD_KEPT_SECONDS:
                shutil.rmtree(place, ignore_errors=True)
        if any(place.exists() for place in kept) and not self._waits:
            self._waits = True
            self._later(UPLOAD_KEPT_SECONDS, self._again)

    def _again(self) -> None:
        self._waits = False
        self.clear_up()
