"""What is written down on Supabase: contents, errors, reports that are due, alerts, counts, history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from mailout.adapters.supabase.rpc import Rpc
from mailout.base.error_log import ErrorRecord
from mailout.insight.alerts.port import KnownAlert
from mailout.insight.history.counting import spread
from mailout.insight.history.port import (
    EVENTS_COME_FOR,
    LISTED,
    REFUSALS_KEPT,
    Act,
    WrittenPage,
)
from mailout.insight.metrics.port import Sample
from mailout.letters.content.model import Content


class SupabaseRecords:
    """Fulfils `Contents`, `ErrorLog`, `DueReports`, `Alerts`, `Counts`, `History` and `Noticed`."""

    rpc: Rpc

    def put_content(self, content: Content) -> str:
        params = {
            "hash": content.hash,
            "subject": content.subject,
            "html": content.html,
            "plain": content.text,
        }
        return str(self.rpc("mailout_put_content", params))

    def record_errors(self, errors: Sequence[ErrorRecord]) -> None:
        if errors:
            self.rpc("mailout_record_errors", {"errors": [asdict(error) for error in errors]})

    def drop_dead_letter(self, id: str) -> bool:
        return bool(self.rpc("mailout_drop_dead_letter", {"id": id}))

    def ask_report(self, mailout: str) -> None:
        self.rpc("mailout_ask_report", {"mailout": mailout})

    def report_made(self, mailout: str, asked: int) -> None:
        self.rpc("mailout_report_made", {"mailout": mailout, "asked": asked})

    def errors_reported(self, numbers: Sequence[int]) -> None:
        self.rpc("mailout_errors_reported", {"numbers": list(numbers)})

    def alerts_hold(self, keys: Sequence[str], seen_at: float) -> Sequence[KnownAlert]:
        rows = self.rpc("mailout_alerts_hold", {"keys": list(keys), "seen_at": seen_at})
        return [KnownAlert(**row) for row in rows]

    def claim_alert(self, known: KnownAlert) -> bool:
        return bool(self.rpc("mailout_claim_alert", {"key": known.key, "tries": known.tries}))

    def alert_sent(self, key: str) -> None:
        self.rpc("mailout_alert_sent", {"key": key})

    def add_counts(self, counts: Mapping[Sample, float]) -> None:
        rows = [{"name": name, "labels": labels, "value": n} for (name, labels), n in counts.items()]
        self.rpc("mailout_add_counts", {"counts": rows})

    def sent_over_time(self, mailout_id: str, points: int = 60) -> Sequence[tuple[float, int]]:
        found = self.rpc("mailout_sent_over_time", {"id": mailout_id, "points": points})
        return spread(found["moments"], found["sent"] or 0)

    def keep_counts(self, day: str) -> None:
        params = {"day": day, "listed": LISTED, "events_come_for": EVENTS_COME_FOR}
        self.rpc("mailout_keep_counts", params)

    def write_act(self, act: Act) -> None:
        self.rpc("mailout_write_act", asdict(act))

    def end_login(self, id: str, ends_at: float) -> bool:
        return bool(self.rpc("mailout_end_login", {"id": id, "ends_at": ends_at}))

    def requeue_dead_letter(self, id: str) -> bool:
        return bool(self.rpc("mailout_requeue_dead_letter", {"id": id}))

    def keep_written_pages(self, pages: Sequence[WrittenPage]) -> None:
        self.rpc("mailout_keep_written_pages", {"pages": [asdict(page) for page in pages]})

    def keep_refusals(self, counts: Mapping[tuple[str, str], int]) -> None:
        rows = [{"path": path, "why": why, "n": n} for (path, why), n in counts.items()]
        self.rpc("mailout_keep_refusals", {"refused": rows, "most": REFUSALS_KEPT})

    def keep_run(self, mailout_id: str, run_id: str) -> None:
        self.rpc("mailout_keep_run", {"id": mailout_id, "run_id": run_id})
