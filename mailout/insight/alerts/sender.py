"""Finds what is due and sends it: in the log, to whoever listens (Prefect), and by mail to `ADMIN_EMAIL`.

The mail is a single mail like others, in the outbox: paced, counted, tried again. A provider that refuses
everything refuses this too; until it leaves, the log and the event are what there is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from html import escape

from mailout.base import ids
from mailout.base.addresses import normalise
from mailout.base.settings import Settings
from mailout.insight.alerts import alert_rows
from mailout.insight.alerts.conditions import COMPLAINTS_WINDOW_SECONDS, alerts
from mailout.insight.alerts.port import Alert, AlertStore, Facts, KnownAlert
from mailout.letters.content.model import Content, clean
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.port import REHEARSING, Transport
from mailout.outbox.delivery.single_mails import OURS, SingleMail
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.deferrals import ENOUGH_SENT

log = logging.getLogger("mailout.alerts")

Announce = Callable[[Alert], None]

REMIND_EVERY = 86_400.0
REMIND_FOR = 7 * 86_400.0
"""Whoever has not acted after a week has decided."""
RETRY_AFTER = (60.0, 300.0, 1800.0, 3600.0)
"""After one that did not get into the outbox: the store was away, or a process was killed. The last one again
and again."""

ALERTS_A_LETTER = 20
"""The others follow in the next."""
CLOSING = (
    "You get this because ADMIN_EMAIL is set to this address. While something lasts you hear of it once a"
    " day at most, for a week; what is put right is not repeated."
)


@dataclass(frozen=True, slots=True, repr=False)
class AlertSender:
    """Any number of them may look at one store: each alert is sent by one."""

    store: AlertStore
    transport: Transport
    settings: Settings
    zone: tzinfo

    def look(self) -> Sequence[tuple[Alert, KnownAlert]]:
        """What is due. What has ended is noted: should it come back, it is sent again.

        Beside a sender of real mail, whoever rehearses leaves the alerts to it: a folder would swallow them.
        """
        if self.transport.name == REHEARSING and outbox_rows.has_sent_really(self.store):
            return []
        facts = self._facts()
        found = {alert.key: alert for alert in alerts(facts, self.zone)}
        known = self.store.alerts_hold(list(found), facts.signs.now)
        return [
            (found[one.key], one)
            for one in sorted(known, key=lambda one: one.since)
            if is_due(found[one.key], one, facts.signs.now)
        ]

    def send_alerts(self, announce: Announce) -> Sequence[Alert]:
        """Send what is due; what was sent, by mail or otherwise."""
        mine = [
            (alert, known) for alert, known in self.look()[:ALERTS_A_LETTER] if self.store.claim_alert(known)
        ]
        for alert, known in mine:
            if not known.failed:  # else it was said before, and only the mail is not in the outbox
                log.warning("%s: %s", alert.subject, " ".join(alert.text.split()))
                announce(alert)
        due = [alert for alert, _ in mine]
        if due:
            self._hand_in(due, mine[0][1])
        for alert in due:
            self.store.alert_sent(alert.key)
        return due

    def _facts(self) -> Facts:
        scope, rehearses = self.transport.scope, self.transport.name == REHEARSING
        signs = alert_rows.alert_signs(self.store, scope)  # first: its time is before all that is seen
        return Facts(
            signs=signs,
            mailouts=queue_rows.needing_a_person(self.store),
            stuck=queue_rows.stuck(self.store, self.settings.lock_seconds, rehearses=rehearses),
            recent=queue_rows.lately_sent(self.store, signs.now - COMPLAINTS_WINDOW_SECONDS, ENOUGH_SENT),
            single_mails=self.store.single_mails_waiting(rehearsal=rehearses),
            scope=scope,
            quota_left=outbox_rows.quota(self.store, scope),
            max_bounce_rate=self.settings.max_bounce_rate,
            expects_events=self.transport.name == "ses" and bool(self.settings.ses_configuration_set),
        )

    def _hand_in(self, alerts: Sequence[Alert], first: KnownAlert) -> None:
        """Into the outbox, if there is somebody to send it to: from there it leaves like every mail."""
        to = self.settings.admin_email
        if not to or not self.settings.from_email:
            log.info("ADMIN_EMAIL or FROM_EMAIL is not set: no mail about it")
            return
        id = ids.uuid_of("alert", first.key, str(first.since), str(first.tries))
        mail = SingleMail(
            id=id,
            company_id=OURS,
            request_id=id,
            email=str(normalise(to)),
            content=letter(alerts),
            from_name="mailout",
            is_rehearsal=self.transport.name == REHEARSING,
        )
        self.store.accept_single_mails([mail])


def is_due(alert: Alert, known: KnownAlert, now: float) -> bool:
    """Once while it lasts, again each day for a week, and sooner if the mail failed."""
    if known.failed and known.tried_at is not None:
        return now >= known.tried_at + RETRY_AFTER[min(known.failed, len(RETRY_AFTER)) - 1]
    if known.told_at is not None:
        old = now - known.since >= REMIND_FOR
        return alert.remind and not old and now >= known.told_at + REMIND_EVERY
    return now >= known.since + alert.grace


def letter(alerts: Sequence[Alert]) -> Content:
    """Plain text, and the same as the simplest HTML."""
    if len(alerts) == 1:
        subject, text = alerts[0].subject, alerts[0].text
    else:
        subject = f"{len(alerts)} things wait for you"
        text = "\n\n\n".join(
            f"{number}. {alert.subject}\n\n{alert.text}" for number, alert in enumerate(alerts, 1)
        )
    text = clean(f"{text}\n\n-- \n{CLOSING}\n")
    return Content(subject=clean(subject), html=_html(text), text=text)


def _html(text: str) -> str:
    """As it was written: commands on lines of their own, and nothing that a subject could add."""
    return (
        '<!doctype html><html><head><meta charset="utf-8"></head><body>'
        '<div style="white-space:pre-wrap;font:15px/1.5 sans-serif;max-width:40em">'
        f"{escape(text)}</div></body></html>"
    )
