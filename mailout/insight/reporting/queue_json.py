"""A mailout and the queue as JSON: one shape for commands, reports and HTTP."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mailout.base.time_format import iso
from mailout.insight.reporting.phrases import WHY, mode
from mailout.outbox.delivery.protocol import Halt
from mailout.outbox.delivery.single_mails import SingleMailsWaiting
from mailout.outbox.queue.forecast import Forecast
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import Request
from mailout.outbox.queue.snapshot import QueueSnapshot, due_at

TIMES = (
    *("scheduled_at", "deferred_until", "locked_at", "created_at"),
    *("frozen_at", "started_at", "completed_at", "archived_at"),
)


def mailout_dict(mailout: Mailout, forecast: Forecast | None = None) -> dict[str, Any]:
    """Every column under its name in the table, and what people ask of it; times in ISO 8601, UTC."""
    return {
        **asdict(mailout),
        **{name: iso(getattr(mailout, name)) for name in TIMES},
        "mode": mode(mailout),
        "reason": _why(mailout),
        "forecast": forecast_dict(forecast),
    }


def forecast_dict(forecast: Forecast | None) -> dict[str, Any] | None:
    if forecast is None:
        return None
    moments = {"begins_at": iso(forecast.begins_at), "ends_at": iso(forecast.ends_at)}
    return {**asdict(forecast), **moments}


def snapshot_dict(snapshot: QueueSnapshot) -> dict[str, Any]:
    """`reason_code` and `next_run_at` are the store's own, of the mailout that would go on next."""
    active, waits = snapshot.active, snapshot.next_up
    shown = active or waits
    held = waits if active is None else None
    next_at = None if waits is None or snapshot.all_paused else _moment(waits, snapshot.now)
    return {
        "as_of": iso(snapshot.now),
        "all_paused": snapshot.all_paused,
        "active_campaign": _of(active, snapshot),
        "queued_count": len(snapshot.queued),
        "next_campaign_at": next_at,
        "reason_code": Halt.ALL_PAUSED.value if snapshot.all_paused else held and held.defer_reason,
        "reason": "everything is paused" if snapshot.all_paused else _why(held),
        "next_run_at": next_at if held is not None and held.defer_reason is not None else None,
        "counts": asdict(shown.ledger) if shown else None,
        "forecast": forecast_dict(snapshot.forecasts.get(shown.id)) if shown else None,
        "queue": [_of(mailout, snapshot) for mailout in snapshot.mailouts],
        "single_mails": single_mails_dict(snapshot.single_mails),
        "requests": [request_dict(one) for one in snapshot.asked],
    }


def request_dict(request: Request) -> dict[str, Any]:
    """Something that was asked for and is not a mailout yet; `not_before`: scheduled on the dashboard."""
    when = {"not_before": iso(request.not_before)} if request.not_before else {}
    return {"ref": request.ref, "how": request.how.value, **when}


def single_mails_dict(waiting: SingleMailsWaiting | None) -> dict[str, Any] | None:
    """That single mails wait, how many, since when and why; None: nothing holds them up."""
    hold = waiting.hold if waiting else None
    if waiting is None or hold is None:
        return None
    return {"waiting": waiting.due, "since": iso(hold.since), "code": hold.code, "reason": hold.why}


def _of(mailout: Mailout | None, snapshot: QueueSnapshot) -> dict[str, Any] | None:
    return None if mailout is None else mailout_dict(mailout, snapshot.forecasts.get(mailout.id))


def _why(mailout: Mailout | None) -> str | None:
    return WHY[mailout.defer_reason] if mailout and mailout.defer_reason else None


def _moment(mailout: Mailout, now: float) -> str | None:
    """When it may go on; what is due already, now. None: when a person says so."""
    due = due_at(mailout)
    return None if due == float("inf") else iso(max(due, now))
