"""What sending needs of the store: messages and the sessions that send them, and the queue of mailouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mailout.delivery.protocol import Attempt, Step, StepReply
from mailout.delivery.states import State
from mailout.queue.model import DeferReason, Mailout, NewMailout, Status


@dataclass(frozen=True, slots=True)
class Doubt:
    """An attempt of a dead session whose end its journal may know."""

    attempt: Attempt
    state: State


class Outbox(Protocol):
    """Messages and the sessions that send them."""

    def now(self) -> float:
        """The store's time: the one that slots, leases and limits go by."""
        ...

    def open_session(self, campaign_id: str | None, *, worker: str, transport: str, lease: float) -> str: ...
    def step(self, step: Step) -> StepReply: ...
    def session_step(self, session: str) -> int | None:
        """The last step a session made; None: the store has never heard of it."""
        ...

    def session_archived(self, session: str) -> bool:
        """Whether what it sent lies in an archive: the outbox no longer knows it, and need not."""
        ...

    def doubts(self, session: str) -> Sequence[Doubt]: ...
    def epochs(self, ids: Sequence[str]) -> Mapping[str, int]: ...
    def stop_machine(self, machine: str) -> int:
        """Ask the living sessions of one machine's workers (`machine-<pid>`) to end; how many were asked."""
        ...

    def reap(self, grace: float) -> int:
        """Close sessions whose lease ran out `grace` ago; their attempts become UNKNOWN. How many."""
        ...

    def settle(self, campaign_id: str, to: State, *, wait: float, ids: Sequence[str] | None = None) -> int:
        """A person's word on UNKNOWN messages (all, or these): SENT, FAILED or PENDING."""
        ...

    def retry_failed(self, campaign_id: str) -> int:
        """FAILED messages wait again, with all their attempts before them. How many."""
        ...

    def confirm(self, attempt: Attempt, message_id: str | None) -> bool:
        """An event says that this attempt was accepted (it may know before we do)."""
        ...

    def revoke(self, attempt: Attempt, code: str, message: str) -> bool:
        """An event says that an accepted message was then rejected."""
        ...

    def message(self, id: str) -> Mapping[str, Any]: ...
    def message_events(self, id: str) -> Sequence[Mapping[str, Any]]: ...
    def messages(
        self,
        campaign_id: str,
        *,
        after: int = 0,
        limit: int = 1000,
        states: Sequence[State] = (),
    ) -> Sequence[Mapping[str, Any]]:
        """Rows by `seq`, one page: ask again after the last one's `seq`."""
        ...

    def usage(self, scope: str, kind: str, key: str) -> int: ...
    def set_quota(
        self, scope: str, available: int | None, asked_at: float, *, most: int | None = None
    ) -> None:
        """What the provider had left when it was asked, of how many; None: unlimited."""
        ...

    def quota(self, scope: str) -> int | None:
        """The effective quota: what was left then, less what was begun here since."""
        ...

    def first_day(self, scope: str) -> str | None:
        """The key of the day on which the first message of an account left; None: none has."""
        ...

    def begun_since(self, moment: float, *, rehearsal: bool = False) -> Sequence[tuple[float, int]]:
        """Minutes (their beginnings) in which attempts were begun, and how many: what frees a quota.

        Of real mail, or of rehearsals, which use none of it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Recipient:
    """One member of an audience that is handed in instead of read from `subscribers`."""

    email: str
    from_name: str | None = None
    content_id: str | None = None  # None: the mailout's own
    variables: Mapping[str, str] = field(default_factory=dict)
    recipient_id: str | None = None


class Queue(Protocol):
    """Mailouts: `campaign_queue`, the single source of truth."""

    def enqueue(self, new: NewMailout) -> Mailout:
        """Write it down, or find it: the same id is the same mailout."""
        ...

    def mailout(self, id: str) -> Mailout: ...
    def mailouts(self, *, statuses: Sequence[Status] = (), limit: int = 100) -> Sequence[Mailout]:
        """In the order in which they would be taken up, then the newest first."""
        ...

    def due_mailouts(self, stale: float) -> Sequence[Mailout]:
        """What may be taken up now: pending and due, or processing with nobody seen for `stale` s."""
        ...

    def start(self, id: str, worker: str) -> Mailout:
        """Take it up, if it is due: PROCESSING. One that is not due, or done, comes back as it is."""
        ...

    def defer(
        self, id: str, reason: DeferReason, until: float | None, note: str | None = None
    ) -> Mailout: ...
    def resume(self, id: str) -> Mailout:
        """It waits for nothing but its turn; what held it for a person is acknowledged."""
        ...

    def release(self, id: str) -> Mailout:
        """Whoever sent it has stopped: PENDING again, unless another one is sending it."""
        ...

    def cancel(self, id: str) -> Mailout: ...
    def discard_unbegun(self, id: str) -> bool:
        """Let go of a mailout that was cancelled before its first message, so that it may be sent after all.
        False: something of it was begun, or it is not cancelled."""
        ...

    def complete(self, id: str) -> Mailout:
        """COMPLETED, if nothing is pending or in flight; else it comes back as it is."""
        ...

    def same_content(self, id: str, since: float) -> Mailout | None:
        """The latest real mailout from another page that took the same to the same list, and began first."""
        ...

    def needing_a_person(self) -> Sequence[Mailout]:
        """Those that wait for one, and those with messages in doubt (unless cancelled); the oldest first."""
        ...

    def last_turns(self) -> Mapping[str, float]:
        """When each company last sent."""
        ...

    def next_test_run(self, ref: str) -> int: ...
    def pause_all(self, paused: bool) -> None: ...
    def all_paused(self) -> bool: ...
    def set_content(self, id: str, content_id: str, subject: str, *, replace: bool = False) -> Mailout:
        """Freeze what is sent. The first one stays: editing the page later changes nothing.

        `replace`: another one, as long as it waits and no message of it has been tried.
        """
        ...

    def last_test(self, *, ref: str | None = None, content_hash: str | None = None) -> float | None:
        """When the latest test of this page or file (or of this content) had gone out to somebody."""
        ...

    def freeze_subscribers(self, id: str, *, chunk: int = 20_000) -> int | None:
        """Write the next part of the audience; how many, or None once all are in."""
        ...

    def freeze_recipients(self, id: str, recipients: Sequence[Recipient]) -> int:
        """Write an audience that was handed in, whole. A replay adds nobody twice."""
        ...
