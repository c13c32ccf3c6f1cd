"""Mailouts, messages and subscribers in words and in JSON: the same wherever a command shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cli.names import SHORT
from cli.output import say
from mailout.engine import Engine
from mailout.queue.forecast import Forecast
from mailout.queue.mailout import Mailout, MailoutOutcome, Status
from mailout.reporting.forecasts import forecast_dict, forecast_text
from mailout.reporting.phrases import WHY, mode
from mailout.reporting.plain import status_lines, summary_lines
from mailout.reporting.reports import Reports
from mailout.time_format import iso, spoken

ALL_PAUSED = "Everything is paused. To go on: mailout queue resume --all"


def show_reports(engine: Engine, reports: Reports) -> None:
    say("\n".join(summary_lines(reports.summary, engine.limits.timezone)))
    say()
    outbox = engine.settings.mailout_home / "outbox" / reports.summary.mailout.id
    if engine.settings.mailout_transport == "folder" and outbox.is_dir():
        say(f"The mails as files:    {near(outbox)}")
    show_files(reports)


def show_files(reports: Reports) -> None:
    for name, path in (("One line a recipient: ", reports.csv), ("The report as a page: ", reports.html)):
        if path.exists():  # else it was said why it could not be written
            say(f"{name} {near(path)}")


def show_mailout(engine: Engine, mailout: Mailout) -> None:
    say(f"Mailout {mailout.id}")
    say("\n".join(status_lines(mailout, engine.limits.timezone)))


def show_mailouts(engine: Engine, mailouts: Sequence[Mailout]) -> None:
    """One line each; the subject comes last, where a long one does no harm."""
    forecasts = engine.queue_forecast.snapshot().forecasts
    rows = [
        (
            m.id[:SHORT],
            state_text(engine, m, forecasts.get(m.id)),
            f"{m.ledger.sent:,} of {m.ledger.recipients:,}",
            titled(m),
        )
        for m in mailouts
    ]
    head = ("id", "how it stands", "sent", "subject")
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(3)]
    for place, row in enumerate((head, *rows)):
        padded = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        say("  ".join((*padded, row[3])), style=None if place else "bold")


def titled(mailout: Mailout) -> str:
    return mailout.subject if mode(mailout) == "real" else f"({mode(mailout)}) {mailout.subject}"


def state_text(engine: Engine, mailout: Mailout, forecast: Forecast | None) -> str:
    """A few words, for a table; for what goes on by itself, until when."""
    words = _state(engine, mailout) + ("; archived" if mailout.archived_at is not None else "")
    if forecast is None or forecast.ends_at is None or _goes_on_by(engine, mailout) is not None:
        return words
    return f"{words}; {forecast_text(forecast, engine.limits.timezone)}"


def _goes_on_by(engine: Engine, mailout: Mailout) -> float | None:
    return mailout.goes_on_by(engine.store.now(), engine.settings.lock_seconds)


def _state(engine: Engine, mailout: Mailout) -> str:
    zone = engine.limits.timezone
    match mailout.status:
        case Status.PENDING if mailout.defer_reason is not None:
            until = mailout.deferred_until
            when = "for a person" if until is None else f"until {spoken(until, zone)}"
            return f"waits {when}: {WHY[mailout.defer_reason]}"
        case Status.PENDING if mailout.started_at is None and mailout.scheduled_at is not None:
            return f"planned for {spoken(mailout.scheduled_at, zone)}"
        case Status.PENDING:
            return "waits for its turn"
        case Status.PROCESSING if (by := _goes_on_by(engine, mailout)) is not None:
            return f"nobody is sending it; goes on by {spoken(by, zone)} at the latest"
        case Status.PROCESSING:
            return "being sent"
        case Status.CANCELLED:
            return "cancelled"
        case Status.COMPLETED if mailout.outcome is MailoutOutcome.FAILED:
            return f"done, {mailout.ledger.failed:,} failed, {mailout.ledger.unknown:,} unknown"
        case Status.COMPLETED:
            return "done"


def mailout_dict(mailout: Mailout, forecast: Forecast | None = None) -> dict[str, Any]:
    """Every column under its name in the table; times in ISO 8601, UTC."""
    times = (
        "scheduled_at",
        "deferred_until",
        "locked_at",
        "created_at",
        "frozen_at",
        "started_at",
        "completed_at",
        "archived_at",
    )
    moments = {name: iso(getattr(mailout, name)) for name in times}
    return asdict(mailout) | moments | {"forecast": forecast_dict(forecast)}


def message_dict(row: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    times = {
        name: iso(value) for name, value in row.items() if name.endswith("_at") and isinstance(value, float)
    }
    return dict(row) | times | {"events": [dict(event) for event in events]}


def near(path: Path) -> str:
    """As short as it can be typed from here."""
    path = path.absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
