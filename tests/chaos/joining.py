"""Faults while strangers join: they ask, get a confirmation, confirm it, and are welcomed.

Half of them post each form twice; some never confirm, some only look at the link, as mail scanners do.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.process import BaseProcess
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx

from mailout.base.ids import welcome_id
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.readers import sign_up_rows
from tests.chaos.handed_in import Clients, Request
from tests.chaos.jobs import attend, send_what_was_asked_for, serve
from tests.chaos.judging import judge_messages
from tests.chaos.places import Place, Stage, clear, kill, wait_for
from tests.chaos.scenes import killed
from tests.chaos.verdict import Verdict
from tests.ports import free_port

MODE = "sign-ups"
WELCOMED = ("news", "weekly")
LISTS = ("general", *WELCOMED)
CHOICES = (("news",), ("general",), ("news", "weekly"))
LINK = re.compile(r"https?://\S+/join/confirm\?token=\S+")
WELCOME = "---\nsubject: Welcome\n---\n\nHello {{ name | reader }}, nice to have you.\n"


@dataclass(frozen=True)
class Stranger:
    """`confirms`: posts what the link leads to; else looks at it, or does not even that."""

    number: int
    email: str
    lists: Sequence[str]
    confirms: bool
    looks: bool

    @property
    def ask(self) -> Request:
        form = {"email": self.email, "name": f"June {self.number}", "list": self.lists}
        return "/join", urlencode(form, doseq=True).encode(), self._headers

    @property
    def _headers(self) -> dict[str, str]:
        """Each from a network of their own: one network may not ask for more than thirty an hour."""
        return {
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json" if self.number % 2 else "text/html",
            "X-Forwarded-For": f"10.{self.number // 250}.{self.number % 250}.7",
        }

    def confirm(self, link: str) -> Request:
        address = urlsplit(link)
        return f"{address.path}?{address.query}", b"", self._headers


@dataclass
class Strangers:
    """All who come to one place, and what they were answered."""

    place: Place
    port: int
    clients: Clients = field(init=False)
    confirmed: dict[str, Request] = field(default_factory=dict)  # by address: what was posted
    looked: set[str] = field(default_factory=set)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.clients = Clients(f"http://127.0.0.1:{self.port}", deque(), more_may_come=True, pause=0.02)

    @cached_property
    def people(self) -> Mapping[str, Stranger]:
        chance = self.place.chance
        made = [
            Stranger(number, email, chance.choice(CHOICES), draw < 0.8, 0.8 <= draw < 0.9)
            for number, email in enumerate(self.place.job.emails)
            for draw in [chance.random()]
        ]
        return {one.email: one for one in made}

    def ask(self) -> None:
        """Every second one twice."""
        asked = [one.ask for one in self.people.values() for _ in range(1 + one.number % 2)]
        self.place.chance.shuffle(asked)
        self.clients.asked.extend(asked)

    def read_mail(self) -> None:
        """Who has got a confirmation does what they do with it."""
        with self._reading:
            for mail in self.place.ses.messages():
                who, found = self.people[mail["to"]], LINK.search(mail["text"])
                if found is not None and who.email not in {*self.confirmed, *self.looked}:
                    self._use(who, found[0])

    def _use(self, who: Stranger, link: str) -> None:
        """Every second one twice."""
        path, body, headers = who.confirm(link)
        if who.looks:
            self._look(who.email, path, headers)
        elif who.confirms:
            self.confirmed[who.email] = path, body, headers
            self.clients.asked.extend([self.confirmed[who.email]] * (1 + who.number // 2 % 2))

    def _look(self, email: str, path: str, headers: Mapping[str, str]) -> None:
        try:
            httpx.get(self.clients.url + path, headers=dict(headers), trust_env=False, timeout=5)
            self.looked.add(email)
        except httpx.TransportError:
            return  # the gateway has just been killed: at the next look

    def was_answered(self, request: Request | None) -> bool:
        return request in self.clients.taken

    def is_answered(self) -> bool:
        """Nobody waits for an answer to what they have posted so far."""
        wanted = sum(1 + one.number % 2 for one in self.people.values())
        wanted += sum(1 + self.people[email].number // 2 % 2 for email in self.confirmed)
        return self.clients.answered == wanted


@contextmanager
def strangers_come(stage: Stage, mode: str, store: str, people: int) -> Iterator[Place]:
    port = free_port()
    place = stage.place(
        mode,
        store,
        people,
        SIGNUP="true",
        PUBLIC_URL=f"http://127.0.0.1:{port}",
        TRUSTED_PROXIES="127.0.0.1",
    )
    place.ses.script(latency_ms=5, keep_bodies=True)
    place.task = send_what_was_asked_for
    letter = place.job.home / "welcome.md"
    letter.write_text(WELCOME, encoding="utf-8")
    with closing(place.store()) as opened:
        for key in LISTS:
            ref = str(letter) if key in WELCOMED else None
            opened.put(LIST_TABLE, [List(key, key.title(), public=True, welcome_ref=ref)])
    crowd = place.strangers = Strangers(place, port)
    crowd.clients.begin()
    try:
        yield place
    finally:  # also if the scene broke off
        crowd.clients.more_may_come = False
        crowd.clients.asked.clear()
    clear(place)


# ── what strikes ──


def joining(place: Place, dose: int) -> int:
    """All of it at once; the gateway, or who sends and welcomes, is killed in between."""
    crowd: Strangers = place.strangers
    crowd.ask()
    return _struck(place, dose, victims=2)


def confirming(place: Place, dose: int) -> int:
    """All have their link; while they confirm it, the gateway is killed; somebody welcomes them meanwhile."""
    crowd: Strangers = place.strangers
    kill(_all_asked(place))
    crowd.read_mail()
    return _struck(place, dose, victims=1)


def welcoming(place: Place, dose: int) -> int:
    """All have joined; the run of the queue that writes their welcome letters and sends them is killed."""
    crowd: Strangers = place.strangers
    gateway = _all_asked(place)
    crowd.read_mail()
    crowd.clients.end()
    kill(gateway)
    return killed(place, dose)


def _all_asked(place: Place) -> BaseProcess:
    """Without a fault: each has asked, and each confirmation is sent. The gateway."""
    crowd: Strangers = place.strangers
    crowd.ask()
    gateway = place.start(serve, crowd.port)
    wait_for(crowd.is_answered, every=0.02)
    place.finish(place.all_called)
    return gateway


def _struck(place: Place, dose: int, *, victims: int) -> int:
    """Until all is over; who is killed is started again at once."""
    crowd: Strangers = place.strangers
    jobs: Sequence[tuple[Any, ...]] = ((serve, crowd.port), (attend,))
    at_work = [place.start(*job) for job in jobs]
    hits, most = 0, max(2, (victims + 1) * place.job.people // dose)
    with _mailboxes_read(crowd):
        while hits < dose and _goes_on(place, place.chance.randint(1, most)):
            time.sleep(place.chance.uniform(0, 0.01))
            victim = place.chance.randrange(victims)
            kill(at_work[victim])
            at_work[victim] = place.start(*jobs[victim])
            hits += 1
        wait_for(lambda: _is_over(place), every=0.05)
        crowd.read_mail()
        crowd.clients.end()
        wait_for(lambda: not _owed(place) and place.all_called(), every=0.05)
    for process in at_work:  # nobody is in the middle of anything
        kill(process)
    return hits


def _owed(place: Place) -> int:
    """Welcome letters that are not written yet."""
    with closing(place.store()) as store:
        return len(list(sign_up_rows.owed_welcomes(store, 0.0, rehearsal=False)))


def _goes_on(place: Place, more: int) -> bool:
    """Until so many more answers are given and mails accepted; False: all was over first."""
    clients = place.strangers.clients
    target = clients.answered + place.total() + more
    wait_for(lambda: clients.answered + place.total() >= target or _is_over(place))
    return not _is_over(place)


def _is_over(place: Place) -> bool:
    return place.strangers.is_answered() and place.all_called()


@contextmanager
def _mailboxes_read(crowd: Strangers) -> Iterator[None]:
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.2):
            crowd.read_mail()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


# ── how it is judged ──


def judge_joined(place: Place, hits: int) -> Verdict:
    """One confirmation, one welcome; on the lists that they confirmed and on no other, with their consent."""
    crowd: Strangers = place.strangers
    rows = {str(row["id"]): row for row in place.rows("select id, email, category from email_outbox")}
    asked = Counter(row["email"] for row in rows.values() if row["category"] == "confirmation")
    mails = Counter((mail["to"], bool(LINK.search(mail["text"]))) for mail in place.ses.messages())
    agreed, on, known = (_lists(place, where) for where in ("consents", ON, "subscriptions"))
    active = {row["email_norm"]: row["confirmed"] for row in place.rows(ACTIVE)}
    subscribed = {*active, *agreed, *known}
    chosen = {e: set(who.lists) for e, who in crowd.people.items()}
    lost: dict[str, Collection[object]] = {
        "asked, and no confirmation": [e for e in crowd.people if not asked[e]],
        "confirmed, and not subscribed": [
            e
            for e, post in crowd.confirmed.items()
            if crowd.was_answered(post) and not (e in active and on[e] == agreed[e] == chosen[e])
        ],
        "owed a welcome letter": [
            (e, key)
            for e, keys in agreed.items()
            for key in keys & set(WELCOMED)
            if welcome_id(key, e) not in rows
        ],
    }
    wrong: dict[str, Collection[object]] = {
        "two confirmations": [e for e, n in asked.items() if n > 1],
        "more confirmations accepted than one": [e for (e, linked), n in mails.items() if linked and n > 1],
        "subscribed by nobody's post": subscribed - {*crowd.confirmed},
        "half-written": [
            e
            for e in subscribed
            if not (active.get(e) and agreed[e] == on[e] == chosen.get(e) and known[e] == {*LISTS})
        ],
        "welcomed, and not joined": [
            row["email"]
            for id, row in rows.items()
            if row["category"] != "confirmation"
            and id not in {welcome_id(key, row["email"]) for key in agreed[row["email"]]}
        ],
    }
    for words, who in [*lost.items(), *wrong.items()]:
        if who:
            print(f"{words}: {who}")
    return judge_messages(place, hits) + Verdict(
        lost=sum(len(who) for who in lost.values()),
        misreported=sum(len(who) for who in wrong.values()),
        unbalanced=_miscounted(place, crowd, asked, agreed),
    )


ON = "subscriptions where unsubscribed_at is null and joined_at is not null"
ACTIVE = "select email_norm, confirmed_at is not null as confirmed from subscribers where status = 'active'"
SIGN_UPS = "select labels, value from counters where name = 'mailout_sign_ups_total'"
DAYS = "select list_key, sum(asked) as asked, sum(confirmed) as confirmed from sign_up_days group by list_key"


def _lists(place: Place, where: str) -> Mapping[str, set[str]]:
    """Of each address. Who joins a list has a row for each other one, too: that they are not on it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in place.rows(f"select email, list_key from {where}"):
        found[row["email"]].add(row["list_key"])
    return found


def _miscounted(
    place: Place, crowd: Strangers, asked: Mapping[str, int], agreed: Mapping[str, set[str]]
) -> int:
    """Counts of sign-ups that are not those of the rows: on the dashboard, of the limits, of the metrics."""
    days = {row["list_key"]: (int(row["asked"]), int(row["confirmed"])) for row in place.rows(DAYS)}
    rows = {
        key: (
            sum(key in crowd.people[email].lists for email in asked),
            sum(key in keys for keys in agreed.values()),
        )
        for key in LISTS
    }
    counted = {row["labels"]: int(row["value"]) for row in place.rows(SIGN_UPS)}
    marks = int(place.rows("select count(*) as n from sign_up_marks")[0]["n"])
    return sum(
        (
            sum(days.get(key, (0, 0)) != rows[key] for key in LISTS),
            counted.get("sent", 0) != len(asked),
            counted.get("joined", 0) != sum(map(bool, agreed.values())),
            marks != len(asked),
        )
    )
