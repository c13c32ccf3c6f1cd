"""Senders, their journals, the provider, and everything that can go wrong, around the model of the store.

One lane a sender: it begins what `step` gave it, journals, calls, journals the answer, tells the store. Every
`fault` spends one of a few; everything else is progress and always possible. A time that the protocol
relies on appears as a condition: a call ends before a person may send an UNKNOWN message again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from mailout.outbox.delivery.states import DOUBTFUL, WAITING, State
from tests.model import store as st
from tests.model.store import Attempt, Result, Session, Store


class Phase(Enum):
    JOURNALED = "the call is written down, and may be on the wire"
    ACCEPTED = "the provider has it; the answer is on its way"
    REFUSED = "the provider has surely not taken it"


class Call(NamedTuple):
    attempt: Attempt
    phase: Phase


class Request(NamedTuple):
    """A step that the sender gave up waiting for. It may still arrive, or never."""

    session: int
    n: int
    results: frozenset[Result]
    withdraw: frozenset[Attempt]
    recover: bool


class Sender(NamedTuple):
    session: int | None = None  # None: not running
    n: int = 0
    held: frozenset[Attempt] = frozenset()  # begun, not called yet
    call: Call | None = None
    results: frozenset[Result] = frozenset()  # known here, not recorded yet
    withdraw: frozenset[Attempt] = frozenset()
    recover: bool = False  # a step was lost: what it began is not known yet
    late: bool = False  # its own clock says that the lease may be over: no call may start

    @property
    def unrecorded(self) -> set[Attempt]:
        return {result.attempt for result in self.results} | set(self.withdraw)


class Journal(NamedTuple):
    """A session's file on its machine; lines are ("call" | "done" | "void", attempt)."""

    boot: int
    lines: tuple[tuple[str, Attempt], ...] = ()


class World(NamedTuple):
    store: Store
    senders: tuple[Sender, ...]
    journals: tuple[tuple[int, Journal], ...] = ()  # by session; cleared ones are gone
    boot: int = 0
    wire: frozenset[Request] = frozenset()
    on_the_way: frozenset[Attempt] = frozenset()  # calls that nobody waits for; the provider may take them
    accepted: tuple[int, ...] = ()  # how often the provider took each message
    events: frozenset[Attempt] = frozenset()  # accepted attempts whose event may still come
    faults: int = 0  # how many may still happen


@dataclass(frozen=True)
class Rules:
    """The protocol's precautions. Each can be left out, to see that the search notices."""

    journal_knows_its_boot: bool = True
    reaped_become_unknown: bool = True
    results_count_by_epoch: bool = True
    lost_step_is_recovered: bool = True
    late_copies_are_refused: bool = True
    journal_before_call: bool = True
    lease_is_checked: bool = True


ALL_RULES = Rules()


def beginning(messages: int, senders: int, faults: int) -> World:
    return World(
        Store.of(messages),
        (Sender(),) * senders,
        accepted=(0,) * messages,
        faults=faults,
    )


def successors(world: World, rules: Rules = ALL_RULES) -> Iterator[tuple[str, World]]:
    """Everything that may happen next, with a name for the story."""
    for i, sender in enumerate(world.senders):
        if sender.session is None:
            yield f"sender {i} starts", _start(world, i, rules)
            continue
        yield from _sender_moves(world, i, sender, rules)
        if world.faults:
            yield f"sender {i} is killed", _kill(world, i)._replace(faults=world.faults - 1)
    for request in world.wire:
        yield f"a late step of session {request.session} arrives", _late_step(world, request, rules)
    for attempt in world.on_the_way:
        rest = world._replace(on_the_way=world.on_the_way - {attempt})
        yield f"the provider takes {attempt} late", _accept(rest, attempt)
    for attempt in world.events:
        told = st.accepted_event(world.store, attempt)
        yield f"an event tells of {attempt}", world._replace(store=told, events=world.events - {attempt})
    if any(session.lease_out and not session.closed for session in world.store.sessions):
        yield "somebody gives up who is lost", _reap(world, rules)
    yield from _persons(world)
    if world.faults:
        yield from _faults(world)


# ── one sender ──


def _start(world: World, i: int, rules: Rules) -> World:
    """Read the journals of the dead, give up who is lost, open a session and its journal."""
    living = {sender.session for sender in world.senders}
    for session, journal in world.journals:
        if session not in living:
            world = _clear(world, session, journal, rules)
    world = _reap(world, rules)
    store, session = st.open_session(world.store)
    journals = (*((s, j) for s, j in world.journals if s in living), (session, Journal(world.boot)))
    return _with(world._replace(store=store, journals=journals), i, Sender(session))


def _clear(world: World, session: int, journal: Journal, rules: Rules) -> World:
    """Accepted → SENT; never called or surely not accepted → withdrawn; else UNKNOWN."""
    trusted = journal.boot == world.boot or not rules.journal_knows_its_boot
    said = {kind: {a for k, a in journal.lines if k == kind} for kind in ("call", "done", "void")}
    results, withdraw = [], []
    for message, row in enumerate(world.store.rows):
        attempt = Attempt(message, row.epoch)
        if row.session != session or row.state not in DOUBTFUL:
            continue
        if attempt in said["done"]:
            results.append(Result(attempt, State.SENT))
        elif trusted and (attempt not in said["call"] or attempt in said["void"]):
            withdraw.append(attempt)
        else:
            results.append(Result(attempt, State.UNKNOWN))
    store, _ = st.step(world.store, session, 10**6, results=results, withdraw=withdraw, close=True)
    return world._replace(store=store)


def _sender_moves(world: World, i: int, sender: Sender, rules: Rules) -> Iterator[tuple[str, World]]:
    if sender.call is not None:
        yield from _call_moves(world, i, sender, rules)
    elif sender.held and not (sender.late and rules.lease_is_checked):
        attempt = min(sender.held)
        calling = sender._replace(held=sender.held - {attempt}, call=Call(attempt, Phase.JOURNALED))
        told = _journal(world, sender, "call", attempt) if rules.journal_before_call else world
        yield f"sender {i} calls {attempt}", _with(told, i, calling)
    idle = sender.call is None and not sender.held
    due = any(row.state in WAITING for row in world.store.rows)
    if sender.unrecorded or sender.recover or sender.late or (idle and due):
        yield f"sender {i} steps", _step(world, i, sender, rules)
        if world.faults:
            lost = _lose_answer(world, i, sender, rules)
            yield f"sender {i} loses a step", lost._replace(faults=world.faults - 1)


def _call_moves(world: World, i: int, sender: Sender, rules: Rules) -> Iterator[tuple[str, World]]:
    assert sender.call is not None
    attempt, phase = sender.call
    if phase is Phase.JOURNALED:
        took = _accept(world, attempt)
        yield (
            f"the provider takes {attempt}",
            _with(took, i, sender._replace(call=Call(attempt, Phase.ACCEPTED))),
        )
        if world.faults:
            refused = sender._replace(call=Call(attempt, Phase.REFUSED))
            yield (
                f"the provider throttles {attempt}",
                _with(world, i, refused)._replace(faults=world.faults - 1),
            )
            gone = world._replace(on_the_way=world.on_the_way | {attempt}, faults=world.faults - 1)
            yield f"{attempt} times out", _with(gone, i, _answered(sender, attempt, State.UNKNOWN))
    elif phase is Phase.ACCEPTED:
        done = _journal(world, sender, "done", attempt)
        yield (
            f"sender {i} hears that {attempt} was taken",
            _with(done, i, _answered(sender, attempt, State.SENT)),
        )
        if world.faults:
            unknown = _with(world, i, _answered(sender, attempt, State.UNKNOWN))
            yield f"the answer to {attempt} is lost", unknown._replace(faults=world.faults - 1)
    else:
        void = _journal(world, sender, "void", attempt)
        back = sender._replace(call=None, withdraw=sender.withdraw | {attempt})
        yield f"sender {i} hears that {attempt} was throttled", _with(void, i, back)


def _answered(sender: Sender, attempt: Attempt, state: State) -> Sender:
    return sender._replace(call=None, results=sender.results | {Result(attempt, state)})


def _step(world: World, i: int, sender: Sender, rules: Rules) -> World:
    """Answered at once. Fenced: what was begun and not called is given back, a new session begins."""
    idle = sender.call is None and not sender.held and not sender.unrecorded
    held = frozenset() if sender.late else sender.held
    withdraw = sender.withdraw | (sender.held - held)
    store, reply = _store_step(
        world,
        Request(sender.session or 0, sender.n + 1, sender.results, withdraw, sender.recover),
        rules,
        want=1 if idle and not sender.recover else 0,
    )
    world = world._replace(store=store)
    if reply.fenced:
        return _reopen(world, i, sender._replace(held=frozenset()), sender.held - withdraw)
    known = held | ({sender.call.attempt} if sender.call else set())
    strangers = frozenset(reply.recovered) - known if rules.lost_step_is_recovered else frozenset()
    after = Sender(sender.session, sender.n + 1, held | set(reply.begun), sender.call, withdraw=strangers)
    return _with(world, i, after)


def _reopen(world: World, i: int, sender: Sender, unstarted: frozenset[Attempt]) -> World:
    """Calls in hand end first (the model lets the sender wait); what never started is told by epoch."""
    request = Request(sender.session or 0, sender.n + 2, frozenset(), unstarted, recover=False)
    store, _ = _store_step(world, request, ALL_RULES)
    world = world._replace(store=store)
    if sender.call is not None:  # it must answer before the new session begins
        return _with(
            world, i, sender._replace(n=sender.n + 2, results=frozenset(), withdraw=frozenset(), late=True)
        )
    store, session = st.open_session(world.store)
    journals = tuple((s, j) for s, j in world.journals if s != sender.session)
    opened = world._replace(store=store, journals=(*journals, (session, Journal(world.boot))))
    return _with(opened, i, Sender(session))


def _lose_answer(world: World, i: int, sender: Sender, rules: Rules) -> World:
    """The request is on the wire; the sender keeps what it knows and asks again with the next number."""
    request = Request(sender.session or 0, sender.n + 1, sender.results, sender.withdraw, sender.recover)
    after = sender._replace(n=sender.n + 1, recover=True)
    return _with(world._replace(wire=world.wire | {request}), i, after)


def _late_step(world: World, request: Request, rules: Rules) -> World:
    store, _ = _store_step(world, request, rules, want=1)
    return world._replace(store=store, wire=world.wire - {request})


def _store_step(world: World, request: Request, rules: Rules, want: int = 0) -> tuple[Store, st.Reply]:
    store, n = world.store, request.n
    results, withdraw = request.results, request.withdraw
    if not rules.late_copies_are_refused:
        n = max(n, store.sessions[request.session].step + 1)
    if not rules.results_count_by_epoch:
        results = frozenset(Result(_now(store, r.attempt), r.state) for r in results)
        withdraw = frozenset(_now(store, a) for a in withdraw)
    return st.step(
        store, request.session, n, results=results, withdraw=withdraw, want=want, recover=request.recover
    )


def _now(store: Store, attempt: Attempt) -> Attempt:
    return Attempt(attempt.message, store.rows[attempt.message].epoch)


# ── the provider, people, and what goes wrong ──


def _accept(world: World, attempt: Attempt) -> World:
    accepted = list(world.accepted)
    accepted[attempt.message] += 1
    return world._replace(accepted=tuple(accepted), events=world.events | {attempt})


def _persons(world: World) -> Iterator[tuple[str, World]]:
    """Long after the reap: nothing of that message is on its way any more, and the person has looked."""
    busy = {a.message for a in world.on_the_way} | {s.call.attempt.message for s in world.senders if s.call}
    for message, row in enumerate(world.store.rows):
        if row.state is State.UNKNOWN and message not in busy:
            to = State.SENT if world.accepted[message] else State.PENDING
            yield (
                f"a person settles {message} as {to}",
                world._replace(store=st.settle(world.store, message, to)),
            )


def _faults(world: World) -> Iterator[tuple[str, World]]:
    spent = world._replace(faults=world.faults - 1)
    for i, sender in enumerate(world.senders):
        if sender.session is not None and not world.store.sessions[sender.session].lease_out:
            store = st.leases_run_out(spent.store, [sender.session])
            yield (
                f"the lease of sender {i} runs out",
                _with(spent._replace(store=store), i, sender._replace(late=True)),
            )
    yield from (("the power fails", after) for after in _power_cuts(spent))


def _kill(world: World, i: int) -> World:
    """The process is gone; a call in the air may still be taken; its lease runs out in time."""
    sender = world.senders[i]
    if sender.call is not None and sender.call.phase is Phase.JOURNALED:
        world = world._replace(on_the_way=world.on_the_way | {sender.call.attempt})
    assert sender.session is not None
    store = st.leases_run_out(world.store, [sender.session])
    return _with(world._replace(store=store), i, Sender())


def _power_cuts(world: World) -> Iterator[World]:
    """Every process dies, and each journal keeps any beginning of its lines. The store was synced."""
    for i, sender in enumerate(world.senders):
        if sender.session is not None:
            world = _kill(world, i)
    cuts: list[tuple[tuple[int, Journal], ...]] = [()]
    for session, journal in world.journals:
        cuts = [
            (*kept, (session, journal._replace(lines=journal.lines[:length])))
            for kept in cuts
            for length in range(len(journal.lines) + 1)
        ]
    for journals in cuts:
        yield world._replace(boot=world.boot + 1, journals=journals)


def _reap(world: World, rules: Rules) -> World:
    if rules.reaped_become_unknown:
        return world._replace(store=st.reap(world.store))
    store = st.reap(world.store)
    for message, row in enumerate(store.rows):
        if row.state is State.UNKNOWN and world.store.rows[message].state is State.SENT_ATTEMPT:
            store = st.move(store, message, State.PENDING)
    return world._replace(store=store)


def _journal(world: World, sender: Sender, kind: str, attempt: Attempt) -> World:
    journals = tuple(
        (s, j._replace(lines=(*j.lines, (kind, attempt))) if s == sender.session else j)
        for s, j in world.journals
    )
    return world._replace(journals=journals)


def _with(world: World, i: int, sender: Sender) -> World:
    senders = list(world.senders)
    senders[i] = sender
    return world._replace(senders=tuple(senders))


def canonical(world: World) -> World:
    """The same world with its steps counted from the store's last one: only that distance matters. Senders
    stand in the order of their sessions: which process is which does not matter."""
    done = {id: 10**9 if session.closed else session.step for id, session in enumerate(world.store.sessions)}
    sessions = tuple(
        Session(lease_out=s.lease_out and not s.closed, closed=s.closed) for s in world.store.sessions
    )
    return world._replace(
        store=world.store._replace(sessions=sessions),
        senders=tuple(
            s if s.session is None else s._replace(n=max(0, s.n - done[s.session]))
            for s in sorted(world.senders, key=_age)
        ),
        wire=frozenset(r._replace(n=max(0, r.n - done[r.session])) for r in world.wire),
    )


def _age(sender: Sender) -> int:
    return -1 if sender.session is None else sender.session
