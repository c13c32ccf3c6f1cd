"""What moving messages does to the ledgers of their mailouts and to the counters of the limits."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence

from mailout.outbox.delivery.protocol import REHEARSED
from mailout.outbox.delivery.states import COLUMN_OF, Column, State

Charges = Counter[tuple[str, str, str]]
"""By scope, kind and key: how many attempts were charged, or (below none) given back."""


class LedgerChanges:
    """Collects it within one transaction; `write` puts it down once."""

    def __init__(self, tx: sqlite3.Connection) -> None:
        self.tx = tx
        self._ledger: Counter[tuple[str, Column]] = Counter()
        self._usage: Charges = Counter()

    def count(self, rows: Sequence[sqlite3.Row], after: State) -> None:
        moves = Counter((row["campaign_id"], row["state"]) for row in rows)
        for (mailout_id, before), n in moves.items():
            if mailout_id is not None:
                self._ledger[mailout_id, COLUMN_OF[State(before)]] -= n
                self._ledger[mailout_id, COLUMN_OF[after]] += n

    def charge(self, company: str, at: float, hour: str | None, day: str | None, n: int) -> None:
        """`n` messages of a company, begun at that time; fewer than none: given back."""
        self._usage[minute_scope(hour), "minute", minute_key(at)] += n
        for kind, key in (("hour", hour), ("day", day)):
            if key is not None:
                self._usage["all", kind, key] += n
                self._usage[company, kind, key] += n

    @property
    def charges(self) -> Charges:
        """What the counters are about to be changed by."""
        return self._usage

    def write(self) -> Sequence[str]:
        """Ledgers and counters, in key order; the mailouts whose ledgers have moved."""
        self.tx.executemany(
            "INSERT INTO usage VALUES (?, ?, ?, ?)"
            " ON CONFLICT (scope, kind, key) DO UPDATE SET n = n + excluded.n",
            [(*key, n) for key, n in sorted(self._usage.items()) if n],
        )
        mailout_ids = sorted({mailout_id for mailout_id, _ in self._ledger})
        for mailout_id in mailout_ids:
            self._write_ledger(mailout_id)
        self._ledger.clear()
        self._usage.clear()
        return mailout_ids

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


def minute_scope(hour: str | None) -> str:
    """What a rehearsal begins takes nothing from the provider's quota."""
    return "rehearsal" if hour is not None and hour.endswith(REHEARSED) else "all"


def minute_key(moment: float) -> str:
    return f"{int(moment // 60):010d}"
