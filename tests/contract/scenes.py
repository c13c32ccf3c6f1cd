"""What the contract tests play out: an audience, a mailout, and senders that step through it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mailout.base.ids import mailout_id, uuid_of
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Attempt, Bucket, Claimed, Ledger, Pace, Result, Step, StepReply
from mailout.outbox.delivery.states import COLUMN_OF, State
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Applied, EventReading, Received
from mailout.outbox.queue.mailout import NewMailout
from mailout.outbox.queue.port import Recipient
from mailout.store import Store
from tests.ses_events import ses_event

LEASE = 60.0
GRACE = 20.0
ACCOUNT = "ses:eu-west-1"
NOWHERE = uuid_of("nothing has this id")
LETTER = Content("News", "<p>Hello</p>", "Hello")


def subscribe(store: Store, *emails: str, **fields: Any) -> None:
    store.import_subscribers([SubscriberRow(email, email, **fields) for email in emails])


def enqueue(store: Store, ref: str = "page", **fields: Any) -> str:
    """A mailout with content, waiting in the queue, its audience not yet written."""
    id = fields.pop("id", mailout_id(ref))
    store.enqueue(NewMailout(id=id, **{"kind": Kind.NOTION, "ref": ref, **fields}))
    store.set_content(id, keep_content(store, LETTER), LETTER.subject)
    return id


def freeze(store: Store, id: str, **options: Any) -> int:
    added = 0
    while (part := store.freeze_subscribers(id, **options)) is not None:
        added += part
    return added


def mailout(store: Store, *emails: str, ref: str = "page", **fields: Any) -> str:
    """A mailout to these subscribers, frozen and started."""
    list_key = fields.get("list_key")
    subscribe(store, *emails, lists=(list_key,) if list_key else ())
    id = enqueue(store, ref, **fields)
    freeze(store, id)
    store.start(id, "worker")
    return id


def handed_mailout(store: Store, *recipients: Recipient, ref: str = "page", **fields: Any) -> str:
    """A mailout to an audience that is handed in."""
    id = enqueue(store, ref, **fields)
    store.freeze_recipients(id, recipients)
    store.start(id, "worker")
    return id


@dataclass
class Sender:
    """One sender's side of the protocol: a session and the number of its next step."""

    store: Store
    mailout_id: str | None
    lease: float = LEASE
    n: int = 0
    worker: str = "worker"
    session: str = field(init=False)

    def __post_init__(self) -> None:
        self.session = self.store.open_session(
            self.mailout_id, worker=self.worker, transport="folder", lease=self.lease
        )

    def step(
        self, *, rate: float = 0.0, throttled: bool = False, n: int | None = None, **rest: Any
    ) -> StepReply:
        """The next step (or, with `n`, one out of its turn)."""
        if n is None:
            self.n += 1
        pace = Pace(ACCOUNT, rate, throttled=throttled)
        return self.store.step(Step(self.session, n or self.n, self.lease, pace, **rest))

    def begin(self, want: int = 1, **rest: Any) -> Sequence[Claimed]:
        return self.step(want=want, **rest).rows

    def begin_one(self, **rest: Any) -> Claimed:
        (claimed,) = self.begin(1, **rest)
        return claimed


def result(claimed: Claimed | Attempt, state: State = State.SENT, **fields: Any) -> Result:
    attempt = claimed.attempt if isinstance(claimed, Claimed) else claimed
    if state is State.SENT:
        fields.setdefault("provider_message_id", f"ses-{attempt.id[:8]}-{attempt.epoch}")
    return Result(attempt, state, **fields)


def confirmed(store: Store, attempt: Attempt, ses_id: str = "ses-1") -> bool:
    """SES reports that it has accepted this attempt; whether that has moved the message."""
    return _heard(store, ses_event("Send", attempt=attempt, ses_id=ses_id)).confirmed == 1


def rejected(store: Store, attempt: Attempt | None, ses_id: str = "ses-1") -> bool:
    """SES reports that it has rejected what it had accepted; whether that has moved the message."""
    return _heard(store, ses_event("Reject", attempt=attempt, ses_id=ses_id)).revoked == 1


def _heard(store: Store, payload: str) -> Applied:
    store.receive_events([Received(uuid_of("sns", payload), "sns", payload)])
    return ingest(store, "any")


def state_of(store: Store, id: str) -> State:
    return State(outbox_rows.message(store, id)["state"])


def states(store: Store, mailout_id: str) -> dict[str, State]:
    return {row["email"]: State(row["state"]) for row in outbox_rows.messages(store, mailout_id)}


def recount(store: Store, mailout_id: str) -> Ledger:
    """The ledger as the messages themselves tell it."""
    counts = Counter(
        COLUMN_OF[State(row["state"])].value for row in outbox_rows.messages(store, mailout_id, limit=10**6)
    )
    return Ledger(recipients=counts.total(), **counts)


def assert_ledger(store: Store, mailout_id: str) -> None:
    ledger = store.mailout(mailout_id).ledger
    assert ledger.balances
    assert ledger == recount(store, mailout_id)


def moment(value: Any) -> float | None:
    """A time in a view: text on one store, a timestamp on another."""
    if value is None:
        return None
    when = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return when.timestamp()


def buckets(now: float, *, hour: int | None = None, day: int | None = None) -> list[Bucket]:
    """This hour and the next, this day and the next, in UTC, with their limits."""
    made = []
    for kind, length, form, limit in (
        ("hour", 3600.0, "%Y-%m-%dT%H", hour),
        ("day", 86400.0, "%Y-%m-%d", day),
    ):
        first = now - now % length
        for start in (first, first + length):
            key = datetime.fromtimestamp(start, UTC).strftime(form)
            made.append(Bucket(kind, key, start, start + length, limit))
    return made


def dead_event(store: Store, body: str, why: str = "Nobody can read it.", id: str = "sns-1") -> None:
    """An event that ends as a dead letter."""
    store.receive_events([Received(id, "sns", body)])
    store.apply_events([EventReading(id, problem=("unreadable", why), dead=True)])
