"""`mailout subscribers import`: what was recognised is shown first, and written when that is right."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.progress import Progress

from cli.engine import open_engine
from cli.output import Json, err, item, note, print_json, say
from mailout.app.engine import Engine
from mailout.base.errors import UsageError
from mailout.insight.reporting.phrases import count
from mailout.insight.reporting.rows import safe
from mailout.letters.audience.csv_import import Choices, CsvImport, read_subscribers
from mailout.letters.audience.marks import BY_NAME, Meaning
from mailout.letters.audience.plan import IN_WORDS, Plan
from mailout.letters.audience.port import ImportCounts

EXAMPLE = "Example: mailout subscribers import people.csv --list newsletter --rejects left-out.csv"
LONG = 50_000
"""From so many people on, an import shows how far it is."""

STATUSES = ", ".join(BY_NAME)


def import_(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A CSV file or a workbook (.xlsx) with a header line."),
    ],
    list_key: Annotated[
        str | None, typer.Option("--list", help="Put everybody in it on this list, too.")
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option("--rejects", help="Write the rows that were left out to this CSV file.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="COLUMN=FIELD", help="What a column is, if it was not recognised."),
    ] = None,
    statuses: Annotated[
        list[str] | None,
        typer.Option("--map-status", metavar="WORD=STATUS", help=f"What a status means: {STATUSES}."),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="The file's encoding, if the detection is wrong.")
    ] = None,
    sheet: Annotated[
        str | None, typer.Option("--sheet", help="The sheet of a workbook; without it, the first.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> None:
    """Read people from a CSV file or a workbook.

    Exports of other products are recognised. Who has unsubscribed or bounced stays so.
    """
    choices = Choices(
        fields=dict(_pairs(columns, "--map")),
        statuses={word: _meaning(to) for word, to in _pairs(statuses, "--map-status")},
        encoding=encoding,
        sheet=sheet,
    )
    engine = None if dry_run else open_engine()
    found = read_subscribers(file, choices)
    if rejects is not None:
        _write_rejects(found, rejects)
    if not json:
        _show(found.plan)
    if engine is None or found.plan.unknown:
        if json:
            print_json({"plan": found.plan.as_data()})
        found.plan.require_understood()
        note("Nothing was written.")
        return
    if not yes and not _agreed(found):
        note("Nothing was imported.")
        raise typer.Exit(1)
    counts = import_into(engine, found, list_key)
    if json:
        print_json(_result(found, counts))
        return
    show_counts(found, counts)
    if rejects is not None:
        say(f"The rows left out are in {rejects}.")


def _pairs(written: Sequence[str] | None, option: str) -> Iterator[tuple[str, str]]:
    for pair in written or ():
        name, equals, value = pair.rpartition("=")
        if not equals:
            raise UsageError(f"{option} {pair} has no `=`.", remedy=f'Write it as {option} "NAME=VALUE".')
        yield name.strip(), value.strip()


def _meaning(status: str) -> Meaning:
    if status not in BY_NAME:
        raise UsageError(f"There is no status {status}.", remedy=f"There are: {STATUSES}.")
    return BY_NAME[status]


def _show(plan: Plan) -> None:
    say(plan.summary())
    for line in plan.details():
        item(line)


def _agreed(found: CsvImport) -> bool:
    """Asked on a terminal only: a script has nobody to answer."""
    if not found.people or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    return typer.confirm(f"Import {count(found.people, 'person', 'people')}?", default=False, err=True)


def import_into(engine: Engine, found: CsvImport, list_key: str | None = None) -> ImportCounts:
    totals: dict[str, int] = asdict(ImportCounts())
    hidden = found.people < LONG
    with Progress(console=err, transient=True, disable=hidden) as progress:
        bar = progress.add_task("Importing", total=found.people)
        for batch in found.batches():
            if list_key is not None:
                batch = [replace(row, lists=(*row.lists, list_key)) for row in batch]
            for name, n in asdict(engine.store.import_subscribers(batch)).items():
                totals[name] += n
            progress.advance(bar, len(batch))
    return ImportCounts(**totals)


def show_counts(found: CsvImport, counts: ImportCounts) -> None:
    say(
        f"{count(found.plan.rows, 'row')}, {count(found.people, 'person', 'people')}:"
        f" {counts.added:,} new, {counts.updated:,} changed, {counts.unchanged:,} as before."
    )
    if counts.kept_status:
        say(f"{counts.kept_status:,} had left or bounced before, and the file does not change that.")
    if counts.forgotten:
        say(f"{counts.forgotten:,} had asked to be forgotten: not brought back.")
    for reason, n in found.dropped.items():
        item(f"{n:,} left out: {IN_WORDS[reason]}")


def _result(found: CsvImport, counts: ImportCounts) -> dict[str, Any]:
    dropped = {reason.value: n for reason, n in found.dropped.items()}
    people = {"rows": found.plan.rows, "people": found.people, **asdict(counts), "dropped": dropped}
    return people | {"plan": found.plan.as_data()}


def _write_rejects(found: CsvImport, path: Path) -> None:
    with writing(path) as file:
        writer = csv.writer(file)
        writer.writerow(("line", "email", "reason"))
        writer.writerows((reject.line, safe(reject.email), reject.reason.value) for reject in found.rejects())


@contextmanager
def writing(path: Path | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdout
        return
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}.", remedy="Choose another place."
        ) from error
