"""`mailout article`: articles that are put together for each reader from slices."""

from __future__ import annotations

import csv
import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.commands.preview import SOMEBODY, refusal, write_and_show
from cli.commands.send import Stop, ask_first, finish, run_here, starting
from cli.engine import command_group, open_engine
from cli.output import Json, answer, note, print_json, say
from cli.progress import showing
from cli.show import near
from cli.subscriber_import import writing
from mailout.app.engine import Engine
from mailout.base.addresses import address_of
from mailout.base.errors import Abort, UsageError
from mailout.base.time_format import iso
from mailout.insight.reporting.details import census_lines, census_table
from mailout.insight.reporting.phrases import count
from mailout.kinds.articles import article_rows
from mailout.kinds.articles.order import ArticleOrder
from mailout.kinds.articles.slice_import import COLUMNS, SCOPE, read_slices, write_errors
from mailout.kinds.mailouts.reading import Announcement
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.audience.list_rows import GENERAL
from mailout.letters.audience.places import FILTER, PLACES, US, split_places
from mailout.letters.content.document import Problem
from mailout.letters.content.from_settings import (
    footer_of,
    from_email_of,
    require_public_addresses,
    tokens_of,
)
from mailout.letters.content.model import UNSUBSCRIBE_URL, VIEW_URL
from mailout.letters.content.slices import Slice, assemble
from mailout.letters.content.variables import filled, placeholders, variables_of

app = command_group(
    "One article, put together for each reader from the slices for the places they belong to."
)
Key = Annotated[str, typer.Option("--article-key", help="Which article: the key of its slices.")]
Filter = Annotated[
    list[str] | None,
    typer.Option("--filter", metavar="FILTER", help="state=OH, list=news, or a segment's filter."),
]


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV file or a workbook (.xlsx).")],
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="The file's encoding, if the detection is wrong.")
    ] = None,
    sheet: Annotated[
        str | None, typer.Option("--sheet", help="The sheet of a workbook; without it, the first.")
    ] = None,
    json: Json = False,
) -> None:
    """Read slices. Rows that are wrong are written to FILE.errors.csv beside it; the good ones are kept."""
    engine = open_engine()
    found = read_slices(file, encoding=encoding, sheet=sheet)
    if found.encoding not in (None, "UTF-8"):
        note(f"Read as {found.encoding}. If letters look wrong, name the encoding with --encoding.")
    counts = engine.store.import_slices(found.slices)
    errors = write_errors(file, found.errors)
    if json:
        about = {"errors": len(found.errors), "errors_file": str(errors) if errors else None}
        print_json(asdict(counts) | about)
    else:
        say(f"{counts.added:,} added, {counts.updated:,} updated, {counts.unchanged:,} unchanged.")
        if errors:
            say(f"{count(len(found.errors), 'row')} left out; {near(errors)} says why.")
    raise typer.Exit(1 if errors else 0)


@app.command()
def pull(
    article_key: Annotated[str, typer.Argument(metavar="KEY", help="Which article.")],
    out: Annotated[Path, typer.Option("--out", help="The CSV file to write.")],
    json: Json = False,
) -> None:
    """Write an article's slices to a CSV file, as `import` reads it.

    For slices that were edited in the store itself, with Supabase's table editor for instance.
    """
    engine = open_engine()
    slices = article_rows.slices(engine.store, article_key)
    if not slices:
        raise UsageError(f"The store has no slice of {article_key}.", remedy="Check the key.")
    with writing(out) as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(_as_row(one) for one in slices)
    answer(json, {"slices": len(slices), "file": str(out)}, f"{count(len(slices), 'slice')} in {near(out)}.")


@app.command()
def census(article_key: Key, filter: Filter = None, json: Json = False) -> None:
    """Say who would get what. Variants, their recipients and sizes, who is left out; nothing is sent."""
    engine = open_engine()
    found = engine.intake.articles.census(article_key, _filter(filter)).to_dict()
    if json:
        print_json(found)
    else:
        _show_census(found)


@app.command()
def preview(
    article_key: Key,
    out: Annotated[Path, typer.Option("--out", help="The folder to write to; made if it does not exist.")],
    email: Annotated[str | None, typer.Option("--email", help="As this subscriber would get it.")] = None,
    ocd: Annotated[
        str | None, typer.Option("--ocd", metavar="A,B", help="As somebody who belongs to these places.")
    ] = None,
    json: Json = False,
) -> None:
    """Write it as one reader would get it. HTML, text, an .eml file, and what to fix."""
    if (email is None) == (ocd is None):
        raise UsageError("For whom?", remedy="Give one of --email and --ocd.")
    engine = open_engine()
    articles = engine.intake.articles
    to = address_of(email) or email if email else SOMEBODY
    places = subscriber_rows.subscriber(engine.store, to)["ocd_ids"] if email else _places(ocd or "")
    slices = articles.live_slices(article_key)
    article = assemble(slices, places, engine.store.now())
    if article is None:
        raise UsageError(
            "They would get nothing: no slice is for them.", remedy="See: mailout article census"
        )
    document, content = articles.render(article)
    refusals: list[Problem] = []
    try:
        articles.check_variables(slices)
    except Abort as abort:
        refusals.append(refusal(abort))
    variables, settings = variables_of(content), engine.settings
    sender = settings.from_name or settings.from_email or ""
    own = placeholders(variables) | {"email": to, "from_name": sender}
    links = footer_of(settings).urls(tokens_of(settings).make(to, GENERAL))
    of = list_rows.list_or_none(engine.store, GENERAL)
    write_and_show(
        json,
        document,
        content,
        out,
        {**links, VIEW_URL: "#", **filled(variables, own)},
        to=to,
        from_email=settings.from_email or "nobody@example.org",
        from_name=settings.from_name or "",
        reply_to=settings.reply_to,
        unsubscribe_url=links[UNSUBSCRIBE_URL],
        unsubscribe_mailbox=settings.unsubscribe_mailbox,
        list_key=GENERAL,
        called=of.name if of else None,
        org_name=settings.org_name or "",
        date=engine.clock.now(),
        refusals=refusals,
    )


@app.command()
def send(
    campaign_tag: Annotated[str, typer.Option("--campaign-tag", help="What the batch belongs to.")],
    article_key: Key,
    send_batch_id: Annotated[
        str, typer.Option("--send-batch-id", metavar="UUID", help="With the tag, it names the batch.")
    ],
    filter: Filter = None,
    actor: Annotated[str, typer.Option("--actor", help="Who sends it, for the record.")] = "admin",
    direct: Annotated[bool, typer.Option("--direct", help="Without Prefect.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: Json = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the log, and Prefect's.")] = False,
) -> None:
    """Send one batch of an article. The same batch again goes on with the rest, and sends nothing twice."""
    engine = open_engine(verbose=verbose)
    order = ArticleOrder.checked(campaign_tag, article_key, send_batch_id, _filter(filter), actor)
    id = _ready(engine, order, yes=yes, json=json)
    if id is None:
        nobody = "Nobody is in the audience: nothing was sent."
        answer(json, {"sent": 0, "skipped": "NO_RECIPIENTS"}, nobody)
        return
    stop = Stop(engine)
    first = "Preparing" if direct else starting(engine.settings.mailout_home)
    with showing(engine.settings, id, first=first, quiet=json), stop.on_signals(id):
        send_batch(engine, order, direct=direct)
    finish(engine, id, json=json, stopped_by=stop.signal)


def send_batch(engine: Engine, order: ArticleOrder, *, direct: bool = False) -> str | None:
    """Directly, or as the flow `send_article`: then the id of its run."""
    if direct:
        mailout = engine.intake.articles.enqueue(order)
        if mailout is not None:
            engine.deliver(mailout.id)
        return None

    def send_article() -> Any:
        from flows.send_article import send_article

        return send_article(**asdict(order), return_state=True)

    return run_here(engine, send_article)


def _ready(engine: Engine, order: ArticleOrder, *, yes: bool, json: bool) -> str | None:
    """The batch's id, once it is clear that somebody would get it and a person has agreed."""
    articles = engine.intake.articles
    known = articles.known(order)
    if known is not None:
        note("This batch was asked for before: nobody gets it twice.")
        return known.id
    found = articles.census(order.article_key, order.audience_filter)
    if not found.recipients:
        return None
    if not json:
        _show_census(found.to_dict())
    if not engine.rehearses:
        subject, settings = found.variants[0].title, engine.settings
        require_public_addresses(settings, rehearses=False)
        said = Announcement(subject, found.recipients, settings.from_name, from_email_of(settings))
        ask_first(engine, said, yes)
    return articles.id_of(order)


def _show_census(found: dict[str, Any]) -> None:
    for line in census_lines(found):
        say(line)
    for row in census_table(found):
        clipped = "  over 102 KB" if row["over 102 KB"] else ""
        say(f"  {row['recipients']:>8,}  {row['bytes'] / 1000:>6.1f} KB{clipped}  {row['subject']}")
        say(f"{'':>23}{row['slices'].replace(SCOPE, '')}")


_NAMED = re.compile(r"\s*([^\s=<>!\"()]+)=([^=<>\"]*)")
"""The old form: a key, `=` right after it, a value without quotes."""


def _filter(written: list[str] | None) -> dict[str, str]:
    """Old forms by their key; filters in the language of segments together under one."""
    named: dict[str, str] = {}
    filters = []
    for one in written or ():
        found = _NAMED.fullmatch(one)
        if not found:
            filters.append(one)
            continue
        key, value = found[1], found[2].strip()
        if named.setdefault(key, value) != value:
            raise UsageError(
                f"The filter {key} is given twice, as {named[key]} and as {value}: who is meant is unclear.",
                remedy=f"For one or the other{' (of those on general)' if key == 'list' else ''}:"
                f" --filter '{_either(key, named[key], value)}'",
            )
    together = filters[0] if len(filters) == 1 else " and ".join(f"({one})" for one in filters)
    return named | ({FILTER: together} if filters else {})


def _either(key: str, one: str, other: str) -> str:
    """The same in the language of segments."""
    if key in PLACES:
        return f"in place {US}/state:oh or in place {US}/state:mi"
    if key == "list":
        return f'in list "{one}" or in list "{other}"'
    return f'"{key}" in ("{one}", "{other}")'


def _as_row(one: Slice) -> dict[str, str]:
    values = asdict(one)
    times = {name: iso(values[name]) for name in ("publish_at", "expires_at")}
    values |= {"tags": ";".join(one.tags), "is_headline": "TRUE" if one.is_headline else "", **times}
    return {name: "" if values[name] is None else str(values[name]) for name in COLUMNS}


def _places(written: str) -> list[str]:
    found, others = split_places(written)
    if others or not found:
        raise UsageError(
            f"No OCD id: {', '.join(others) or 'there is none'}.",
            remedy="For example: --ocd ocd-division/country:us/state:oh",
        )
    return found
