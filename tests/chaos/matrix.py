"""The matrix: every fault, the modes and stores it is played with, and how often it strikes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tests.chaos import disks, handed_in, joining, neighbours, publishing, scenes, up
from tests.chaos.jobs import MODES
from tests.chaos.judging import judge
from tests.chaos.places import Place, Stage, clear
from tests.chaos.scenes import Fault, answers
from tests.chaos.verdict import Verdict

STORES = ("sqlite", "supabase")
BY_SES = tuple(mode for mode in MODES if mode != "folder")
LETTERS = ("folder", "single", "bulk")
WORKS, WAITS, WITH_PREFECT = "works", "waits", "prefect"
LANES = {WORKS: 3, WAITS: 4, WITH_PREFECT: 2}
"""How many scenes of a kind are played at a time on two cores: of those that mostly wait, more."""
ROUNDS = 40
"""A mailout that is over before all strikes were made is followed by another one, at most so often."""


@contextmanager
def plain(stage: Stage, mode: str, store: str, people: int) -> Iterator[Place]:
    place = stage.place(mode, store, people)
    yield place
    clear(place)


@contextmanager
def short_lease(stage: Stage, mode: str, store: str, people: int) -> Iterator[Place]:
    """So that others need not wait long for who has disappeared; a quarter of it is a call's limit."""
    place = stage.place(mode, store, people, LOCK_SECONDS="4", SEND_RATE_PER_SEC="100")
    yield place
    clear(place)


@dataclass(frozen=True)
class Row:
    """One fault."""

    name: str
    what: str
    fault: Fault
    dose: int = 1
    modes: Sequence[str] = MODES
    stores: Sequence[str] = STORES
    people: int = 150
    pairs: Sequence[tuple[str, str]] = ()  # of mode and store; empty: each with each
    place: Callable[[Stage, str, str, int], AbstractContextManager[Place]] = plain
    doubt: int | None = None  # so many messages may be unknown after each strike; None: as many as it takes
    rounds: int = ROUNDS
    lane: str = WORKS  # where it is played
    kills: bool = False  # each strike is the SIGKILL of a process
    possible: Callable[[], bool] = lambda: True
    judge: Callable[[Place, int], Verdict] = judge

    @property
    def played(self) -> Sequence[tuple[str, str]]:
        return self.pairs or [(mode, store) for mode in self.modes for store in self.stores]

    def play(self, stage: Stage, mode: str, store: str, dose: int | None = None, seed: int = 0) -> Verdict:
        """Until it has struck so often; each mailout is finished and judged."""
        wanted, total = dose or self.dose, Verdict()
        people = min(self.people, max(80, 25 * wanted)) * (3 if mode == "bulk" else 1)
        for number in range(self.rounds):
            stage.seed = f"{self.name} {store} {mode} {number} {seed}"
            with self.place(stage, mode, store, people) as place:
                try:
                    hits = self.fault(place, wanted - total.hits)
                    place.finish()
                    total += self.judge(place, hits)
                finally:
                    place.end()
                if total.problems:
                    print(place.said())
            if total.hits >= wanted or total.problems:
                break
        return total

    def problems(self, verdict: Verdict, dose: int | None = None) -> Sequence[str]:
        """Why this row may not be shown as passed."""
        found = list(verdict.problems)
        if verdict.hits < (dose or self.dose):
            found.append(f"struck {verdict.hits} of {dose or self.dose} times")
        if self.doubt is not None and verdict.unknown > self.doubt * verdict.hits:
            found.append(f"{verdict.unknown} unknown, more than {self.doubt} for each strike")
        return found


THROTTLE = {"do": "answer", "status": 429, "code": "TooManyRequestsException", "probability": 0.2}
GARBAGE = (
    {"do": "answer", "status": 200, "body": "<html>", "accept": True, "probability": 0.05},
    {"do": "answer", "status": 200, "body": '{"MessageId"', "cut": True, "accept": True, "probability": 0.05},
    {"do": "answer", "status": 200, "body": "{}", "probability": 0.05},
)
FIVES = (
    {"do": "answer", "status": 503, "code": "ServiceUnavailable", "probability": 0.05},
    {"do": "answer", "status": 500, "accept": True, "aws": False, "probability": 0.05},
    {"do": "answer", "status": 502, "aws": False, "probability": 0.05},
)
SILENCE = ({"do": "hang", "skip": 5, "times": 2}, {"do": "hang", "accept": True, "skip": 12, "times": 2})
BUSY = {"status": 429, "headers": {"Retry-After": "0"}}
OVERLOADED, GONE = {"status": 529}, {"drop": True}

ROWS = (
    Row("up", "`mailout up`: SIGKILL and SIGSTOP of flow run, worker, Prefect server, gateway",
        up.parts_struck, 8,
        place=up.under_up, rounds=3, lane=WITH_PREFECT),
    Row("prefect-lost", "everything killed, Prefect's database lost", up.prefect_lost, place=up.under_up,
        rounds=1, lane=WITH_PREFECT,
        pairs=(("folder", "sqlite"), ("single mails", "sqlite"), ("bulk", "supabase"))),
    Row("kill", "SIGKILL of the sender, anywhere", scenes.killed, 84, people=700, doubt=20,
        kills=True),
    Row("stop", "SIGSTOP of the sender; another takes over; then it wakes", scenes.suspended, 3,
        place=short_lease, lane=WAITS),
    Row("term", "SIGTERM of the sender", scenes.terminated, 8, doubt=0, people=250),
    Row("two-senders", "two senders at once, one killed now and then", scenes.senders(2), 6, people=300,
        place=short_lease, kills=True),
    Row("three-senders", "three senders at once, one killed now and then", scenes.senders(3), 6, people=300,
        place=short_lease, kills=True),
    Row("machine-lost", "the sender killed, its journal gone with its disk", scenes.machine_lost, 2,
        place=short_lease, lane=WAITS, kills=True),
    Row("power-cut", "power cut: what was not synced is lost, of journal and SQLite", disks.power_cut, 8,
        BY_SES, place=disks.on_ext4, people=250, possible=disks.can_mount),
    Row("disk-full", "the disk full to the last byte", disks.disk_full, place=disks.on_tmpfs, doubt=0,
        possible=disks.can_mount),
    Row("clock", "the clock jumps by 2 and 25 hours, forward and back; kills besides", scenes.clock_jumps, 6),
    Row("postgres-restart", "Postgres crashes and starts again", neighbours.postgres_away(0), 2,
        stores=("supabase",), place=neighbours.on_own_postgres),
    Row("postgres-away", "Postgres away for a minute", neighbours.postgres_away(60),
        lane=WAITS, stores=("supabase",), place=neighbours.on_own_postgres),
    Row("postgres-slow", "Postgres answers 400 ms late; kills besides", scenes.slow_store, 4,
        lane=WAITS, stores=("supabase",)),
    Row("ses-throttling", "SES: one call in five is throttled", answers(THROTTLE), modes=BY_SES, doubt=0),
    Row("ses-5xx", "SES: 500, 502 and 503, from AWS and from something in between", answers(*FIVES),
        modes=BY_SES),
    Row("ses-timeout", "SES does not answer, before and after accepting", answers(*SILENCE), modes=BY_SES,
        place=short_lease),
    Row("ses-reset", "SES: connections reset before accepting", answers({"do": "drop", "probability": 0.1}),
        modes=BY_SES),
    Row("ses-reset-after", "SES: connections reset after accepting",
        answers({"do": "drop", "accept": True, "probability": 0.1}), modes=BY_SES),
    Row("ses-garbage", "SES: answers that are no answers", answers(*GARBAGE), modes=BY_SES),
    Row("ses-same-id", "SES gives every mail the same id", answers(same_id=True), modes=BY_SES, doubt=0),
    Row("notion-429-load", "Notion: 429 while the page is read", neighbours.notion_fails(BUSY, at_load=True),
        modes=LETTERS, place=neighbours.from_notion, doubt=0),
    Row("notion-529-load", "Notion: 529 while the page is read",
        neighbours.notion_fails(OVERLOADED, at_load=True), modes=LETTERS, place=neighbours.from_notion,
        doubt=0),
    Row("notion-away-load", "Notion away while the page is read",
        neighbours.notion_fails(GONE, at_load=True), modes=LETTERS, place=neighbours.from_notion, doubt=0),
    Row("notion-429-report", "Notion: 429 while the page is updated",
        neighbours.notion_fails(BUSY, at_load=False), modes=LETTERS, place=neighbours.from_notion, doubt=0),
    Row("notion-529-report", "Notion: 529 while the page is updated",
        neighbours.notion_fails(OVERLOADED, at_load=False), modes=LETTERS, place=neighbours.from_notion,
        doubt=0),
    Row("notion-away-report", "Notion away while the page is updated",
        neighbours.notion_fails(GONE, at_load=False), modes=LETTERS, place=neighbours.from_notion, doubt=0),
    Row("gateway-kill", "SIGKILL of the gateway; every request at least twice", handed_in.gateway("kill"), 8,
        modes=("folder", "single", "bulk", "single mails", "articles"), place=handed_in.behind_the_gateway,
        doubt=0, kills=True),
    Row("gateway-stop", "SIGSTOP of the gateway for longer than clients wait; every request at least twice",
        handed_in.gateway("stop"), 2, modes=("folder", "single", "bulk", "single mails", "articles"),
        place=handed_in.behind_the_gateway, doubt=0),
    Row("webhooks", "Notion's webhooks, each twice, before, during and after sending; SIGKILL of the gateway",
        handed_in.webhooks, 4, modes=LETTERS, place=handed_in.told_by_notion, doubt=0, kills=True),
    Row("events", "events twice, in no order, early and late; sender and reader killed", neighbours.events, 3,
        BY_SES),
    Row("sign-up", "strangers join; SIGKILL of the gateway and of the sender, anywhere",
        joining.joining, 48, modes=(joining.MODE,), people=240, place=joining.strangers_come,
        judge=joining.judge_joined, kills=True),
    Row("confirmation", "strangers confirm their link; SIGKILL of the gateway", joining.confirming, 40,
        modes=(joining.MODE,), people=240, place=joining.strangers_come, doubt=0,
        judge=joining.judge_joined, kills=True),
    Row("welcome", "SIGKILL of the run that writes and sends welcome letters", joining.welcoming, 40,
        modes=(joining.MODE,), people=240, place=joining.strangers_come, judge=joining.judge_joined,
        kills=True),
    Row("web-archive", "letters on the web; SIGKILL of sender, gateway, and who publishes and takes back",
        publishing.publishing, 48, modes=("single",), people=80, place=publishing.letters_on_the_web,
        judge=publishing.judge_published, kills=True),
)  # fmt: skip
