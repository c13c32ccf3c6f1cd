"""A person erased from an archive: file by file, each replaced at once. Interrupted, it is done again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from mailout.adapters.parquet.draft import parts, readable, sync, write


def erase(folder: Path, email: str, instead: str) -> tuple[int, int]:
    """As the store does it (`Feedback.forget`); how many messages and events."""
    messages, events = (
        sum(_rewrite(part, email, instead) for part in parts(folder, table))
        for table in ("messages", "events")
    )
    return messages, events


def _rewrite(part: Path, email: str, instead: str) -> int:
    mine = pl.col("email") == email
    with readable(part):
        # The addresses of a part are in order: most files are passed over by what their ends say.
        found = int(pl.scan_parquet(part).filter(mine).select(pl.len()).collect().item())
        if not found:
            return 0
        frame = pl.read_parquet(part)
    beside = part.with_name(f".{part.name}.new")
    changes = [change for change in _changes(email, instead) if change.meta.output_name() in frame.columns]
    write(
        frame.with_columns(pl.when(mine).then(new).otherwise(new.meta.output_name()) for new in changes),
        beside,
    )
    beside.replace(part)
    sync(part.parent)
    return found


def _changes(email: str, instead: str) -> Iterator[pl.Expr]:
    yield pl.lit(instead).alias("email")
    yield pl.lit("{}").alias("detail")
    for name in ("from_name", "variables", "recipient_id"):
        yield pl.lit(None, pl.String).alias(name)
    for name in ("error_message", "history"):
        yield pl.col(name).str.replace_all(email, instead, literal=True).alias(name)
