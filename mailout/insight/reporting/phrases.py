"""A mailout's state in sentences that need no explanation, the same wherever they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from mailout.base.time_format import spoken
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.delivery.single_mails import SingleMailsWaiting
from mailout.outbox.delivery.states import Column
from mailout.outbox.queue.forecast import Forecast
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, DeferReason, Mailout, Status

ALL_PAUSED = "Everything is paused. To go on: mailout queue resume --all"

MEANINGS: Mapping[Column, str] = {
    Column.SENT: "accepted for delivery",
    Column.FAILED: "refused, or given up after the last attempt",
    Column.UNKNOWN: "handed over, but no answer came back",
    Column.SUPPRESSED: "no longer subscribed, or the mailout was cancelled: nothing was sent to them",
    Column.IN_FLIGHT: "being handed over now",
    Column.PENDING: "wait for their turn",
}
"""In the order in which they are shown."""

WHY: Mapping[DeferReason, str] = {
    DeferReason.RATE_PER_HOUR: "this hour's limit is used up",
    DeferReason.DAILY_LIMIT: "today's limit is used up",
    DeferReason.OUTSIDE_HOURS: "it is outside the hours for sending",
    DeferReason.QUOTA_EXHAUSTED: "the provider's quota is used up",
    DeferReason.TRANSIENT_ERRORS: "the provider, Notion or the store had trouble answering",
    DeferReason.PAUSED: "somebody paused it",
    DeferReason.REPUTATION: "too many of its messages bounced or were reported as spam",
    DeferReason.CONFIGURATION_ERROR: "something has to be put right first",
    DeferReason.DUPLICATE_CONTENT: "the same content went to the same list within the last 7 days",
    DeferReason.UNTESTED: "REQUIRE_TEST is set, and no test of exactly this content has gone out",
}

OWN_LIMITS = frozenset({DeferReason.RATE_PER_HOUR, DeferReason.DAILY_LIMIT, DeferReason.OUTSIDE_HOURS})
"""A mailout keeps the time it was given by them, also when the setting is another one since."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """Something for a person to do."""

    advice: str
    command: str


def count(n: int, one: str, many: str | None = None) -> str:
    """`1 message`, `1,234 messages`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def ledger_numbers(ledger: Ledger) -> list[tuple[Column, str, int]]:
    """Each column, its name for people and its number, in the order in which they are shown."""
    return [(one, one.value.replace("_", " "), int(getattr(ledger, one.value))) for one in MEANINGS]


def meaning(column: Column, mailout: Mailout) -> str:
    is_file = column is Column.SENT and mailout.is_rehearsal
    return "written to the outbox folder: nobody got it" if is_file else MEANINGS[column]


def ledger_shown(ledger: Ledger) -> list[tuple[Column, str, int]]:
    """Sent and failed always, the others when there are any."""
    return [one for one in ledger_numbers(ledger) if one[2] or one[0] in (Column.SENT, Column.FAILED)]


def share(n: int, whole: int) -> str:
    """Never 100 % while one is missing, never 0 % while there is one."""
    if n == 0 or whole == 0:
        return "0 %"
    return "100 %" if n == whole else f"{min(99.9, max(0.1, 100 * n / whole)):.1f} %"


def first_of(addresses: Sequence[str], total: int) -> str:
    """`a@example.org, b@example.org and 3 more`."""
    more = total - len(addresses)
    return ", ".join(addresses) + (f" and {more:,} more" if more > 0 else "")


def headline(mailout: Mailout) -> str:
    """How it stands, in one or two sentences."""
    if mailout.is_rehearsal:
        return _rehearsed(mailout)
    return f"Test run. {_state(mailout)}" if mailout.is_test else _state(mailout)


def left_alone(mailout: Mailout, goes_on_by: float, zone: tzinfo) -> str:
    """Instead of the headline: its sender was killed, or its machine is gone."""
    ledger = mailout.ledger
    so_far = f"{ledger.sent:,} of {count(ledger.recipients, 'message')}"
    return (
        f"Nobody is sending it: its sender stopped after {so_far}. Where `mailout up` runs it goes on by"
        f" {spoken(goes_on_by, zone)} at the latest; sent again by hand, it goes on with the rest."
    )


def edited_meanwhile(mailout: Mailout) -> str:
    """Of one whose page or file was changed after some people got it."""
    ledger = mailout.ledger
    got = ledger.sent + ledger.unknown + ledger.in_flight
    return (
        f"It was edited in the meantime. {count(got, 'person', 'people')} got the earlier text, and the other"
        f" {ledger.pending:,} will get that text too; the edit is not sent to anybody."
    )


def mode(mailout: Mailout) -> str:
    """`test`, `rehearsal` or `real`."""
    if mailout.is_test:
        return "test"
    return "rehearsal" if mailout.is_rehearsal else "real"


def titled(mailout: Mailout) -> str:
    """Its subject, and before it that nobody gets it."""
    return mailout.subject if mode(mailout) == "real" else f"({mode(mailout)}) {mailout.subject}"


def _rehearsed(mailout: Mailout) -> str:
    """A folder has them, and nobody else."""
    what, ledger = "Test run" if mailout.is_test else "Rehearsal", mailout.ledger
    if mailout.status is not Status.COMPLETED or not ledger.sent or ledger.failed or ledger.unknown:
        return f"{what}, into a folder: nothing is sent to anybody. {_state(mailout)}"
    letters = f"{what}: {count(ledger.sent, 'letter')}."
    written = "Written to a folder. Nothing was sent to anybody."
    return " ".join((letters, written, *([_skipped(ledger)] if ledger.suppressed else ())))


def _state(mailout: Mailout) -> str:
    ledger = mailout.ledger
    of_all = f"{ledger.sent:,} of {count(ledger.recipients, 'message')}"
    match mailout.status:
        case Status.PENDING if ledger.sent:
            return f"It waits with {of_all} sent."
        case Status.PENDING:
            return "It waits to be sent."
        case Status.PROCESSING:
            return f"It is being sent: {of_all} so far."
        case Status.CANCELLED if ledger.suppressed == ledger.recipients:
            return "It was cancelled before anything was sent."
        case Status.CANCELLED:
            return f"It was cancelled. {of_all} had been sent by then."
        case Status.COMPLETED:
            return _ended(mailout, of_all)


def _ended(mailout: Mailout, of_all: str) -> str:
    ledger = mailout.ledger
    if ledger.recipients == 0:
        return "There was nobody to send it to."
    troubles = []
    if ledger.failed:
        troubles.append(f"{ledger.failed:,} failed")
    if ledger.unknown:
        troubles.append(f"{ledger.unknown:,} {'is' if ledger.unknown == 1 else 'are'} in doubt")
    if troubles:
        return f"{of_all} {_were(ledger.sent)} sent; {' and '.join(troubles)}."
    if ledger.sent == 0:
        return f"Nothing was sent: {_skipped(ledger)}"
    sent = "The message was sent." if ledger.sent == 1 else f"All {ledger.sent:,} messages were sent."
    return f"{sent} {_skipped(ledger)}" if ledger.suppressed else sent


def _skipped(ledger: Ledger) -> str:
    n = ledger.suppressed
    return f"{count(n, 'person', 'people')} {_were(n)} no longer subscribed."


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def waiting(
    mailout: Mailout,
    zone: tzinfo,
    *,
    all_paused: bool = False,
    now: float = 0.0,
    untaken: bool = False,
) -> str | None:
    """Why it waits and until when; None if it does not. `now`: to say that its time has passed; `untaken`:
    and that nobody sends anything."""
    if mailout.status is not Status.PENDING:
        return None
    if all_paused and mailout.defer_reason is None and mailout.planned_for is None:
        return "It waits: everything is paused."
    words = wait(mailout, zone, now, untaken=untaken)
    if mailout.is_overdue(now):
        return f"It {words}."
    if mailout.defer_reason is not None:
        return f"It {words}.{_note(mailout)}"
    if mailout.planned_for is None:
        return f"It {words}."
    whom = f", to {count(mailout.ledger.recipients, 'person', 'people')}" if mailout.frozen_at else ""
    return f"It is {words}{whom}."


def wait(mailout: Mailout, zone: tzinfo, now: float = 0.0, *, untaken: bool = False) -> str:
    """The same in a few words, of one that waits: `waits until 14:00 UTC: today's limit is used up`."""
    until = mailout.deferred_until
    if (until or mailout.planned_for) and mailout.is_overdue(now):
        return not_taken_up(mailout, zone) if untaken else "waits for its turn"
    if mailout.defer_reason is not None:
        whom = "for a person" if until is None else f"until {spoken(until, zone)}"
        return f"waits {whom}: {WHY[mailout.defer_reason]}"
    planned = mailout.planned_for
    return "waits for its turn" if planned is None else f"planned for {spoken(planned, zone)}"


def not_taken_up(mailout: Mailout, zone: tzinfo) -> str:
    """Of one that is overdue."""
    return f"was due {spoken(mailout.due_since, zone)}, and nobody has taken it up yet"


def single_mails_wait(waiting: SingleMailsWaiting | None, zone: tzinfo) -> str | None:
    """That single mails are held up, how many, since when and why; None if nothing holds them up."""
    hold = waiting.hold if waiting else None
    if waiting is None or hold is None:
        return None
    who = (
        count(waiting.due, "single mail waits", "single mails wait") if waiting.due else "Notifications wait"
    )
    return f"{who}, since {spoken(hold.since, zone)}: {hold.why}"


def forecast_text(forecast: Forecast, zone: tzinfo) -> str:
    """`done by 16 Nov 2026 14:00 UTC; 50 messages leave on a later day`."""
    if forecast.ends_at is None and forecast.limited_by in WAITS_FOR_A_PERSON:
        return "unknown: it waits for a person"
    if forecast.ends_at is None:
        why = f": {WHY[forecast.limited_by]}" if forecast.limited_by else ""
        return f"unknown{why}"
    words = f"done by {spoken(forecast.ends_at, zone)}"
    return f"{words}; {count(forecast.later, 'message')} on a later day" if forecast.later else words


def why(mailout: Mailout) -> str | None:
    """The reason alone, with the note that was written with it; None if there is none."""
    reason = mailout.defer_reason
    return None if reason is None else f"{WHY[reason]}.{_note(mailout)}"


def _note(mailout: Mailout) -> str:
    return f" {mailout.defer_note}" if mailout.defer_note else ""


def archived(mailout: Mailout, zone: tzinfo) -> str | None:
    """Where its messages are, if they are not in the store any more."""
    if mailout.archived_at is None:
        return None
    return (
        f"It was archived on {spoken(mailout.archived_at, zone)}: its messages are in {mailout.archived_to}."
    )


def next_steps(mailout: Mailout) -> Sequence[NextStep]:
    """What a person can do now, with the command for it."""
    if mailout.archived_at is not None:
        return []
    id, ledger = mailout.id, mailout.ledger
    steps = [*settling(mailout)]
    if ledger.failed and mailout.status is not Status.CANCELLED:
        steps.append(
            NextStep(
                f"{count(ledger.failed, 'message')} failed. To try these again and nobody else"
                " (what the checks refused stays refused):",
                f"mailout queue retry {id}",
            )
        )
    if mailout.status is Status.PENDING and mailout.planned_for is not None:
        steps.append(NextStep("Until it begins, it can be cancelled:", f"mailout queue cancel {id}"))
    if mailout.status is Status.PENDING and mailout.defer_reason in OWN_LIMITS:
        steps.append(NextStep("If you have changed that limit since:", f"mailout queue resume {id}"))
    return [*steps, *resuming(mailout)]


def settling(mailout: Mailout) -> Sequence[NextStep]:
    """What to do about messages in doubt."""
    n = mailout.ledger.unknown
    if not n:
        return ()
    they, them = ("it", "it") if n == 1 else ("they", "them")
    return (
        NextStep(
            f"{count(n, 'message')} may or may not have arrived; {they} will not be sent again without you."
            f" If the provider's records or the people themselves say that {they} arrived:",
            f"mailout queue settle {mailout.id} --as sent",
        ),
        NextStep(
            f"If {they} did not arrive, send {them} again (should that be wrong, somebody gets it twice):",
            f"mailout queue settle {mailout.id} --as pending",
        ),
    )


def resuming(mailout: Mailout) -> Sequence[NextStep]:
    """What to do about one that waits for a person."""
    advice = _ADVICE.get(mailout.defer_reason) if mailout.defer_reason else None
    if mailout.status is not Status.PENDING or advice is None:
        return ()
    return (NextStep(advice, f"mailout queue resume {mailout.id}"),)


_ADVICE: Mapping[DeferReason, str] = {
    DeferReason.PAUSED: "To go on sending:",
    DeferReason.REPUTATION: "Find out where these addresses came from and clean the list first. Then:",
    DeferReason.CONFIGURATION_ERROR: "`mailout doctor` names what is wrong. Once it is fixed:",
    DeferReason.DUPLICATE_CONTENT: "If it is meant to go out again:",
    DeferReason.UNTESTED: "Send a test of it (`mailout send --test`). Then the queue goes on, or:",
}


CAME_BACK = ("delivered", "bounced", "unsubscribed", "complained")
"""What a person asks first of a mailout, as the store counts it and as people say it."""


def reported(mailout: Mailout) -> bool:
    """Whether SES has reported anything of it. Unsubscribes come to us without SES."""
    return any(n for word, n in mailout.metrics.items() if word != "unsubscribed")


def came_back(mailout: Mailout) -> list[tuple[str, str, str]]:
    """(word, number, share of what was sent). A dash: SES has reported nothing yet. None of a test or a
    rehearsal, which leave no trace, nor of one that has sent nothing."""
    sent, counts = mailout.ledger.sent, mailout.metrics
    if mailout.is_test or mailout.is_rehearsal or not sent:
        return []
    known = set(CAME_BACK) if reported(mailout) else set(counts)
    return [
        (word, f"{counts.get(word, 0):,}", share(counts.get(word, 0), sent))
        if word in known
        else (word, "–", "")
        for word in CAME_BACK
    ]
