"""Mailouts, messages and subscribers in words and in JSON: the same wherever a command shows them."""

from __future__ import annotations

from collections.abc import Sequence
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
from mailout.insight.reporting.phrases import forecast_text, titled, wait
from mailout.insight.reporting.plain import status_lines, summary_lines
from mailout.insight.reporting.reports import Reports
from mailout.outbox.delivery.port import Message, MessageEvent
from mailout.outbox.queue.forecast import Forecast
from mailout.outbox.queue.mailout import Mailout, MailoutOutcome, Status


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


def show_mailout(engine: Engine, mailout: Mailout) -> None:
    say(f"Mailout {mailout.id}")
    say("\n".join(status_lines(mailout, engine.limits.timezone)))


def show_mailouts(engine: Engine, mailouts: Sequence[Mailout]) -> None:
    """One line each; below it what it waits for, if it waits."""
    forecasts = engine.queue_forecast.snapshot().forecasts
    zone = engine.limits.timezone
    table = TextTable(
        ("id", "date", "state", "sent", "subject"),
        right=frozenset({"sent"}),
        coloured="state",
        indent=SHORT_ID_CHARS + 2,
    )
    for m in mailouts:
        word, style = _word(engine, m)
        state = state_text(engine, m, forecasts.get(m.id))
        sent = f"{m.ledger.sent:,} of {m.ledger.recipients:,}"
        moment = m.completed_at or m.started_at or m.scheduled_at or m.created_at
        more = "" if state in ("done", "cancelled", "being sent") else state
        table.add(m.id[:SHORT_ID_CHARS], day(moment, zone), word, sent, titled(m), style=style, more=more)
    table.show()


def _word(engine: Engine, mailout: Mailout) -> tuple[str, str]:
    """How it stands in one word, and its colour."""
    match mailout.status:
        case Status.PENDING if mailout.defer_reason is not None:
            return ("needs you", "bold yellow") if mailout.deferred_until is None else ("waits", "yellow")
        case Status.PENDING if mailout.planned_for is not None:
            return "planned", "cyan"
        case Status.PENDING:
            return ("waits" if interrupted(engine, mailout) is None else "stopped"), "yellow"
        case Status.PROCESSING:
            return ("sending", "cyan") if interrupted(engine, mailout) is None else ("stopped", "yellow")
        case Status.CANCELLED:
            return "cancelled", "dim"
        case Status.COMPLETED:
            return ("failed", "red") if mailout.outcome is MailoutOutcome.FAILED else ("done", "green")


def state_text(engine: Engine, mailout: Mailout, forecast: Forecast | None) -> str:
    """A few words, for a table; for what goes on by itself, until when."""
    if (words := interrupted(engine, mailout)) is not None:
        return words  # nobody is there to keep to a forecast
    words = _state(engine, mailout) + ("; archived" if mailout.archived_at is not None else "")
    if forecast is None or forecast.ends_at is None:
        return words
    return f"{words}; {forecast_text(forecast, engine.limits.timezone)}"


def interrupted(engine: Engine, mailout: Mailout) -> str | None:
    """That nobody sends it any more, and how it goes on; None: somebody does, or it waits for a reason."""
    return interruption(
        mailout,
        now=engine.store.now(),
        lock_seconds=engine.settings.lock_seconds,
        is_up=is_up(engine.settings.mailout_home / UP_LOCK),
        zone=engine.limits.timezone,
    )


def _state(engine: Engine, mailout: Mailout) -> str:
    zone = engine.limits.timezone
    match mailout.status:
        case Status.PENDING:
            return wait(mailout, zone)
        case Status.PROCESSING:
            return "being sent"
        case Status.CANCELLED:
            return "cancelled"
        case Status.COMPLETED if mailout.outcome is MailoutOutcome.FAILED:
            return f"done, {mailout.ledger.failed:,} failed, {mailout.ledger.unknown:,} unknown"
        case Status.COMPLETED:
            return "done"


def message_dict(row: Message, events: Sequence[MessageEvent]) -> dict[str, Any]:
    times = {
        name: iso(value) for name, value in row.items() if name.endswith("_at") and isinstance(value, float)
    }
    return dict(row) | times | {"events": [dict(event) for event in events]}


def near(path: Path) -> str:
    """As short as it can be typed from here."""
    path = path.absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
