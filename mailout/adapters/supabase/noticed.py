"""What was noticed on the way, on Supabase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.history.port import REFUSALS_KEPT, Refusal, WrittenPage, WrittenPages

_PAGES = "written_pages"


class SupabaseNoticed:
    """Fulfils `Noticed`."""

    rpc: Rpc

    def keep_written_pages(self, pages: Sequence[WrittenPage]) -> None:
        self.rpc("mailout_keep_note", {"name": _PAGES, "value": [asdict(page) for page in pages]})

    def written_pages(self) -> WrittenPages | None:
        found = self.rpc("mailout_note", {"name": _PAGES})
        if found is None:
            return None
        return WrittenPages(float(found["at"]), [WrittenPage(**page) for page in found["value"]])

    def keep_refusals(self, counts: Mapping[tuple[str, str], int]) -> None:
        rows = [{"path": path, "why": why, "n": n} for (path, why), n in counts.items()]
        self.rpc("mailout_keep_refusals", {"refused": rows, "most": REFUSALS_KEPT})

    def refusals(self, limit: int = 50) -> Sequence[Refusal]:
        return [Refusal(**codec.row(values)) for values in self.rpc("mailout_refusals", {"most": limit})]

    def keep_run(self, mailout_id: str, run_id: str) -> None:
        self.rpc("mailout_keep_run", {"id": mailout_id, "run_id": run_id})

    def run_of(self, mailout_id: str) -> str | None:
        found = self.rpc("mailout_run_of", {"id": mailout_id})
        return str(found) if found is not None else None
