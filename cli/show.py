"""Mailouts, messages and subscribers in words and in JSON: the same wherever a command shows them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Any

from cli.interrupted import interruption
from cli.names import SHORT_ID_CHARS
from cli.output import say
from cli.processes.prefect_api import UP_LOCK
from cli.tables import TextTable
from flows.orphans import is_up
from mailout.app.engine import Engine
from mailout.base.time_format import day, iso
from mailout.insight.reporting.phrases import count, forecast_text, titled, wait
from mailout.insight.reporting.plain import summary_lines
from mailout.insight.reporting.queue_json import mailout_dict
from mailout.insight.reporting.reports import Reports
from mailout.outbox.delivery.port import Message, MessageEvent
from mailout.outbox.delivery.single_mails import UNSERVED_SECONDS
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.forecast import Forecast
from mailout.outbox.queue.mailout import Mailout, MailoutOutcome, Status

SAID_BY_THE_WORD = ("being sent", "cancelled", "done")


def show_reports(engine: Engine, reports: Reports) -> None:
    say("\n".join(summary_lines(reports.summary, engine.limits.timezone)))
    say()
    outbox = engine.settings.mailout_home / "outbox" / reports.summary.mailout.id
    if engine.settings.mailout_transport == "folder" and outbox.is_dir():
        say(f"  mails   {near(outbox)}")
    show_files(reports)


def show_files(reports: Reports) -> None:
    for name, path in (("table ", reports.csv), ("report", reports.html)):
        if path.exists():  # else it was said why it could not be written
            say(f"  {name}  {near(path)}")


def show_requests(engine: Engine) -> None:
    """That nothing takes up what was asked for (it is no mailout yet), or sends what is due."""
    n = len(queue_rows.unserved(engine.store, UNSERVED_SECONDS))
    if n and not queue_rows.all_paused(engine.store):
        many = count(n, "request for a letter or an article waits", "requests for letters or articles wait")
        what = "it" if n == 1 else "them"
        say(f"{many}: {_why_not(engine, what, f'nothing takes {what} up')}", style="bold yellow")
    late = len(overdue(engine))
    if late:
        what = "it" if late == 1 else "them"
        many = count(late, "letter is due", "letters are due")
        say(f"{many}: {_why_not(engine, what, f'nothing sends {what}')}", style="bold yellow")


def overdue(engine: Engine) -> Sequence[Mailout]:
    """What is due while nobody sends anything."""
    return queue_rows.overdue(engine.store, engine.settings.lock_seconds, rehearses=engine.rehearses)


def _why_not(engine: Engine, what: str, nothing: str) -> str:
    if is_up(engine.settings.mailout_home / UP_LOCK):
        return f"Prefect does not start {what}. `mailout doctor` says why."
    return f"{nothing}. Start `mailout up`."


def mailout_json(engine: Engine, mailout: Mailout, forecast: Forecast | None) -> dict[str, Any]:
    """`interrupted` as `status ID --json` has it: nobody is there to keep to a forecast then."""
    stopped = interruption(engine, mailout)
    return mailout_dict(mailout, None if stopped else forecast) | {"interrupted": stopped}


def show_mailouts(engine: Engine, mailouts: Sequence[Mailout]) -> None:
    """One line each; below it what it waits for, if it waits."""
    snapshot = engine.queue_forecast.snapshot()
    forecasts = snapshot.forecasts
    zone, now = engine.limits.timezone, snapshot.now
    untaken = {one.id for one in overdue(engine)}
    table = TextTable(
        ("id", "date", "state", "sent", "subject"),
        right=frozenset({"sent"}),
        coloured="state",
        indent=SHORT_ID_CHARS + 2,
    )
    for m in mailouts:
        word, style, more = _state(m, zone, now, untaken=m.id in untaken)
        forecast = forecasts.get(m.id)
        if m.archived_at is not None:
            more += "; archived"
        if forecast is not None and forecast.ends_at is not None:
            more += f"; {forecast_text(forecast, zone)}"
        if (stopped := interruption(engine, m)) is not None:
            word = "stopped" if m.status is Status.PROCESSING else word
            style, more = "yellow", stopped  # nobody is there to keep to a forecast
        sent = f"{m.ledger.sent:,} of {m.ledger.recipients:,}"
        moment = m.completed_at or m.started_at or m.scheduled_at or m.created_at
        below = "" if more in SAID_BY_THE_WORD else more
        table.add(m.id[:SHORT_ID_CHARS], day(moment, zone), word, sent, titled(m), style=style, more=below)
    table.show()


def _state(mailout: Mailout, zone: tzinfo, now: float, *, untaken: bool) -> tuple[str, str, str]:
    """How it stands in one word, its colour, and in a few words more."""
    match mailout.status:
        case Status.PENDING if mailout.defer_reason is not None and mailout.deferred_until is None:
            return "needs you", "bold yellow", wait(mailout, zone)
        case Status.PENDING if mailout.is_overdue(now) or mailout.defer_reason or not mailout.planned_for:
            return "waits", "yellow", wait(mailout, zone, now, untaken=untaken)
        case Status.PENDING:
            return "planned", "cyan", wait(mailout, zone)
        case Status.PROCESSING:
            return "sending", "cyan", "being sent"
        case Status.CANCELLED:
            return "cancelled", "dim", "cancelled"
        case Status.COMPLETED if mailout.outcome is MailoutOutcome.FAILED:
            ledger = mailout.ledger
            return "failed", "red", f"done, {ledger.failed:,} failed, {ledger.unknown:,} unknown"
        case Status.COMPLETED:
            return "done", "green", "done"


def message_dict(row: Message, events: Sequence[MessageEvent]) -> dict[str, Any]:
    times = {
        name: iso(value) for name, value in row.items() if name.endswith("_at") and isinstance(value, float)
    }
    return dict(row) | times | {"events": [dict(event) for event in events]}


def near(path: Path) -> str:
    """As short as it can be typed from here."""
    path = path.absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
