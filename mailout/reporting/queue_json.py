"""The queue as JSON: what the poll answers and the stream sends."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mailout.delivery.protocol import Halt
from mailout.queue.forecast import Forecast
from mailout.queue.mailout import Mailout
from mailout.queue.snapshot import QueueSnapshot, due_at
from mailout.reporting.forecasts import forecast_dict
from mailout.reporting.phrases import WHY, mode
from mailout.time_format import iso


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
        "requests": [{"ref": one.ref, "how": one.how.value} for one in snapshot.asked],
    }


def mailout_state(mailout: Mailout, forecast: Forecast | None = None) -> dict[str, Any]:
    """One mailout, as the API shows it."""
    return {
        "id": mailout.id,
        "subject": mailout.subject,
        "status": mailout.status.value,
        "outcome": mailout.outcome.value if mailout.outcome else None,
        "mode": mode(mailout),
        "company_id": mailout.company_id,
        "list": mailout.list_key,
        "priority": mailout.priority,
        "scheduled_at": iso(mailout.scheduled_at),
        "reason_code": mailout.defer_reason.value if mailout.defer_reason else None,
        "reason": _why(mailout),
        "note": mailout.defer_note,
        "deferred_until": iso(mailout.deferred_until),
        "seen_at": iso(mailout.locked_at),
        "started_at": iso(mailout.started_at),
        "completed_at": iso(mailout.completed_at),
        "counts": asdict(mailout.ledger),
        "forecast": forecast_dict(forecast),
    }


def _of(mailout: Mailout | None, snapshot: QueueSnapshot) -> dict[str, Any] | None:
    return None if mailout is None else mailout_state(mailout, snapshot.forecasts.get(mailout.id))


def _why(mailout: Mailout | None) -> str | None:
    return WHY[mailout.defer_reason] if mailout and mailout.defer_reason else None


def _moment(mailout: Mailout, now: float) -> str | None:
    """When it may go on; what is due already, now. None: when a person says so."""
    due = due_at(mailout)
    return None if due == float("inf") else iso(max(due, now))
