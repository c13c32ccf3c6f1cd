"""`mailout dead-letters`: what failed for good, and what to do about it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.engine import command_group, open_engine
from cli.names import SHORT_ID_CHARS
from cli.output import Json, Yes, answer, confirm, print_json, say
from cli.tables import TextTable
from mailout.app.engine import Engine
from mailout.base import error_log
from mailout.base.error_log import DeadLetter
from mailout.base.redact import redact
from mailout.base.time_format import day, iso
from mailout.insight.reporting.phrases import count
from mailout.outbox.queue import dead_letters
from mailout.outbox.queue.short_ids import BEGINNING, ambiguous, begins

app = command_group("Messages of articles that failed permanently, and events that could not be read.")
Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, or the beginning of it.")]
MAX_LISTED = 10_000


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="How many, the latest first.")] = 100,
    json: Json = False,
) -> None:
    """List them, the latest first."""
    engine = open_engine()
    letters = error_log.dead_letters(engine.store, limit)
    if json:
        print_json([_as_data(letter) for letter in letters])
        return
    if not letters:
        say("No dead letters.")
        return
    table = TextTable(("id", "date", "kind", "to"), indent=SHORT_ID_CHARS + 2, gives_way="to")
    for letter in letters:
        when = day(letter["created_at"], engine.limits.timezone)
        email = letter["payload"].get("email")  # an event that nobody can read has none
        whom = redact(str(email)) if email else ""
        table.add(letter["id"][:SHORT_ID_CHARS], when, letter["topic"], whom, more=letter["error"])
    table.show()


@app.command()
def show(id: Id, json: Json = False) -> None:
    """Show one in full."""
    engine = open_engine()
    letter = _find(engine, id)
    if json:
        print_json(_as_data(letter))
        return
    say(f"{letter['topic']}: {letter['error']}", style="bold")
    for name, value in {"id": letter["id"], **letter["payload"]}.items():
        say(f"  {name:<14}  {value}")


@app.command()
def requeue(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Their ids, or the beginnings of them.")],
    json: Json = False,
) -> None:
    """Try them again, all or none. Each message waits in the queue, with all its attempts before it; an
    event of SES is read again."""
    engine = open_engine()
    letters = {letter["id"]: letter["topic"] for letter in (_find(engine, id) for id in ids)}
    mailouts = dead_letters.requeue(engine.store, *letters)
    events = [*letters.values()].count(dead_letters.EVENTS)
    said = []
    if messages := len(letters) - events:
        said.append(
            f"{count(messages, 'message')} waiting in the queue, in {count(len(mailouts), 'mailout')}."
        )
    if events:
        said.append(f"{count(events, 'event')} waiting to be read. To do it now: mailout events")
    answer(json, {"requeued": [*letters], "mailouts": mailouts}, "\n".join(said))


@app.command()
def drop(id: Id, yes: Annotated[bool, Yes] = False, json: Json = False) -> None:
    """Take one off the list. Its message stays failed."""
    engine = open_engine()
    letter = _find(engine, id)
    confirm(f"Drop the dead letter {letter['id']} ({letter['error']})?", yes)
    engine.store.drop_dead_letter(letter["id"])
    answer(json, {"dropped": letter["id"]}, "Dropped.")


def _find(engine: Engine, name: str) -> DeadLetter:
    written = name.strip().lower()
    found = []
    if BEGINNING.fullmatch(written):
        found = [
            one for one in error_log.dead_letters(engine.store, MAX_LISTED) if begins(one["id"], written)
        ]
    if len(found) > 1:
        raise ambiguous(name, [one["id"] for one in found])
    return found[0] if found else error_log.dead_letter(engine.store, written)


def _as_data(letter: DeadLetter) -> dict[str, Any]:
    return {**letter, "created_at": iso(letter["created_at"])}
