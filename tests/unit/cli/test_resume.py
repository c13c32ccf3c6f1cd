"""`mailout queue resume` of a letter that was edited after some people got it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mailout.app import wiring
from mailout.base.ids import mailout_id
from mailout.base.settings import load_settings
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Pace, Result, Step
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.actions import pause
from mailout.outbox.queue.mailout import NewMailout
from tests.environment import SENDER
from tests.unit.cli.conftest import Run

SAID = "and the other 2 will get that text too; the edit is not sent to anybody."


@pytest.fixture
def letter(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Paused after the first of three people."""
    for name, value in {**SENDER, "MAILOUT_HOME": str(folder / "home")}.items():
        monkeypatch.setenv(name, value)
    path = folder / "letter.md"
    path.write_text("---\nsubject: Hello\n---\nThe first text.\n", encoding="utf-8")
    engine = wiring.build(load_settings())
    with closing(engine.store) as store:
        people = ("ana@example.org", "bo@example.org", "cy@example.org")
        store.import_subscribers([SubscriberRow(one, one) for one in people])
        reading = engine.intake.letters.reading(engine.intake.letters.read(str(path)))
        ref = reading.source.ref
        id = mailout_id(ref)
        store.enqueue(NewMailout(id=id, kind=Kind.MARKDOWN, ref=ref, subject="Hello"))
        store.set_content(id, keep_content(store, reading.content), "Hello")
        engine.sending.freeze(id)
        store.start(id, "test")
        session = store.open_session(id, worker="test", transport="ses", lease=10.0)
        step = Step(session=session, n=1, lease=10.0, pace=Pace("ses", 0), want=1)
        (row,) = store.step(step).rows
        sent = Result(row.attempt, State.SENT, provider_message_id="1")
        store.step(Step(session=session, n=2, lease=10.0, pace=step.pace, results=[sent], close=True))
        pause(store, id)
    return path


def test_a_letter_that_nobody_touched_is_resumed_without_a_question(run: Run, letter: Path) -> None:
    assert run("queue", "resume", letter).code == 0


def test_the_terminal_says_that_the_change_reaches_nobody_and_asks(run: Run, letter: Path) -> None:
    letter.write_text("---\nsubject: Hello\n---\nThe corrected text.\n", encoding="utf-8")
    asked = run("queue", "resume", letter)
    assert (asked.code, SAID in asked.err) == (2, True)
    assert run("queue", "show", letter, "--json").data["defer_reason"] == "paused"
    assert run("queue", "resume", letter, "--yes").code == 0
    assert run("queue", "show", letter, "--json").data["defer_reason"] is None
