"""What somebody meets in the first hour: an interruption, no network, how long a rehearsal takes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cli.processes.prefect_api import UP_LOCK
from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.settings import load_settings
from mailout.letters.audience.port import SubscriberRow
from tests.environment import SENDER
from tests.ports import free_port
from tests.unit.cli.conftest import Run

BY_HAND = "it goes on by itself once `mailout up` runs, or now with: mailout send letter.md"


@pytest.fixture
def letter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in SENDER.items():
        monkeypatch.setenv(name, value)
    path = folder / "letter.md"
    path.write_text("---\nsubject: Hello\n---\nHow are you?\n", encoding="utf-8")
    return path


def begun(sender: str) -> str:
    """A mailout that this sender has begun; the id."""
    engine = wiring.build(load_settings())
    with closing(engine.store) as store:
        store.import_subscribers([SubscriberRow("ana@example.org", "ana@example.org")])
        id = engine.sending.freeze(engine.intake.enqueue("letter.md").id).id
        store.start(id, sender)
    return id


def dead_process() -> int:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    return gone.pid


@pytest.mark.usefixtures("letter")
def test_status_says_at_once_that_a_mailout_was_killed_and_how_it_goes_on(run: Run) -> None:
    id = begun(f"{socket.gethostname()}-{dead_process()}")
    for said in (run("status").out, run("status", id).out, run("queue", "show", id).out):
        assert BY_HAND in " ".join(said.split())
        assert "being sent" not in said
    assert BY_HAND in run("status", id, "--json").data["interrupted"]
    for (one,) in (run("status", "--json").data["mailouts"], run("queue", "list", "--json").data):
        assert BY_HAND in one["interrupted"]
        assert one["forecast"] is None


@pytest.mark.usefixtures("letter")
def test_one_that_waits_for_its_turn_says_that_nobody_gives_it_one(run: Run) -> None:
    """It was stopped in order, or a person let it go on: nothing has died."""
    id = begun(f"{socket.gethostname()}-{os.getpid()}")
    with closing(wiring.open_store(load_settings())) as store:
        store.release(id)
    for said in (run("status").out, run("status", id).out, run("queue", "show", id).out):
        assert f"waits for its turn, but nothing is running here; {BY_HAND}" in " ".join(said.split())
        assert "interrupted" not in said
        assert "stopped" not in said
    assert "done by" not in run("status", id).out


def test_a_letter_with_an_id_of_its_own_is_continued_by_its_file(run: Run, letter: Path) -> None:
    """`mailout send one` would not find it."""
    letter.write_text("---\nid: one\nsubject: Hello\n---\nHow are you?\n", encoding="utf-8")
    begun(f"{socket.gethostname()}-{dead_process()}")
    assert "or now with: mailout send FILE.md, the file with `id: one`" in run("status", "one").out


def test_a_test_that_was_interrupted_is_not_continued_with_a_letter_to_everybody(
    run: Run, letter: Path
) -> None:
    letter.write_text("---\ntest: true\nsubject: Hello\n---\nHow are you?\n", encoding="utf-8")
    id = begun(f"{socket.gethostname()}-{dead_process()}")
    said = run("status", id).out
    assert "was interrupted; it goes on by itself once `mailout up` runs" in said
    assert "mailout send" not in said


@pytest.mark.usefixtures("letter")
def test_where_up_runs_an_interrupted_mailout_goes_on_by_itself(run: Run, folder: Path) -> None:
    id = begun(f"{socket.gethostname()}-{dead_process()}")
    hold = "import fcntl, time; fcntl.flock(0, fcntl.LOCK_EX); print(flush=True); time.sleep(600)"
    with (folder / ".mailout" / UP_LOCK).open("w") as lock:
        up = subprocess.Popen([sys.executable, "-c", hold], stdin=lock, stdout=subprocess.PIPE)
        try:
            assert up.stdout is not None
            up.stdout.readline()
            assert "it goes on by itself, by " in " ".join(run("status", id).out.split())
        finally:
            up.kill()
            up.communicate()


@pytest.mark.usefixtures("letter")
def test_one_that_is_being_sent_is_not_called_interrupted(run: Run) -> None:
    begun(f"{socket.gethostname()}-{os.getpid()}")
    assert "being sent" in run("status").out


@pytest.mark.usefixtures("letter")
def test_without_a_network_a_test_says_that_ses_cannot_be_reached(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of trying for minutes. Nothing was begun, so nothing waits."""
    away = {
        "MAILOUT_TRANSPORT": "ses",
        "AWS_ENDPOINT_URL_SESV2": f"http://127.0.0.1:{free_port()}",
        "AWS_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    for name, value in away.items():
        monkeypatch.setenv(name, value)
    ended = run("send", "letter.md", "--test")
    assert ended.code == 1
    assert "Amazon SES cannot be reached" in ended.err
    assert "this machine's network" in ended.err
    with closing(wiring.build(load_settings()).store) as store:
        store.import_subscribers([SubscriberRow("ana@example.org", "ana@example.org")])
    real = run("send", "letter.md", "--yes")
    assert (real.code, "Amazon SES cannot be reached" in real.err) == (2, True)
    assert ".." not in real.err
    assert run("status", "--json").data["mailouts"] == []


@pytest.mark.usefixtures("letter")
@pytest.mark.parametrize(("rate", "seen"), [(None, 0.0), ("5", 5.0), ("0", 0.0)])
def test_a_rehearsal_is_held_to_a_rate_only_if_one_is_set(rate: str | None, seen: float) -> None:
    """Else the first letter to a list of thousands takes minutes for nobody's sake."""
    env = {"MAILOUT_HOME": ".mailout", **SENDER} | ({} if rate is None else {"SEND_RATE_PER_SEC": rate})
    engine: Engine = wiring.build(load_settings(env=env))
    with closing(engine.store):
        assert engine.sending.rate() == seen
        assert engine.queue_forecast.rate == seen


def test_mail_to_people_keeps_the_default_rate() -> None:
    assert load_settings(env={}).send_rate(rehearses=False) == 5
