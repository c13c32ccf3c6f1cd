"""Slices and batches of articles on SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from mailout.adapters.sqlite.database import Database
from mailout.adapters.sqlite.queue import get_mailout, insert_mailout
from mailout.adapters.sqlite.segments import audience
from mailout.kinds.articles.port import ArticleBatch, Member, SliceCounts
from mailout.letters.audience.segment_tree import Tree
from mailout.letters.content.slices import Slice
from mailout.outbox.queue.mailout import Mailout, NewMailout

_COLUMNS = [field.name for field in fields(Slice)]
_KEPT = ("id", "article_key", "section_order", "scope_ocd_id", "sort_index")
"""What makes a slice this one: all else may change."""


class SqliteArticles:
    """Fulfils the part of `IntakeStore` that is about articles."""

    db: Database

    def import_slices(self, slices: Sequence[Slice]) -> SliceCounts:
        added = updated = 0
        changing = [name for name in _COLUMNS if name not in _KEPT]
        marks = ", ".join(f":{name}" for name in _COLUMNS)
        assignments = ", ".join(f"{name} = :{name}" for name in changing)
        with self.db.write() as tx:
            for one in slices:
                values = _row(one)
                known = tx.execute(
                    "SELECT * FROM content_slices WHERE article_key = :article_key"
                    " AND section_order = :section_order AND sort_index = :sort_index"
                    " AND coalesce(scope_ocd_id, '') = coalesce(:scope_ocd_id, '')",
                    values,
                ).fetchone()
                if known is None:
                    tx.execute(
                        f"INSERT INTO content_slices ({', '.join(_COLUMNS)}) VALUES ({marks})",  # noqa: S608 (our own names)
                        values,
                    )
                    added += 1
                elif any(known[name] != values[name] for name in changing):
                    tx.execute(
                        f"UPDATE content_slices SET {assignments} WHERE id = :known",  # noqa: S608 (our own names)
                        values | {"known": known["id"]},
                    )
                    updated += 1
        return SliceCounts(added, updated, len(slices) - added - updated)

    def enqueue_article(self, new: NewMailout, batch: ArticleBatch) -> Mailout:
        with self.db.write() as tx:
            now = self.db.clock.now()
            if insert_mailout(tx, new, now):
                tx.execute(
                    "INSERT OR REPLACE INTO article_batches VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        new.id,
                        batch.article_key,
                        json.dumps(dict(batch.audience_filter)),
                        batch.as_of,
                        json.dumps([asdict(one) for one in batch.slices]),
                        json.dumps(dict(batch.contents)),
                        json.dumps(dict(batch.census)),
                    ),
                )
                if not new.is_rehearsal:
                    tx.execute(
                        "INSERT INTO campaign_runs VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                        (new.id, new.campaign_tag, batch.article_key, new.actor, new.send_batch_id, now),
                    )
            return get_mailout(tx, new.id)

    def members(
        self,
        *,
        after: str = "",
        limit: int,
        list_key: str,
        segment: Tree | None = None,
        existed_at: float | None = None,
        snoozed: bool = False,
    ) -> Sequence[Member]:
        awake_at = existed_at or self.db.clock.now()
        where, parameters = audience(list_key, segment, awake_at, in_parts=True, snoozed=snoozed)
        rows = self.db.read(
            f"SELECT s.email_norm, s.from_name, s.ocd_ids FROM subscribers s WHERE {where}"  # noqa: S608
            " AND s.email_norm > :after AND (:existed_at IS NULL OR s.created_at <= :existed_at)"
            " ORDER BY s.email_norm LIMIT :limit",
            parameters | {"after": after, "limit": limit, "existed_at": existed_at},
        )
        # All at once: a call for each row would take longer.
        places = json.loads(f"[{','.join(ocd_ids for _, _, ocd_ids in rows)}]")
        return [Member(email, name, own) for (email, name, _), own in zip(rows, places, strict=True)]


def _row(one: Slice) -> dict[str, Any]:
    return asdict(one) | {"tags": json.dumps(one.tags, ensure_ascii=False)}
