"""`select` on Supabase: the function `mailout_select` checks the names and takes the values as parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.base.select import SELECT_LIMIT, Filters, Row, Selection, View


class SupabaseReads:
    """Fulfils `Reads`."""

    rpc: Rpc

    def select(
        self,
        view: View[Row],
        filters: Filters | None = None,
        *,
        order: Sequence[str] = (),
        after: Sequence[Any] | None = None,
        limit: int = SELECT_LIMIT,
    ) -> list[Row]:
        asked = Selection.of(view, filters or {}, order, after, limit)
        rows = self.rpc(
            "mailout_select",
            {
                "relation": view.name,
                "columns": list(view.hints),
                "filters": [[one.column, one.operator, one.value] for one in asked.conditions],
                "sort": list(asked.order),
                "descending": asked.descending,
                "after": None if asked.after is None else list(asked.after),
                "most": asked.limit,
            },
        )
        for row in rows:
            for name in view.kinds[float]:
                if isinstance(row[name], str):
                    row[name] = codec.seconds(row[name])
        return [view.read(row) for row in rows]
