"""What a sender does before it begins: learn from the journals of the dead, and give up who is lost."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from mailout.base.errors import StoreRolledBack
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.port import DeadJournal, Journals, Outbox, SenderSession
from mailout.outbox.delivery.protocol import Pace, Result, Step
from mailout.outbox.delivery.states import State

log = logging.getLogger("mailout.recovery")

RECOVERY_STEP = 1_000_000
"""A recovering step is so far ahead that no late copy of the dead session's own can follow it."""

KEPT_SECONDS = 7 * 86_400.0
"""A message may be gone after that: whoever does not confirm a sign-up is erased."""

MOST_NAMED = 3
"""Journals, in an error: once these are deleted, the next ones are named."""


def reap(store: Outbox, journals: Journals, grace: float, *, check_closed: bool = False) -> int:
    """Give up dead senders, first by the journals of this machine, which know what was never called.

    The answer: how many messages became unknown without a journal. `check_closed`: the store must know the
    session of every journal and the steps it has answered, also of those that ended properly and those that
    another process looks at.
    """
    if check_closed:
        _refuse([one for one in journals.look() if _is_ahead(one, _known(store, one))])
    with journals.dead() as dead:
        unfinished = [journal for journal in dead if journal.closed_at_step is None]
        require_known(store, unfinished)
        for journal in unfinished:
            _clear(store, journal)
            known = _known(store, journal)
            journals.forget(journal.session, known["step_no"] if known else 0)
    lost = store.reap(grace)
    if lost:
        log.warning("%d messages are unknown: their sender disappeared from another machine", lost)
    return lost


def require_known(store: Outbox, journals: Sequence[DeadJournal]) -> None:
    """A store that has forgotten what this machine did was set back: sending on would send twice."""
    _refuse([journal for journal in journals if _knows_more(store, journal)])


def _refuse(ahead: Sequence[DeadJournal]) -> None:
    if not ahead:
        return
    more = f" and {len(ahead) - MOST_NAMED} more" if len(ahead) > MOST_NAMED else ""
    named = ", ".join(journal.place for journal in ahead[:MOST_NAMED]) + more
    raise StoreRolledBack(
        remedy="Nothing is sent, so that nobody gets a letter twice. Put the newest store back; if there"
        f" is none, docs/surviving.md says what to do before you delete {named}.",
    )


def _knows_more(store: Outbox, journal: DeadJournal) -> bool:
    known = _known(store, journal)
    if _is_ahead(journal, known):
        return True
    if known is None or not journal.called or known["is_archived"]:
        return False
    epochs = outbox_rows.epochs(store, [attempt.id for attempt in journal.called])
    may_be_erased = store.now() - known["opened_at"] >= KEPT_SECONDS
    return any(
        epochs.get(attempt.id, attempt.epoch if may_be_erased else 0) < attempt.epoch
        for attempt in journal.called
    )


def _known(store: Outbox, journal: DeadJournal) -> SenderSession | None:
    return outbox_rows.sender_session(store, journal.session)


def _is_ahead(journal: DeadJournal, known: SenderSession | None) -> bool:
    """It did something, and the store has lost its session, or steps that it had answered."""
    if known is None:
        return bool(journal.called) or journal.closed_at_step is not None
    return known["step_no"] < (journal.closed_at_step or 0)


def _clear(store: Outbox, journal: DeadJournal) -> None:
    """Accepted → SENT; never called, or surely not accepted → withdrawn; else UNKNOWN.

    From a journal that may lack lines nothing is withdrawn: what it does not tell may have been called.
    """
    results, withdraw = [], []
    why = "its sender died during the call"
    if journal.incomplete is not None:
        why = f"its sender died, and its journal may lack lines: {journal.incomplete}"
    for attempt in outbox_rows.open_attempts(store, journal.session):
        if attempt in journal.accepted:
            results.append(Result(attempt, State.SENT, provider_message_id=journal.accepted[attempt]))
        elif journal.incomplete is None and (attempt not in journal.called or attempt in journal.void):
            withdraw.append(attempt)
        else:
            results.append(Result(attempt, State.UNKNOWN, message=why, code="SENDER_DIED"))
    store.step(
        Step(
            session=journal.session,
            n=RECOVERY_STEP,
            lease=0.0,
            pace=Pace(scope="", rate=0),
            results=results,
            withdraw=withdraw,
            close=True,
        )
    )
    if results and journal.incomplete is not None:
        log.warning(
            "the journal of session %s may lack lines (%s): only what it calls accepted counts as sent",
            journal.session,
            journal.incomplete,
        )
    if results or withdraw:
        unknown = sum(1 for result in results if result.state is State.UNKNOWN)
        log.warning(
            "a sender had died: %d of its messages were sent, %d wait again, %d are unknown",
            len(results) - unknown,
            len(withdraw),
            unknown,
        )
