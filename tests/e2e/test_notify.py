"""`mailout notify` as a person runs it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.chaos.senders import PATIENCE, PROJECT, wait_for
from tests.producer.database import ProducerDatabase


class Place:
    def __init__(self, folder: Path) -> None:
        self.producer = ProducerDatabase(folder / "producer.db")
        self.folder = folder
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.env = {
            **kept,
            "PYTHONPATH": str(PROJECT),
            "MAILOUT_HOME": str(folder / "home"),
            "FROM_EMAIL": "seats@example.org",
            "SEND_RATE_PER_SEC": "0",
            "NOTIFY_SOURCE": "seats",
            "NOTIFY_BASE_URL": "https://app.example.org",
        }

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "cli", "notify", *arguments],
            cwd=self.folder,
            env={**self.env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __call__(self, *arguments: str, **env: str) -> tuple[int, str]:
        process = self.start(*arguments, **env)
        output, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, output

    def mails(self) -> int:
        return len(list((self.folder / "home" / "outbox").glob("*/*.eml")))


@pytest.fixture
def notify(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_rehearsal_marks_a_copy_and_writes_the_same_mail_once(notify: Place) -> None:
    notify.producer.many(["ana@example.org", "bo@example.org"])
    before = notify.producer.rows()
    for _ in range(2):
        code, output = notify("--db", "producer.db", "--once")
        assert (code, notify.mails()) == (0, 2), output
        assert "2 notifications sent" in output
    assert notify.producer.rows() == before
    code, output = notify("--db", "producer.db", "--once", "--in-place")
    assert {row["fanout_status"] for row in notify.producer.rows()} == {"sent"}, output
    assert notify("requeue", "1", "--db", "producer.db", "--in-place")[0] == 0
    assert [row["fanout_status"] for row in notify.producer.rows()] == ["pending", "sent"]


def test_its_exit_code_says_whether_some_still_have_to_wait(notify: Place) -> None:
    notify.producer.one("ana@example.org", metadata={"preferences": {"snoozeUntil": "2999-01-01T00:00:00Z"}})
    notify.producer.one("bo@example.org", event={"dedupe_key": "other"})
    code, output = notify("--db", "producer.db", "--once", "--json")
    assert (code, json.loads(output)) == (
        75,
        {"sent": 1, "skipped": 0, "failed": 0, "retried": 0, "waiting": 1, "problems": []},
    )
    notify.producer.sql("UPDATE subscriptions SET metadata = NULL")
    code, output = notify("--db", "producer.db", "--once")
    assert (code, notify.mails()) == (0, 2), output


def test_a_locked_database_is_told_to_who_must_try_again(notify: Place) -> None:
    """Of --once nothing is tried again; cron learns from the code that it is to."""
    notify.producer.one()
    with closing(sqlite3.connect(notify.folder / "producer.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for arguments in (["--once"], ["requeue", "1"]):
            code, output = notify(*arguments, "--db", "producer.db", "--in-place")
            assert (code, "is locked by another program. Try again in a minute." in output) == (75, True)
    assert [row["fanout_status"] for row in notify.producer.rows()] == ["pending"]


def test_a_rehearsal_requeues_no_row_of_the_producer_unasked(notify: Place) -> None:
    """A worker that really sends would send it again, to somebody who has it."""
    notify.producer.one()
    notify("--db", "producer.db", "--once", "--in-place")
    code, output = notify("requeue", "1", "--db", "producer.db")
    assert (code, "--in-place" in output) == (2, True), output
    assert [row["fanout_status"] for row in notify.producer.rows()] == ["sent"]


def test_without_its_settings_it_does_not_start(notify: Place) -> None:
    notify.producer.one()
    for name in ("NOTIFY_SOURCE", "NOTIFY_BASE_URL"):
        code, output = notify("--db", "producer.db", "--once", **{name: ""})
        assert (code, f"{name}: is missing" in output) == (2, True), output
    assert notify.mails() == 0


@pytest.mark.parametrize(
    ("name", "wrong", "remedy"),
    [
        ("NOTIFY_TEMPLATE_VERSION", "v11", "Set it to v1"),
        ("NOTIFY_LOCALE", "de-DE", "Set it to en-US or es-US or zh-CN"),
    ],
)
def test_a_mistyped_template_ends_no_row(notify: Place, name: str, wrong: str, remedy: str) -> None:
    """One setting would have failed the producer's whole queue."""
    notify.producer.many(["ana@example.org", "bo@example.org"])
    before = notify.producer.rows()
    code, output = notify("--db", "producer.db", "--once", "--in-place", **{name: wrong})
    assert (code, f"{name}: " in output, wrong in output, remedy in output) == (2, True, True, True), output
    assert notify.producer.rows() == before


def test_a_template_in_the_language_of_its_subscriptions_is_enough(notify: Place) -> None:
    """Nobody has chosen NOTIFY_LOCALE; and the folder may be a link, as a container mounts it."""
    real = notify.folder / "elsewhere" / "de-DE"
    real.mkdir(parents=True)
    for name in ("subject.txt.j2", "body.html.j2", "footer.html.j2", "body.txt.j2"):
        (real / name).write_text("News", encoding="utf-8")
    template = notify.folder / "home" / "templates" / "open-seat"
    template.mkdir(parents=True)
    (template / "v2").symlink_to(real.parent)
    code, output = notify("--db", "producer.db", "--once", "--in-place", NOTIFY_TEMPLATE_VERSION="v2")
    assert code == 0, output


def test_a_template_that_lacks_a_file_ends_no_row(notify: Place) -> None:
    folder = notify.folder / "home" / "templates" / "open-seat" / "v2" / "en-US"
    folder.mkdir(parents=True)
    for name in ("subject.txt.j2", "body.html.j2", "footer.html.j2"):
        (folder / name).write_text("News", encoding="utf-8")
    notify.producer.one()
    code, output = notify("--db", "producer.db", "--once", "--in-place", NOTIFY_TEMPLATE_VERSION="v2")
    assert (code, "v2 en-US has no body.txt.j2" in output) == (2, True), output
    assert [row["fanout_status"] for row in notify.producer.rows()] == ["pending"]
    (folder / "body.txt.j2").write_text("News", encoding="utf-8")
    assert notify("--db", "producer.db", "--once", "--in-place", NOTIFY_TEMPLATE_VERSION="v2")[0] == 0


def test_it_sends_as_they_come_and_ends_when_it_is_asked_to(notify: Place) -> None:
    process = notify.start("--db", "producer.db", "--in-place")
    for n in range(2):
        notify.producer.one(f"p{n}@example.org", event={"dedupe_key": str(n)})
        assert wait_for(lambda n=n: notify.mails() == n + 1, process)  # type: ignore[misc]
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    assert {row["fanout_status"] for row in notify.producer.rows()} == {"sent"}
