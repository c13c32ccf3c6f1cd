"""Reconcile the counters: every half hour, and by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from prefect import State
from prefect.states import Completed

from flows.alerts import raise_alerts
from flows.runs import mailout_flow
from mailout.app.engine import Engine
from tasks import feedback


@mailout_flow()
def reconcile(engine: Engine) -> State[Any]:
    """Find attempts whose sender disappeared, count what is unknown, ask the provider for its quota, check
    the counters, tell the rates of mailouts whose events still come, and what needs a person."""
    found = feedback.reconcile()
    raise_alerts(engine)
    notes = [f"{found.reaped} attempts reaped", f"{found.doubts.unknown} unknown"]
    if found.doubts.oldest is not None:
        oldest = datetime.fromtimestamp(found.doubts.oldest, UTC)
        notes.append(f"the oldest since {oldest:%Y-%m-%d %H:%M} UTC")
    if found.drift:
        notes.append(f"{len(found.drift)} counters say less than was sent")
    return Completed(message=", ".join(notes) + ".", name="Drift" if found.drift else "Completed")
