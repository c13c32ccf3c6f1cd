"""Everything that one process needs, composed: `wiring.build` makes it from the settings."""

from __future__ import annotations

from dataclasses import dataclass

from mailout.app.sending import Sending
from mailout.base.clock import Clock
from mailout.base.settings import Settings
from mailout.insight.alerts.sender import AlertSender
from mailout.insight.page_status.updates import PageReports
from mailout.insight.reporting.reports import Reporting, Reports
from mailout.kinds.mailouts.mailouts import MailoutIntake
from mailout.outbox.queue.limits import Limits
from mailout.outbox.queue.mailout import Status
from mailout.outbox.queue.snapshot import QueueForecast
from mailout.readers.welcomes import Welcomes
from mailout.store import Store


@dataclass(frozen=True, slots=True, repr=False)
class Engine:
    """Take what you need of it: what needs one part is handed that part."""

    settings: Settings
    store: Store
    clock: Clock
    limits: Limits
    pages: PageReports
    queue_forecast: QueueForecast
    intake: MailoutIntake
    sending: Sending
    reporting: Reporting
    alert_sender: AlertSender
    welcomes: Welcomes

    @property
    def rehearses(self) -> bool:
        """Whether what is sent is written to a folder and reaches nobody."""
        return self.sending.rehearses

    def deliver(self, id: str) -> None:
        """Freeze, send, conclude, report: until it is complete, or waits, or was stopped."""
        self.sending.freeze(id)
        if self.sending.start(id).status is Status.PROCESSING:
            while self.sending.send_time_slice(id):
                continue
        self.report(id)

    def report(self, id: str) -> Reports:
        """How it stands, for people. Of what was stopped in the middle only the counts: the rest can wait."""
        if self.sending.stopping and not (mailout := self.store.mailout(id)).ledger.settled:
            return self.reporting.postpone(mailout)
        return self.reporting.report(id, self.sending.note(id))
