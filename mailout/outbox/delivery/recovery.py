"""What a sender does before it begins: learn from the journals of the dead, and give up who is lost."""

from __future__ import annotations

import logging

from mailout.base.errors import StoreRolledBack
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.port import DeadJournal, Journals, Outbox
from mailout.outbox.delivery.protocol import Pace, Result, Step
from mailout.outbox.delivery.states import State

log = logging.getLogger("mailout.recovery")

RECOVERY_STEP = 1_000_000
"""A recovering step is so far ahead that no late copy of the dead session's own can follow it."""

KEPT_SECONDS = 7 * 86_400.0
"""A message may be gone after that: whoever does not confirm a sign-up is erased."""


def reap(store: Outbox, journals: Journals, grace: float, *, check_closed: bool = False) -> int:
    """Give up dead senders, first by the journals of this machine, which know what was never called.

    The answer: how many messages became unknown without a journal. `check_closed`: journals that ended
    properly are compared with the store, too.
    """
    with journals.dead() as dead:
        unfinished = [journal for journal in dead if journal.closed_at_step is None]
        for journal in dead if check_closed else unfinished:
            _check_known(store, journal)
        for journal in unfinished:
            _clear(store, journal)
            journals.forget(journal.session, RECOVERY_STEP)
    lost = store.reap(grace)
    if lost:
        log.warning("%d messages are unknown: their sender disappeared from another machine", lost)
    return lost


def _check_known(store: Outbox, journal: DeadJournal) -> None:
    """A store that has forgotten what this machine did was set back: sending on would send twice."""
    known = outbox_rows.sender_session(store, journal.session)
    behind = known is None and (bool(journal.called) or journal.closed_at_step is not None)
    if known is not None and journal.called and not known["is_archived"]:
        epochs = outbox_rows.epochs(store, [attempt.id for attempt in journal.called])
        may_be_erased = store.now() - known["opened_at"] >= KEPT_SECONDS
        behind = any(
            epochs.get(attempt.id, attempt.epoch if may_be_erased else 0) < attempt.epoch
            for attempt in journal.called
        )
    if behind:
        raise StoreRolledBack(
            remedy="Nothing is sent. Bring the newest store back; or, if you are sure that nothing can go out"
            f" twice, delete the journal of session {journal.session} in MAILOUT_HOME/journal.",
        )


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
