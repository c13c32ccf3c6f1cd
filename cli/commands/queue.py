"""`mailout queue`: what waits, why, and what a person can do about it."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.commands.messages import retry_single_mails, show_single_mails
from cli.engine import command_group, open_engine
from cli.interrupted import goes_on, interruption
from cli.names import find_mailout, find_message
from cli.output import Json, Yes, answer, confirm, print_json, say
from cli.show import mailout_json, overdue, show_mailouts, show_requests
from mailout.app.engine import Engine
from mailout.base.errors import NotFound, UsageError
from mailout.insight.reporting.phrases import ALL_PAUSED, count, edited_meanwhile
from mailout.insight.reporting.plain import status_lines
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import actions, queue_rows
from mailout.outbox.queue.actions import SettleVerdict
from mailout.outbox.queue.mailout import Mailout, Status

app = command_group("What waits and what was sent: list, pause, cancel, retry, settle.")

Id = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="A mailout: its id or the beginning of it, its Markdown file or Notion page."
    ),
]
MaybeId = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="A mailout, as `queue list` shows it; or use --all.")
]


@app.command("list", epilog="Example: mailout queue list --json")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 100,
    json: Json = False,
) -> None:
    """All mailouts: what is sent, what waits and why."""
    engine = open_engine()
    mailouts = queue_rows.mailouts(engine.store, limit=limit)
    if json:
        forecasts = engine.queue_forecast.snapshot().forecasts
        print_json([mailout_json(engine, one, forecasts.get(one.id)) for one in mailouts])
        return
    if queue_rows.all_paused(engine.store):
        say(f"{ALL_PAUSED}\n")
    show_requests(engine)
    if mailouts:
        show_mailouts(engine, mailouts)
    else:
        say("The queue is empty. The first mailout: mailout send FILE.md --test")


@app.command("show", epilog="Example: mailout queue show 3f2a")
def show(id: Id, json: Json = False) -> None:
    """One mailout: how it stands, why it waits, what to do."""
    engine = open_engine()
    _show(engine, find_mailout(engine, id), json)


@app.command("cancel", epilog="Example: mailout queue cancel 3f2a")
def cancel(id: Id, yes: Annotated[bool, Yes] = False, json: Json = False) -> None:
    """Cancel a mailout. Mail already sent stays sent; nobody else gets it, and it cannot be resumed."""
    engine = open_engine()
    found = actions.require_open(find_mailout(engine, id))
    if found.status is not Status.CANCELLED:
        confirm(f"Cancel “{found.subject}”? {_remaining(found)} will not get it.", yes)
    mailout = actions.cancel(engine.store, found.id)
    engine.pages.update(mailout.id)
    _show(engine, mailout, json)


@app.command("pause", epilog="Example: mailout queue pause 3f2a, or: mailout queue pause --all")
def pause(
    id: MaybeId = None,
    all_: Annotated[bool, typer.Option("--all", help="Everything, also what comes later.")] = False,
    json: Json = False,
) -> None:
    """Hold a mailout (or everything) until somebody resumes it. Messages that are being sent are finished."""
    engine = open_engine()
    if _everything(id, all_):
        _switch(engine, True, json)
        return
    _show(engine, actions.pause(engine.store, find_mailout(engine, id or "").id), json)


@app.command("resume", epilog="Example: mailout queue resume 3f2a, or: mailout queue resume --all")
def resume(
    id: MaybeId = None,
    all_: Annotated[bool, typer.Option("--all", help="Undo `pause --all`.")] = False,
    yes: Annotated[bool, Yes] = False,
    json: Json = False,
) -> None:
    """Let a mailout (or everything) go on, whatever it waited for.

    If its page or file was edited after some people got it, it says so and asks.
    """
    engine = open_engine()
    if _everything(id, all_):
        _switch(engine, False, json)
        return
    mailout = find_mailout(engine, id or "")
    if mailout.defer_reason is not None and engine.intake.was_edited(mailout):
        confirm(f"{edited_meanwhile(mailout)} Resume it?", yes)
    _let_go_on(engine, actions.resume(engine.store, mailout.id), json)


@app.command("retry", epilog="Example: mailout queue retry 3f2a")
def retry(id: Id, json: Json = False) -> None:
    """Try the failed messages of a mailout again, and no others.

    Also one single mail, by its whole id.
    """
    engine = open_engine()
    try:
        mailout = find_mailout(engine, id)
    except NotFound:
        single = outbox_rows.find_messages(engine.store, id.strip())
        if not single:
            raise
        retry_single_mails(engine, single, json)
        return
    retried = actions.retry(engine.store, mailout.id)
    engine.report(mailout.id)
    if not json:
        say(f"{count(retried, 'message')} will be tried again.")
    _let_go_on(engine, engine.store.mailout(mailout.id), json)


@app.command("settle", epilog="Example: mailout queue settle 3f2a --as sent")
def settle(
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="The mailout; none for a single mail.")
    ] = None,
    *,
    verdict: Annotated[
        SettleVerdict, typer.Option("--as", help="What became of them; `pending` sends them again.")
    ],
    message: Annotated[
        list[str] | None,
        typer.Option(help="Only this one: its id, or its recipient's address. May be repeated."),
    ] = None,
    yes: Annotated[bool, Yes] = False,
    json: Json = False,
) -> None:
    """Say what became of messages in doubt.

    They were handed over and no answer came back. For a single mail, give only --message.
    """
    engine = open_engine()
    if id is None:
        _settle_single_mails(engine, verdict, message or [], yes, json)
        return
    mailout = find_mailout(engine, id)
    actions.require_here(mailout)
    chosen = [find_message(engine, mailout, name, (State.UNKNOWN,)) for name in message] if message else None
    doubtful = len(chosen) if chosen else mailout.ledger.unknown
    if not doubtful:
        raise UsageError("No message of it is in doubt: there is nothing to settle.")
    confirm(
        f"{_twice(verdict)}Settle {count(doubtful, 'message')} of “{mailout.subject}” as {verdict.value}?",
        yes,
    )
    actions.settle(engine.store, mailout.id, verdict, Timing.of(engine.settings.lock_seconds), chosen)
    engine.report(mailout.id)
    shows = _let_go_on if verdict is SettleVerdict.PENDING else _show
    shows(engine, engine.store.mailout(mailout.id), json)


def _settle_single_mails(
    engine: Engine, verdict: SettleVerdict, names: list[str], yes: bool, json: bool
) -> None:
    if not names:
        raise UsageError(
            "Name a mailout or a single mail.",
            remedy="A mailout as `queue list` shows it, or a single mail: --message ID.",
        )
    chosen = [find_message(engine, None, name) for name in names]
    confirm(f"{_twice(verdict)}Settle {count(len(chosen), 'single mail')} as {verdict.value}?", yes)
    actions.settle(engine.store, None, verdict, Timing.of(engine.settings.lock_seconds), chosen)
    show_single_mails(engine, chosen, json)


def _twice(verdict: SettleVerdict) -> str:
    return "People who already got it will get it twice. " if verdict is SettleVerdict.PENDING else ""


def _remaining(mailout: Mailout) -> str:
    if mailout.frozen_at is None:
        return "Nobody has got it yet; they"
    return f"{count(mailout.ledger.pending, 'person', 'people')} who have not got it yet"


def _everything(id: str | None, all_: bool) -> bool:
    if all_ == (id is not None):
        raise UsageError("Name one mailout, or use --all.", remedy="`mailout queue list` shows them.")
    return all_


def _switch(engine: Engine, paused: bool, json: bool) -> None:
    engine.store.pause_all(paused)
    answer(json, {"all_paused": paused}, ALL_PAUSED if paused else "Sending goes on.")


def _show(engine: Engine, mailout: Mailout, json: bool) -> None:
    if json:
        print_json(mailout_json(engine, mailout, engine.queue_forecast.forecast(mailout.id)))
    else:
        say(f"Mailout {mailout.id}")
        stopped, now = interruption(engine, mailout), engine.store.now()
        untaken = mailout.id in {one.id for one in overdue(engine)}
        say("\n".join(status_lines(mailout, engine.limits.timezone, stopped, now, untaken=untaken)))


def _let_go_on(engine: Engine, mailout: Mailout, json: bool) -> None:
    _show(engine, mailout, json)
    if not json and interruption(engine, mailout) is None:  # else it says itself how it goes on
        again = goes_on(engine, mailout)
        say(f"\n{again[0].upper()}{again[1:]}.")
