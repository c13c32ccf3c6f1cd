"""Why single mails wait although a run tries to send them: kept in the store, where everybody can say it."""

from __future__ import annotations

from collections.abc import Sequence

from mailout.base.clock import Clock
from mailout.outbox.delivery.options import Ended, RunReport
from mailout.outbox.delivery.protocol import Claimed, Ledger, Result
from mailout.outbox.delivery.single_mails import SingleMails, SingleMailsHeld
from mailout.outbox.delivery.states import State
from mailout.outbox.delivery.store_retry import wait_for_store
from mailout.outbox.queue.limits import described

HOLDING = (Ended.REFUSED, Ended.LIMITED, Ended.CIRCUIT, Ended.THROTTLED)
PASSED = (Ended.DONE, Ended.DEADLINE)


class SingleMailsHold:
    """Of one run. Fulfils `Observer`: the first mail that is sent ends the hold, before the run is over."""

    def __init__(self, store: SingleMails, clock: Clock, *, rehearsal: bool) -> None:
        self._store = store
        self._clock = clock
        self._rehearsal = rehearsal
        waiting = wait_for_store(lambda: store.single_mails_waiting(rehearsal=rehearsal), clock)
        self._is_held = waiting.held is not None

    def recorded(self, results: Sequence[tuple[Claimed, Result]], ledger: Ledger | None) -> None:
        if any(result.state is State.SENT for _, result in results):
            self._end()

    def ended(self, report: RunReport) -> RunReport:
        """The same report, noted."""
        if report.ended in HOLDING:
            self._write(_held(report, self._clock.now()))
        elif report.ended in PASSED:
            self._end()
        return report

    def _end(self) -> None:
        if self._is_held:
            self._write(None)

    def _write(self, held: SingleMailsHeld | None) -> None:
        wait_for_store(lambda: self._store.hold_single_mails(held, rehearsal=self._rehearsal), self._clock)
        self._is_held = held is not None


def _held(report: RunReport, now: float) -> SingleMailsHeld:
    if report.outcome is not None:
        code, why = report.outcome.code or report.ended.value, described(report.outcome)
    else:
        code = report.limited or report.ended.value
        why = f"The limit of this {code} is used up: they go on by themselves."
    return SingleMailsHeld(now, code, why, needs_person=report.ended is Ended.REFUSED)
