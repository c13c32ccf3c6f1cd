"""What a page tells the person who writes: what happened and what they can do. No commands, no addresses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo

from mailout.base.errors import Abort, AbortCode, MailoutError, SourceUnavailable
from mailout.base.time_format import spoken
from mailout.insight.reporting.phrases import count, headline, wait
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, DeferReason, Mailout, Status

FOR_A_PERSON = "Waits for a person: "
NOT_YET = "Not sent yet: "
WAITING = (FOR_A_PERSON, "Waits until ", NOT_YET)
"""How a note begins that is out of date once the mailout goes on."""
NO_LONGER_WAITING = "It no longer waits."
"""What it says then."""
TEST = "Test run. "
"""How a note begins that is out of date after the next test."""
TEST_ARRIVED = "The last test run was sent to all test readers."
ON_ITS_WAY = "This letter is already on its way, and Draft does not stop it: only your administrator can."
BY_ITSELF = "Then it goes on by itself."
AGAIN = "Then set the page to Ready again."
ASK = "Show this to your administrator."
BY_ABORT: Mapping[AbortCode, str] = {
    AbortCode.SUBJECT_REQUIRED: f"Give the page a title. {AGAIN}",
    AbortCode.EMPTY_BODY: f"Write something on the page. {AGAIN}",
    AbortCode.MAILOUT_ALREADY_SENT: "For another letter, make another page: duplicate this one and empty its"
    " sent_at.",
    AbortCode.MEDIA_UNAVAILABLE: f"Replace it, or make it smaller. {AGAIN} If that does not help, show this"
    " to your administrator.",
    AbortCode.INVALID_TEMPLATE: f"Change that. {AGAIN}",
}
"""What the writer can do; of everything else, the administrator."""
BY_REASON: Mapping[DeferReason, str] = {
    DeferReason.PAUSED: "Your administrator can let it go on.",
    DeferReason.REPUTATION: "Your administrator has to look at the list first.",
    DeferReason.CONFIGURATION_ERROR: "The page need not be changed: your administrator has to look.",
    DeferReason.DUPLICATE_CONTENT: "If it is meant to go out again, your administrator can let it go on.",
    DeferReason.UNTESTED: "Tick is_test and set the page to Ready: after the test it goes on by itself.",
}


def refusal(error: Exception, dashboard: str | None) -> str:
    """Of a page that asked to be sent and cannot be."""
    if not isinstance(error, MailoutError):
        return f"Something went wrong that nobody has foreseen. {ASK}"
    if error.for_writer is not None:
        return _with_link(error.for_writer, dashboard)
    step = BY_ABORT.get(error.code) if isinstance(error, Abort) else None
    return f"{error.message} {step}" if step else _with_link(f"{error.message} {ASK}", dashboard)


def tried_out(mailout: Mailout, letter: str | None) -> str | None:
    """Of a test that is over and did not reach every test reader; None: they all have it."""
    ledger = mailout.ledger
    if ledger.recipients and ledger.sent == ledger.recipients and not mailout.is_rehearsal:
        return None
    step = "Your administrator can see why."
    if mailout.is_rehearsal and not (ledger.failed or ledger.unknown):
        step = "Your administrator can switch sending on."
    return _with_link(f"{headline(mailout)} {step}", letter)


def failure(mailout: Mailout, letter: str | None) -> str:
    """Of one that is over and did not reach everybody."""
    said, ledger = [headline(mailout)], mailout.ledger
    if ledger.failed:
        said.append("Your administrator can send it to those it did not reach, and to nobody else.")
    if ledger.unknown:
        people = count(ledger.unknown, "person", "people")
        said.append(f"Whether {people} got it is not known: your administrator can settle it.")
    return _with_link(" ".join(said), letter)


def waiting(mailout: Mailout, letter: str | None, zone: tzinfo, *, all_paused: bool = False) -> str | None:
    """Why it waits, until when, and who can let it go on; None: it does not wait, or for its turn alone."""
    reason = mailout.defer_reason
    if mailout.status is not Status.PENDING or (reason is None and not all_paused):
        return None
    if reason is DeferReason.UNTESTED:
        said = f"{FOR_A_PERSON}no test of exactly this text has gone out. {BY_REASON[reason]}"
    elif reason is None or (all_paused and reason not in WAITS_FOR_A_PERSON):
        return all_is_paused(letter)
    else:
        words = wait(mailout, zone)
        said = f"{words[0].upper()}{words[1:]}. {BY_REASON.get(reason, BY_ITSELF)}"
    return _with_link(said, letter)


def all_is_paused(address: str | None) -> str:
    return _with_link(f"{FOR_A_PERSON}everything is paused. {BY_REASON[DeferReason.PAUSED]}", address)


def unreadable(error: MailoutError) -> str:
    """Of a page that asks to be sent, and all of which could not be read for a while."""
    if not isinstance(error, SourceUnavailable):
        return f"{NOT_YET}mailout may not read all of this page. {ASK}"
    said = error.for_writer or "this page cannot be read just now."
    return f"{NOT_YET}{said} It is tried again every few minutes."


def planned(at: float, zone: tzinfo, draft: str | None) -> str:
    """Of a page that asks to be sent, and for which somebody has chosen a time."""
    return _with_link(f"Waits until {spoken(at, zone)}: somebody has scheduled it. {BY_ITSELF}", draft)


def no_option(status: str, *, tests_wait: bool) -> str:
    """Of a page whose status cannot say how it stands."""
    said = f"This page should say “{status}” now, but its status has no such option."
    said += " Your administrator has to add it in Notion."
    return f"{said} Until then no test is sent." if tests_wait else said


def _with_link(text: str, address: str | None) -> str:
    return f"{text} On the dashboard: {address}" if address else text
