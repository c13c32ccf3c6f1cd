"""What the core needs of the world. Adapters fulfil these; `wiring` chooses them; tests loop over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from mailout.alerts.model import Known, Signs
from mailout.content.model import Content
from mailout.delivery.protocol import Attempt, Outcome, Step, StepReply
from mailout.delivery.states import State
from mailout.doctor import Check
from mailout.feedback.model import (
    Applied,
    Doubts,
    Drift,
    Forgotten,
    Heard,
    InboxCounts,
    Left,
    Reading,
    Received,
    Waiting,
)
from mailout.metrics.model import Sample, Vitals
from mailout.queue.model import DeferReason, Mailout, NewMailout, Status
from mailout.queue.request import Request
from mailout.reporting.page_state import PageState


class Clock(Protocol):
    """Seconds since the epoch, a clock that never goes back, and a way to wait."""

    def now(self) -> float: ...
    def monotonic(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...


# ── The transport ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Mail:
    """One message, ready to be spliced together and handed over."""

    attempt: Attempt
    campaign_id: str | None
    to: str
    from_email: str
    from_name: str
    reply_to: str | None
    content: Content
    values: Mapping[str, str]  # fills the content's marks
    unsubscribe_url: str | None  # None: a transactional mail


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a provider still allows."""

    available: int | None  # messages; None: no limit
    max_rate: float | None  # messages a second; None: no limit
    refused: Outcome | None = None  # nothing may leave, and why
    most: int | None = None  # messages in 24 hours, of which `available` are left


class Transport(Protocol):
    """Where mail goes. One call, as many outcomes as mails, in order; it never raises for a mail's sake."""

    name: str
    scope: str  # whose pace and quota it shares: an account in a region
    max_batch: int  # how many mails one call may carry

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]: ...
    def allowance(self) -> Allowance | None:
        """Asked of the provider; None: there is none to ask. MailoutError if it does not answer."""
        ...

    def close(self) -> None: ...


# ── Where it was written ─────────────────────────────────────────────────────────────────────────


class PageReporter(Protocol):
    """Tells the place where mailouts are written what became of them. SourceError if it cannot be told."""

    keeps_errors: bool  # there is an errors database

    def ready(self, now: float) -> Sequence[str]:
        """Pages that ask to be sent and whose time has come, by their ref."""
        ...

    def show(self, ref: str, state: PageState, *, if_ready: bool = False) -> None:
        """Write it on the page; twice is once. `if_ready`: only if it still asks to be sent.

        A test run is shown only on a page that is a test, and never over the end of a real one.
        """
        ...

    def record(self, error: ErrorRecord, page: str | None) -> None:
        """A page of its own in the errors database."""
        ...


# ── The journal ──────────────────────────────────────────────────────────────────────────────────


class Journal(Protocol):
    """What one session does, written on this machine as it happens: it outlives the process."""

    def call(self, attempts: Sequence[Attempt]) -> None:
        """Before a transport call."""
        ...

    def answered(self, accepted: Mapping[Attempt, str], void: Sequence[Attempt]) -> None:
        """After it: these were accepted (with SES's id), those surely not. The others are in doubt."""
        ...

    def close(self, last_step: int) -> None:
        """Everything in it is recorded in the store."""
        ...


@dataclass(frozen=True, slots=True)
class DeadJournal:
    """The journal of a session whose process is gone."""

    session: str
    called: frozenset[Attempt] = frozenset()
    accepted: Mapping[Attempt, str] = field(default_factory=dict)
    void: frozenset[Attempt] = frozenset()
    closed_at_step: int | None = None  # it ended properly


class Journals(Protocol):
    """The journals on this machine for one store."""

    def open(self, session: str) -> Journal: ...
    def dead(self) -> AbstractContextManager[Sequence[DeadJournal]]:
        """Those nobody writes any more, ours alone while we look at them."""
        ...

    def forget(self, session: str, last_step: int) -> None:
        """What it knew is in the store now."""
        ...


# ── The store ────────────────────────────────────────────────────────────────────────────────────


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
    def request_stop(self, campaign_id: str | None) -> int:
        """Ask every open session of a mailout (None: of all) to end; how many were asked."""
        ...

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

    def begun_since(self, moment: float) -> Sequence[tuple[float, int]]:
        """Minutes (their beginnings) in which attempts were begun, and how many: what frees a quota."""
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
    def set_content(self, id: str, content_id: str, subject: str) -> Mailout:
        """Freeze what is sent. The first one stays: editing the page later changes nothing."""
        ...

    def freeze_subscribers(self, id: str, *, chunk: int = 20_000) -> int | None:
        """Write the next part of the audience; how many, or None once all are in."""
        ...

    def freeze_recipients(self, id: str, recipients: Sequence[Recipient]) -> int:
        """Write an audience that was handed in, whole. A replay adds nobody twice."""
        ...


@dataclass(frozen=True, slots=True)
class SubscriberRow:
    """One subscriber as an import writes it: checked and normalised."""

    email: str  # as written, trimmed
    email_norm: str  # lower-case, punycode: the key
    status: str = "active"
    from_name: str | None = None
    bounce_type: str | None = None
    bounce_subtype: str | None = None
    ocd_ids: Sequence[str] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    lists: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """What an import changed."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    kept_status: int = 0  # the file said less than the store knew (invariant 6)


class Subscribers(Protocol):
    """The list, with a status that imports never lower."""

    def import_subscribers(self, rows: Sequence[SubscriberRow]) -> ImportCounts: ...
    def subscriber(self, email_norm: str) -> Mapping[str, Any]: ...
    def subscribers(self, *, after: str = "", limit: int = 1000) -> Sequence[Mapping[str, Any]]:
        """By `email_norm`, one page: ask again after the last one's."""
        ...

    def subscriber_counts(self) -> Mapping[str, int]: ...
    def normalise_addresses(self) -> int:
        """Bring into our form what others wrote straight into the table; how many can now be written to."""
        ...

    def left_out(self) -> Mapping[str, int]:
        """How many active ones get no mail because of their address, by reason."""
        ...

    def set_status(self, email_norm: str, status: str) -> None: ...


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """One line of the errors database (SPEC §10); equal ones are grouped when they are shown."""

    code: str
    message: str
    stage: str  # content, audience, delivery, feedback, report
    provider: str | None = None
    mailout: str | None = None
    email: str | None = None
    attempts: int | None = None
    at: float = 0.0


class Records(Protocol):
    """Contents by hash, errors, dead letters."""

    def put_content(self, content: Content) -> str: ...
    def content(self, content_id: str) -> Content: ...
    def record_errors(self, errors: Sequence[ErrorRecord]) -> None: ...
    def errors(self, mailout: str | None = None, limit: int = 100) -> Sequence[ErrorRecord]: ...
    def dead_letter(self, topic: str, payload: Mapping[str, Any], error: str) -> None: ...
    def dead_letters(self, limit: int = 100) -> Sequence[Mapping[str, Any]]: ...


class DueReports(Protocol):
    """What a mailout's page and the errors database have yet to be told. It outlives an outage of theirs."""

    def ask_report(self, mailout: str) -> None:
        """There is something to tell of it."""
        ...

    def due_reports(self) -> Mapping[str, int]:
        """Mailouts, and how often they have been asked for: what `report_made` needs."""
        ...

    def report_made(self, mailout: str, asked: int) -> None:
        """Told, as it was asked for then; what was asked for since stays due."""
        ...

    def unreported_errors(self, since: float, limit: int = 100) -> Mapping[int, ErrorRecord]:
        """The oldest first, by their number."""
        ...

    def errors_reported(self, numbers: Sequence[int]) -> None: ...


class Feedback(Protocol):
    """What comes back: the inbox of events, what they change, and people who leave."""

    def receive_events(self, received: Sequence[Received]) -> int:
        """Into the inbox, in one commit; how many were new. A known id changes nothing."""
        ...

    def waiting_events(self, limit: int) -> Sequence[Waiting]:
        """Those not applied yet, the oldest first."""
        ...

    def apply_events(self, readings: Sequence[Reading]) -> Applied:
        """One transaction. A row of the inbox that was applied before is passed over."""
        ...

    def inbox_counts(self) -> InboxCounts: ...
    def delivery_events(
        self, *, message_id: str | None = None, email: str | None = None, limit: int = 100
    ) -> Sequence[Mapping[str, Any]]:
        """Of one message or one address, the latest first."""
        ...

    def hear(self, news: Mapping[str, Heard]) -> int:
        """News of subscribers by normalised address; how many of them stand differently now."""
        ...

    def unsubscribe(self, email_norm: str, list_key: str | None) -> Left:
        """From one list, or (None) from everything. Who was not known is remembered as gone."""
        ...

    def resubscribe(self, email_norm: str, list_key: str | None) -> bool:
        """A person takes his own unsubscribe back; False: it is not his to undo (a complaint, a bounce)."""
        ...

    def forget(self, email_norm: str, instead: str) -> Forgotten:
        """Erase a person: `instead` stands wherever the address stood. Counts stay."""
        ...

    def doubts_open(self) -> Doubts:
        """UNKNOWN messages of all mailouts, and since when the oldest is."""
        ...

    def usage_drift(self) -> Sequence[Drift]:
        """Counters that say less than the messages charged to them: there should be none."""
        ...


class Requests(Protocol):
    """What was asked for from outside: written down first, so that a lost event costs a minute at most."""

    def ask(self, request: Request, *, repeat: float) -> bool:
        """Write it down; False: it was asked for less than `repeat` seconds ago."""
        ...

    def asked(self, waiting: float) -> Sequence[Request]:
        """Those that nobody has answered for so many seconds, the oldest first."""
        ...

    def answered(self, request: Request) -> None:
        """It is in the queue, or was refused for good."""
        ...


class Alerts(Protocol):
    """What a person has been told of, so that two workers, or the next minute, do not repeat it."""

    def alert_signs(self, scope: str) -> Signs:
        """What there is to see besides the mailouts that need a person."""
        ...

    def alerts_hold(self, keys: Sequence[str], seen_at: float) -> Sequence[Known]:
        """These hold, and no others, as was seen then; what is known of each.

        Whoever looked earlier and comes late neither ends nor revives what another has seen since.
        """
        ...

    def claim_alert(self, known: Known) -> bool:
        """Whether it is ours to tell: nobody has tried since. Until it is told, the try has failed."""
        ...

    def alert_told(self, key: str) -> None: ...


class Counts(Protocol):
    """What Prometheus is told. The counts only ever grow, whatever else is cleared away."""

    def add_counts(self, counts: Mapping[Sample, float]) -> None: ...
    def counts(self) -> Mapping[Sample, float]: ...
    def vitals(self, scope: str) -> Vitals:
        """How everything stands; `scope`: whose pace."""
        ...


class Archives(Protocol):
    """Old mailouts on their way out. Their rows in the queue stay: that they were sent is never forgotten."""

    def over_before(self, moment: float) -> Sequence[Mailout]:
        """Ended before then and not archived, the oldest first."""
        ...

    def claim_archive(self, id: str, *, owner: str, token: str, lease: float) -> bool:
        """Ours for so long, as it stands now. False: another's just now, or it is not over.

        An owner may take over his own: he knows that nobody else works in his name.
        """
        ...

    def keep_claim(self, id: str, token: str, lease: float) -> bool: ...
    def drop_claim(self, id: str, token: str) -> None: ...
    def transports(self, id: str) -> Mapping[str, str]:
        """What each of its sessions sent through."""
        ...

    def events_of(
        self, message_ids: Sequence[str], *, after: str = "", limit: int = 10_000
    ) -> Sequence[Mapping[str, Any]]:
        """By `id`, one page: ask again after the last one's."""
        ...

    def mark_archived(self, id: str, token: str, place: str) -> bool:
        """The archive is complete, and the truth from now on. False: the mailout changed meanwhile."""
        ...

    def archives_to_empty(self) -> Sequence[tuple[Mailout, str]]:
        """Archived mailouts whose messages have not all left the store, with the token of their archive."""
        ...

    def delete_archived_events(self, id: str, ids: Sequence[str]) -> int: ...
    def delete_archived_messages(self, id: str, *, most: int = 10_000) -> int:
        """The next part; 0: none is left."""
        ...

    def archive_emptied(self, id: str) -> None:
        """Nothing of it is left here but its row in the queue."""
        ...

    def trim_inbox(self, before: float, *, most: int = 10_000) -> int:
        """Forget the ids of events applied before then, a part of them; how many."""
        ...

    def give_space_back(self) -> int:
        """To the machine, if it is worth it and disturbs nobody; how many bytes."""
        ...


class Store(
    Outbox, Queue, Subscribers, Records, DueReports, Feedback, Requests, Alerts, Counts, Archives, Protocol
):
    """Where everything is kept. Every method is one transaction; every time is the store's."""

    name: str

    def check(self) -> None:
        """Reachable, the right key, the right schema: else one clear error."""
        ...

    def schema_version(self) -> int: ...
    def examine(self) -> Iterator[Check]:
        """What only this store can tell `doctor`."""
        ...

    def close(self) -> None: ...
