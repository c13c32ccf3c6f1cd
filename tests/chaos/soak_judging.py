"""What an hour of `mailout up` comes to: the store's books against the receiver's, and its words."""

from __future__ import annotations

import calendar
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from cli.processes.prefect_api import environment, headers
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue import queue_rows
from tests.chaos.places import Place
from tests.chaos.soak_looks import PARTS, Look, growing, settled
from tests.chaos.verdict import balances
from tests.e2e.processes import processes_of
from tests.prefect_server import patiently

STUCK_SECONDS = 900.0
MESSAGES = "select id, campaign_id, email, category, state from email_outbox"


@dataclass
class Asked:
    """What was asked for in the hour, and what was done to it."""

    people: int
    letters: int = 0
    singles: int = 0
    strangers: list[str] = field(default_factory=list)
    confirmed: set[str] = field(default_factory=set)
    events: int = 0
    kills: Sequence[str] = ()
    kill_seconds: float = 0.0

    def open_work(self, place: Place) -> Mapping[str, int]:
        """What is not done yet, in the order in which it follows from each other."""
        states = Counter(row["state"] for row in place.rows(MESSAGES))
        queue = Counter(row["status"] for row in place.rows("select status from campaign_queue"))
        events = place.rows("select count(*) as n from events_inbox where applied_at is null")
        return {
            "letters not in the queue": self.letters - queue.total(),
            "letters not over": queue["PENDING"] + queue["PROCESSING"],
            "sign-ups without an end": len(self.strangers) - len(self.confirmed) - len(self.in_doubt(place)),
            "welcome letters not written": len(self.confirmed) - len(_welcomes(place)),
            "messages that wait": sum(states[one] for one in ("PENDING", "RETRY_SCHEDULED", "SENT_ATTEMPT")),
            "events not applied": int(events[0]["n"]),
        }

    def in_doubt(self, place: Place) -> set[str]:
        """Strangers whose confirmation may never have come: nobody knows."""
        rows = place.rows(f"{MESSAGES} where category = 'confirmation' and state = 'UNKNOWN'")
        return {row["email"] for row in rows} - self.confirmed


def _welcomes(place: Place) -> Sequence[object]:
    return place.rows(f"{MESSAGES} where category = 'marketing' and campaign_id is null")


def problems_of(place: Place, asked: Asked, looks: Sequence[Look]) -> Sequence[str]:
    rows = place.rows(MESSAGES)
    return [
        *wrong_numbers(place, asked),
        *wrong_books(place, {row["id"]: State(row["state"]) for row in rows}),
        *growing(looks),
        *(f"a run that never ends: {name}" for name in _stuck_runs(place.job.home)),
    ]


def wrong_numbers(place: Place, asked: Asked) -> Iterator[str]:
    """Each letter once to each, each single mail, confirmation and welcome letter once."""
    rows = place.rows(MESSAGES)
    of_letters = Counter(row["campaign_id"] for row in rows if row["campaign_id"] is not None)
    kinds = Counter(row["category"] for row in rows if row["campaign_id"] is None)
    wanted = {
        "letters": (asked.letters, len(of_letters)),
        "single mails": (asked.singles, kinds["transactional"]),
        "confirmations": (len(asked.strangers), kinds["confirmation"]),
        "welcome letters": (len(asked.confirmed), kinds["marketing"]),
    }
    yield from (f"{found} {what} instead of {n}" for what, (n, found) in wanted.items() if n != found)
    short = sum(n < asked.people for n in of_letters.values())
    if short:
        yield f"{short} letters to less than {asked.people} people"
    active = place.rows("select email_norm as email from subscribers where confirmed_at is not null")
    if {row["email"] for row in active} != asked.confirmed:
        yield f"{len(active)} have joined, {len(asked.confirmed)} have confirmed it"


def wrong_books(place: Place, states: Mapping[str, State]) -> Iterator[str]:
    """By message: what the receiver has, what the store says, and what the ledgers count."""
    accepted = place.ses.by_message()
    by_state = Counter(states.values())
    yield from (f"{n} × {state}" for state, n in by_state.items() if state not in (State.SENT, State.UNKNOWN))
    found = {
        "accepted twice": sum(n > 1 for n in accepted.values()),
        "recorded as sent, and not accepted": sum(
            not accepted[id] for id, state in states.items() if state is State.SENT
        ),
        "accepted, and not recorded so": sum(
            states.get(id) not in (State.SENT, State.UNKNOWN) for id in accepted
        ),
    }
    campaigns = {row["id"]: row["campaign_id"] for row in place.rows(MESSAGES)}
    with closing(place.store()) as store:
        found["ledgers off"] = sum(
            not balances(one, {id: state for id, state in states.items() if campaigns[id] == one.id})
            for one in queue_rows.mailouts(store)
        )
        found["counters off"] = len(feedback_rows.usage_drift(store))
    yield from (f"{n} {what}" for what, n in found.items() if n)


def _stuck_runs(home: Path) -> Sequence[str]:
    """Runs that are not over and began long ago. The one for single mails may: if its process lives."""
    long_ago, alive = time.time() - STUCK_SECONDS, _run_ids(home)
    for_single_mails = {run["id"] for run in _open_runs(home, flows={"name": {"any_": ["drain_outbox"]}})}
    return [
        run["name"]
        for run in _open_runs(home)
        if calendar.timegm(time.strptime(run["created"][:19], "%Y-%m-%dT%H:%M:%S")) < long_ago
        and run["id"] not in for_single_mails & alive
    ]


def _open_runs(home: Path, **which: Any) -> Sequence[Mapping[str, Any]]:
    env = environment(home)
    state = {"state": {"type": {"any_": ["RUNNING", "PENDING", "CANCELLING"]}}}
    url, asked = f"{env['PREFECT_API_URL']}/flow_runs/filter", {"flow_runs": state, "limit": 200, **which}
    send = partial(httpx.post, url, json=asked, headers=headers(env), trust_env=False, timeout=60)
    answer = patiently(send, "Prefect's server says which runs are open")  # it may just be starting again
    found: Sequence[Mapping[str, Any]] = answer.raise_for_status().json()
    return found


def _run_ids(home: Path) -> set[str]:
    """Of the runs whose process lives: Prefect tells it in a variable."""
    mark, found = b"PREFECT__FLOW_RUN_ID=", set()
    for pid in processes_of(home):
        try:
            said = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        found |= {one.removeprefix(mark).decode() for one in said if one.startswith(mark)}
    return found


def section(
    place: Place,
    asked: Asked,
    looks: Sequence[Look],
    problems: Sequence[str],
    minutes: float,
) -> str:
    accepted = place.ses.by_message()
    unknown = place.rows("select count(*) as n from email_outbox where state = 'UNKNOWN'")[0]["n"]
    seen = settled(looks)
    shown = [seen[0], seen[len(seen) // 2], seen[-1]]
    rows = [
        ("", *(f"minute {one.at / 60:.0f}" for one in shown)),
        ("---",) * 4,
        *(
            (f"memory of the {part}, MB", *(f"{one.parts[part].memory_mb:.0f}" for one in shown))
            for part in PARTS
        ),
        ("their open files", *(str(sum(p.open_files.total() for p in one.parts.values())) for one in shown)),
        ("files in its home", *(str(one.files) for one in shown)),
        ("of these, of no letter", *(str(one.own_files.total()) for one in shown)),
        ("their size, MB", *(f"{one.disk_mb:.1f}" for one in shown)),
    ]
    told = "as it should be" if not problems else f"**not as it should be: {'; '.join(problems)}**"
    killed = ", ".join(f"{part} {n}" for part, n in Counter(asked.kills).items())
    return (
        f"Written by `make soak`: `mailout up` for {minutes:.0f} minutes on SQLite with"
        f" {asked.letters} letters to {asked.people} people and more, {asked.singles:,} single mails,"
        f" {len(asked.strangers)} sign-ups ({len(asked.confirmed)} confirmed and welcomed) and"
        f" {asked.events:,} delivery reports; every {asked.kill_seconds / 60:.0f} minutes one of its"
        f" processes was killed ({killed or 'none'}). {accepted.total():,} mails accepted,"
        f" {sum(n > 1 for n in accepted.values())} twice, {unknown} unknown; ledgers and counters compared"
        f" with every message: {told}.\n\nMemory is each process's own, without the files that it has"
        " mapped.\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
    )
