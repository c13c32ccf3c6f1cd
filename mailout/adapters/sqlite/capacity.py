"""How much may begin now, and how fast: the counters of the limits, the provider's quota, the pace."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mailout.adapters.sqlite.transitions import Charges
from mailout.outbox.delivery.outbox_rows import minute_key
from mailout.outbox.delivery.pacing import PaceState, reserve
from mailout.outbox.delivery.protocol import Bucket, Pace, Step


def capacity_left(
    tx: sqlite3.Connection, step: Step, now: float, company: str | None, charges: Charges
) -> tuple[int, str | None]:
    """How many more the counters allow, and which of them is the tightest.

    What this very step gives back is free again: a limit would end a run short of it otherwise.
    """
    capacity, limited = step.want, None
    for bucket in _current(step, now):
        for scope in ("all", company):
            limit = _own_limits(tx, bucket.kind).get(scope, bucket.limit) if scope else bucket.limit
            if limit is None:
                continue
            row = tx.execute(
                "SELECT n FROM usage WHERE scope = ? AND kind = ? AND key = ?",
                (scope, bucket.kind, bucket.key),
            ).fetchone()
            remaining = limit - (row["n"] if row else 0)
            remaining -= charges[scope, bucket.kind, bucket.key] if scope else 0
            if remaining < capacity:
                capacity, limited = max(0, remaining), bucket.kind
    quota = _quota_left(tx, step.pace.scope, charges)
    if quota is not None and quota < capacity:
        capacity, limited = quota, "quota"
    return capacity, limited


def company_capacity(tx: sqlite3.Connection, step: Step, now: float, charges: Charges) -> dict[str, int]:
    """How many more each company may begin; those without an entry: as many as all together."""
    capacity: dict[str, int] = {}
    for bucket in _current(step, now):
        limits = _own_limits(tx, bucket.kind)
        begun = dict.fromkeys(limits, 0)
        for row in tx.execute(
            "SELECT scope, n FROM usage WHERE scope <> 'all' AND kind = ? AND key = ?",
            (bucket.kind, bucket.key),
        ):
            begun[row["scope"]] = row["n"]
        for scope, n in begun.items():
            limit = limits.get(scope, bucket.limit)
            if limit is not None:
                remaining = limit - n - charges[scope, bucket.kind, bucket.key]
                capacity[scope] = max(0, min(remaining, capacity.get(scope, remaining)))
    return capacity


def _current(step: Step, now: float) -> list[Bucket]:
    return [bucket for bucket in step.buckets if bucket.starts_at <= now < bucket.ends_at]


def _own_limits(tx: sqlite3.Connection, kind: str) -> dict[str, int]:
    """Of the companies that have one of their own for an hour or a day."""
    column = {"hour": "limit_per_hour", "day": "limit_per_day"}[kind]
    rows = tx.execute(f"SELECT id, {column} FROM companies WHERE {column} IS NOT NULL")  # noqa: S608 (constants)
    return {row[0]: row[1] for row in rows}


def _quota_left(tx: sqlite3.Connection, scope: str, charges: Charges) -> int | None:
    """What the provider had, less what was begun here since it was asked (by the minute)."""
    row = tx.execute("SELECT available, asked_at FROM provider_quota WHERE scope = ?", (scope,)).fetchone()
    if row is None or row["available"] is None:
        return None
    begun: int = tx.execute(
        "SELECT coalesce(sum(n), 0) AS begun FROM usage WHERE scope = 'all' AND kind = 'minute' AND key >= ?",
        (minute_key(row["asked_at"]),),
    ).fetchone()["begun"]
    begun += sum(
        n for (_, kind, key), n in charges.items() if kind == "minute" and key >= minute_key(row["asked_at"])
    )
    available: int = row["available"]
    return max(0, available - begun)


def read_pace(tx: sqlite3.Connection, scope: str) -> PaceState:
    row = tx.execute("SELECT next_at, factor, factor_at FROM pace WHERE scope = ?", (scope,)).fetchone()
    return PaceState(*row) if row else PaceState()


def write_pace(tx: sqlite3.Connection, scope: str, state: PaceState) -> None:
    tx.execute(
        "INSERT INTO pace (scope, next_at, factor, factor_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (scope) DO UPDATE SET"
        " next_at = excluded.next_at, factor = excluded.factor, factor_at = excluded.factor_at",
        (scope, state.next_at, state.factor, state.factor_at),
    )


def begin_warmup(tx: sqlite3.Connection, step: Step, now: float) -> None:
    """The day on which an account's first message was sent stays the first."""
    tx.execute(
        "UPDATE pace SET first_day = ? WHERE scope = ? AND first_day IS NULL",
        (bucket_key(step.buckets, "day", now), step.pace.scope),
    )


def slow_down(tx: sqlite3.Connection, pace: Pace, now: float) -> None:
    """A step that begins nothing may still be the one that tells of a throttle."""
    write_pace(tx, pace.scope, reserve(read_pace(tx, pace.scope), pace, now, 0).state_after(0))


def bucket_key(buckets: Sequence[Bucket], kind: str, now: float) -> str | None:
    return next((b.key for b in buckets if b.kind == kind and b.starts_at <= now < b.ends_at), None)
