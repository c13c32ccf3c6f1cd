"""The store's half of the protocol over a handful of messages, as pure functions of immutable values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mailout.outbox.delivery.states import COLUMN_OF, DOUBTFUL, TRANSITIONS, WAITING, Column, State


class Attempt(NamedTuple):
    message: int
    epoch: int


class Result(NamedTuple):
    attempt: Attempt
    state: State


class Row(NamedTuple):
    """One message: where it stands, and which session began its attempt."""

    state: State = State.PENDING
    epoch: int = 0
    session: int | None = None


class Session(NamedTuple):
    step: int = 0
    lease_out: bool = False
    closed: bool = False


class Store(NamedTuple):
    rows: tuple[Row, ...]
    sessions: tuple[Session, ...] = ()
    ledger: tuple[tuple[Column, int], ...] = ()

    @classmethod
    def of(cls, messages: int) -> Store:
        counts = dict.fromkeys(Column, 0) | {Column.PENDING: messages}
        return cls((Row(),) * messages, (), tuple(counts.items()))

    def recount(self) -> tuple[tuple[Column, int], ...]:
        """The ledger as the messages themselves tell it."""
        columns = [COLUMN_OF[row.state] for row in self.rows]
        return tuple((column, columns.count(column)) for column in Column)


class Reply(NamedTuple):
    fenced: bool = False
    begun: tuple[Attempt, ...] = ()
    recovered: tuple[Attempt, ...] = ()


def open_session(store: Store) -> tuple[Store, int]:
    return store._replace(sessions=(*store.sessions, Session())), len(store.sessions)


def step(
    store: Store,
    session: int,
    n: int,
    *,
    results: Iterable[Result] = (),
    withdraw: Iterable[Attempt] = (),
    want: int = 0,
    recover: bool = False,
    close: bool = False,
) -> tuple[Store, Reply]:
    """One transaction: renew, record by epoch (also when fenced), then begin what is due."""
    mine = store.sessions[session]
    fenced = mine.closed or mine.step >= n
    if not fenced:
        store = _with_session(store, session, Session(step=n, closed=close))
    for attempt, state in results:
        if _in_doubt(store, attempt):
            store = move(store, attempt.message, state)
    for attempt in withdraw:
        if _in_doubt(store, attempt):
            store = move(store, attempt.message, State.PENDING)
    if fenced:
        return store, Reply(fenced=True)
    recovered = _begun_by(store, session) if recover else ()
    if close:
        return _lose(store, session), Reply(recovered=recovered)
    begun = []
    due = [i for i, row in enumerate(store.rows) if row.state in WAITING]
    for message in due[:want]:
        epoch = store.rows[message].epoch + 1
        store = move(store, message, State.SENT_ATTEMPT, epoch=epoch, session=session)
        begun.append(Attempt(message, epoch))
    return store, Reply(begun=tuple(begun), recovered=recovered)


def reap(store: Store) -> Store:
    """Sessions whose lease ran out long ago are closed; what they had begun is UNKNOWN, never PENDING."""
    for id, session in enumerate(store.sessions):
        if session.lease_out and not session.closed:
            store = _lose(_with_session(store, id, session._replace(closed=True)), id)
    return store


def settle(store: Store, message: int, to: State) -> Store:
    """A person's word on an UNKNOWN message. The epoch rises: late results of the old attempt are ignored."""
    assert store.rows[message].state is State.UNKNOWN
    return move(store, message, to, epoch=store.rows[message].epoch + 1)


def accepted_event(store: Store, attempt: Attempt) -> Store:
    """An event carries the attempt's id and epoch: it was accepted, whatever we believed."""
    row = store.rows[attempt.message]
    if row.epoch == attempt.epoch and row.state in (*WAITING, *DOUBTFUL):
        return move(store, attempt.message, State.SENT)
    return store


def leases_run_out(store: Store, sessions: Iterable[int]) -> Store:
    for id in sessions:
        store = _with_session(store, id, store.sessions[id]._replace(lease_out=True))
    return store


def move(store: Store, message: int, to: State, **columns: int) -> Store:
    """The only way a row changes: a step of the table, and the ledger follows."""
    row = store.rows[message]
    if row.state is not to:
        assert to in TRANSITIONS[row.state], f"{row.state} cannot become {to}"
    rows = list(store.rows)
    rows[message] = row._replace(state=to, **columns)
    counts = dict(store.ledger)
    counts[COLUMN_OF[row.state]] -= 1
    counts[COLUMN_OF[to]] += 1
    return store._replace(rows=tuple(rows), ledger=tuple(counts.items()))


def _in_doubt(store: Store, attempt: Attempt) -> bool:
    row = store.rows[attempt.message]
    return row.state in DOUBTFUL and row.epoch == attempt.epoch


def _begun_by(store: Store, session: int) -> tuple[Attempt, ...]:
    return tuple(
        Attempt(i, row.epoch)
        for i, row in enumerate(store.rows)
        if row.session == session and row.state is State.SENT_ATTEMPT
    )


def _lose(store: Store, session: int) -> Store:
    for attempt in _begun_by(store, session):
        store = move(store, attempt.message, State.UNKNOWN)
    return store


def _with_session(store: Store, id: int, session: Session) -> Store:
    sessions = list(store.sessions)
    sessions[id] = session
    return store._replace(sessions=tuple(sessions))
