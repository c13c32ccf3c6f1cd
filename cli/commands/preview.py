"""`mailout preview`: the mail as a recipient would get it, in files to look at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.engine import open_engine
from cli.output import Json, print_json, say
from cli.show import near
from mailout.app.engine import Engine
from mailout.base import ids
from mailout.base.addresses import address_of
from mailout.base.errors import Abort, MailoutError, UsageError
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.content.document import Document, Problem, problem_line
from mailout.letters.content.from_settings import footer_of, tokens_of, view_url
from mailout.letters.content.model import UNSUBSCRIBE_URL, VIEW_URL, Content
from mailout.letters.content.variables import filled, placeholders, required_of, variables_of
from mailout.outbox.delivery.preview import write_preview

app = typer.Typer(rich_markup_mode=None, add_completion=False)

SOMEBODY = "reader@example.org"


@app.command(epilog="Example: mailout preview examples/newsletter.md --out preview")
def preview(
    ref: Annotated[
        str, typer.Argument(metavar="REF", help="A Markdown file, or a Notion page (its id or address).")
    ],
    out: Annotated[Path, typer.Option(help="The folder to write to; made if it does not exist.")],
    reader: Annotated[
        str | None,
        typer.Option("--as", metavar="EMAIL", help="As this subscriber gets it; else variables are [name]."),
    ] = None,
    json: Json = False,
) -> None:
    """Write the mail as a recipient would get it: HTML, text, an .eml file, and what to fix.

    Nothing is sent and nothing is queued.
    """
    engine = open_engine()
    source_mailout = engine.intake.letters.read(ref)
    document, content = engine.intake.letters.draft(source_mailout)
    refusals = list(engine.intake.refusals(engine.intake.letters.reading(source_mailout)))
    settings = engine.settings
    from_name = source_mailout.from_name or settings.from_name or ""
    to, values = SOMEBODY, placeholders(variables_of(content))
    if reader is not None:
        to, values, from_name = _as_reader(engine, content, reader, from_name)
    links = footer_of(settings).urls(tokens_of(settings).make(to, source_mailout.list_key))
    page = view_url(settings, ids.mailout_id(source_mailout.ref), None)
    values |= {"email": to, "from_name": from_name or settings.from_email or ""}
    of = list_rows.list_or_none(engine.store, source_mailout.list_key)
    write_and_show(
        json,
        document,
        content,
        out,
        {**links, VIEW_URL: page, **filled(variables_of(content), values)},
        to=to,
        from_email=settings.from_email or "nobody@example.org",
        from_name=from_name,
        reply_to=source_mailout.reply_to or settings.reply_to,
        unsubscribe_url=links[UNSUBSCRIBE_URL],
        unsubscribe_mailbox=settings.unsubscribe_mailbox,
        list_key=source_mailout.list_key,
        called=of.name if of else None,
        org_name=settings.org_name or "",
        date=engine.clock.now(),
        refusals=[refusal(error) for error in refusals],
    )


def _as_reader(
    engine: Engine, content: Content, reader: str, from_name: str
) -> tuple[str, dict[str, str], str]:
    """Whom it goes to, what the variables are for that person, and who it is from."""
    email = address_of(reader)
    if email is None:
        raise UsageError(f"{reader} is not an address.", remedy="Give a subscriber's: --as ann@example.org")
    person = subscriber_rows.subscriber(engine.store, email)
    values = {name: str(value) for name, value in person["attributes"].items() if value is not None}
    missing = [name for name in required_of(variables_of(content)) if not values.get(name, "").strip()]
    values |= {name: f"[{name}]" for name in missing}
    return email, values, person["from_name"] or from_name


def refusal(error: MailoutError) -> Problem:
    """What stops it, as a finding that is shown first."""
    code = str(error.code) if isinstance(error, Abort) else "cannot_be_sent"
    return Problem(code, str(error).removesuffix(f" ({code})"), None)


def write_and_show(
    json: bool, document: Document, content: Content, out: Path, values: Mapping[str, str], **mail: Any
) -> None:
    """Into the folder `out`; `mail`: as `write_preview` takes it."""
    try:
        about = write_preview(document, content, out, values, **mail)
    except OSError as error:
        raise UsageError(
            f"{out} cannot be written to: {error.strerror}.", remedy="Choose another folder."
        ) from error
    if json:
        print_json(about)
        return
    say(about["subject"], style="bold")
    say(about["preheader"])
    say()
    for file in about["files"]:
        say(f"  {near(Path(file))}")
    say()
    for problem in about["refusals"]:
        say(f"It would not be sent: {problem['message']} ({problem['code']})")
    for problem in about["problems"]:
        say(f"Check: {problem_line(Problem(**problem))}")
    if not about["problems"] and not about["refusals"]:
        say("Nothing to fix was found.")
