"""`mailout subscribers import`: who wants mail is asked before anything is written."""

from __future__ import annotations

import csv
import json as json_
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.progress import Progress

from cli import output
from cli.engine import open_engine
from cli.import_questions import agreed_by, asked, is_terminal, require_values, who
from cli.names import find_import
from cli.output import Json, Yes, confirm, err, item, note, print_json, say
from cli.signals import Stopped, handling
from cli.tables import TextTable
from mailout.app.engine import Engine
from mailout.base.addresses import IN_WORDS
from mailout.base.errors import DISK_FULL, HomeUnwritable, StoreError, UsageError
from mailout.base.time_format import iso, spoken
from mailout.insight.reporting.phrases import count
from mailout.insight.reporting.rows import safe
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.list_changes import list_for
from mailout.letters.audience.people_import import PeopleImport, import_people, read_people
from mailout.letters.audience.port import ImportCounts
from mailout.letters.audience.wishes import Answers

EXAMPLE = "Example: mailout subscribers import people.csv --mail-if 'Newsletter=yes' --rejects left-out.csv"
UNDO_EXAMPLE = "Example: mailout subscribers undo-import 4f0c2a1e-8f5b-4b0e-9c55-0a3a0d1f7c11"
PROGRESS_FROM_PEOPLE = 50_000


def import_(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A CSV file, a workbook (.xlsx, .xls, .ods), or a .zip of them."),
    ],
    list_key: Annotated[
        str | None, typer.Option("--list", help="Put everybody in it on this list, too.")
    ] = None,
    mail_if: Annotated[
        list[str] | None,
        typer.Option("--mail-if", metavar="COLUMN=VALUE", help="Those with this value get mail; no others."),
    ] = None,
    no_mail_if: Annotated[
        list[str] | None,
        typer.Option("--no-mail-if", metavar="COLUMN=VALUE", help="Those with this value said no."),
    ] = None,
    ignored: Annotated[
        list[str] | None,
        typer.Option("--ignore-column", metavar="COLUMN", help="This column says nothing about mail."),
    ] = None,
    answers: Annotated[
        Path | None, typer.Option("--answers", help="Read answers from this file, and keep them in it.")
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option("--rejects", help="Write the rows that were left out to this CSV file.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="COLUMN=FIELD", help="What a column is, if it was not recognised."),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="The file's encoding, if it is not UTF-8.")
    ] = None,
    sheet: Annotated[
        str | None, typer.Option("--sheet", help="The sheet of a workbook; without it, all with people.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Everybody in the file agreed to get mail. Answers no column.")
    ] = False,
    json: Json = False,
) -> None:
    """Read people from a CSV file or a workbook.

    Known exports of other products say who wants mail. Of any other file, each column that may say so is
    asked about. People who unsubscribed or bounced stay so.
    """
    said = Answers.load(answers) if answers is not None and answers.exists() else Answers()
    wanted, unwanted = list(_pairs(mail_if, "--mail-if")), list(_pairs(no_mail_if, "--no-mail-if"))
    said = said.and_then(
        Answers.from_options(
            mail_if=wanted,
            no_mail_if=unwanted,
            ignored=ignored or (),
            fields=dict(_pairs(columns, "--map", of_field=True)),
            encoding=encoding,
            sheet=sheet,
        )
    )
    engine = None if dry_run else open_engine()
    found = read_people(file, said)
    for one in found.plan.questions:
        require_values(one, [*wanted, *unwanted])
    if is_terminal() and not json and not dry_run:
        found = asked(file, found)
    if answers is not None and not dry_run and not found.plan.open:
        with writing(answers) as kept:
            json_.dump(found.plan.answers.as_data(), kept, ensure_ascii=False, indent=2)
    if rejects is not None:
        _write_rejects(found, rejects)
    if not json:
        say(found.plan.summary())
        for line in found.plan.details():
            item(line)
    if engine is None or found.plan.open or found.plan.readings:
        if json:
            print_json({"plan": found.plan.as_data()})
        found.plan.require_answered()
        note("Nothing was written.")
        return
    listed, is_new = list_for(engine.store, list_key) if list_key else (None, False)
    if not json and (stopped := found.stopped(engine.store)):
        say(stopped)
    agreed = agreed_by(found, yes)
    id, counts = import_into(engine, found, listed, agreed=agreed)
    if json:
        print_json(_result(found, id, counts))
        return
    show_counts(found, counts)
    if is_new:
        note(f"The list {listed} is new; `mailout lists edit {listed}` names it.")
    note(f"To undo it, before any of them is mailed: mailout subscribers undo-import {id}")
    if rejects is not None:
        say(f"The rows left out are in {rejects}.")


def _pairs(
    written: Sequence[str] | None, option: str, *, of_field: bool = False
) -> Iterator[tuple[str, str]]:
    for pair in written or ():
        name, equals, value = pair.rpartition("=") if of_field else pair.partition("=")
        if not equals:
            raise UsageError(f"{option} {pair} has no `=`.", remedy=f'Write it as {option} "NAME=VALUE".')
        yield name.strip(), value.strip()


# ── The import ──


def import_into(
    engine: Engine, found: PeopleImport, list_key: str | None = None, *, agreed: str = ""
) -> tuple[str, ImportCounts]:
    """Who stops it is told how much is written: the first signal lets what is in hand be finished."""
    begun, signals, done = list[str](), list[int](), 0

    def on_signal(number: int, frame: object) -> None:
        signals.append(number)
        if len(signals) > 1:
            raise Stopped(number)

    def advance(people: int) -> None:
        nonlocal done
        done += people
        progress.advance(bar, people)
        if signals:
            raise Stopped(signals[0])

    hidden = found.people < PROGRESS_FROM_PEOPLE
    try:
        with handling(on_signal), Progress(console=err, transient=True, disable=hidden) as progress:
            bar = progress.add_task("Importing", total=found.people)
            return import_people(
                engine.store,
                found,
                by=who(),
                agreed=agreed,
                list_key=list_key,
                began=begun.append,
                progress=advance,
            )
    except (KeyboardInterrupt, StoreError) as error:
        least = "at least " if isinstance(error, StoreError) else ""  # the last answer may have been lost
        for id in begun:
            note(f"Stopped: {least}{done:,} of {found.people:,} people are imported. {_go_on(id)}")
        raise


def _go_on(id: str) -> str:
    return f"Run the same command again to continue; to undo: mailout subscribers undo-import {id}"


def show_counts(found: PeopleImport, counts: ImportCounts) -> None:
    say(
        f"{count(found.plan.rows, 'row')}, {count(found.people, 'person', 'people')}:"
        f" {counts.added:,} new, {counts.updated:,} changed, {counts.unchanged:,} as before."
    )
    if counts.kept_status:
        say(f"{counts.kept_status:,} had unsubscribed or bounced before, and the file does not change that.")
    if counts.stayed_off:
        say(f"{counts.stayed_off:,} had left these lists, or chose others, and stay off.")
    if counts.forgotten:
        say(f"{counts.forgotten:,} had asked to be forgotten: not brought back.")
    for reason, n in found.dropped.items():
        item(f"{n:,} left out: {IN_WORDS[reason]}")


def _result(found: PeopleImport, id: str, counts: ImportCounts) -> dict[str, Any]:
    dropped = {reason.value: n for reason, n in found.dropped.items()}
    people = {"rows": found.plan.rows, "people": found.people, **asdict(counts), "dropped": dropped}
    return {"import": id} | people | {"plan": found.plan.as_data()}


def _write_rejects(found: PeopleImport, path: Path) -> None:
    with writing(path) as file:
        writer = csv.writer(file)
        writer.writerow(("line", "email", "reason", "value"))
        writer.writerows((one.line, safe(one.email), one.reason, safe(one.value)) for one in found.rejects)


@contextmanager
def writing(path: Path | None) -> Iterator[TextIO]:
    """A table in UTF-8, in a file or on stdout: it is read by programs, this one among them. A file is there
    when it is whole: until then, the one before it stays."""
    if path is None:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        with output.writing():
            yield sys.stdout
        return
    place, is_pipe = path.resolve(), path.exists() and not path.is_file()
    draft = path if is_pipe else place.with_name(f"{place.name}.new")
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            yield file
        if path.is_file():
            draft.chmod(stat.S_IMODE(place.stat().st_mode))
        if not is_pipe:
            draft.replace(place)
    except OSError as error:
        if error.errno in DISK_FULL:
            raise HomeUnwritable.full(path) from error
        raise UsageError(
            f"{path} cannot be written: {error.strerror}.", remedy="Choose another place."
        ) from error
    finally:
        if not is_pipe and draft.exists():
            draft.unlink()


# ── Taking it back ──


def undo(
    id: Annotated[
        str | None, typer.Argument(metavar="ID", help="Of the import, or its beginning; without it, a list.")
    ] = None,
    yes: Annotated[bool, Yes] = False,
    json: Json = False,
) -> None:
    """Undo an import: remove what it added, unless it was mailed.

    People who get no mail, changed their status since, or were in another import stay.
    """
    engine = open_engine()
    if id is None:
        _list(engine, json)
        return
    found = find_import(engine, id)
    people = count(found.counts.get("added", 0), "person", "people")
    confirm(f"Remove the {people} that the import of {found.file} added?", yes)
    done = engine.store.undo_import(found.id)
    if json:
        print_json(asdict(done))
        return
    lists = count(done.lists, "list entry", "list entries")
    say(f"{count(done.people, 'person', 'people')} and {lists} removed.")
    if done.kept:
        say(f"{done.kept:,} stay: they get no mail, changed their status, or are in another import.")


def _list(engine: Engine, json: bool) -> None:
    found = subscriber_rows.imports(engine.store)
    if json:
        print_json([asdict(one) | {"at": iso(one.at), "undone_at": iso(one.undone_at)} for one in found])
        return
    table = TextTable(("id", "when", "by", "file", "new"), gives_way="file")
    for one in found:
        new = "undone" if one.undone_at else f"{one.counts.get('added', 0):,}"
        table.add(one.id, spoken(one.at, engine.limits.timezone), one.by, one.file, new)
    if found:
        table.show()
    else:
        note("Nothing was imported yet.")
