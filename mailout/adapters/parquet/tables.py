"""The tables of an archive: which columns they have, and how rows of either store become them.

Both stores end in the same files: moments are UTC timestamps, JSON is text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

MOMENT = pl.Datetime("us", "UTC")
_TEXT, _NUMBER = pl.String, pl.Int64


def _schema(**columns: str) -> dict[str, Any]:
    kinds = {"text": _TEXT, "number": _NUMBER, "moment": MOMENT, "yes_or_no": pl.Boolean}
    return {name: kinds[kind] for kind, names in columns.items() for name in names.split()}


MESSAGES = _schema(
    number="seq attempts epoch duration_ms",
    text="id campaign_id company_id request_id recipient_id email from_name content_id variables state"
    " session_id transport ses_message_id error_code error_category error_message original_code dedupe_key"
    " category charged_hour charged_day history reply_to headers fingerprint",
    yes_or_no="is_rehearsal",
    moment="created_at attempt_at next_attempt_at sent_at failed_at unknown_at",
)
EVENTS = _schema(
    text="id message_id campaign_id email event_type provider_message_id detail", moment="event_at"
)
CONTENTS = _schema(text="hash subject html text")
MAILOUT = _schema(
    text="id kind ref subject company_id list_key from_name reply_to status outcome campaign_tag"
    " send_batch_id actor content_hash defer_reason defer_note locked_by metrics acknowledged archive store",
    yes_or_no="is_test is_rehearsal",
    number="priority recipients pending in_flight sent failed suppressed unknown transient_pauses"
    " transient_sent",
    moment="scheduled_at deferred_until locked_at created_at frozen_at started_at completed_at",
)


def frame_of(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
    """Column by column: five times as fast as row by row."""
    return pl.DataFrame([_series(name, [row[name] for row in rows], kind) for name, kind in schema.items()])


def _series(name: str, values: list[Any], kind: Any) -> pl.Series:
    if kind == MOMENT:
        seconds = pl.Series(name, values, dtype=pl.Float64)
        return (seconds * 1e6).round().cast(pl.Int64).cast(MOMENT)
    if kind == _TEXT:
        values = [value if value is None or isinstance(value, str) else _as_json(value) for value in values]
    if kind == pl.Boolean:  # SQLite has none
        values = [None if value is None else bool(value) for value in values]
    return pl.Series(name, values, dtype=kind)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
