"""One way to the database, `rpc(name, params)`: supabase-py in production, plain Postgres in the tests."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from mailout.base.errors import (
    NotFound,
    StoreDamaged,
    StoreError,
    StoreMismatch,
    StoreUnavailable,
    TransitionRefused,
)

T = TypeVar("T")

SCHEMA_VERSION = 21
"""What `mailout_schema_version()` must answer."""

FINGERPRINT = "9ce0e767174f5f53b1ec7fed18f80e38"
"""What `mailout_fingerprint()` answers after all migrations, in order. Its test says a new one."""

PUSH = "Run `supabase db push` to apply supabase/migrations."


class Rpc(Protocol):
    """Calls one SQL function by its parameters' names. Lists and mappings go as jsonb."""

    def __call__(self, name: str, params: Mapping[str, Any]) -> Any: ...
    def close(self) -> None: ...


OUR_CODES: Mapping[str, type[StoreError]] = {
    "PT409": TransitionRefused,
    "PT404": NotFound,
    "PT400": StoreError,
}
"""The codes that our SQL functions raise with; PostgREST answers PTnnn with the status nnn."""

_MISSING = {"PGRST202", "42883", "42P01"}
"""No such function, for the API and for Postgres; no such table."""

_FORBIDDEN = {"42501", "PGRST301", "PGRST302", "401", "403"}
_PASSING = ("08", "25", "40", "5", "F0", "HV", "XX000", "PGRST00", "PGRSTX")
"""How their codes begin: connection, transaction, resources, operator, itself; or the API before it."""
_DAMAGED = ("XX001", "XX002")

_REMEDIES = {
    "25006": "The database is read-only, usually because its disk is full: free space or enlarge the disk in"
    " Supabase's settings.",
    "53100": "The database's disk is full: free space or enlarge the disk in Supabase's settings.",
    "53300": "Close other connections to the database, or choose a larger compute size in Supabase's"
    " settings.",
    "57014": "It took longer than the database allows: if that lasts, see what else keeps it busy, or raise"
    " its statement_timeout.",
}

SQLSTATE_LENGTH = 5

ROLLED_BACK = {"40001", "40P01"}
"""Serialisation, deadlock: two acts were in each other's way, and the database has undone this one."""

_TRIES = 6
_PAUSE_SECONDS = 0.05


class Collided(StoreUnavailable):
    """Another act was in the way, and nothing of this one was done."""


class Taken(StoreError):
    """Somebody else has just written the same key, and nothing of this act was done."""


def until_free(act: Callable[[], T], *passing: type[StoreError]) -> T:
    """The act, again when it was surely not done, for a reason that passes. Never after a lost answer, which
    may be done."""
    for tried in range(1, _TRIES):
        try:
            return act()
        except passing:
            # At random, so that two that collided do not meet again.
            time.sleep(random.uniform(0.2, 1.0) * _PAUSE_SECONDS * 2**tried)  # noqa: S311 (no secret)
    return act()


def is_code(code: str) -> bool:
    """Of the database, or of the API before it."""
    return len(code) == SQLSTATE_LENGTH or code.startswith("PGRST")


def error_of(code: str | None, message: str, hint: str | None = None) -> StoreError:
    """The database's error in our words."""
    code = code or ""
    if code in OUR_CODES:
        return OUR_CODES[code](message, remedy=hint)
    if code in _MISSING:
        return StoreMismatch(f"Supabase lacks a part of mailout's schema: {message}.", remedy=PUSH)
    if code in _FORBIDDEN:
        return StoreMismatch(
            f"Supabase refuses the key: {message}.",
            remedy="Set SUPABASE_SERVICE_ROLE_KEY to the project's secret (service role) key.",
        )
    if code in ("404", "PGRST125"):  # nothing there; an address with a path, such as /rest/v1
        return StoreMismatch(
            "There is no Supabase at SUPABASE_URL.", remedy="It looks like https://<project>.supabase.co."
        )
    if code in ROLLED_BACK:
        return Collided(f"Supabase does not answer: {message} ({code}).")
    if code == "23505":
        remedy = "If this constraint is your own, drop it: mailout keeps one row for each address itself."
        return Taken(f"Supabase refused: {message} ({code}).", remedy=remedy)
    if code == "23502":
        remedy = "If this column is your own, give it a default: mailout writes rows without it."
        return StoreError(f"Supabase refused: {message} ({code}).", remedy=remedy)
    if code in _DAMAGED:
        remedy = "Stop mailout and restore a backup in Supabase: docs/surviving.md says how."
        return StoreDamaged(f"The database is damaged: {message} ({code}).", remedy=remedy)
    if code.startswith(_PASSING) and is_code(code):  # else it is the number of an HTTP status
        said = f"Supabase cannot do it just now: {message} ({code})."
        return StoreUnavailable(said, remedy=_REMEDIES.get(code))
    return StoreError(f"Supabase refused: {message} ({code}).")


def check_version(version: object) -> None:
    """The schema that the migrations of this program make, no older and no newer."""
    if version == SCHEMA_VERSION:
        return
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise StoreMismatch(
            f"Supabase has schema version {version}; this program knows {SCHEMA_VERSION}.",
            remedy="Use the newer mailout whose migrations were applied.",
        )
    raise StoreMismatch(f"Supabase has schema version {version}; {SCHEMA_VERSION} is needed.", remedy=PUSH)
