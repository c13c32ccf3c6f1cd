"""What became of each attempt, as lines of the log that machines can follow a message by."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

from mailout.outbox.delivery.protocol import Claimed, Ledger, Result
from mailout.outbox.delivery.states import State

log = logging.getLogger("mailout.sender")

LEVELS = {
    State.PENDING: logging.INFO,  # throttled, or the quota is spent: it costs no attempt, and waits
    State.RETRY_SCHEDULED: logging.INFO,
    State.FAILED: logging.INFO,
    State.VALIDATION_FAILED: logging.INFO,
    State.UNKNOWN: logging.WARNING,  # a person has to settle it
}
"""The others (sent) have their line at DEBUG: a million of them hide all else."""

SAME_LINES_A_RUN = 100
"""Lines about the same, a run: the rest of them at DEBUG. The report and the CSV have them all."""

PROVIDER_IDS_KEPT = 10_000
"""The provider's last ids, to notice one that comes twice: something between us and it repeats answers."""


class OutcomeLog:
    """An observer of a run of the sender. It names no address: the outbox id finds it."""

    def __init__(self) -> None:
        self._said: Counter[tuple[State, str | None]] = Counter()
        self._provider_ids: dict[str, None] = {}  # the oldest first

    def recorded(self, results: Sequence[tuple[Claimed, Result]], ledger: Ledger | None) -> None:
        in_detail = log.isEnabledFor(logging.DEBUG)
        for claimed, result in results:
            if in_detail or result.state in LEVELS:
                self._say(claimed, result)
            if result.provider_message_id is not None:
                self._notice(claimed, result.provider_message_id)

    def _notice(self, claimed: Claimed, provider_message_id: str) -> None:
        """It is recorded all the same: an event of that id may then tell of the wrong one of the two."""
        if provider_message_id in self._provider_ids:
            log.warning(
                "the provider gave the same id twice: %s",
                provider_message_id,
                extra={"outboxId": claimed.attempt.id},
            )
        self._provider_ids[provider_message_id] = None
        if len(self._provider_ids) > PROVIDER_IDS_KEPT:
            del self._provider_ids[next(iter(self._provider_ids))]

    def _say(self, claimed: Claimed, result: Result) -> None:
        level = LEVELS.get(result.state, logging.DEBUG)
        if level > logging.DEBUG:
            kind = (result.state, result.code)
            self._said[kind] += 1
            if self._said[kind] == SAME_LINES_A_RUN + 1:
                log.info("more than %d messages are %s; the rest at DEBUG", SAME_LINES_A_RUN, _what(result))
            if self._said[kind] > SAME_LINES_A_RUN:
                level = logging.DEBUG
        log.log(
            level,
            "%s%s",
            _what(result),
            f": {result.message}" if result.message else "",
            extra={
                "outboxId": claimed.attempt.id,
                "requestId": claimed.request_id or claimed.mailout_id,  # what asked for it
                "companyId": claimed.company_id,
                "attempt": claimed.number,
                "state": result.state.value,
                "durationMs": result.duration_ms,
                **claimed.tags,
            },
        )


def _what(result: Result) -> str:
    return f"{result.state} {result.code}" if result.code else result.state.value
