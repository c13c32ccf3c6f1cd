"""Reports that are still due, on Supabase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.error_log import ErrorRecord


class SupabaseDueReports:
    """Fulfils `DueReports`."""

    rpc: Rpc

    def ask_report(self, mailout: str) -> None:
        self.rpc("mailout_ask_report", {"mailout": mailout})

    def due_reports(self) -> Mapping[str, int]:
        return dict(self.rpc("mailout_due_reports", {}))

    def report_made(self, mailout: str, asked: int) -> None:
        self.rpc("mailout_report_made", {"mailout": mailout, "asked": asked})

    def unreported_errors(self, since: float, limit: int = 100) -> Mapping[int, ErrorRecord]:
        rows = self.rpc("mailout_unreported_errors", {"since": since, "most": limit})
        found = [codec.row(values) for values in rows]
        return {int(row.pop("id")): ErrorRecord(**row) for row in found}

    def errors_reported(self, numbers: Sequence[int]) -> None:
        self.rpc("mailout_errors_reported", {"numbers": list(numbers)})
