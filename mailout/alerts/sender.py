"""Finds what is due and sends it: in the log, to whoever listens (Prefect), and by mail to `ADMIN_EMAIL`.

The mail goes straight to the transport, past outbox, counters and pacer: at most one a look, so it fits into
the one message a second by which a pace may be passed. A provider that refuses everything refuses this too;
then the log and the event are what is left, and the mail is tried again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import tzinfo

from mailout import ids
from mailout.alerts.conditions import alerts
from mailout.alerts.letter import MOST, letter
from mailout.alerts.model import Alert, Facts, Known
from mailout.alerts.port import AlertStore
from mailout.alerts.timing import is_due
from mailout.delivery.port import Mail, Transport
from mailout.delivery.protocol import Attempt, Outcome, OutcomeKind
from mailout.settings import Settings

log = logging.getLogger("mailout.alerts")

Announce = Callable[[Alert], None]


class AlertSender:
    """Any number of them may look at one store: each alert is sent by one."""

    def __init__(self, store: AlertStore, transport: Transport, settings: Settings, zone: tzinfo) -> None:
        self._store = store
        self._transport = transport
        self._settings = settings
        self._zone = zone

    def look(self) -> Sequence[tuple[Alert, Known]]:
        """What is due. What has ended is noted: should it come back, it is sent again."""
        facts = self._facts()
        found = {alert.key: alert for alert in alerts(facts, self._zone)}
        known = self._store.alerts_hold(list(found), facts.signs.now)
        return [
            (found[one.key], one)
            for one in sorted(known, key=lambda one: one.since)
            if is_due(found[one.key], one, facts.signs.now)
        ]

    def send_alerts(self, announce: Announce) -> Sequence[Alert]:
        """Send what is due; what was sent, by mail or otherwise."""
        mine = [(alert, known) for alert, known in self.look()[:MOST] if self._store.claim_alert(known)]
        for alert, known in mine:
            if not known.failed:  # else it was said before, and only the mail is missing
                log.warning("%s: %s", alert.subject, " ".join(alert.text.split()))
                announce(alert)
        due = [alert for alert, _ in mine]
        if not due or not self._mail(due, mine[0][1]):
            return ()
        for alert in due:
            self._store.alert_sent(alert.key)
        return due

    def _facts(self) -> Facts:
        scope = self._transport.scope
        signs = self._store.alert_signs(scope)  # first: its time is before all that is seen
        return Facts(
            signs=signs,
            mailouts=self._store.needing_a_person(),
            scope=scope,
            quota_left=self._store.quota(scope),
            expects_events=self._transport.name == "ses" and bool(self._settings.ses_configuration_set),
        )

    def _mail(self, alerts: Sequence[Alert], first: Known) -> bool:
        """Whether it left, or there is nobody to send it to."""
        to, sender = self._settings.admin_email, self._settings.from_email
        if not to or not sender:
            log.info("ADMIN_EMAIL or FROM_EMAIL is not set: no mail about it")
            return True
        mail = Mail(
            attempt=Attempt(ids.uuid_of("alert", first.key, str(first.since), str(first.tries)), 1),
            mailout_id=None,
            to=to,
            from_email=sender,
            from_name="mailout",
            reply_to=None,
            content=letter(alerts),
            values={},
            unsubscribe_url=None,
        )
        (outcome,) = self._transport.send([mail])
        if outcome.kind is OutcomeKind.SENT:
            return True
        log.error("an alert could not be mailed to ADMIN_EMAIL and is tried again: %s", _said(outcome))
        return False


def _said(outcome: Outcome) -> str:
    return f"{outcome.code or outcome.kind}: {outcome.message or 'no reason given'}"
