"""The production store, Supabase: what happens is in SQL (supabase/migrations), here is the way there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pydantic_core import to_jsonable_python

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.acts import pass_on
from mailout.adapters.supabase.client import SupabaseRpc
from mailout.adapters.supabase.rpc import FINGERPRINT, Rpc, check_version
from mailout.adapters.supabase.subscribers import SupabaseSubscribers
from mailout.base.errors import StoreError
from mailout.base.select import SELECT_LIMIT, Filters, Row, Selection, Table, View
from mailout.insight.alerts.port import SIGN_UP_BRAKE, KnownAlert
from mailout.insight.doctor.checks import Check
from mailout.insight.history.port import EVENTS_COME_FOR, LISTED, REFUSALS_KEPT, spread
from mailout.insight.metrics.port import Sample
from mailout.outbox.delivery.port import QUOTA_OVERLAP_SECONDS
from mailout.outbox.delivery.protocol import Step, StepReply
from mailout.outbox.delivery.single_mails import Acceptance, SingleMail, Verdict
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.port import Applied, EventReading
from mailout.outbox.feedback.subscriber_state import SOFT_BOUNCES
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, DeferReason, Mailout, NewMailout
from mailout.outbox.queue.port import Recipient, Request
from mailout.readers.port import LIMITS, Asked, SignUp
from mailout.store import Store

ROWS_PER_CALL = 10_000
"""How much one call moves or asks for: far within the database's time for a statement."""
_HELD = sorted(reason.value for reason in WAITS_FOR_A_PERSON)
_AUDIENCE_PART = 5_000


@pass_on
class SupabaseStore(SupabaseSubscribers, Store):
    """Its time is the database's. Acts that are not written out are passed on as they are."""

    name = "supabase"

    def __init__(self, rpc: Rpc) -> None:
        self.rpc = rpc

    @classmethod
    def over(cls, rpc: Rpc) -> SupabaseStore:
        """Made here: mypy takes what `pass_on` fills in for abstract."""
        return cls(rpc)

    @classmethod
    def connect(cls, url: str, key: str) -> SupabaseStore:
        return cls(SupabaseRpc(url, key))

    def now(self) -> float:
        return codec.seconds(self.rpc("mailout_now", {}))

    def check(self) -> int:
        version = self.rpc("mailout_schema_version", {})
        check_version(version)
        return int(version)

    def examine(self) -> Iterator[Check]:
        self.add_counts({})  # adds nothing, and is refused where nothing can be written
        doors = self.rpc("mailout_examine", {})
        if doors:
            yield Check(
                "publishable key",
                "warn",
                f"it stands in web pages, and opens: {', '.join(doors)}",
                "Take these rights from anon and authenticated, or drop the policies that give them.",
            )
        else:
            yield Check("publishable key", "ok", "it can neither read nor write nor call")
        if self.rpc("mailout_fingerprint", {}) != FINGERPRINT:
            yield Check(
                "functions",
                "warn",
                "those in Supabase are not those of this version",
                "Apply all files of supabase/migrations again, from the first to the last. "
                "A function of your own needs another name than mailout_….",
            )

    def close(self) -> None:
        self.rpc.close()

    def select(
        self,
        view: View[Row],
        filters: Filters | None = None,
        *,
        order: Sequence[str] = (),
        after: Sequence[Any] | None = None,
        limit: int = SELECT_LIMIT,
    ) -> list[Row]:
        """The SQL function checks the names and takes the values as parameters."""
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

    def put(self, table: Table[Row], rows: Sequence[Row]) -> None:
        """The SQL function checks the names and takes the values as parameters."""
        names = {"columns": list(table.columns), "key": list(table.key), "anew": list(table.anew)}
        given = to_jsonable_python([table.values(row) for row in rows])
        self.rpc("mailout_put", {"relation": table.name, **names, "moment": table.at, "given": given})

    # ── The outbox: `step`, what moves many rows in parts, and rules that SQL is told ──

    def step(self, step: Step) -> StepReply:
        return codec.step_reply(self.rpc("mailout_step", {"step": codec.step_params(step)}))

    def settle(
        self, mailout_id: str | None, to: State, *, wait: float, ids: Sequence[str] | None = None
    ) -> int:
        if to not in (State.SENT, State.FAILED, State.PENDING):
            raise StoreError(f"An unknown message can be settled as SENT, FAILED or PENDING, not {to}.")
        return self._moved("mailout_settle", mailout_id, ids, {"to_state": to.value, "wait": wait})

    def retry_failed(self, mailout_id: str | None, *, ids: Sequence[str] | None = None) -> int:
        return self._moved("mailout_retry_failed", mailout_id, ids, {})

    def _moved(
        self, name: str, mailout_id: str | None, ids: Sequence[str] | None, params: Mapping[str, Any]
    ) -> int:
        """These at once. All of a mailout: a transaction for each part, by `seq`; asked again, it goes on
        where it was stopped."""
        asked = {**params, "campaign_id": mailout_id}
        if ids is not None or mailout_id is None:
            chosen = list(ids or ())
            return int(self.rpc(name, {**asked, "ids": chosen, "after": 0, "most": len(chosen)})["moved"])
        moved: int = 0
        last: int | None = 0
        while last is not None:
            part = self.rpc(name, {**asked, "ids": None, "after": last, "most": ROWS_PER_CALL})
            moved, last = moved + part["moved"], part["last"]
        return moved

    def set_quota(
        self, scope: str, available: int | None, asked_at: float, *, most: int | None = None
    ) -> None:
        since = asked_at - QUOTA_OVERLAP_SECONDS
        params = {"scope": scope, "available": available, "asked_at": since, "most": most}
        self.rpc("mailout_set_quota", params)

    def enqueue(self, new: NewMailout, *, requested: str | None = None) -> Mailout:
        given = to_jsonable_python(new) | {"requested": requested}
        return codec.mailout(self.rpc("mailout_enqueue", {"mailout": given}))

    def defer(self, id: str, reason: DeferReason, until: float | None, note: str | None = None) -> Mailout:
        if (until is None) != (reason in WAITS_FOR_A_PERSON):
            raise StoreError(f"A defer for {reason} {'has no' if until else 'needs a'} time.")
        params = {"id": id, "reason": reason.value, "until": until, "note": note, "held": _HELD}
        return codec.mailout(self.rpc("mailout_defer", params))

    def cancel(self, id: str) -> Mailout:
        """Cancelled with the first call; a long mailout is swept in parts."""
        mailout, pending = codec.mailout(self.rpc("mailout_cancel", {"id": id})), None
        while mailout.ledger.pending not in (0, pending):  # what stays is in a sender's hands just now
            pending = mailout.ledger.pending
            mailout = codec.mailout(self.rpc("mailout_cancel", {"id": id}))
        return mailout

    def freeze_recipients(self, id: str, recipients: Sequence[Recipient], up_to: str | None = None) -> int:
        audience = [codec.recipient(one) for one in sorted(recipients, key=lambda one: one.email)]
        added = 0
        for start in range(0, max(1, len(audience)), _AUDIENCE_PART):
            part = audience[start : start + _AUDIENCE_PART]
            is_last = start + _AUDIENCE_PART >= len(audience)
            params = {"id": id, "audience": part, "up_to": up_to if is_last else part[-1]["email"]}
            added += self.rpc("mailout_freeze_recipients", params)
        return added

    def ask(self, request: Request, *, repeat: float) -> bool:
        params = {"ref": request.ref, "how": request.how.value, "repeat_after": repeat}
        return bool(self.rpc("mailout_ask", params | {"not_before": request.not_before}))

    def answered(self, request: Request) -> bool:
        return bool(self.rpc("mailout_answered", {"ref": request.ref, "how": request.how.value}))

    def apply_events(self, readings: Sequence[EventReading]) -> Applied:
        params = {"readings": [codec.reading(reading) for reading in readings], "soft_bounces": SOFT_BOUNCES}
        return Applied(**self.rpc("mailout_apply_events", params))

    # ── What is written down: contents, alerts, counts, history ──

    def claim_alert(self, known: KnownAlert) -> bool:
        return bool(self.rpc("mailout_claim_alert", {"key": known.key, "tries": known.tries}))

    def add_counts(self, counts: Mapping[Sample, float]) -> None:
        rows = [{"name": name, "labels": labels, "value": n} for (name, labels), n in counts.items()]
        self.rpc("mailout_add_counts", {"counts": rows})

    def sent_over_time(self, mailout_id: str, points: int = 60) -> Sequence[tuple[float, int]]:
        found = self.rpc("mailout_sent_over_time", {"id": mailout_id, "points": points})
        return spread(found["moments"], found["sent"] or 0)

    def keep_counts(self, day: str) -> None:
        params = {"day": day, "listed": LISTED, "events_come_for": EVENTS_COME_FOR}
        self.rpc("mailout_keep_counts", params)

    def keep_refusals(self, counts: Mapping[tuple[str, str], int]) -> None:
        rows = [{"path": path, "why": why, "n": n} for (path, why), n in counts.items()]
        self.rpc("mailout_keep_refusals", {"refused": rows, "most": REFUSALS_KEPT})

    def give_space_back(self) -> int:
        """Nothing to do: the database's own vacuum lets the next mailouts use what was freed."""
        return 0

    # ── Mails without a mailout: single mails, sign-ups ──

    def accept_single_mails(self, mails: Sequence[SingleMail]) -> Sequence[Acceptance]:
        verdicts = self.rpc("mailout_accept_single_mails", {"mails": [codec.mail(mail) for mail in mails]})
        return [
            Acceptance(
                Verdict(one["verdict"]),
                one["id"],
                State(one.get("state", State.PENDING)),
                one.get("request_id"),
            )
            for one in verdicts
        ]

    def ask_sign_up(self, asked: SignUp) -> Asked:
        given = {
            "mail": codec.mail(asked.mail),
            "network": asked.network,
            "lists": list(asked.lists),
            "day": asked.day,
            "limits": [asdict(limit) for limit in LIMITS],
            "brake_note": SIGN_UP_BRAKE,
        }
        return Asked(self.rpc("mailout_ask_sign_up", given))
