"""One run for single mails: sends them as they come, for an hour; then the next run takes over."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence

from mailout.app.sending import Sending
from mailout.outbox.delivery.options import Ended, RunReport
from mailout.outbox.delivery.protocol import Claimed, Ledger, Result
from mailout.outbox.delivery.states import State

log = logging.getLogger("mailout.single_mails")

ASK_FOR_NEXT_SECONDS = 30.0
"""So long before its end a run asks for the next one: a process takes a while to start."""
HEARD_POLL_SECONDS = 30.0
HANDOVER_WAIT_SECONDS = 90.0
"""How long the next one waits for the one before it to end."""
HANDOVER_POLL_SECONDS = 1.0
SLICE_SECONDS = 180.0
"""Between slices the provider's quota is asked again."""
PAUSE_SECONDS = {
    Ended.HALTED: 5.0,  # everything is paused
    Ended.LIMITED: 30.0,
    Ended.REFUSED: 60.0,
    Ended.CIRCUIT: 60.0,
    Ended.THROTTLED: 30.0,
}
"""What ended the sending may pass: no mail is lost by looking again."""


class SingleMailRun:
    """Fulfils `Observer`: it counts what became of them."""

    def __init__(
        self,
        sending: Sending,
        ask_for_next: Callable[[], None] = lambda: None,
        was_heard: Callable[[], bool] = lambda: True,
    ) -> None:
        self._sending = sending
        self._ask_for_next = ask_for_next
        self._was_heard = was_heard
        self.ended: Counter[State] = Counter()

    def take_over(self) -> bool:
        """Whether it is this run's turn: nobody sends, or whoever did has ended meanwhile."""
        sending, clock = self._sending, self._sending.clock
        until = clock.monotonic() + HANDOVER_WAIT_SECONDS
        while sending.store.single_mails_waiting(rehearsal=sending.rehearses).is_served:
            if clock.monotonic() >= until:
                return False
            clock.sleep(HANDOVER_POLL_SECONDS)
        return True

    def run(self, seconds: float) -> bool:
        """Until its time is up, and for up to as long again while nobody hears that it asks for the next one.
        False: somebody has asked it to stop."""
        end = self._sending.clock.monotonic() + seconds
        goes_on = self._send_until(end - ASK_FOR_NEXT_SECONDS)
        if goes_on:
            self._ask_for_next()
            goes_on = self._send_until(end)
        last = end + seconds
        while goes_on and end < last and not self._was_heard():
            end += HEARD_POLL_SECONDS
            goes_on = self._send_until(end)
        return goes_on

    def _send_until(self, until: float) -> bool:
        clock = self._sending.clock
        while (remaining := until - clock.monotonic()) > 0:
            report = self._sending.send_single_mails(min(remaining, SLICE_SECONDS), self)
            if report.ended is Ended.STOPPED:
                return False
            if report.ended in PAUSE_SECONDS:
                self._pause(report, until)
        return True

    def _pause(self, report: RunReport, until: float) -> None:
        clock = self._sending.clock
        wait = max(0.0, min(PAUSE_SECONDS[report.ended], until - clock.monotonic()))
        log.warning("single mails wait %.0f s: %s. %s", wait, report.ended, _why(report))
        clock.sleep(wait)

    def recorded(self, results: Sequence[tuple[Claimed, Result]], ledger: Ledger | None) -> None:
        self.ended.update(result.state for _, result in results)


def send_what_waits(sending: Sending) -> None:
    """A net: single mails that are due while nobody is there for them, alerts among them, leave now."""
    waiting = sending.store.single_mails_waiting(rehearsal=sending.rehearses)
    if waiting.due_since is not None and not waiting.is_served:
        report = sending.send_single_mails(60.0, until_idle=True)
        if report.ended in PAUSE_SECONDS:
            log.warning("single mails wait: %s. %s", report.ended, _why(report))


def _why(report: RunReport) -> str:
    if report.outcome is not None:
        return f"{report.outcome.code or ''} {report.outcome.message or ''}".strip()
    return report.limited or report.halt or ""
