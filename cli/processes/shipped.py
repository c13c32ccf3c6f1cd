"""What we have deployed to a Prefect server, and what an operator has changed there since.

Of each piece that people may change, the server keeps two hashes in a variable of ours: of what we shipped,
and of what the server then showed. A piece that still shows the same is ours to replace; any other stays as
it is. Whether something is switched on is never ours to say again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from cli.processes.prefect_api import ask, found

VARIABLE = "mailout_deployed"
NO_DEPLOYMENT = "none"
"""For an automation that belongs to no deployment."""
SETTINGS = ("description", "tags", "parameters", "job_variables")
AUTOMATION = ("description", "trigger", "actions")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Server:
    """What it has, as read at one moment."""

    deployments: Mapping[str, Row]  # by name
    automations: Mapping[str, Row]

    @classmethod
    def read(cls, api: httpx.Client) -> Server:
        there = ({one["name"]: one for one in found(api, what)} for what in ("deployments", "automations"))
        return cls(*there)

    def by_id(self, id: str) -> Row | None:
        return next((one for one in self.deployments.values() if one["id"] == id), None)

    def shows(self, deployment: str, piece: str) -> Any:
        """How a piece stands there, without ids and without whether it is on; None: it is not there.

        `deployment`: its id. Pieces are `settings`, `limit`, `schedule <slug>` and `trigger <name>`.
        """
        kind, _, name = piece.partition(" ")
        if kind == "trigger":
            row = self.automations.get(name)
            return row and _without_ids({key: row[key] for key in AUTOMATION})
        there = self.by_id(deployment)
        if there is None:
            return None
        if kind == "settings":
            return {key: there[key] for key in SETTINGS}
        if kind == "limit":
            limit = there.get("global_concurrency_limit") or {}
            return {"limit": limit.get("limit"), "options": there.get("concurrency_options")}
        schedule = schedule_of(there, name)
        return schedule and {"schedule": schedule["schedule"], "parameters": schedule.get("parameters")}


def schedule_of(deployment: Row, slug: str) -> Row | None:
    return next((one for one in deployment["schedules"] if one.get("slug") == slug), None)


@dataclass(slots=True)
class Shipped:
    """The hashes, by deployment and piece."""

    hashes: dict[str, dict[str, str]] = field(default_factory=dict)
    is_there: bool = False

    @classmethod
    def read(cls, api: httpx.Client) -> Shipped:
        named = {"variables": {"name": {"any_": [VARIABLE]}}}
        there = ask(api, "POST", "variables/filter", named)
        return cls(there[0]["value"], is_there=True) if there else cls()

    def write(self, api: httpx.Client) -> None:
        if self.is_there:
            ask(api, "PATCH", f"variables/name/{VARIABLE}", {"value": self.hashes})
        else:
            ask(api, "POST", "variables/", {"name": VARIABLE, "value": self.hashes})
        self.is_there = True

    def is_current(self, deployment: str, piece: str, wanted: Any) -> bool:
        return self.hashes.get(deployment, {}).get(piece, "")[:8] == _hash(wanted)

    def is_untouched(self, deployment: str, piece: str, shown: Any) -> bool:
        """By anybody but us. What nobody has noted is ours."""
        noted = self.hashes.get(deployment, {}).get(piece)
        # 0.1.0 noted the order that it saw, of two words at most.
        orders = (shown, _in_order(shown), _in_order(shown, backwards=True))
        return noted is None or noted[8:] in map(_hash, orders)

    def note(self, deployment: str, piece: str, wanted: Any, shown: Any) -> None:
        self.hashes.setdefault(deployment, {})[piece] = _hash(wanted) + _hash(_in_order(shown))

    def forget(self, is_gone: Callable[[str], bool]) -> None:
        """Deployments that are no more."""
        self.hashes = {id: pieces for id, pieces in self.hashes.items() if not is_gone(id)}

    def differences(self, server: Server) -> Iterator[str]:
        """What an operator has changed or deleted, in words."""
        for id, pieces in self.hashes.items():
            deployment = server.by_id(id)
            if deployment is None and id != NO_DEPLOYMENT:
                continue  # the whole deployment is missing, which is said elsewhere
            of = f"{deployment['name']}: " if deployment else ""
            for piece in pieces:
                shown = server.shows(id, piece)
                if not self.is_untouched(id, piece, shown):
                    yield f"{of}{piece}{' (deleted)' if shown is None else ''}"


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:8]


def _without_ids(value: Any) -> Any:
    """Prefect gives a trigger another id each time it is written."""
    if isinstance(value, Mapping):
        return {key: _without_ids(one) for key, one in value.items() if key != "id"}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_without_ids(one) for one in value]
    return value


def _in_order(value: Any, *, backwards: bool = False) -> Any:
    """Prefect keeps the events of a trigger as a set: each start of its server gives another order."""
    if isinstance(value, Mapping):
        return {key: _in_order(one, backwards=backwards) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    if all(isinstance(one, str) for one in value):
        return sorted(value, reverse=backwards)
    return [_in_order(one, backwards=backwards) for one in value]
