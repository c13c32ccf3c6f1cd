"""Retention: by hand, and once a month where somebody has given it that schedule."""

from __future__ import annotations

from typing import Any

from prefect import State
from prefect.states import Completed

from flows.runs import mailout_flow
from mailout.app.engine import Engine
from mailout.insight.retention.archiving import DEFAULT_DAYS
from tasks.retention import archive_old_mailouts


@mailout_flow()
def retention(engine: Engine, older_than: int = DEFAULT_DAYS) -> State[Any]:
    """Move the messages and events of old mailouts to Parquet files in MAILOUT_HOME/archive.

    Args:
        older_than: Mailouts that ended so many days ago; 30 at least.
    """
    return Completed(message=archive_old_mailouts(older_than))
