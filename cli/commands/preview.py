"""`mailout preview`: the mail as a recipient would get it, in files to look at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.engine import open_engine
from cli.output import Json, print_json, say
from cli.show import near
from mailout.content.document import Problem
from mailout.content.from_settings import footer_of, tokens_of
from mailout.content.model import UNSUBSCRIBE_URL
from mailout.delivery.preview import write_preview
from mailout.errors import Abort, MailoutError, UsageError

app = typer.Typer(rich_markup_mode=None, add_completion=False)

SOMEBODY = "reader@example.org"


@app.command(epilog="Example: mailout preview examples/newsletter.md --out preview")
def preview(
    ref: Annotated[
        str, typer.Argument(metavar="REF", help="A Markdown file, or a Notion page (its id or address).")
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder to write to; it is made if need be.")],
    json: Json = False,
) -> None:
    """Write the mail as a recipient would get it: HTML, text, an .eml file, and what to fix.

    Nothing is sent and nothing is queued.
    """
    engine = open_engine()
    source_mailout = engine.intake.source_mailout(ref)
    document, content = engine.intake.draft(source_mailout)
    refusals = list(engine.intake.refusals(source_mailout))
    link = footer_of(engine.settings).url(tokens_of(engine.settings).make(SOMEBODY, source_mailout.list_key))
    settings = engine.settings
    try:
        about = write_preview(
            document,
            content,
            out,
            {UNSUBSCRIBE_URL: link},
            to=SOMEBODY,
            from_email=settings.from_email or "nobody@example.org",
            from_name=source_mailout.from_name or settings.from_name or "",
            reply_to=settings.reply_to,
            unsubscribe_url=link,
            date=engine.clock.now(),
            refusals=[_refusal(error) for error in refusals],
        )
    except OSError as error:
        raise UsageError(
            f"{out} cannot be written to: {error.strerror}.", remedy="Choose another folder."
        ) from error
    if json:
        print_json(about)
    else:
        _show(about)


def _refusal(error: MailoutError) -> Problem:
    code = str(error.code) if isinstance(error, Abort) else "cannot_be_sent"
    return Problem(code, str(error).removesuffix(f" ({code})"), None)


def _show(about: Mapping[str, Any]) -> None:
    say(about["subject"], style="bold")
    say(about["preheader"])
    say()
    for file in about["files"]:
        say(f"  {near(Path(file))}")
    say()
    for problem in about["refusals"]:
        say(f"It would not be sent: {problem['message']} ({problem['code']})")
    for problem in about["problems"]:
        where = f" ({problem['where']})" if problem["where"] else ""
        say(f"To look at: {problem['message']}{where}")
    if not about["problems"] and not about["refusals"]:
        say("Nothing to fix was found.")
