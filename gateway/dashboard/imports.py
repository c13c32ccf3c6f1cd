"""An import with a preview: the file is kept for a while, shown, and written when that is right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from fastapi import Response
from starlette.concurrency import run_in_threadpool

from gateway.dashboard.desk import Admin, AdminAct, Visit, page_routes, read_act
from gateway.dashboard.forms import Form
from gateway.dashboard.views import go_to
from gateway.multipart import MOST_FIELDS
from mailout.base.errors import MailoutError, StoreError, StoreUnavailable, UsageError
from mailout.insight.reporting.phrases import count
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.columns import ATTRIBUTE, FIELDS, value_key
from mailout.letters.audience.list_changes import list_for
from mailout.letters.audience.list_rows import lists
from mailout.letters.audience.port import Subscribers
from mailout.letters.audience.wishes import (
    ANY,
    EVERYBODY,
    Answers,
    Meaning,
    Verdicts,
    all_but,
    in_words,
    refused,
)

if TYPE_CHECKING:
    from mailout.letters.audience.people_import import PeopleImport

MAX_UPLOAD_BYTES = 20 * 1024 * 1024
TOO_LARGE = "Files up to 20 MB are imported here; a larger one with `mailout subscribers import`."
MOST_COLUMNS = MOST_FIELDS - 100
TOO_MANY_COLUMNS = (
    "This file has {columns:,} columns, too many for a form. Delete those that you do not need, or use"
    " `mailout subscribers import`."
)
"""Each is a field of the form; the others are for the questions."""
GONE = "That file is no longer here: choose it again."
BUT = "but"
WHO = ("everybody", BUT, "with", "without", "values")
"""What may be answered to a column that may say who wants mail."""


routes = page_routes()


@routes.get("/people/import")
def choose(visit: Admin) -> Response:
    return visit.page("import.html.j2", imports=subscriber_rows.imports(visit.desk.store, 20))


@routes.post("/people/import")
async def upload(visit: Admin) -> Response:
    if int(visit.request.headers.get("content-length") or 0) > MAX_UPLOAD_BYTES:
        return go_to("/people/import", TOO_LARGE)
    form = (await read_act(visit, MAX_UPLOAD_BYTES)).form
    if not form.file:
        return go_to("/people/import", "Choose a file first.")
    token = await run_in_threadpool(visit.desk.uploads.keep, form.file_name, form.file)
    return go_to("/people/import/preview?" + urlencode({"file": token}))


@routes.get("/people/import/preview")
def preview(visit: Admin, file: str = "") -> Response:
    path = visit.desk.uploads.path(file)
    if path is None:
        return go_to("/people/import", GONE)
    return _preview(visit, file, path, Form(visit.request.query_params.multi_items()))


def _preview(visit: Visit, file: str, path: Path, form: Form, problem: str = "") -> Response:
    chosen = Form([one for one in form.fields if one[0] not in ("csrf", "list", "agreed")])
    found: PeopleImport | None = None
    status = 400 if problem else 200
    try:
        found = _read(path, chosen)
    except MailoutError as error:
        problem, status = _for_this_page(error, path), 400
    if found is not None and (columns := len(_headers(found, chosen))) > MOST_COLUMNS:
        found, problem = None, TOO_MANY_COLUMNS.format(columns=columns)
    return visit.page(
        "import_preview.html.j2",
        status,
        file=file,
        name=path.name,
        plan=found.plan if found else None,
        people=found.people if found else 0,
        stopped=found.stopped(visit.desk.store) if found and not found.plan.open else "",
        problem=problem,
        fields=FIELDS,
        value_in_words=in_words,
        who_choices=WHO,
        chosen=chosen,
        listed=form.get("list"),
        agreed=form.get("agreed"),
        known_lists=lists(visit.desk.store),
        headers=_headers(found, chosen),
    )


@routes.post("/people/import/confirm")
def confirm(act: AdminAct) -> Response:
    path = act.desk.uploads.path(act.form.get("file"))
    if path is None:
        return go_to("/people/import", GONE)
    try:
        said = _import(act.desk.store, path, act.form, act.who)
    except MailoutError as error:
        return _preview(act, act.form.get("file"), path, act.form, _for_this_page(error, path))
    act.desk.uploads.remove(act.form.get("file"))
    act.back_to("/people")
    return act.done("imported people", path.name, said)


@routes.post("/people/import/undo")
def undo(act: AdminAct) -> Response:
    act.back_to("/people/import")
    try:
        done = act.desk.store.undo_import(act.form.get("id"))
    except StoreUnavailable:
        raise
    except StoreError as error:
        return go_to("/people/import", error.message)
    people, entries = count(done.people, "person", "people"), count(done.lists, "list entry", "list entries")
    said = f"Removed: {people} and {entries}."
    if done.kept:
        said += f" {done.kept:,} stay: they get no mail, changed their status, or were in another import."
    return act.done("undid an import", act.form.get("id"), said)


def _read(path: Path, form: Form) -> PeopleImport:
    """Who is meant by “all but those” is in the file, not in the form: there may be thousands."""
    from mailout.letters.audience.people_import import read_people  # polars: 25 MB, for this page alone

    answers = _answers(form)
    found = read_people(path, answers)
    but = [one for one in found.plan.open if one.refusals and form.get(f"who:{one.column}") == BUT]
    for one in but:
        answers = answers.with_column(one.column, all_but(one.refusals))
    return read_people(path, answers) if but else found


def _answers(form: Form) -> Answers:
    fields = {column: to for column, to in form.beginning("column:").items() if to in FIELDS}
    columns = {
        column: _verdicts(who, [value for name, value in form.fields if name == f"mail:{column}"])
        for column, who in form.beginning("who:").items()
        if who in WHO and who != BUT
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
    from mailout.letters.audience.people_import import import_people

    found = _read(path, form)
    if found.plan.agreement() and not form.get("agreed"):
        raise UsageError("Nothing was imported: somebody has to say that these people agreed to get mail.")
    agreed = by if found.plan.agreement() else ""
    listed = form.get("list").strip()
    key, is_new = list_for(store, listed) if listed else (None, False)
    _, counts = import_people(store, found, by=by, agreed=agreed, list_key=key)
    whom = f"people for the list {key}" if key else "people"
    said = f"A new list {key} was made. " if is_new else ""
    said += f"{found.people:,} {whom}: {counts.added:,} new, {counts.updated:,} changed,"
    said += f" {counts.unchanged:,} as before."
    if counts.kept_status:
        said += f" {counts.kept_status:,} had unsubscribed or bounced before and stay so."
    if counts.stayed_off:
        said += f" {counts.stayed_off:,} had left these lists, or chose others, and stay off."
    if counts.forgotten:
        said += f" {counts.forgotten:,} had asked to be forgotten and were not brought back."
    return said


def _for_this_page(error: MailoutError, path: Path) -> str:
    """Without the remedy where it names a command or an option, as the page has fields for it; and without
    the folder on this machine."""
    hides_remedy = error.remedy and ("--" in error.remedy or "`" in error.remedy)
    said = error.message if hides_remedy else str(error)
    return said.replace(str(path), path.name)
