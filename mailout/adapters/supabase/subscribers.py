"""Subscribers on Supabase: imports in parts, and what SQL cannot work out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.supabase.rpc import Rpc, Taken, until_free
from mailout.base.addresses import Dropped, normalise
from mailout.kinds.articles.port import Member
from mailout.letters.audience.port import ImportCounts, SubscriberRow, stronger
from mailout.letters.audience.segment_tree import Tree

_PART = 5_000


class SupabaseSubscribers:
    """For `Subscribers`, and the part of `IntakeStore` that is about articles."""

    rpc: Rpc

    def import_subscribers(
        self, rows: Sequence[SubscriberRow], *, own_sign_up: bool = False, import_id: str | None = None
    ) -> ImportCounts:
        """A transaction for each part; an import that was stopped may be repeated whole."""
        totals = asdict(ImportCounts())
        people = _each_once(rows)
        for start in range(0, len(people), _PART):
            part = people[start : start + _PART]
            params = {"people": part, "own_sign_up": own_sign_up, "for_import": import_id}
            for name, count in self._import_part(params).items():
                totals[name] += count
        return ImportCounts(**totals)

    def _import_part(self, params: dict[str, Any]) -> dict[str, int]:
        """Again if one of its new people joined meanwhile: then that one is known."""
        return until_free(lambda: self.rpc("mailout_import_subscribers", params), Taken)

    def normalise_addresses(self) -> int:
        """A trigger has normalised most of them; the rest needs punycode, which SQL cannot make."""
        done, after = 0, ""
        while page := self.rpc("mailout_unnormalised", {"after": after, "most": 1000}):
            addresses = [{"id": one["id"], "email_norm": _normalised(one["email"])} for one in page]
            done += self.rpc("mailout_normalise_addresses", {"addresses": addresses})
            after = page[-1]["id"]
        return done

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
        params = {"list_key": list_key, "segment": segment, "existed_at": existed_at, "snoozed": snoozed}
        found: list[Member] = []
        while len(found) < limit:
            most = min(_PART, limit - len(found))
            rows = self.rpc("mailout_members", {**params, "after": after, "most": most})
            found += [Member(*row) for row in rows]
            if len(rows) < most:
                break
            after = found[-1].email
        return found


def _normalised(written: str) -> str | None:
    norm = normalise(written)
    return None if isinstance(norm, Dropped) else norm


def _each_once(rows: Sequence[SubscriberRow]) -> list[dict[str, Any]]:
    """One for each address, with all that the file says of it: twice, the stronger status stays."""
    people: dict[str, dict[str, Any]] = {}
    for row in rows:
        one = people.setdefault(row.email_norm, _new(row))
        one["statuses"].append(row.status)
        one["from_name"] = row.from_name or one["from_name"]
        one["ocd_ids"] = list(row.ocd_ids) or one["ocd_ids"]
        one["attributes"] |= row.attributes
        one["lists"] += [key for key in row.lists if key not in one["lists"]]
        one["left_lists"] += [key for key in row.left_lists if key not in one["left_lists"]]
        one["complained"] |= row.complained
        if stronger(one["status"], row.status) == row.status:
            one["status"] = row.status
            one["bounce_type"] = row.bounce_type or one["bounce_type"]
            one["bounce_subtype"] = row.bounce_subtype or one["bounce_subtype"]
    return list(people.values())


def _new(row: SubscriberRow) -> dict[str, Any]:
    return asdict(row) | {"ocd_ids": [], "attributes": {}, "lists": [], "left_lists": [], "statuses": []}
