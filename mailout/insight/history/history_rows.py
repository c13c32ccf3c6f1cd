"""What the dashboard looks back on: by index, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypedDict

from mailout.base.ids import message_id
from mailout.base.select import Reads, Table, View, Writes, among, every, first
from mailout.insight.history.port import (
    JOURNAL_FOLDER,
    PAUSED_PAGES,
    WRITTEN_PAGES,
    Act,
    MailoutMessage,
    Refusal,
    WrittenPage,
    WrittenPages,
)
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.outbox_rows import MESSAGES, SINGLE_MAILS
from mailout.outbox.delivery.port import SingleMessage
from mailout.outbox.queue.mailout import Mailout, Status
from mailout.outbox.queue.queue_rows import MAILOUTS

MAILOUTS_A_LOOK = 200
"""Whose messages to one person are looked for at a time."""


class _MailoutHead(TypedDict):
    id: str
    subject: str
    is_test: bool
    is_rehearsal: bool
    created_at: float


class _StateCount(TypedDict):
    state: str
    n: int


class _Day(TypedDict):
    day: str
    counts: Mapping[str, int]


class _Moment(TypedDict):
    campaign_id: str
    at: float
    counts: Mapping[str, int]


class _Note(TypedDict):
    name: str
    at: float
    value: Sequence[Mapping[str, Any]]


class _EndedLogin(TypedDict):
    id: str


class _Run(TypedDict):
    campaign_id: str
    run_id: str


MAILOUT_HEADS = View("read_mailouts", _MailoutHead, ("id",))
NOTIFICATIONS = View("read_notifications", SingleMessage, ("seq",))
NOTIFICATION_STATES = View("read_notification_states", _StateCount, ("state", "is_rehearsal"))
PEOPLE_COUNTS = View("read_people_counts", _Day, ("day",))
MAILOUT_COUNTS = View("read_mailout_counts", _Moment, ("campaign_id", "at"))
ENDED_LOGINS = View("read_ended_logins", _EndedLogin, ("id",))
ACTS = View("read_acts", Act, ("id",))
NOTES = View("read_notes", _Note, ("name",))
REFUSALS = View("read_refusals", Refusal, ("path", "why"))
RUNS = View("read_runs", _Run, ("campaign_id",))
ACT_TABLE = Table("dashboard_acts", Act, ("at", "who", "what", "about"), at="at")
NOTE_TABLE = Table("dashboard_notes", _Note, ("name", "at", "value"), at="at", key=("name",))
RUN_TABLE = Table("mailout_runs", _Run, ("campaign_id", "run_id"), key=("campaign_id",))


def letters(
    store: Reads,
    *,
    modes: Sequence[str],
    statuses: Sequence[Status] = (),
    kind: Kind | None = None,
    before: tuple[float, str] | None = None,
    limit: int = 50,
) -> Sequence[Mailout]:
    """The newest first, of these modes (`real`, `rehearsal`, `test`) and one kind or all, one page: ask again
    before the last one's (created_at, id)."""
    filters: dict[str, object] = {"mode in": modes}
    filters |= {"status in": statuses} if statuses else {}
    filters |= {"kind": kind} if kind is not None else {}
    return store.select(MAILOUTS, filters, order=["-created_at"], after=before, limit=limit)


def failed_letters(store: Reads, *, modes: Sequence[str], since: float, limit: int = 50) -> Sequence[Mailout]:
    """Those that ended since then with failures, the latest first."""
    ended = {"mode in": modes, "status": Status.COMPLETED, "outcome": "failed", "completed_at >=": since}
    return store.select(MAILOUTS, ended, order=["-completed_at"], limit=limit)


def latest_of(store: Reads, refs: Sequence[str]) -> Mapping[str, Mailout]:
    """By page or file: the mailout that was made of it last, whatever its mode."""
    found = every(store, MAILOUTS, {"ref in": list(refs)}, order=["created_at"]) if refs else ()
    return {one.ref: one for one in found}


def messages_to(store: Reads, email_norm: str, *, limit: int = 50) -> Sequence[MailoutMessage]:
    """What one person got or will get of mailouts, the newest mailout first, with its subject. A message's id
    follows from its mailout and the address."""
    found: list[MailoutMessage] = []
    before: tuple[float, str] | None = None
    while len(found) < limit:
        heads = store.select(MAILOUT_HEADS, order=["-created_at"], after=before, limit=MAILOUTS_A_LOOK)
        by_id = {message_id(head["id"], email_norm): head for head in heads}
        messages = {row["id"]: row for row in among(store, MESSAGES, "id", list(by_id))}
        for id, head in by_id.items():
            message = messages.get(id)
            if message is not None and message["email"] == email_norm:
                told: MailoutMessage = {**message, "subject": head["subject"], "is_test": head["is_test"]}
                told["is_rehearsal"] = head["is_rehearsal"]
                found.append(told)
        if len(heads) < MAILOUTS_A_LOOK:
            break
        before = (heads[-1]["created_at"], heads[-1]["id"])
    return found[:limit]


def single_mails_to(store: Reads, email_norm: str, *, limit: int = 50) -> Sequence[SingleMessage]:
    """What one person got or will get without a mailout, the newest first, with its subject."""
    return store.select(SINGLE_MAILS, {"email": email_norm}, order=["-seq"], limit=limit)


def notification_states(store: Reads, *, rehearsal: bool) -> Mapping[str, int]:
    """How many of the latest notifications are in which state."""
    return {row["state"]: row["n"] for row in store.select(NOTIFICATION_STATES, {"is_rehearsal": rehearsal})}


def latest_notifications(store: Reads, *, rehearsal: bool, limit: int = 50) -> Sequence[SingleMessage]:
    """The newest first; how often one was requeued is among its variables."""
    return store.select(NOTIFICATIONS, {"is_rehearsal": rehearsal}, order=["-seq"], limit=limit)


def people_over_time(store: Reads, since: str) -> Sequence[tuple[str, Mapping[str, int]]]:
    """(day, counts by status and list) from that day on, the oldest first."""
    return [(row["day"], row["counts"]) for row in every(store, PEOPLE_COUNTS, {"day >=": since})]


def mailout_over_time(store: Reads, mailout_id: str) -> Sequence[tuple[float, Mapping[str, int]]]:
    rows = every(store, MAILOUT_COUNTS, {"campaign_id": mailout_id})
    return [(row["at"], row["counts"]) for row in rows]


def acts(store: Reads, limit: int = 100) -> Sequence[Act]:
    """The latest first."""
    return store.select(ACTS, order=["-id"], limit=limit)


def acts_of(store: Reads, what: str, since: float) -> Sequence[Act]:
    """All acts of one kind since then, the latest first."""
    return list(every(store, ACTS, {"what": what, "at >=": since}, order=["-id"]))


def login_ended(store: Reads, id: str) -> bool:
    """Whether somebody signed out of this session of the dashboard."""
    return first(store, ENDED_LOGINS, {"id": id}) is not None


def keep_note(store: Writes, name: str, value: Sequence[Mapping[str, Any]]) -> None:
    note: _Note = {"name": name, "at": 0.0, "value": value}
    store.put(NOTE_TABLE, [note])


def note_value(store: Reads, name: str) -> Sequence[Mapping[str, Any]]:
    note = first(store, NOTES, {"name": name})
    return note["value"] if note else ()


def keep_written_pages(store: Writes, pages: Sequence[WrittenPage]) -> None:
    """These and no others, as of now."""
    keep_note(store, WRITTEN_PAGES, [asdict(page) for page in pages])


def keep_paused_pages(store: Writes, refs: Sequence[str]) -> None:
    keep_note(store, PAUSED_PAGES, [{"ref": ref} for ref in refs])


def paused_pages(store: Reads) -> Sequence[str]:
    """On which a note says that everything is paused."""
    return [one["ref"] for one in note_value(store, PAUSED_PAGES)]


def keep_journal_folder(store: Writes, name: str) -> None:
    """Once, and in every backup: what the folder of this store's journals is called, on every machine."""
    note: _Note = {"name": JOURNAL_FOLDER, "at": 0.0, "value": [{"name": name}]}
    store.put(replace(NOTE_TABLE, once=True), [note])


def journal_folder(store: Reads) -> str | None:
    """None: no sender has asked yet."""
    return next((str(one["name"]) for one in note_value(store, JOURNAL_FOLDER)), None)


def keep_run(store: Writes, id: str, run_id: str) -> None:
    """Which of Prefect's flow runs sends it; the last one is kept."""
    run: _Run = {"campaign_id": id, "run_id": run_id}
    store.put(RUN_TABLE, [run])


def written_pages(store: Reads) -> WrittenPages | None:
    """None: they were never read."""
    note = first(store, NOTES, {"name": WRITTEN_PAGES})
    return WrittenPages(note["at"], [WrittenPage(**page) for page in note["value"]]) if note else None


def refusals(store: Reads, limit: int = 50) -> Sequence[Refusal]:
    """The latest first."""
    found = store.select(REFUSALS, order=["-last_at"], limit=limit)
    return sorted(found, key=lambda one: (-one.last_at, one.path, one.why))


def run_of(store: Reads, mailout_id: str) -> str | None:
    """Which of Prefect's flow runs sent it last."""
    found = first(store, RUNS, {"campaign_id": mailout_id})
    return found["run_id"] if found else None
