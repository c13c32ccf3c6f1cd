"""The production store, Supabase: what happens is in SQL (supabase/migrations), here is the way there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from mailout.adapters.supabase import codec
from mailout.adapters.supabase.acts import pass_on
from mailout.adapters.supabase.client import SupabaseRpc
from mailout.adapters.supabase.outbox import SupabaseOutbox
from mailout.adapters.supabase.rpc import Rpc, check_version
from mailout.adapters.supabase.subscribers import SupabaseSubscribers
from mailout.base.select import SELECT_LIMIT, Filters, Row, Selection, View
from mailout.insight.alerts.port import SIGN_UP_BRAKE, KnownAlert
from mailout.insight.doctor.checks import Check
from mailout.insight.history.port import EVENTS_COME_FOR, LISTED, REFUSALS_KEPT, Act, spread
from mailout.insight.metrics.port import Sample
from mailout.kinds.single_mails.companies import recipient_id
from mailout.letters.content.model import Content
from mailout.outbox.delivery.single_mails import Acceptance, SingleMail, Verdict
from mailout.outbox.delivery.states import State
from mailout.readers.port import LIMITS, Asked, SignUp
from mailout.store import Store

UNWRITTEN = ("content", "link", "values")
"""Parts of a mail that go to the store in another shape."""


@pass_on
class SupabaseStore(SupabaseOutbox, SupabaseSubscribers, Store):
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

    # ── What is written down: contents, alerts, counts, history ──

    def put_content(self, content: Content) -> str:
        return str(self.rpc("mailout_put_content", codec.content(content)))

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

    def write_act(self, act: Act) -> None:
        self.rpc("mailout_write_act", asdict(act))

    def keep_refusals(self, counts: Mapping[tuple[str, str], int]) -> None:
        rows = [{"path": path, "why": why, "n": n} for (path, why), n in counts.items()]
        self.rpc("mailout_keep_refusals", {"refused": rows, "most": REFUSALS_KEPT})

    def give_space_back(self) -> int:
        """Nothing to do: the database's own vacuum lets the next mailouts use what was freed."""
        return 0

    # ── Mails without a mailout: single mails, sign-ups ──

    def accept_single_mails(self, mails: Sequence[SingleMail]) -> Sequence[Acceptance]:
        verdicts = self.rpc("mailout_accept_single_mails", {"mails": [_mail(mail) for mail in mails]})
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
            "mail": _mail(asked.mail),
            "network": asked.network,
            "lists": list(asked.lists),
            "day": asked.day,
            "limits": [asdict(limit) for limit in LIMITS],
            "brake_note": SIGN_UP_BRAKE,
        }
        return Asked(self.rpc("mailout_ask_sign_up", given))


def _mail(mail: SingleMail) -> dict[str, Any]:
    return {
        **{one.name: getattr(mail, one.name) for one in fields(mail) if one.name not in UNWRITTEN},
        "variables": mail.variables,
        **codec.content(mail.content),
        "headers": dict(mail.headers) if mail.headers else None,
        "new_recipient_id": recipient_id(mail.company_id, mail.external_id) if mail.external_id else None,
    }
