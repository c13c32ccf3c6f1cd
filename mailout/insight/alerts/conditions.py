"""What deserves an alert, and in which words: a pure decision over what was seen.

No subscriber's address gets into one: mail to an administrator is copied, forwarded and kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import tzinfo

from mailout.base.redact import redact_text
from mailout.base.time_format import lasting, spoken
from mailout.insight.alerts.port import Alert, AlertKind, Facts
from mailout.insight.reporting.phrases import (
    NextStep,
    count,
    headline,
    not_taken_up,
    resuming,
    settling,
    single_mails_wait,
    waiting,
)
from mailout.outbox.delivery.single_mails import NO_SENDER
from mailout.outbox.queue.deferrals import ENOUGH_SENT
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, DeferReason, Mailout, Status

DAY_SECONDS = 86_400.0
HOUR_SECONDS = 3600.0
QUOTA_TELL, QUOTA_OVER = 0.10, 0.20
"""Told when a tenth remains: in time for the alert itself to be sent, and to move a mailout to tomorrow. Over
when a fifth remains: the window slides, and an account that is near the line would be reported all day."""
COMPLAINTS_TELL = 0.001
"""Gmail and Yahoo ask for less; three times as many stop a mailout (`MAX_COMPLAINT_RATE`)."""
COMPLAINTS_WINDOW_SECONDS = 14 * DAY_SECONDS
DOUBT_GRACE_SECONDS = 900.0
"""An event settles most doubts within minutes; and before a quarter of an hour nobody may send them again."""
EVENTS_WAIT_SECONDS = 600.0
"""They are applied within seconds."""
EVENTS_UNHEARD_SECONDS = 1800.0
"""SES reports a message within seconds, rarely within minutes."""


def alerts(facts: Facts, zone: tzinfo) -> Sequence[Alert]:
    """Whatever holds now; `sender` says when an alert of it is due."""
    found = [
        *(alert for mailout in facts.mailouts for alert in _of_mailout(mailout, facts, zone)),
        *(_stuck(mailout, facts.signs.now, zone) for mailout in facts.stuck),
        *(alert for mailout in facts.recent for alert in _complaints(mailout, facts.signs.now)),
        *_quota(facts),
        *_single_mails(facts, zone),
        *_events_waiting(facts),
        *_events_unheard(facts, zone),
        *_notion(facts, zone),
        *_sign_ups(facts),
    ]
    return [_without_addresses(alert) for alert in found]


def _without_addresses(alert: Alert) -> Alert:
    """A provider's message, quoted as the reason of a wait, may name one."""
    subject, text, name = (redact_text(words) for words in (alert.subject, alert.text, alert.name))
    return replace(alert, subject=subject, text=text, name=name)


# ── A mailout ────────────────────────────────────────────────────────────────────────────────────


def _of_mailout(mailout: Mailout, facts: Facts, zone: tzinfo) -> Iterator[Alert]:
    reason = mailout.defer_reason
    if mailout.status is Status.PENDING and reason in WAITS_FOR_A_PERSON:
        yield _deferred(mailout, reason, zone)
    if mailout.ledger.unknown:
        yield _unknown(mailout, facts.expects_events)


def _deferred(mailout: Mailout, reason: DeferReason, zone: tzinfo) -> Alert:
    """Whoever paused it knows; that it is still paused a day later may be forgotten. Told once."""
    by_hand = reason is DeferReason.PAUSED
    back = NextStep("Or cancel it; mail already sent stays sent:", f"mailout queue cancel {mailout.id}")
    return Alert(
        key=f"deferred {mailout.id} {reason}",
        kind=AlertKind.DEFERRED,
        subject=f"{'Still paused' if by_hand else 'Waits for you'}: {_title(mailout)}",
        text=_lines(
            f"{_title(mailout)} does not go on by itself.",
            waiting(mailout, zone) or "",
            headline(mailout),
            *_steps([*resuming(mailout), back]),
            *_where(mailout),
        ),
        about=f"mailout.{mailout.id}",
        name=_title(mailout),
        mailout=mailout.id,
        reason=reason,
        grace=DAY_SECONDS if by_hand else 0.0,
        remind=not by_hand,
    )


def _stuck(mailout: Mailout, now: float, zone: tzinfo) -> Alert:
    """It is due, or is tried again and again: whatever it waits for, it has been for too long."""
    overdue = f"It {not_taken_up(mailout, zone)}." if mailout.is_overdue(now) else None
    return Alert(
        key=f"stuck {mailout.id}",
        kind=AlertKind.DEFERRED,
        subject=f"Does not move: {_title(mailout)}",
        text=_lines(
            f"{_title(mailout)} should be going out, and for an hour nothing of it was sent.",
            overdue or waiting(mailout, zone) or "",
            headline(mailout),
            "What is wrong, if a setting is:",
            "  mailout doctor",
            *_where(mailout),
        ),
        about=f"mailout.{mailout.id}",
        name=_title(mailout),
        mailout=mailout.id,
        reason=mailout.defer_reason,
        grace=HOUR_SECONDS,
    )


def _unknown(mailout: Mailout, expects_events: bool) -> Alert:
    n = mailout.ledger.unknown
    by_event = " An event from SES would settle them; none has come so far." if expects_events else ""
    return Alert(
        key=f"unknown {mailout.id}",
        kind=AlertKind.UNKNOWN,
        subject=f"{count(n, 'message')} in doubt: {_title(mailout)}",
        text=_lines(
            f"{count(n, 'message')} of {_title(mailout)} {'was' if n == 1 else 'were'} handed over, and no"
            f" answer came back. Until the last is settled, the mailout counts as failed.{by_event}",
            headline(mailout),
            *_steps(settling(mailout)),
            *_where(mailout),
        ),
        about=f"mailout.{mailout.id}",
        name=_title(mailout),
        mailout=mailout.id,
        grace=DOUBT_GRACE_SECONDS,
    )


def _complaints(mailout: Mailout, now: float) -> Iterator[Alert]:
    """Told once. One that was stopped for it has an alert already."""
    n, sent = mailout.metrics.get("complained", 0), mailout.ledger.sent
    is_old = mailout.completed_at is not None and now - mailout.completed_at > COMPLAINTS_WINDOW_SECONDS
    if mailout.is_test or mailout.is_rehearsal or is_old or sent < ENOUGH_SENT:
        return
    if n / sent <= COMPLAINTS_TELL or mailout.defer_reason is DeferReason.REPUTATION:
        return
    yield Alert(
        key=f"complaints {mailout.id}",
        kind=AlertKind.COMPLAINTS,
        subject=f"{count(n, 'reader')} reported as spam: {_title(mailout)}",
        text=_lines(
            f"{count(n, 'reader')} of {sent:,} reported {_title(mailout)} as spam ({n / sent:.2%}). Gmail and"
            f" Yahoo ask for less than {COMPLAINTS_TELL:.1%}; above that, more letters land in spam folders.",
            "They get no more mail. Look at where these people came from, and whether they expect it.",
            *_where(mailout),
        ),
        about=f"mailout.{mailout.id}",
        name=_title(mailout),
        mailout=mailout.id,
        remind=False,
    )


def _title(mailout: Mailout) -> str:
    return f"“{mailout.subject}”" if mailout.subject else f"the mailout from {mailout.ref}"


def _where(mailout: Mailout) -> Sequence[str]:
    return (
        "Everything about it:",
        f"  mailout queue show {mailout.id}",
        f"Mailout {mailout.id}, from {mailout.ref}.",
    )


# ── The provider ─────────────────────────────────────────────────────────────────────────────────


def _quota(facts: Facts) -> Iterator[Alert]:
    remaining, most = facts.quota_left, facts.signs.quota_most
    key = f"quota {facts.scope}"
    if remaining is None or not most:
        return
    line = QUOTA_OVER if key in facts.signs.holding else QUOTA_TELL
    if remaining > line * most:
        return
    remaining = max(0, remaining)
    yield Alert(
        key=key,
        kind=AlertKind.QUOTA,
        subject="The provider's quota is nearly spent" if remaining else "The provider's quota is spent",
        text=_lines(
            f"{remaining:,} of the {count(most, 'message')} that the provider ({facts.scope}) takes in"
            f" 24 hours {'remains' if remaining == 1 else 'remain'}.",
            "Nothing is lost: a mailout that does not fit waits (quota_exhausted) and goes on by itself as"
            " the 24 hours pass. When each will be done:",
            "  mailout status",
            "If that is too late, ask AWS for a higher sending quota (Service Quotas, Amazon SES).",
        ),
        about=f"quota.{facts.scope}",
        name=f"the quota of {facts.scope}",
    )


def _single_mails(facts: Facts, zone: tzinfo) -> Iterator[Alert]:
    waiting = facts.single_mails
    said = single_mails_wait(waiting, zone)
    if waiting is None or waiting.hold is None or said is None:
        return
    hold = waiting.hold
    if hold.code == NO_SENDER:  # whoever runs here sends them, unless a person has paused everything
        return
    yield Alert(
        key=f"single mails {hold.code}",
        kind=AlertKind.SINGLE_MAILS,
        subject="Single mails wait" if waiting.due else "Notifications wait",
        text=_lines(
            said,
            "Nothing is lost: they are sent as soon as that is possible.",
            "Which ones wait:\n  mailout messages list --state pending" if waiting.due else "",
            "What is wrong, if a setting is:",
            "  mailout doctor",
        ),
        about="single_mails",
        name="single mails",
        reason=hold.code,
        grace=0.0 if hold.needs_person else DOUBT_GRACE_SECONDS,
    )


# ── What comes back ──────────────────────────────────────────────────────────────────────────────

UNAPPLIED = (
    "Meanwhile bounces and complaints change nothing, messages in doubt stay in doubt, and the counts stand"
    " still."
)


def _events_waiting(facts: Facts) -> Iterator[Alert]:
    since, now = facts.signs.events_waiting_since, facts.signs.now
    if since is None or now - since < EVENTS_WAIT_SECONDS:
        return
    n = facts.signs.events_waiting
    yield Alert(
        key="events waiting",
        kind=AlertKind.EVENTS,
        subject="SES events wait to be applied",
        text=_lines(
            f"{count(n, 'SES event')} {'waits' if n == 1 else 'wait'} in the inbox, the oldest for"
            f" {lasting(now - since)}. {UNAPPLIED}",
            "To apply them now:",
            "  mailout events",
            "The flow ingest_ses_events does it within seconds. Why it did not is on Prefect's pages; whether"
            " it is deployed and a worker runs:",
            "  mailout doctor",
        ),
        about="events",
        name="SES events",
    )


def _events_unheard(facts: Facts, zone: tzinfo) -> Iterator[Alert]:
    since, now = facts.signs.unheard_since, facts.signs.now
    if not facts.expects_events or since is None or now - since < EVENTS_UNHEARD_SECONDS:
        return
    yield Alert(
        key="events unheard",
        kind=AlertKind.EVENTS,
        subject="No SES events come back",
        text=_lines(
            f"Mail has been sent through SES since {spoken(since, zone)}, and not one event has come back in"
            f" {lasting(now - since)}. {UNAPPLIED}",
            "Whether the configuration set publishes its events:",
            "  mailout doctor",
            "Then, on their way here: the SNS subscription of the gateway's /ses-events is confirmed, or that"
            " of the queue in SQS_QUEUE_URL; the topic stands in SNS_TOPIC_ARNS; the gateway runs, and its"
            " log refuses nothing.",
        ),
        about="events",
        name="SES events",
    )


# ── Where letters are written ──────────────────────────────────────────────────────────────────────


def _notion(facts: Facts, zone: tzinfo) -> Iterator[Alert]:
    for one in facts.signs.notion:
        yield Alert(
            key=f"notion {one.page or one.kind}",
            kind=AlertKind.NOTION,
            subject=one.what,
            text=_lines(
                f"{one.what} since {spoken(one.since, zone)}: {one.why}",
                "Meanwhile letters that are Ready may wait, and pages may not show how theirs stand. It is"
                " tried again every few minutes. What is wrong, if a setting is:",
                "  mailout doctor",
            ),
            about="notion",
            name="Notion",
        )


# ── Strangers ────────────────────────────────────────────────────────────────────────────────────


def _sign_ups(facts: Facts) -> Iterator[Alert]:
    signs = facts.signs
    if signs.sign_up_brake_at is not None and signs.now - signs.sign_up_brake_at < HOUR_SECONDS:
        yield Alert(
            key="sign-up brake",
            kind=AlertKind.SIGN_UPS,
            subject="Too many sign-ups",
            text=_lines(
                "So many strangers asked to join within an hour that no more confirmations are sent. Who is"
                " refused gets the same answer as everybody, and can try again later.",
                "It is a program that fills in the form, or a rush that you know of. The numbers are on the"
                " dashboard's page Sign-ups; SIGNUP=false closes the form.",
            ),
            about="sign_ups",
            name="sign-ups",
        )
    sent, bounced = signs.confirmations_sent, signs.confirmations_bounced
    if sent >= ENOUGH_SENT and bounced / sent > facts.max_bounce_rate:
        yield Alert(
            key="confirmations bounce",
            kind=AlertKind.SIGN_UPS,
            subject="Confirmations of sign-ups bounce",
            text=_lines(
                f"{bounced:,} of {count(sent, 'confirmation')} of the last seven days bounced"
                f" ({bounced / sent:.1%}). They do not count for letters, but SES counts them: above 10 % it"
                " may stop the account.",
                "Somebody types in addresses that do not exist. SIGNUP=false closes the form for a while.",
            ),
            about="sign_ups",
            name="sign-ups",
        )


# ── On paper ─────────────────────────────────────────────────────────────────────────────────────


def _steps(steps: Sequence[NextStep]) -> Iterator[str]:
    for step in steps:
        yield step.advice
        yield f"  {step.command}"


def _lines(*parts: str) -> str:
    """A paragraph each; a command stands indented under what it is for."""
    text = "\n\n".join(part for part in parts if part)
    return text.replace("\n\n  ", "\n  ")
