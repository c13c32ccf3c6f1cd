"""`mailout companies`: whoever hands in single mails, and the limits of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import tzinfo
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from cli.engine import command_group, open_store, read_settings
from cli.output import Json, answer, print_json, say
from cli.tables import TextTable
from mailout.base.errors import UsageError
from mailout.base.time_format import day, iso
from mailout.kinds.single_mails import companies
from mailout.kinds.single_mails.companies import LARGEST_LIMIT, Company, add_company, set_limits
from mailout.outbox.delivery.single_mails import OURS

app = command_group("Companies that hand in single mails: add, list, limits.")

RESERVED = frozenset({"all", "rehearsal", OURS})
"""What the counters of all are kept under, and the mails that mailout itself writes."""
_NAME = re.compile(r"[\w.@ -]{1,100}")


@app.command(epilog="Example: mailout companies add shop")
def add(name: Annotated[str, typer.Argument(metavar="NAME")], json: Json = False) -> None:
    """Add a company; one that is there stays as it is."""
    with open_store() as store:
        _show(add_company(store, company_name(name)), json)


@app.command("list", epilog="Example: mailout companies list")
def list_companies(json: Json = False) -> None:
    """Every company with its own limits."""
    settings = read_settings()
    with open_store(settings) as store:
        known = companies.companies(store)
    if json:
        print_json([_as_data(company) for company in known])
    elif not known:
        say("No companies yet. With its first token: mailout tokens create --company NAME")
    else:
        _show_all(known, ZoneInfo(settings.send_timezone))


@app.command(epilog="Example: mailout companies limits shop --per-hour 1000 --per-day 10000")
def limits(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    per_hour: Annotated[int | None, typer.Option(min=1, max=LARGEST_LIMIT, help="Mails an hour.")] = None,
    per_day: Annotated[int | None, typer.Option(min=1, max=LARGEST_LIMIT, help="Mails a day.")] = None,
    json: Json = False,
) -> None:
    """Set a company's own limits. One that you leave out falls back to LIMIT_PER_*."""
    with open_store() as store:
        _show(set_limits(store, company_name(name), per_hour, per_day), json)


def company_name(written: str) -> str:
    name = written.strip()
    if not _NAME.fullmatch(name) or name in RESERVED:
        raise UsageError(
            f"{written!r} cannot be a company's name.", remedy="Letters, digits, blanks, . _ - @"
        )
    return name


def _show_all(known: Sequence[Company], zone: tzinfo) -> None:
    table = TextTable(
        ("company", "since", "an hour", "a day"), right=frozenset({"an hour", "a day"}), gives_way="company"
    )
    for one in known:
        table.add(one.id, day(one.created_at, zone), _limit(one.limit_per_hour), _limit(one.limit_per_day))
    table.show()
    if any(None in (one.limit_per_hour, one.limit_per_day) for one in known):
        say("–: no limit of its own; LIMIT_PER_HOUR and LIMIT_PER_DAY apply, if set.")


def _limit(limit: int | None) -> str:
    return "–" if limit is None else f"{limit:,}"


def _show(company: Company, json: bool) -> None:
    own = [
        f"{limit:,} {'mail' if limit == 1 else 'mails'} {span}"
        for limit, span in ((company.limit_per_hour, "an hour"), (company.limit_per_day, "a day"))
        if limit is not None
    ]
    answer(json, _as_data(company), f"{company.id}: {', '.join(own) or 'no limits of its own'}.")


def _as_data(company: Company) -> dict[str, Any]:
    return asdict(company) | {"created_at": iso(company.created_at)}
