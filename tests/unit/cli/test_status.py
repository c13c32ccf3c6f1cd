"""`mailout status`: what waits is said, also what is no mailout yet."""

from __future__ import annotations

import fcntl
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from mailout.app import wiring
from mailout.base.clock import SystemClock
from mailout.base.settings import load_settings
from mailout.kinds.articles.order import ArticleOrder
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.single_mails import UNSERVED_SECONDS, SingleMail
from mailout.outbox.queue.mailout import NewMailout
from mailout.outbox.queue.port import Recipient, Request, RequestKind
from tests.clocks import FakeClock
from tests.producer.database import ProducerDatabase
from tests.unit.cli.conftest import Run

BATCH = "7f8bd3c5-1f0d-4e0c-9f7e-0a1b2c3d4e5f"


def ask(seconds_ago: float) -> None:
    order = ArticleOrder.checked("spring", "k4", BATCH, {}, "api")
    with closing(wiring.open_store(load_settings(), FakeClock(wall=time.time() - seconds_ago))) as store:
        store.ask(Request(order.to_ref(), RequestKind.ARTICLE), repeat=60.0)


@pytest.mark.parametrize("command", [("status",), ("queue", "list")])
def test_an_article_that_was_asked_for_and_nothing_takes_up_is_told(
    run: Run, command: tuple[str, ...]
) -> None:
    ask(UNSERVED_SECONDS + 60)
    said = "1 request for a letter or an article waits: nothing takes it up. Start `mailout up`."
    assert said in run(*command).out
    assert [one["how"] for one in run("status", "--json").data["requests"]] == ["article"]
    assert run("queue", "pause", "--all").code == 0
    assert "takes it up" not in run(*command).out


def test_a_letter_that_is_due_and_nobody_sends_is_told(run: Run) -> None:
    """Prefect's worker is dead: it said “planned for” yesterday, and when it would be done."""
    yesterday = time.time() - 86_400
    with closing(wiring.open_store(load_settings(), FakeClock(wall=yesterday))) as store:
        planned = NewMailout(id="spring", kind=Kind.MARKDOWN, ref="spring", subject="Spring")
        store.enqueue(replace(planned, is_rehearsal=True, scheduled_at=yesterday + 3600))
        store.freeze_recipients("spring", [Recipient("ana@example.org")])
    out = run("status").out
    assert "1 letter is due: nothing sends it. Start `mailout up`." in out
    assert "was due" in out
    assert "and nobody has taken it up yet" in out
    assert "planned" not in out
    assert "done by" not in out
    shown = run("queue", "show", "spring").out
    assert "It was due" in shown
    assert "Until it begins, it can be cancelled:" in shown
    assert "done by" not in shown
    assert run("queue", "pause", "--all").code == 0
    assert "nothing sends it" not in run("status").out


def test_one_that_was_asked_for_just_now_is_no_worry(run: Run) -> None:
    ask(5)
    assert "takes it up" not in run("status").out


def test_where_mailout_up_runs_nobody_is_told_to_start_it(run: Run, folder: Path) -> None:
    """Prefect's pool is paused, say: only `doctor` knows."""
    ask(UNSERVED_SECONDS + 60)
    with (folder / ".mailout" / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = run("status").out
    assert "waits: Prefect does not start it. `mailout doctor` says why." in said
    assert "Start `mailout up`" not in said


def test_a_company_at_its_own_limit_is_told_and_so_are_its_mails_and_notifications(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"SOURCE": "seats", "BASE_URL": "https://app.example.org", "DB": str(folder / "producer.db")}
    for name, value in settings.items():
        monkeypatch.setenv(f"NOTIFY_{name}", value)
    monkeypatch.setenv("FROM_EMAIL", "news@example.org")
    ProducerDatabase(folder / "producer.db").many(f"p{n}@example.org" for n in range(3))
    run("companies", "add", "default")
    assert run("companies", "limits", "default", "--per-day", "0").code == 2  # nothing would ever leave
    assert run("companies", "limits", "default", "--per-day", "2").code == 0
    said = "default has used up its limit of this day (2); it goes on at"
    assert said not in run("status").out
    ended = run("notify", "--once", "--in-place")
    assert "2 notifications sent" in ended.out
    assert f"1 notifications wait: {said}" in ended.out + ended.err
    assert said in run("status").out
    id = str(uuid4())
    with closing(wiring.open_store(load_settings(), SystemClock())) as store:
        content = Content("Hello", "<p>Hello</p>", "Hello")
        store.accept_single_mails(
            [
                SingleMail(
                    id=id,
                    company_id="default",
                    request_id=None,
                    email="ana@example.org",
                    content=content,
                    is_rehearsal=True,
                )
            ]
        )
    assert said in run("status", "--message", id).out
    run("queue", "pause", "--all")
    assert "Everything is paused." in run("status", "--message", id).out
