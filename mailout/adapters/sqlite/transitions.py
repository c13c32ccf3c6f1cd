"""Messages on the move within one transaction, with the ledger and the counters that follow them."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mailout.base.errors import TransitionRefused
from mailout.outbox.delivery.outbox_rows import minute_key
from mailout.outbox.delivery.protocol import REHEARSED, Attempt, Result
from mailout.outbox.delivery.states import COLUMN_OF, Column, State, allowed

Charges = Counter[tuple[str, str, str]]
"""By scope, kind and key: how many attempts were charged, or (below none) given back."""

_ADD_ENTRY = "history = json_insert(coalesce(history, '[]'), '$[#]', json(:entry))"
_REPLACE_ENTRY = "history = json_set(history, '$[#-1]', json(:entry))"
_NO_ERROR = {"error_code": None, "error_category": None, "error_message": None, "original_code": None}


class Transitions:
    """Each way that a row moves; ledger and counters follow when `write` puts them down, once."""

    def __init__(self, tx: sqlite3.Connection, now: float) -> None:
        self.tx = tx
        self.now = now
        self._ledger: Counter[tuple[str, Column]] = Counter()
        self.charges: Charges = Counter()  # so far, in this transaction

    # ── one way of moving each ──

    def begin(self, rows: Sequence[sqlite3.Row], session: str, hour: str | None, day: str | None) -> None:
        """Waiting → (RECEIVED → VALIDATED →) SENT_ATTEMPT: the intent, durable with this commit."""
        self.tx.execute(
            "UPDATE email_outbox SET state = 'SENT_ATTEMPT', epoch = epoch + 1, attempts = attempts + 1,"
            " session_id = ?, attempt_at = ?, charged_hour = ?, charged_day = ?, next_attempt_at = NULL"
            " WHERE seq IN (SELECT value FROM json_each(?))",
            (session, self.now, hour, day, json.dumps([row["seq"] for row in rows])),
        )
        self._count(rows, State.SENT_ATTEMPT)
        for company, n in Counter(row["company_id"] for row in rows).items():
            self._charge(company, self.now, hour, day, n)

    def suppress(self, rows: Sequence[sqlite3.Row], why: str) -> None:
        self.tx.execute(
            "UPDATE email_outbox SET state = 'SUPPRESSED', error_message = ?, next_attempt_at = NULL"
            " WHERE seq IN (SELECT value FROM json_each(?))",
            (why, json.dumps([row["seq"] for row in rows])),
        )
        self._count(rows, State.SUPPRESSED)

    def refuse(self, row: sqlite3.Row, code: str, message: str) -> None:
        """PENDING → VALIDATION_FAILED: received, which counts as an attempt, and never called."""
        self._to(
            row,
            State.VALIDATION_FAILED,
            attempts=row["attempts"] + 1,
            attempt_at=self.now,
            error_code=code,
            error_category="VALIDATION_ERROR",
            error_message=message,
            failed_at=self.now,
        )

    def accept(self, rows: Sequence[sqlite3.Row], results: Sequence[Result]) -> None:
        """→ SENT with SES's id and the call's time, all at once: it is what nearly every message does."""
        accepted = [
            (
                *(row["seq"], result.provider_message_id),
                *(self._took_ms(row, result), self._answered_at(row, result)),
            )
            for row, result in zip(rows, results, strict=True)
        ]
        self.tx.execute(
            "UPDATE email_outbox SET state = 'SENT', ses_message_id = a.value ->> 1,"
            " duration_ms = a.value ->> 2, sent_at = a.value ->> 3,"
            " next_attempt_at = NULL, unknown_at = NULL, error_code = NULL, error_category = NULL,"
            " error_message = NULL, original_code = NULL"
            " FROM json_each(:accepted) AS a WHERE seq = a.value ->> 0",
            {"accepted": json.dumps(accepted)},
        )
        self._count(rows, State.SENT)

    def result(self, row: sqlite3.Row, result: Result) -> None:
        """SENT_ATTEMPT, UNKNOWN → what the attempt's own sender says of it, unless it is SENT."""
        if result.state is State.UNKNOWN:
            if row["state"] != State.UNKNOWN:  # it stays charged: it may have been sent
                self.unknown(row, result.message or "no answer", result)
            return
        if not allowed(State(row["state"]), result.state):
            raise TransitionRefused(f"transition refused: {row['state']} cannot become {result.state}")
        back = result.give_back or result.state is State.PENDING
        if back or result.uncharge:
            self._uncharge(row)
        if back:
            self.withdraw(row, result)
        elif result.state is State.RETRY_SCHEDULED:
            self._retry_later(row, result)
        else:
            failed_at = self._answered_at(row, result)
            self._to(
                row,
                result.state,
                failed_at=failed_at,
                next_attempt_at=None if result.retry_in is None else failed_at + result.retry_in,
                unknown_at=None,
                duration_ms=self._took_ms(row, result),
                **_error_of(result),
            )

    def withdraw(self, row: sqlite3.Row, result: Result | None = None) -> None:
        """→ PENDING, as if it had never begun; after a throttle or quota, with a pause and the reason.

        The same answer again makes no new entry but counts in the last one: hours of throttling are one line.
        """
        columns: dict[str, Any] = {"attempts": row["attempts"] - 1}
        columns |= dict.fromkeys(("attempt_at", "session_id", "unknown_at", "next_attempt_at"))
        if result is None:
            self._uncharge(row)
            self._to(row, State.PENDING, **columns)
            return
        if result.retry_in:
            columns["next_attempt_at"] = self.now + result.retry_in
        entry = self._try_again_entry(row, result, row["attempts"]) | {"type": State.PENDING, "count": 1}
        last = _last_entry(row)
        is_same = (last.get("type"), last.get("errorCode")) == (State.PENDING, result.code)
        if is_same:
            entry |= {"count": last["count"] + 1, "attempt_at": last["attempt_at"]}
        told = None if result.code is None else entry
        self._to(row, State.PENDING, told, replaces_last=is_same, **columns, **_error_of(result))

    def unknown(self, row: sqlite3.Row, why: str, result: Result | None = None) -> None:
        error = (_NO_ERROR if result is None else _error_of(result)) | {"error_message": why}
        entry = {
            "type": "UNKNOWN",
            "errorCode": error["error_code"],
            "errorCategory": error["error_category"],
            "errorMessage": why,
            "originalCode": error["original_code"],
        }
        self._to(row, State.UNKNOWN, entry, unknown_at=self.now, **error)

    def settle(self, row: sqlite3.Row, to: State) -> None:
        """UNKNOWN → what a person says. The epoch rises: a late result of the old attempt changes nothing."""
        columns: dict[State, dict[str, Any]] = {
            State.SENT: {"sent_at": self.now, **_NO_ERROR},
            State.FAILED: {"failed_at": self.now},
            State.PENDING: {"attempt_at": None},
        }
        entry = {"type": to.value, "settled": True}
        self._to(row, to, entry, epoch=row["epoch"] + 1, unknown_at=None, **columns[to])

    def retry(self, row: sqlite3.Row) -> None:
        """FAILED → PENDING: a person asks for it, with all attempts before it again."""
        entry: dict[str, Any] | None = {
            "type": "FAILED",
            "at": row["failed_at"],
            "errorCode": row["error_code"],
            "errorCategory": row["error_category"],
            "errorMessage": row["error_message"],
            "originalCode": row["original_code"],
            "willRetry": False,
            "durationMs": row["duration_ms"],
        }
        last = _last_entry(row)
        if (last.get("type"), last.get("epoch")) == ("FAILED", row["epoch"]):
            entry = None  # a person had settled it so
        columns: dict[str, Any] = dict.fromkeys(("attempt_at", "failed_at", "sent_at", "next_attempt_at"))
        self._to(row, State.PENDING, entry, attempts=0, **columns)

    def confirm(self, row: sqlite3.Row, provider_message_id: str | None) -> None:
        """An event knows that this attempt was accepted."""
        known = provider_message_id or row["ses_message_id"]
        attempt = Attempt(row["id"], row["epoch"])
        self.accept([row], [Result(attempt, State.SENT, known, duration_ms=row["duration_ms"])])

    def revoke(self, row: sqlite3.Row, code: str, message: str) -> None:
        """SENT → FAILED: the provider took it and then rejected it."""
        entry = {"type": "SENT", "at": row["sent_at"]}
        entry |= {"sesMessageId": row["ses_message_id"], "durationMs": row["duration_ms"]}
        self._to(
            row,
            State.FAILED,
            entry,
            error_code=code,
            error_category="PERMANENT_ERROR",
            error_message=message,
            failed_at=self.now,
        )

    # ── what they share ──

    def _answered_at(self, row: sqlite3.Row, result: Result) -> float:
        """Results wait for the next step: they are older than it, and never older than the attempt."""
        return max(row["attempt_at"] or 0.0, self.now - result.age)

    def _took_ms(self, row: sqlite3.Row, result: Result) -> int | None:
        """From RECEIVED to the end, not the call alone."""
        begun: float | None = row["attempt_at"]
        return None if begun is None else round(1000 * (self._answered_at(row, result) - begun))

    def _retry_later(self, row: sqlite3.Row, result: Result) -> None:
        self._to(
            row,
            State.RETRY_SCHEDULED,
            self._try_again_entry(row, result, row["attempts"] + 1),
            next_attempt_at=self.now + (result.retry_in or 0.0),
            duration_ms=self._took_ms(row, result),
            unknown_at=None,
            **_error_of(result),
        )

    def _try_again_entry(self, row: sqlite3.Row, result: Result, next_attempt: int) -> dict[str, Any]:
        return {
            "type": result.state.value,
            "errorCode": result.code,
            "errorCategory": result.category,
            "errorMessage": result.message,
            "originalCode": result.original_code,
            "willRetry": True,
            "nextAttemptNumber": next_attempt,
            "backoffDelay": None if result.retry_in is None else round(result.retry_in * 1000),
            "durationMs": self._took_ms(row, result),
        }

    def _to(
        self,
        row: sqlite3.Row,
        state: State,
        entry: dict[str, Any] | None = None,
        *,
        replaces_last: bool = False,
        **columns: Any,
    ) -> None:
        """Column names are written in this file alone; values are bound."""
        columns["state"] = state.value
        assignments = [f"{name} = :{name}" for name in columns]
        if entry is not None:
            assignments.append(_REPLACE_ENTRY if replaces_last else _ADD_ENTRY)
            columns["entry"] = json.dumps(self._entry(row, columns) | entry)
        self.tx.execute(
            f"UPDATE email_outbox SET {', '.join(assignments)} WHERE seq = :seq",  # noqa: S608
            {**columns, "seq": row["seq"]},
        )
        self._count([row], state)

    def _entry(self, row: sqlite3.Row, columns: Mapping[str, Any]) -> dict[str, Any]:
        """What every line of the history holds. The first one of an epoch also tells when it began."""
        epoch = row["epoch"]
        return {
            "at": self.now,
            "attempt": row["attempts"],
            "epoch": columns.get("epoch", epoch),
            "attempt_at": None if _last_entry(row).get("epoch") == epoch else row["attempt_at"],
        }

    def _uncharge(self, row: sqlite3.Row) -> None:
        self._charge(row["company_id"], row["attempt_at"], row["charged_hour"], row["charged_day"], -1)
        self.tx.execute(
            "UPDATE email_outbox SET charged_hour = NULL, charged_day = NULL WHERE seq = ?", (row["seq"],)
        )

    # ── ledgers and counters ──

    def _count(self, rows: Sequence[sqlite3.Row], after: State) -> None:
        moves = Counter((row["campaign_id"], row["state"]) for row in rows)
        for (mailout_id, before), n in moves.items():
            if mailout_id is not None:
                self._ledger[mailout_id, COLUMN_OF[State(before)]] -= n
                self._ledger[mailout_id, COLUMN_OF[after]] += n

    def _charge(self, company: str, at: float, hour: str | None, day: str | None, n: int) -> None:
        """`n` messages of a company, begun at that time; fewer than none: given back."""
        self.charges[_minute_scope(hour), "minute", minute_key(at)] += n
        for kind, key in (("hour", hour), ("day", day)):
            if key is not None:
                self.charges["all", kind, key] += n
                self.charges[company, kind, key] += n

    def write(self) -> None:
        """Ledgers and counters, in key order, for all that was moved."""
        self.tx.executemany(
            "INSERT INTO usage VALUES (?, ?, ?, ?)"
            " ON CONFLICT (scope, kind, key) DO UPDATE SET n = n + excluded.n",
            [(*key, n) for key, n in sorted(self.charges.items()) if n],
        )
        moved = sorted({mailout_id for mailout_id, _ in self._ledger})
        for mailout_id in moved:
            self._write_ledger(mailout_id)
        self._ledger.clear()
        self.charges.clear()
        for mailout_id in moved:
            self._sweep_cancelled(mailout_id)

    def _write_ledger(self, mailout_id: str) -> None:
        """A completed mailout follows its ledger back into the queue."""
        delta = {column.value: self._ledger[mailout_id, column] for column in Column}
        self.tx.execute(
            "UPDATE campaign_queue SET pending = pending + :pending, in_flight = in_flight + :in_flight,"
            " sent = sent + :sent, failed = failed + :failed, suppressed = suppressed + :suppressed,"
            " unknown = unknown + :unknown,"
            " status = CASE WHEN status = 'COMPLETED' AND pending + :pending > 0"
            "               THEN 'PENDING' ELSE status END,"
            " completed_at = CASE WHEN status = 'COMPLETED' AND pending + :pending > 0"
            "                     THEN NULL ELSE completed_at END,"
            " outcome = CASE WHEN outcome IS NULL OR pending + :pending > 0 THEN NULL"
            "                WHEN failed + :failed + unknown + :unknown = 0 THEN 'sent' ELSE 'failed' END"
            " WHERE id = :id",
            {**delta, "id": mailout_id},
        )

    def _sweep_cancelled(self, mailout_id: str) -> None:
        """What came back to a cancelled mailout waits for nothing."""
        rows = self.tx.execute(
            "SELECT o.* FROM email_outbox o JOIN campaign_queue q ON q.id = o.campaign_id"
            " WHERE q.id = ? AND q.status = 'CANCELLED' AND q.pending > 0"
            " AND o.state IN ('PENDING', 'RETRY_SCHEDULED')",
            (mailout_id,),
        ).fetchall()
        if rows:
            self.suppress(rows, "the mailout was cancelled")
            self.write()


def _last_entry(row: sqlite3.Row) -> Mapping[str, Any]:
    history: list[Mapping[str, Any]] = json.loads(row["history"] or "[]")
    return history[-1] if history else {}


def _error_of(result: Result) -> dict[str, Any]:
    return {
        "error_code": result.code,
        "error_category": result.category,
        "error_message": result.message,
        "original_code": result.original_code,
    }


def _minute_scope(hour: str | None) -> str:
    """What a rehearsal begins takes nothing from the provider's quota."""
    return "rehearsal" if hour is not None and hour.endswith(REHEARSED) else "all"
