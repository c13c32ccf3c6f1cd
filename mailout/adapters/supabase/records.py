"""Contents, errors, dead letters, and what is still to be reported, on Supabase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.base.error_log import ErrorRecord
from mailout.base.errors import NotFound
from mailout.letters.content.model import Content


class SupabaseRecords:
    """Fulfils `Contents`, `ErrorLog` and `DueReports`."""

    rpc: Rpc

    def put_content(self, content: Content) -> str:
        params = {
            "hash": content.hash,
            "subject": content.subject,
            "html": content.html,
            "plain": content.text,
        }
        return str(self.rpc("mailout_put_content", params))

    def content(self, content_hash: str) -> Content:
        values = self.rpc("mailout_content", {"hash": content_hash})
        if values is None:
            raise NotFound(f"There is no content {content_hash}.")
        return Content(**values)

    def record_errors(self, errors: Sequence[ErrorRecord]) -> None:
        if errors:
            self.rpc("mailout_record_errors", {"errors": [asdict(error) for error in errors]})

    def errors(self, mailout: str | None = None, limit: int = 100) -> Sequence[ErrorRecord]:
        rows = self.rpc("mailout_errors", {"mailout": mailout, "most": limit})
        return [ErrorRecord(**codec.row(values)) for values in rows]

    def dead_letters(self, limit: int = 100) -> Sequence[Mapping[str, Any]]:
        return [codec.row(values) for values in self.rpc("mailout_dead_letters", {"most": limit})]

    def get_dead_letter(self, id: str) -> Mapping[str, Any]:
        values = self.rpc("mailout_get_dead_letter", {"id": id})
        if values is None:
            raise NotFound.dead_letter(id)
        return codec.row(values)

    def drop_dead_letter(self, id: str) -> bool:
        return bool(self.rpc("mailout_drop_dead_letter", {"id": id}))

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
