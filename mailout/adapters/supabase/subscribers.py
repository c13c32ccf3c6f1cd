"""Subscribers and their lists on Supabase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mailout.adapters.supabase.rpc import Rpc
from mailout.base.addresses import Dropped, normalise
from mailout.base.errors import NotFound
from mailout.letters.audience.list_rows import List
from mailout.letters.audience.port import (
    Choice,
    ImportCounts,
    ImportRecord,
    Lacking,
    SubscriberRow,
    Undone,
    stronger,
)
from mailout.letters.audience.segment_tree import Tree

_PART = 5_000


class SupabaseSubscribers:
    """Fulfils `Subscribers`."""

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
            for name, count in self.rpc("mailout_import_subscribers", params).items():
                totals[name] += count
        return ImportCounts(**totals)

    def begin_import(self, record: ImportRecord) -> None:
        given = {name: getattr(record, name) for name in ("id", "by", "file", "decisions", "counts")}
        self.rpc("mailout_begin_import", {"given": given})

    def undo_import(self, id: str) -> Undone:
        done = self.rpc("mailout_undo_import", {"id": id})
        if done is None:
            raise NotFound(
                f"There is no import {id}.", remedy="`mailout subscribers undo-import` lists them."
            )
        return Undone(**done)

    def edit_subscriber(self, email_norm: str, attributes: Mapping[str, object]) -> bool:
        params = {"address": email_norm, "attributes": dict(attributes)}
        return bool(self.rpc("mailout_edit_subscriber", params))

    def audience_size(
        self, list_key: str | None, segment: Tree | None = None, *, snoozed: bool = False
    ) -> int:
        params = {"list_key": list_key, "segment": segment, "snoozed": snoozed}
        return int(self.rpc("mailout_audience_size", params))

    def lacking(self, attribute: str, list_key: str | None, segment: Tree | None = None) -> Lacking:
        params = {"attribute": attribute, "list_key": list_key, "segment": segment}
        found = self.rpc("mailout_lacking", params)
        return Lacking(attribute, int(found["people"]), tuple(found["examples"]))

    def choose(self, email_norm: str, choice: Choice) -> bool:
        return bool(self.rpc("mailout_choose", {"address": email_norm, "choice": asdict(choice)}))

    def save_list(self, one: List) -> None:
        self.rpc("mailout_save_list", {"given": asdict(one)})

    def normalise_addresses(self) -> int:
        """A trigger has normalised most of them; the rest needs punycode, which SQL cannot make."""
        done, after = 0, ""
        while page := self.rpc("mailout_unnormalised", {"after": after, "most": 1000}):
            addresses = [{"id": one["id"], "email_norm": _normalised(one["email"])} for one in page]
            done += self.rpc("mailout_normalise_addresses", {"addresses": addresses})
            after = page[-1]["id"]
        return done


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
        if stronger(one["status"], row.status) == row.status:
            one["status"] = row.status
            one["bounce_type"] = row.bounce_type or one["bounce_type"]
            one["bounce_subtype"] = row.bounce_subtype or one["bounce_subtype"]
    return list(people.values())


def _new(row: SubscriberRow) -> dict[str, Any]:
    return asdict(row) | {"ocd_ids": [], "attributes": {}, "lists": [], "statuses": []}
