"""What the dashboard looks back on, and what was noticed on the way, on Supabase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.rpc import Rpc
from mailout.insight.history.counting import spread
from mailout.insight.history.port import (
    EVENTS_COME_FOR,
    LISTED,
    REFUSALS_KEPT,
    Act,
    Refusal,
    WrittenPage,
    WrittenPages,
)
from mailout.letters.content.port import Kind
from mailout.outbox.queue.mailout import Mailout, Status

_PAGES = "written_pages"


class SupabaseHistory:
    """Fulfils `History` and `Noticed`."""

    rpc: Rpc

    def letters(
        self,
        *,
        modes: Sequence[str],
        statuses: Sequence[Status] = (),
        kind: Kind | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 50,
    ) -> Sequence[Mailout]:
        at, id = before or (None, None)
        wanted = [status.value for status in statuses or Status]
        params = {
            "modes": list(modes),
            "statuses": wanted,
            "before_at": at,
            "before_id": id,
            "most": limit,
            "kind": kind,
        }
        return [codec.mailout(row) for row in self.rpc("mailout_letters", params)]

    def messages_to(self, email_norm: str, *, limit: int = 50) -> Sequence[Mapping[str, Any]]:
        rows = self.rpc("mailout_messages_to", {"email": email_norm, "most": limit})
        return [codec.row(values) for values in rows]

    def single_mails_to(self, email_norm: str, *, limit: int = 50) -> Sequence[Mapping[str, Any]]:
        rows = self.rpc("mailout_single_mails_to", {"email": email_norm, "most": limit})
        return [codec.row(values) for values in rows]

    def notification_states(self, *, rehearsal: bool, latest: int = 10_000) -> Mapping[str, int]:
        found: Mapping[str, int] = self.rpc(
            "mailout_notification_states", {"rehearsal": rehearsal, "latest": latest}
        )
        return found

    def latest_notifications(self, *, rehearsal: bool, limit: int = 50) -> Sequence[Mapping[str, Any]]:
        rows = self.rpc("mailout_latest_notifications", {"rehearsal": rehearsal, "most": limit})
        return [codec.row(values) for values in rows]

    def sent_over_time(self, mailout_id: str, points: int = 60) -> Sequence[tuple[float, int]]:
        found = self.rpc("mailout_sent_samples", {"id": mailout_id, "points": points})
        return spread(found["moments"], found["sent"] or 0)

    def keep_counts(self, day: str) -> None:
        params = {"day": day, "listed": LISTED, "events_come_for": EVENTS_COME_FOR}
        self.rpc("mailout_keep_counts", params)

    def people_over_time(self, since: str) -> Sequence[tuple[str, Mapping[str, int]]]:
        rows = self.rpc("mailout_people_over_time", {"since": since})
        return [(row["day"], row["counts"]) for row in rows]

    def mailout_over_time(self, mailout_id: str) -> Sequence[tuple[float, Mapping[str, int]]]:
        rows = map(codec.row, self.rpc("mailout_over_time", {"id": mailout_id}))
        return [(row["at"], row["counts"]) for row in rows]

    def write_act(self, act: Act) -> None:
        self.rpc("mailout_write_act", asdict(act))

    def acts(self, limit: int = 100) -> Sequence[Act]:
        return [Act(**codec.row(values)) for values in self.rpc("mailout_acts", {"most": limit})]

    def end_login(self, id: str, ends_at: float) -> None:
        self.rpc("mailout_end_login", {"id": id, "ends_at": ends_at})

    def login_ended(self, id: str) -> bool:
        return bool(self.rpc("mailout_login_ended", {"id": id}))

    def requeue_dead_letter(self, id: str) -> bool:
        return bool(self.rpc("mailout_requeue_dead_letter", {"id": id}))

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
