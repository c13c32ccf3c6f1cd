"""`mailout companies`: whoever hands in single mails, and the limits of each."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated

import typer

from cli.engine import read_settings
from cli.output import Json, print_json, say
from mailout import wiring
from mailout.errors import UsageError
from mailout.intake.companies import Company
from mailout.time_format import iso

app = typer.Typer(
    help="Companies that hand in single mails: add, list, limits.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

_NAME = re.compile(r"[\w.@ -]{1,100}")


@app.command(epilog="Example: mailout companies add shop")
def add(name: Annotated[str, typer.Argument(metavar="NAME")], json: Json = False) -> None:
    """Add a company; one that is there stays as it is."""
    store = wiring.open_store(read_settings())
    try:
        company = store.add_company(company_name(name))
    finally:
        store.close()
    _show([company], json)


@app.command("list", epilog="Example: mailout companies list")
def list_companies(json: Json = False) -> None:
    """Every company with its own limits."""
    store = wiring.open_store(read_settings())
    try:
        companies = list(store.companies())
    finally:
        store.close()
    if not companies and not json:
        say("No companies yet. With its first token: mailout tokens create --company NAME")
        return
    _show(companies, json, many=True)


@app.command(epilog="Example: mailout companies limits shop --per-hour 1000 --per-day 10000")
def limits(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    per_hour: Annotated[int | None, typer.Option("--per-hour", min=0, help="Mails an hour.")] = None,
    per_day: Annotated[int | None, typer.Option("--per-day", min=0, help="Mails a day.")] = None,
    json: Json = False,
) -> None:
    """Set a company's own limits. One that is left out is the one for every company."""
    store = wiring.open_store(read_settings())
    try:
        company = store.set_company_limits(company_name(name), per_hour, per_day)
    finally:
        store.close()
    _show([company], json)


def company_name(written: str) -> str:
    name = written.strip()
    if not _NAME.fullmatch(name) or name in ("all", "rehearsal"):  # what the counters of all are kept under
        raise UsageError(
            f"{written!r} cannot be a company's name.", remedy="Letters, digits, blanks, . _ - @"
        )
    return name


def _show(companies: list[Company], json: bool, *, many: bool = False) -> None:
    if json:
        shown = [asdict(company) | {"created_at": iso(company.created_at)} for company in companies]
        print_json(shown if many else shown[0])
        return
    for company in companies:
        own = [
            f"{limit:,} {word}"
            for limit, word in ((company.limit_per_hour, "an hour"), (company.limit_per_day, "a day"))
            if limit is not None
        ]
        say(f"{company.id}  {', '.join(own) or 'no limits of its own'}")
