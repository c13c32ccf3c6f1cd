"""From a file to mail: what only a folder may get, what people may, and what they must not."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.app.queue_run import QueueRun
from mailout.base import ids
from mailout.base.errors import Abort, AbortCode, UsageError
from mailout.base.settings import load_settings
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import DeferReason, Status
from tests.clocks import FakeClock
from tests.environment import SENDER
from tests.transports import delivering
from tests.unit.outbox.queue.driving import Quiet

Build = Callable[..., Engine]


@pytest.fixture
def engine_for(tmp_path: Path) -> Iterator[Build]:
    """An engine over one store, which sends to people or to a folder."""
    engines: list[Engine] = []
    clock = FakeClock()

    def build(*, people: bool, **settings: str) -> Engine:
        env = {
            "MAILOUT_HOME": str(tmp_path / "home"),
            **SENDER,
            "SEND_RATE_PER_SEC": "0",
        }
        chosen = load_settings(env=env | settings)
        transport = delivering(chosen, clock) if people else None
        engines.append(wiring.build(chosen, clock, transport=transport))
        engines[-1].store.import_subscribers([SubscriberRow("ana@example.org", "ana@example.org")])
        return engines[-1]

    yield build
    for engine in engines:
        engine.store.close()


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    path = tmp_path / "letter.md"
    path.write_text("---\nid: letter\nsubject: Hello\n---\n\nHow are you?\n", encoding="utf-8")
    return path


def subjects(engine: Engine) -> list[str]:
    files = engine.settings.mailout_home.glob("outbox/*/*.eml")
    read = (email.message_from_bytes(file.read_bytes(), policy=email.policy.default) for file in files)
    return sorted(str(message["Subject"]) for message in read)


def test_a_rehearsed_letter_goes_out_for_real_later(engine_for: Build, letter: Path) -> None:
    folder, real = engine_for(people=False), engine_for(people=True)
    rehearsed = folder.intake.enqueue(str(letter))
    folder.deliver(rehearsed.id)
    with pytest.raises(Abort, match="mailout_already_sent"):
        folder.intake.enqueue(str(letter))
    sent = real.intake.enqueue(str(letter))
    assert (sent.id, sent.is_rehearsal) == (ids.mailout_id("letter"), False)
    real.deliver(sent.id)
    done = real.store.mailout(sent.id)
    assert (done.status, done.ledger.sent) == (Status.COMPLETED, 1), "nor is it held as a duplicate"


def test_neither_transport_goes_on_with_what_is_the_others(engine_for: Build, letter: Path) -> None:
    """A rehearsal that reached people, or a mailout that a folder used up, could not be taken back."""
    folder, real = engine_for(people=False), engine_for(people=True)
    rehearsal, mailout = folder.intake.enqueue(str(letter)).id, real.intake.enqueue(str(letter)).id
    for engine, id in ((real, rehearsal), (folder, mailout)):
        engine.sending.freeze(id)
        with pytest.raises(UsageError):
            engine.sending.start(id)
    assert QueueRun(folder.sending, Quiet(folder)).run() == [rehearsal]
    assert QueueRun(real.sending, Quiet(real)).run() == [mailout]


def test_a_test_says_so_in_its_subject_and_has_the_letters_hash(engine_for: Build, letter: Path) -> None:
    engine = engine_for(people=True)
    test, real = engine.intake.enqueue(str(letter), test=True), engine.intake.enqueue(str(letter))
    for mailout in (test, real):
        engine.deliver(mailout.id)
    assert subjects(engine) == ["Hello", "[Test] Hello"]
    assert test.content_hash == real.content_hash
    written = letter.read_text("utf-8").replace("---\n", "---\nlanguage: es\n", 1)
    letter.write_text(written, encoding="utf-8")
    engine.deliver(engine.intake.enqueue(str(letter), test=True).id)
    assert "[Prueba] Hello" in subjects(engine), "in the letter's own language"


def test_pictures_that_readers_could_not_see_stop_a_mailout_to_people(
    engine_for: Build, letter: Path
) -> None:
    Image.new("RGB", (2, 2)).save(letter.parent / "boat.png")
    letter.write_text(letter.read_text("utf-8") + "\n![A boat](boat.png)\n", encoding="utf-8")
    engine = engine_for(people=True)
    with pytest.raises(Abort) as stopped:
        engine.intake.enqueue(str(letter))
    assert stopped.value.code is AbortCode.MEDIA_UNAVAILABLE
    assert [
        str(error)
        for error in engine.intake.refusals(
            engine.intake.letters.reading(engine.intake.letters.read(str(letter)))
        )
    ] == [str(stopped.value)]
    assert queue_rows.mailouts(engine.store) == []
    engine_for(people=False).intake.enqueue(str(letter))
    engine_for(people=True, PUBLIC_URL="https://mail.example.org").intake.enqueue(str(letter))


def test_with_require_test_only_what_was_tested_is_sent(engine_for: Build, letter: Path) -> None:
    engine = engine_for(people=True, REQUIRE_TEST="true")
    id = engine.intake.enqueue(str(letter)).id
    engine.deliver(id)
    assert engine.store.mailout(id).defer_reason is DeferReason.UNTESTED
    letter.write_text(letter.read_text("utf-8") + "And yours?\n", encoding="utf-8")
    engine.clock.sleep(60)
    engine.deliver(engine.intake.enqueue(str(letter), test=True).id)
    QueueRun(engine.sending, Quiet(engine)).run()
    assert engine.store.mailout(id).defer_reason is DeferReason.UNTESTED, "another content was tested"
    known = engine.intake.enqueue(str(letter))
    assert (known.id, known.defer_reason) == (id, None), "it says what was tested now"
    QueueRun(engine.sending, Quiet(engine)).run()
    assert engine.store.mailout(id).status is Status.COMPLETED


def test_status_says_when_nobody_is_sending(engine_for: Build, letter: Path) -> None:
    engine = engine_for(people=True)
    id = engine.intake.enqueue(str(letter)).id
    engine.sending.freeze(id)
    mailout = engine.sending.start(id)
    started = engine.store.now()
    assert mailout.goes_on_by(started + 30, lease=120) is None, "a living sender is this quiet, too"
    assert mailout.goes_on_by(started + 40, lease=120) == started + 120 + 60
    assert mailout.goes_on_by(started + 500, lease=120) == started + 500 + 60
