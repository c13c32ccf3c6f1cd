"""Faults while letters are sent that are in the archive on the web, or not, or now and then.

Readers look at it all the time. What they are shown is compared with what the store said just before and just
after: if that is the same, there is only one right answer.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from mailout.outbox.queue import queue_rows
from mailout.readers import web_archive
from tests.chaos.handed_in import API_TOKEN, Clients, json_request
from tests.chaos.jobs import change_its_mind, send_what_was_asked_for, serve
from tests.chaos.judging import judge_messages
from tests.chaos.places import Place, Stage, clear, kill, wait_for
from tests.chaos.verdict import Verdict
from tests.ports import free_port

OPEN, CLOSED, CHANGING = "Open", "Closed", "Changing"
LETTER = "---\nid: {name}\nsubject: {name}\npublic: {public}\n---\n\nThe words of {name}.\n"
ROWS = "select slug, subject, public, published_at, unpublished_at, sent from campaign_queue"
LISTINGS = ("/archive", "/archive/feed.xml", "/archive/sitemap.xml")
_SLUGS = re.compile(r"/archive/([a-z]+-[0-9a-f]{6})\b")
Letter = Mapping[str, Any]


@dataclass
class Readers:
    """What they looked at, and what they should not, or should, have seen."""

    place: Place
    port: int
    answers: Counter[int] = field(default_factory=Counter)  # of single letters, by status
    wrong: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def letters(self) -> Mapping[str, Letter]:
        return {row["slug"]: row for row in self.place.rows(ROWS)}

    def look(self, http: httpx.Client) -> None:
        """At each letter once, and at one of the lists of them."""
        for slug, before in self.letters().items():
            answer = http.get(f"/archive/{slug}")
            after = self.letters()[slug]
            if _state(before) == _state(after) and answer.status_code < 500:
                self.compare(after, answer)
        listing = http.get(self.place.chance.choice(LISTINGS))
        letters = self.letters()
        for slug in _shown(listing):
            if not letters[slug]["sent"] or letters[slug]["subject"] == CLOSED:
                self.wrong.append(f"{slug} is listed")

    def look_last(self) -> None:
        """A gateway that has read nothing yet shows what is public, and no more."""
        public = {slug for slug, letter in self.letters().items() if letter["subject"] != CLOSED}
        with httpx.Client(base_url=self.url, trust_env=False, timeout=60) as http:
            wait_for(lambda: _answers(http), every=0.05)
            for slug, letter in self.letters().items():
                self.compare(letter, http.get(f"/archive/{slug}"))
            for path in LISTINGS:
                if (shown := _shown(http.get(path))) != public:
                    self.wrong.append(f"{path} shows {shown}, not {public}")

    def compare(self, letter: Letter, answer: httpx.Response) -> None:
        self.answers[answer.status_code] += 1
        if answer.status_code != _status(letter):
            self.wrong.append(f"{answer.status_code} instead of {_status(letter)}: {dict(letter)}")
        words = f"The words of {letter['subject']}." in answer.text and "</html>" in answer.text
        if answer.status_code == 200 and not words:
            self.wrong.append(f"{letter['subject']} is not whole")


def _state(letter: Letter) -> tuple[Any, ...]:
    """It tells also whether it changed and changed back."""
    return letter["public"], letter["published_at"], letter["unpublished_at"], letter["sent"] > 0


def _status(letter: Letter) -> int:
    if not letter["sent"]:
        return 404
    return 200 if letter["public"] else 404 if letter["unpublished_at"] is None else 410


def _shown(listing: httpx.Response) -> set[str]:
    return set(_SLUGS.findall(listing.text)) if listing.status_code == 200 else set()


def _answers(http: httpx.Client) -> bool:
    try:
        return http.get("/health").status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def letters_on_the_web(stage: Stage, mode: str, store: str, people: int) -> Iterator[Place]:
    port = free_port()
    place = stage.place(mode, store, people, PUBLIC_URL="https://example.org", API_TOKEN=API_TOKEN)
    place.task = send_what_was_asked_for
    place.readers = Readers(place, port)
    for name in (OPEN, CLOSED, CHANGING):
        text = LETTER.format(name=name, public=str(name == OPEN).lower())
        (place.job.home / f"{name}.md").write_text(text, encoding="utf-8")
    yield place
    clear(place)


def publishing(place: Place, dose: int) -> int:
    """The sender is killed, the gateway, and who publishes one of them and takes it back."""
    readers: Readers = place.readers
    jobs: list[tuple[Any, ...]] = [(serve, readers.port), (change_its_mind, CHANGING)]
    beside = [place.start(*job) for job in jobs]
    refs = [str(place.job.home / f"{name}.md") for name in (OPEN, CLOSED, CHANGING)]
    bearer = {"Authorization": f"Bearer {API_TOKEN}"}
    clients = Clients(
        readers.url, deque(json_request("/send-mailout", {"ref": ref}, **bearer) for ref in refs)
    )
    clients.begin()
    clients.end()
    hits = 0
    with _looking(readers):
        while hits < dose:
            sender = place.start()
            place.reach(place.chance.randint(1, 8), sender)
            time.sleep(place.chance.uniform(0, 0.03))
            over = not sender.is_alive()
            kill(sender)
            if over:
                break
            victim = place.chance.randrange(4)
            if victim < len(beside):
                kill(beside[victim])
                beside[victim] = place.start(*jobs[victim])
            hits += 1 + (victim < len(beside))
        place.finish()
        time.sleep(0.3)
    for process in beside:
        kill(process)
    _publish_it(place)
    gateway = place.start(*jobs[0])
    readers.look_last()
    kill(gateway)
    return hits


def _publish_it(place: Place) -> None:
    with closing(place.store()) as store:
        (changing,) = [one for one in queue_rows.mailouts(store) if one.subject == CHANGING]
        web_archive.publish(store, changing.id)


@contextmanager
def _looking(readers: Readers) -> Iterator[None]:
    over = threading.Event()

    def look() -> None:
        with httpx.Client(base_url=readers.url, trust_env=False, timeout=60) as http:
            while not over.wait(0.02):
                try:
                    readers.look(http)
                except httpx.TransportError:
                    continue  # it has just been killed

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def judge_published(place: Place, hits: int) -> Verdict:
    """Every letter to everybody once, and on the web what is public once its first message is sent."""
    readers: Readers = place.readers
    rows = place.rows("select count(*) as n from email_outbox")[0]["n"]
    wrong = [
        *readers.wrong,
        *(f"nobody saw a {status}" for status in (200, 404) if not readers.answers[status]),
    ]
    for words in wrong:
        print(words)
    return judge_messages(place, hits) + Verdict(lost=3 * place.job.people - rows, misreported=len(wrong))
