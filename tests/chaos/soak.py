"""`make soak`: `mailout up` for an hour under letters, single mails, sign-ups and events, its parts killed.

What is to be seen: memory that does not grow, files that stay few, no run that never ends, and the receiver's
record equal to the store's. It writes its section of docs/reliability.md; ends with 1 if anything is wrong.
`make chaos` may run beside it: it has its own ports, folders and receiver.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from mailout.kinds.single_mails.companies import Scope, add_token, new_token
from mailout.letters.audience.list_rows import LIST_TABLE, lists
from mailout.outbox.delivery.protocol import Attempt
from tests.chaos.handed_in import API_TOKEN, PASSWORD
from tests.chaos.jobs import COMPANY
from tests.chaos.joining import LINK, WELCOME
from tests.chaos.places import SETTINGS, Place, Stage, wait_for
from tests.chaos.report import write_soak
from tests.chaos.soak_judging import Asked, problems_of, section
from tests.chaos.soak_looks import PARTS, Look, look
from tests.chaos.up import up
from tests.conftest import forget_the_machine
from tests.e2e.processes import one_that, processes_of
from tests.ports import SHARE, free_port
from tests.ses_events import ses_event
from tests.sns_messages import CERTIFICATE_URL, TOPIC, Signer, Topic

PEOPLE = 200
LETTER_SECONDS, SINGLE_SECONDS, SIGN_UP_SECONDS, EVENT_SECONDS = 120.0, 3.0, 30.0, 5.0
KILL_SECONDS, LOOK_SECONDS = 180.0, 30.0
RUN = "prefect.engine"
PATIENCE_SECONDS = 900.0
"""For what surely happens: others may be busy on the same machine."""
LETTER = "---\nid: soak-{number}\nsubject: Letter {number}\n---\n\nHello, this is letter {number}.\n"


def parts_to_kill(kills: int) -> Iterator[str]:
    """Each once; then those that send, and from half-time on runs alone: what is to be seen of the memory of
    the others needs them to live."""
    yield from ("worker", "run", "gateway", "server")
    yield from itertools.islice(itertools.cycle(("worker", "run")), max(0, kills // 2 - 4))
    yield from itertools.repeat("run")


@dataclass
class Soak:
    """One hour: what was asked for, and what was seen."""

    place: Place
    http: httpx.Client
    token: str
    topic: Topic
    asked: Asked
    parts: Iterator[str]  # to kill, in this order
    began: float = field(default_factory=time.monotonic)
    kills: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)
    looks: list[Look] = field(default_factory=list)
    _part: str = ""  # that is to be killed

    def letter(self) -> None:
        self.asked.letters += 1
        file = self.place.job.home / f"letter-{self.asked.letters}.md"
        file.write_text(LETTER.format(number=self.asked.letters), encoding="utf-8")
        self._ask("/send-mailout", {"ref": str(file)}, Authorization=f"Bearer {API_TOKEN}")

    def single(self) -> None:
        self.asked.singles += 1
        to = f"s{self.asked.singles:05}@example.org"
        mail = {"to": to, "subject": "Your receipt", "html": "<p>Thanks.</p>"}
        self._ask("/v1/email/send", mail, **{"Authorization": f"Bearer {self.token}", "Idempotency-Key": to})

    def sign_up(self) -> None:
        """A stranger, from a network of their own."""
        number = len(self.asked.strangers)
        form = {"email": f"j{number:04}@example.org", "name": "June", "list": "general"}
        there = {"X-Forwarded-For": f"10.0.{number}.7"}
        self._patiently(lambda: self.http.post("/join", data=form, headers=there))
        self.asked.strangers.append(form["email"])

    def confirm(self) -> None:
        """Whoever has got the link, uses it."""
        for email in self.asked.strangers:
            if email in self.asked.confirmed:
                continue
            found = next(filter(None, map(_link, self.place.ses.messages(to=email))), None)
            if found is not None:
                self._patiently(lambda found=found: self.http.post(found))  # type: ignore[misc]
                self.asked.confirmed.add(email)

    def report_deliveries(self) -> None:
        rows = self.place.rows("select id, epoch, email from email_outbox where state = 'SENT'")
        for row in rows:
            if row["id"] in self.told:
                continue
            event = ses_event(
                "Delivery", row["email"], at=time.time(), attempt=Attempt(row["id"], row["epoch"])
            )
            body = self.topic.notification(event)
            self._patiently(lambda body=body: self.http.post("/ses-events", content=body))  # type: ignore[misc]
            self.told.add(row["id"])

    def kill(self) -> bool:
        """The next part; False: not now. A run is killed while it sends a letter."""
        self._part = self._part or next(self.parts)
        pid = self._sender() if self._part == "run" else one_that(self.place.job.home, PARTS[self._part])
        if pid is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            self.kills.append(self._part)
            print(f"minute {self._seconds() / 60:.1f}: {self._part} killed", flush=True)
            self._part = ""
        return True

    def _sender(self) -> int | None:
        """Of a letter."""
        sessions = self.place.rows(
            "select worker from sender_sessions where closed_at is null and campaign_id is not null"
        )
        pids = {int(row["worker"].rpartition("-")[2]) for row in sessions}
        return next(iter(pids & processes_of(self.place.job.home).keys()), None)

    def look(self) -> None:
        seen = look(self.place.job.home, self._seconds())
        self.looks.append(seen)
        memory = ", ".join(f"{name} {part.memory_mb:.0f} MB" for name, part in seen.parts.items())
        print(f"minute {seen.at / 60:.1f}: {memory}, {seen.own_files.total()} files of no letter", flush=True)

    def _seconds(self) -> float:
        return time.monotonic() - self.began

    def _ask(self, path: str, body: dict[str, Any], **more: str) -> None:
        self._patiently(lambda: self.http.post(path, json=body, headers=more))

    def _patiently(self, send: Callable[[], httpx.Response]) -> None:
        """Again until it is answered: the gateway may just have been killed."""

        def answered() -> bool:
            try:
                return send().status_code in (200, 202)
            except httpx.TransportError:
                return False

        wait_for(answered, every=0.5, patience=PATIENCE_SECONDS)


def _link(mail: dict[str, Any]) -> str | None:
    found = LINK.search(mail["text"])
    return re.sub(r"^https?://[^/]+", "", found[0]) if found else None


def run(minutes: float, kill_seconds: float, folder: Path) -> tuple[str, Sequence[str]]:
    """What the page says of it, and what went wrong."""
    stage, port = Stage(folder, "soak", bodies=True), free_port()
    try:
        place = stage.place("single", "sqlite", PEOPLE, **_settings())
        topic, token = _furnish(place)
        with (
            up(place, port),
            httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as http,
        ):
            parts = parts_to_kill(int(minutes * 60 / kill_seconds))
            soak = Soak(place, http, token, topic, Asked(PEOPLE), parts)
            never = _go(soak, minutes * 60, kill_seconds) or _settle(soak)
            problems = [*never, *problems_of(place, soak.asked, soak.looks)]
            about = replace(soak.asked, events=len(soak.told), kills=soak.kills, kill_seconds=kill_seconds)
            return section(place, about, soak.looks, problems, minutes), problems
    finally:
        stage.close()


def _furnish(place: Place) -> tuple[Topic, str]:
    """Who signs the events, and a program's token; the list has a welcome letter."""
    (place.job.home / "certs").mkdir()
    topic = Topic(signer=Signer.make(valid_from=time.time() - 86_400))
    (place.job.home / "certs" / CERTIFICATE_URL.rpartition("/")[2]).write_bytes(topic.signer.pem)
    letter = place.job.home / "welcome.md"
    letter.write_text(WELCOME, encoding="utf-8")
    with closing(place.store()) as store:
        text, token = new_token(COMPANY, tuple(Scope), None)
        add_token(store, token)
        (general,) = lists(store)
        store.put(LIST_TABLE, [replace(general, welcome_ref=str(letter))])
    return topic, text


def _settings() -> dict[str, Any]:
    return {
        "API_TOKEN": API_TOKEN,
        "ADMIN_PASSWORD": PASSWORD,
        "LOCK_SECONDS": "30",
        "SEND_RATE_PER_SEC": "5",
        "SNS_TOPIC_ARNS": TOPIC,
        "PUBLIC_URL": "https://example.org",
        "TRUSTED_PROXIES": "127.0.0.1",
        "SIGNUP": "true",
        "RETRY_DELAYS": SETTINGS["RETRY_DELAYS"],
    }


def _go(soak: Soak, seconds: float, kill_seconds: float) -> Sequence[str]:
    """What never came to an end: it ends at once then."""
    every: Sequence[tuple[float, Callable[[], bool | None]]] = (
        (LETTER_SECONDS, soak.letter),
        (SINGLE_SECONDS, soak.single),
        (SIGN_UP_SECONDS, soak.sign_up),
        (EVENT_SECONDS, soak.report_deliveries),
        (EVENT_SECONDS, soak.confirm),
        (kill_seconds, soak.kill),
        (LOOK_SECONDS, soak.look),
    )
    due = [soak.began + one for one, _ in every]
    try:
        while time.monotonic() < soak.began + seconds:
            for number, (pause, act) in enumerate(every):
                if time.monotonic() >= due[number] and act() is not False:
                    due[number] = max(due[number] + pause, time.monotonic() - pause)
            time.sleep(0.2)
    except AssertionError:
        return [f"the gateway did not answer for {PATIENCE_SECONDS / 60:.0f} minutes"]
    return []


def _settle(soak: Soak) -> Sequence[str]:
    """Nothing more is asked for, and all that was is done; what never is."""
    count = soak.asked.open_work
    for what in count(soak.place):
        try:
            wait_for(lambda what=what: not _rest(soak, what), every=1, patience=PATIENCE_SECONDS)  # type: ignore[misc]
        except AssertionError:
            return [f"{_rest(soak, what)} {what}"]
    return _look_at_rest(soak)


def _look_at_rest(soak: Soak) -> Sequence[str]:
    """The last look. Each run in hand has files of its own: how many there are is up to the machine. The one
    that waits for single mails never ends."""
    try:
        wait_for(
            lambda: sum(RUN in said for said in processes_of(soak.place.job.home).values()) <= 1,
            every=0.5,
            patience=PATIENCE_SECONDS,
        )
    except AssertionError:
        return [f"runs that did not end for {PATIENCE_SECONDS / 60:.0f} minutes"]
    soak.look()
    return []


def _rest(soak: Soak, what: str) -> int:
    soak.confirm()
    soak.report_deliveries()
    return soak.asked.open_work(soak.place)[what]


def main() -> int:
    asked = argparse.ArgumentParser(prog="make soak", description="mailout up for an hour, its parts killed")
    asked.add_argument("--minutes", type=float, default=60.0)
    asked.add_argument("--kill-seconds", type=float, default=KILL_SECONDS, help="between two kills")
    told = asked.parse_args()
    forget_the_machine()
    os.environ[SHARE] = "gw7"  # the ports of `make chaos` are those of gw0
    with tempfile.TemporaryDirectory(prefix="mailout-soak-") as folder:
        text, problems = run(told.minutes, told.kill_seconds, Path(folder))
    print(text)
    if told.minutes >= 60:
        write_soak(text)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
