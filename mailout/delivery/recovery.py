"""What a sender does before it begins: learn from the journals of the dead, and give up who is lost."""

from __future__ import annotations

import logging

from mailout.delivery.protocol import Pace, Result, Step
from mailout.delivery.states import State
from mailout.errors import StoreRolledBack
from mailout.ports import DeadJournal, Journals, Outbox

log = logging.getLogger("mailout.recovery")

FAR = 1_000_000
"""A recovering step is so far ahead that no late copy of the dead session's own can follow it."""


def recover(store: Outbox, journals: Journals, reap_grace: float) -> int:
    """Settle by journal what dead processes of this machine left; how many attempts were cleared up."""
    cleared = 0
    with journals.dead() as dead:
        for journal in dead:
            _check_known(store, journal)
        for journal in dead:
            if journal.closed_at_step is None:
                cleared += _clear(store, journal)
                journals.forget(journal.session, FAR)
    lost = store.reap(reap_grace)
    if lost:
        log.warning("%d messages are unknown: their sender disappeared from another machine", lost)
    return cleared


def _check_known(store: Outbox, journal: DeadJournal) -> None:
    """A store that has forgotten what this machine did was set back: sending on would send twice."""
    known = store.session_step(journal.session)
    behind = known is None and (bool(journal.called) or journal.closed_at_step is not None)
    if not behind and journal.called and not store.session_archived(journal.session):
        epochs = store.epochs([attempt.id for attempt in journal.called])
        behind = any(epochs.get(attempt.id, 0) < attempt.epoch for attempt in journal.called)
    if behind:
        raise StoreRolledBack(
            remedy="Nothing is sent. Bring the newest store back; or, if you are sure that nothing can go out"
            f" twice, delete the journal of session {journal.session} in MAILOUT_HOME/journal.",
        )


def _clear(store: Outbox, journal: DeadJournal) -> int:
    """Accepted → SENT; never called, or surely not accepted → withdrawn; else UNKNOWN."""
    results, withdraw = [], []
    for doubt in store.doubts(journal.session):
        attempt = doubt.attempt
        if attempt in journal.accepted:
            results.append(Result(attempt, State.SENT, message_id=journal.accepted[attempt]))
        elif attempt not in journal.called or attempt in journal.void:
            withdraw.append(attempt)
        else:
            results.append(
                Result(attempt, State.UNKNOWN, message="its sender died during the call", code="SENDER_DIED")
            )
    store.step(
        Step(
            session=journal.session,
            n=FAR,
            lease=0.0,
            pace=Pace(scope="", rate=0),
            results=results,
            withdraw=withdraw,
            close=True,
        )
    )
    if results or withdraw:
        unknown = sum(1 for result in results if result.state is State.UNKNOWN)
        log.warning(
            "a sender had died: %d of its messages were sent, %d wait again, %d are unknown",
            len(results) - unknown,
            len(withdraw),
            unknown,
        )
    return len(results) + len(withdraw)
