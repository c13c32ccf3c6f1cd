"""`mailout subscribers`: the list of people, in and out."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from cli import forget
from cli.engine import open_engine
from cli.output import Json, note, print_json, say
from mailout.audience.addresses import Dropped, normalise
from mailout.audience.csv_import import CsvImport, read_subscribers
from mailout.engine import Engine
from mailout.errors import UsageError
from mailout.ports import ImportCounts
from mailout.reporting.moments import iso
from mailout.reporting.rows import safe

app = typer.Typer(
    help="The people on your list: import, export, look one up.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

COLUMNS = ("email", "status", "from_name", "bounce_type", "bounce_subtype", "lists", "ocd_ids")

IN_WORDS = {
    "empty": "no address",
    "no_at": "no @ in the address",
    "display_name": "a name beside the address",
    "bad_local": "wrong before the @",
    "non_ascii_local": "a letter before the @ that mail services refuse",
    "bad_domain": "wrong after the @",
    "too_long": "too long for an address",
    "duplicate": "there already (merged into one)",
    "bad_status": "a status that is none of active, unsubscribed, bounced",
    "bad_row": "more fields than the file has columns",
}


@app.command(
    "import", epilog="Example: mailout subscribers import people.csv --list newsletter --rejects left-out.csv"
)
def import_(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A CSV file whose first line names the columns; `email` is one."),
    ],
    list_key: Annotated[
        str | None, typer.Option("--list", help="Put everybody in it on this list, too.")
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option("--rejects", help="Write the rows that were left out to this CSV file.")
    ] = None,
    json: Json = False,
) -> None:
    """Read people from a CSV file. Who has unsubscribed or bounced stays so, whatever the file says."""
    engine = open_engine()
    found = read_subscribers(file)
    counts = import_into(engine, found, list_key)
    if rejects is not None:
        _write_rejects(found, rejects)
    if json:
        dropped = {reason.value: n for reason, n in found.dropped.items()}
        print_json({"rows": found.rows, "people": found.people, **asdict(counts), "dropped": dropped})
        return
    show_import(found, counts)
    if rejects is not None:
        say(f"The rows left out are in {rejects}.")


def import_into(engine: Engine, found: CsvImport, list_key: str | None = None) -> ImportCounts:
    totals: dict[str, int] = asdict(ImportCounts())
    for batch in found.batches():
        if list_key is not None:
            batch = [replace(row, lists=(*row.lists, list_key)) for row in batch]
        for name, n in asdict(engine.store.import_subscribers(batch)).items():
            totals[name] += n
    return ImportCounts(**totals)


def show_import(found: CsvImport, counts: ImportCounts) -> None:
    say(
        f"{found.rows:,} rows, {found.people:,} people: {counts.added:,} new, {counts.updated:,} changed,"
        f" {counts.unchanged:,} as before."
    )
    if counts.kept_status:
        say(f"{counts.kept_status:,} had left or bounced before, and the file does not change that.")
    for reason, n in found.dropped.items():
        say(f"  {n:>5,} left out: {IN_WORDS[reason.value]}")


def _write_rejects(found: CsvImport, path: Path) -> None:
    with _writing(path) as file:
        writer = csv.writer(file)
        writer.writerow(("line", "email", "reason"))
        writer.writerows((reject.line, safe(reject.email), reject.reason.value) for reject in found.rejects())


@app.command("export", epilog="Example: mailout subscribers export --out people.csv")
def export(
    out: Annotated[
        Path | None, typer.Option("--out", help="The file to write; without it, to the terminal.")
    ] = None,
) -> None:
    """Write everybody as CSV, in the form that `import` reads."""
    engine = open_engine()
    written = 0
    attributes = sorted({name for row in _everybody(engine) for name in row["attributes"]})
    with _writing(out) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*COLUMNS, *map(safe, attributes)))
        for row in _everybody(engine):
            values = [row["attributes"].get(name) for name in attributes]
            writer.writerow(map(_cell, (*(row[name] for name in COLUMNS), *values)))
            written += 1
    if out is not None:
        note(f"{written:,} people written to {out}.")


def _everybody(engine: Engine) -> Iterator[Mapping[str, Any]]:
    after = ""
    while page := engine.store.subscribers(after=after, limit=1000):
        yield from page
        after = page[-1]["email_norm"]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return safe("|".join(value) if isinstance(value, list | tuple) else str(value))


@contextmanager
def _writing(path: Path | None) -> Iterator[TextIO]:
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


@app.command("show", epilog="Example: mailout subscribers show ana@example.org")
def show(
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="The address, in capitals or not.")],
    json: Json = False,
) -> None:
    """One person: status, lists, and everything the import knew."""
    norm = normalise(email)
    if isinstance(norm, Dropped):
        raise UsageError(
            f"{email} is no address: {IN_WORDS[norm.value]}.", remedy="Give it as it stands in the list."
        )
    engine = open_engine()
    engine.store.normalise_addresses()
    person = dict(engine.store.subscriber(norm))
    person |= {
        name: iso(person[name]) for name in ("created_at", "status_updated_at", "left_at", "complained_at")
    }
    if json:
        print_json(person)
        return
    say(person["email"], style="bold")
    say(f"  status      {person['status']}, since {person['status_updated_at']}")
    for name in ("from_name", "bounce_type", "bounce_subtype"):
        if person[name]:
            say(f"  {name:<10}  {person[name]}")
    for entry in person["lists"]:
        left = f" (left {iso(entry['unsubscribed_at'])})" if entry["unsubscribed_at"] else ""
        say(f"  list        {entry['list_key']}{left}")
    for name, value in person["attributes"].items():
        say(f"  {name:<10}  {value}")


app.command("forget", epilog=forget.EXAMPLE)(forget.forget)
