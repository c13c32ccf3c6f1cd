"""`make soak`: `mailout up` for an hour under letters, single mails, sign-ups and events, its parts killed.

What is to be seen: memory that does not grow, files that stay few, no run that never ends, and the receiver's
record equal to the store's. It writes its section of docs/reliability.md; ends with 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import calendar
import itertools
import os
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from cli.processes.prefect_api import environment, headers
from mailout.kinds.single_mails.companies import Scope, new_token
from mailout.outbox.delivery.protocol import Attempt
from tests.chaos.handed_in import API_TOKEN, PASSWORD
from tests.chaos.jobs import COMPANY
from tests.chaos.places import SETTINGS, Place, Stage, wait_for
from tests.chaos.report import write_soak
from tests.chaos.up import PARTS, up
from tests.conftest import forget_the_machine
from tests.e2e.processes import one_that, processes_of
from tests.ports import free_port
from tests.ses_events import ses_event
from tests.sns_messages import CERTIFICATE_URL, TOPIC, Signer, Topic

PEOPLE = 200
LETTER_SECONDS, SINGLE_SECONDS, SIGN_UP_SECONDS, EVENT_SECONDS = 120.0, 3.0, 125.0, 5.0
KILL_SECONDS, LOOK_SECONDS = 180.0, 60.0
SETTLE_SECONDS = 120.0
"""At the beginning, before memory and files are compared: everything has run once by then."""
GROWTH_ALLOWED = 1.15
STUCK_SECONDS = 900.0
LETTER = "---\nid: soak-{number}\nsubject: Letter {number}\n---\n\nHello, this is letter {number}.\n"
LASTING = ("worker start", "prefect server start", "cli gateway", "cli up")
"""What lives as long as `mailout up`; runs come and go."""


@dataclass(frozen=True)
class Look:
    """How much there is at one moment."""

    at: float
    memory_mb: float
    files: int
    disk_mb: float
    open_files: int


@dataclass
class Soak:
    """One hour: what was asked for, and what was seen."""

    place: Place
    http: httpx.Client
    token: str
    topic: Topic
    letters: int = 0
    singles: int = 0
    sign_ups: int = 0
    confirmed: int = 0
    kills: int = 0
    events: int = 0
    told: set[str] = field(default_factory=set)
    looks: list[Look] = field(default_factory=list)

    def letter(self) -> None:
        self.letters += 1
        file = self.place.job.home / f"letter-{self.letters}.md"
        file.write_text(LETTER.format(number=self.letters), encoding="utf-8")
        self._ask("/send-mailout", {"ref": str(file)}, Authorization=f"Bearer {API_TOKEN}")

    def single(self) -> None:
        self.singles += 1
        mail = {"to": f"s{self.singles:05}@example.org", "subject": "Your receipt", "html": "<p>Thanks.</p>"}
        key = {"Authorization": f"Bearer {self.token}", "Idempotency-Key": mail["to"]}
        self._ask("/v1/email/send", mail, **key)

    def sign_up(self) -> None:
        """One stranger asks, and confirms as soon as the link has come."""
        self.sign_ups += 1
        form = {"email": f"j{self.sign_ups:04}@example.org", "name": "June", "list": "general"}
        self._patiently(lambda: self.http.post("/join", data=form))

    def confirm(self) -> None:
        for number in range(self.confirmed + 1, self.sign_ups + 1):
            mails = self.place.ses.messages(to=f"j{number:04}@example.org")
            found = re.search(r"https?://\S+/join/confirm\?token=\S+", mails[0]["text"]) if mails else None
            if found is None:
                return
            link = urlsplit(found[0])
            self._patiently(lambda link=link: self.http.post(f"{link.path}?{link.query}"))  # type: ignore[misc]
            self.confirmed += 1

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
            self.events += 1

    def kill(self, part: str) -> None:
        pid = one_that(self.place.job.home, PARTS.get(part, "prefect.engine"))
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.kills += 1

    def look(self, since: float) -> None:
        living = processes_of(self.place.job.home)
        lasting = [pid for pid, said in living.items() if any(one in said for one in LASTING)]
        files = [one for one in self.place.job.home.rglob("*") if one.is_file()]
        self.looks.append(
            Look(
                time.monotonic() - since,
                sum(map(_pss_mb, lasting)),
                len(files),
                sum(_size(one) for one in files) / 1e6,
                sum(_open_files(pid) for pid in lasting),
            )
        )

    def _ask(self, path: str, body: dict[str, Any], **more: str) -> None:
        self._patiently(lambda: self.http.post(path, json=body, headers=more))

    def _patiently(self, send: Callable[[], httpx.Response]) -> None:
        """Again until it is answered: the gateway may just have been killed."""

        def answered() -> bool:
            try:
                return send().status_code in (200, 202)
            except httpx.TransportError:
                return False

        wait_for(answered, every=0.5)


def _pss_mb(pid: int) -> float:
    """Its share of the memory: pages that several use are counted once in all."""
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    found = re.search(r"^Pss:\s+(\d+) kB", told, re.MULTILINE)
    return int(found[1]) / 1000 if found else 0.0


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _open_files(pid: int) -> int:
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return 0


def run(minutes: float, folder: Path) -> tuple[str, Sequence[str]]:
    """What the page says of it, and what went wrong."""
    stage, port = Stage(folder, "soak", bodies=True), free_port()
    try:
        place = stage.place("single", "sqlite", PEOPLE, **_settings(port))
        (place.job.home / "certs").mkdir()
        topic = Topic(signer=Signer.make(valid_from=time.time() - 86_400))
        (place.job.home / "certs" / CERTIFICATE_URL.rpartition("/")[2]).write_bytes(topic.signer.pem)
        (place.job.home / "welcome.md").write_text("---\nid: hi\nsubject: Welcome\n---\n\nHi!\n", "utf-8")
        with closing(place.store()) as store:
            text, token = new_token(COMPANY, tuple(Scope), None)
            store.add_token(token)
        with (
            up(place, port),
            httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as http,
        ):
            soak = Soak(place, http, text, topic)
            _go(soak, minutes * 60)
            problems = _settle(soak)
            return section(soak, problems, minutes), problems
    finally:
        stage.close()


def _settings(port: int) -> dict[str, Any]:
    return {
        "API_TOKEN": API_TOKEN,
        "ADMIN_PASSWORD": PASSWORD,
        "LOCK_SECONDS": "30",
        "SEND_RATE_PER_SEC": "20",
        "SNS_TOPIC_ARNS": TOPIC,
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "SIGNUP": "true",
        "RETRY_DELAYS": SETTINGS["RETRY_DELAYS"],
    }


def _go(soak: Soak, seconds: float) -> None:
    began = time.monotonic()
    parts = itertools.cycle(("worker", "run", "gateway", "server"))
    every: Sequence[tuple[float, Callable[[], None]]] = (
        (LETTER_SECONDS, soak.letter),
        (SINGLE_SECONDS, soak.single),
        (SIGN_UP_SECONDS, soak.sign_up),
        (EVENT_SECONDS, soak.report_deliveries),
        (EVENT_SECONDS, soak.confirm),
        (KILL_SECONDS, lambda: soak.kill(next(parts))),
        (LOOK_SECONDS, lambda: soak.look(began)),
    )
    due = [began + one for one, _ in every]
    while time.monotonic() < began + seconds:
        for number, (pause, act) in enumerate(every):
            if time.monotonic() >= due[number]:
                act()
                due[number] += pause
        time.sleep(0.2)


def _settle(soak: Soak) -> Sequence[str]:
    """Nothing more is asked for, and all that was is done; then the books are compared."""
    place = soak.place
    waiting = (
        "select count(*) as n from email_outbox where state in ('PENDING', 'RETRY_SCHEDULED', 'SENT_ATTEMPT')"
    )
    open_letters = "select count(*) as n from campaign_queue where status in ('PENDING', 'PROCESSING')"
    wait_for(lambda: soak.confirm() is None and soak.confirmed == soak.sign_ups, every=1)
    asked = "select count(*) as n from campaign_queue"
    wait_for(lambda: place.rows(asked)[0]["n"] >= soak.letters, every=1)
    wait_for(lambda: not place.rows(waiting)[0]["n"] and not place.rows(open_letters)[0]["n"], every=1)
    soak.report_deliveries()
    waits = "select count(*) as n from events_inbox where applied_at is null"
    wait_for(lambda: not place.rows(waits)[0]["n"], every=1)
    return list(_problems(soak))


def _problems(soak: Soak) -> Sequence[str]:
    place, record = soak.place, soak.place.ses.accepted()
    rows = place.rows("select id, campaign_id, email, state from email_outbox")
    by_state = {state: [row for row in rows if row["state"] == state] for state in {r["state"] for r in rows}}
    sent, unknown = by_state.get("SENT", []), by_state.get("UNKNOWN", [])
    messages = soak.letters * PEOPLE + soak.singles + soak.sign_ups
    ledgers = place.rows(
        "select count(*) as n from campaign_queue"
        " where recipients <> pending + in_flight + sent + failed + suppressed + unknown"
    )
    stuck = _stuck_runs(soak)
    growth = _growth([one.memory_mb for one in soak.looks if one.at > SETTLE_SECONDS])
    found = {
        f"{len(record['messages_twice'])} accepted twice": record["messages_twice"],
        f"{messages - len(rows)} missing": len(rows) < messages,
        f"{len(sent)} recorded as sent, {record['accepted']} accepted": not (
            len(sent) <= record["accepted"] <= len(sent) + len(unknown)
        ),
        f"states {sorted(by_state)}": set(by_state) - {"SENT", "UNKNOWN", "SUPPRESSED"},
        f"{ledgers[0]['n']} ledgers off": ledgers[0]["n"],
        f"memory grew by {growth:.2f}": growth > GROWTH_ALLOWED,
        f"runs that never end: {', '.join(stuck)}": bool(stuck),
    }
    return [words for words, wrong in found.items() if wrong]


def _growth(values: Sequence[float]) -> float:
    """The last third against the first: a kill makes single values jump."""
    third = max(1, len(values) // 3)
    return statistics.median(values[-third:]) / statistics.median(values[:third]) if values else 1.0


def _stuck_runs(soak: Soak) -> Sequence[str]:
    """Runs that are not over and began long ago; the one that waits for single mails lives for an hour."""
    env = environment(soak.place.job.home)
    url = f"{env['PREFECT_API_URL']}/flow_runs/filter"
    asked = {"flow_runs": {"state": {"type": {"any_": ["RUNNING", "PENDING", "CANCELLING"]}}}, "limit": 200}
    runs = (
        httpx.post(url, json=asked, headers=headers(env), trust_env=False, timeout=60)
        .raise_for_status()
        .json()
    )
    long_ago = time.time() - STUCK_SECONDS
    return [
        run["name"]
        for run in runs
        if "drain" not in run["name"]
        and calendar.timegm(time.strptime(run["created"][:19], "%Y-%m-%dT%H:%M:%S")) < long_ago
    ]


def section(soak: Soak, problems: Sequence[str], minutes: float) -> str:
    record = soak.place.ses.accepted()
    unknown = soak.place.rows("select count(*) as n from email_outbox where state = 'UNKNOWN'")[0]["n"]
    settled = [one for one in soak.looks if one.at > SETTLE_SECONDS] or soak.looks
    first, last = settled[0], settled[-1]
    middle = settled[len(settled) // 2]
    rows = [
        ("", f"minute {first.at / 60:.0f}", f"minute {middle.at / 60:.0f}", f"minute {last.at / 60:.0f}"),
        ("---",) * 4,
        ("memory (PSS) of what lasts, MB", *(f"{one.memory_mb:.0f}" for one in (first, middle, last))),
        ("its open files", *(str(one.open_files) for one in (first, middle, last))),
        ("files in its home", *(str(one.files) for one in (first, middle, last))),
        ("their size, MB", *(f"{one.disk_mb:.1f}" for one in (first, middle, last))),
    ]
    told = "as it should be" if not problems else f"**not as it should be: {'; '.join(problems)}**"
    return (
        f"Written by `make soak`: `mailout up` for {minutes:.0f} minutes on SQLite with"
        f" {soak.letters} letters to {PEOPLE} people, {soak.singles:,} single mails, {soak.sign_ups}"
        f" sign-ups and {soak.events:,} delivery reports; a worker, a run, the gateway or Prefect's"
        f" server killed every {KILL_SECONDS / 60:.0f} minutes ({soak.kills} kills)."
        f" {record['accepted']:,} mails accepted, {len(record['messages_twice'])} twice,"
        f" {unknown} unknown: {told}.\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
    )


def main() -> int:
    asked = argparse.ArgumentParser(prog="make soak", description="mailout up for an hour, its parts killed")
    asked.add_argument("--minutes", type=float, default=60.0)
    told = asked.parse_args()
    forget_the_machine()
    with tempfile.TemporaryDirectory(prefix="mailout-soak-") as folder:
        text, problems = run(told.minutes, Path(folder))
    print(text)
    if told.minutes >= 60:
        write_soak(text)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
