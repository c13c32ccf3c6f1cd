"""The mailout that a step works on, as one step hands it to the next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from prefect import State, Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import TaskRun

from mailout.base.errors import SourceUnavailable, StoreUnavailable
from mailout.insight.reporting.phrases import mode
from mailout.outbox.queue.mailout import Mailout
from tasks.logs import hidden

SLUG_LENGTH = 40


class LetterRef:
    """A mailout's id, and its subject as Prefect's pages may show it.

    Every step returns the letter it was given: from that Prefect knows that the next one depends on it.
    Not a dataclass, so that Prefect takes it as one thing.
    """

    def __init__(self, mailout: Mailout) -> None:
        self.id = mailout.id
        self.subject = hidden(mailout.subject)
        self.mode = mode(mailout)
        self.more_to_send = False

    def __str__(self) -> str:
        return self.subject if self.mode == "real" else f"{self.subject} ({self.mode})"

    def artifact_key(self, kind: str) -> str:
        """`report-the-garden-opens-1f3a9c20`. Prefect allows small letters, digits and dashes."""
        words = re.sub(r"[^a-z0-9]+", "-", self.subject.lower()).strip("-")[:SLUG_LENGTH].strip("-")
        return "-".join(filter(None, (kind, words, self.id[:8])))


def if_transient(task: Task[..., Any], run: TaskRun, state: State[Any]) -> bool:
    """What is worth another try: somebody was away. A letter that must not be sent stays refused."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, (SourceUnavailable, StoreUnavailable, OSError))


REPEATABLE: Mapping[str, Any] = {
    "cache_policy": NO_CACHE,
    "retries": 3,
    "retry_delay_seconds": 5,
    "retry_condition_fn": if_transient,
}
"""A task that may run again: what it does twice is done once."""
