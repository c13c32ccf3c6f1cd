"""The failures of a mailout as lines for the errors database: by kind, and by address up to a limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice

from mailout.base import error_log
from mailout.base.error_log import ErrorRecord
from mailout.insight.page_status.port import PageStore
from mailout.insight.reporting.phrases import count, first_of, why
from mailout.insight.reporting.summary import failure_groups
from mailout.outbox.delivery.outbox_rows import outcomes
from mailout.outbox.delivery.port import MessageOutcome
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, DeferReason, Mailout

EVERY_ADDRESS = 100
"""Up to so many failures of a mailout, each address has its line."""
LISTED_ADDRESSES = 20
"""Of more than that: a thousand would hide everything else, and the CSV has them all."""
LISTED_MESSAGES = 5
KNOWN = 10_000

UNKNOWN = "OUTCOME_UNKNOWN"
NEVER_ANSWERED = "It was handed over, and no answer came back. Look whether it arrived, then settle it."
FAILED = (State.FAILED, State.VALIDATION_FAILED, State.UNKNOWN)


def new_failures(store: PageStore, mailout: Mailout, provider: str) -> list[ErrorRecord]:
    """What went wrong and is not among the store's error records yet."""
    found = [*_wait(mailout, provider), *_messages(store, mailout, provider)]
    known = (
        {_identity(error) for error in error_log.errors(store, mailout.id, limit=KNOWN)} if found else set()
    )
    return [error for error in found if _identity(error) not in known]


def grouped(errors: Mapping[int, ErrorRecord]) -> list[tuple[ErrorRecord, list[int]]]:
    """By their numbers; equal ones as one line: fifty unknown blocks of a page are one thing to fix."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, error in errors.items():
        alone = number if error.email else None  # an address has a line of its own
        groups.setdefault((error.mailout, error.stage, error.code, alone), []).append(number)
    return [(_together([errors[number] for number in numbers]), numbers) for numbers in groups.values()]


def _together(errors: list[ErrorRecord]) -> ErrorRecord:
    if len(errors) == 1:
        return errors[0]
    messages = list(dict.fromkeys(error.message for error in errors))
    more = f" And {len(messages) - LISTED_MESSAGES} more." if len(messages) > LISTED_MESSAGES else ""
    return replace(errors[0], message=f"{len(errors)} times: {' | '.join(messages[:LISTED_MESSAGES])}{more}")


def _identity(error: ErrorRecord) -> tuple[object, ...]:
    return error.code, error.email, error.message


def _wait(mailout: Mailout, provider: str) -> Iterator[ErrorRecord]:
    """A hold that a person has to end; one that a person chose is no error."""
    reason = mailout.defer_reason
    if reason in WAITS_FOR_A_PERSON and reason is not DeferReason.PAUSED:
        yield ErrorRecord(reason, f"It waits for a person: {why(mailout)}", "delivery", provider, mailout.id)


def _messages(store: PageStore, mailout: Mailout, provider: str) -> Iterator[ErrorRecord]:
    if not mailout.ledger.failed + mailout.ledger.unknown:
        return
    for group in failure_groups(_failed(store, mailout)):
        if group.count > 1:
            addresses = first_of(group.addresses, group.count)
            message = f"{count(group.count, 'message')}: {addresses}. {group.message}"
            yield ErrorRecord(group.code, message, "delivery", provider, mailout.id)
    single = list(islice(_failed(store, mailout), EVERY_ADDRESS + 1))
    for row in single if len(single) <= EVERY_ADDRESS else single[:LISTED_ADDRESSES]:
        yield ErrorRecord(
            code=row["error_code"] or "NO_CODE",
            message=row["error_message"] or "",
            stage="delivery",
            provider=provider,
            mailout=mailout.id,
            email=row["email"],
            attempts=row["attempts"],
            at=row["failed_at"] or 0.0,
        )


def _failed(store: PageStore, mailout: Mailout) -> Iterator[MessageOutcome]:
    for row in outcomes(store, mailout.id, FAILED):
        if row["state"] == State.UNKNOWN:
            row = {**row, "error_code": UNKNOWN, "error_message": NEVER_ANSWERED}
        yield row
