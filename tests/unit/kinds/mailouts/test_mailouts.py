"""What was validated is what is enqueued: read once, rendered once, its pictures stored once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from mailout.adapters.markdown_file import MarkdownFiles
from mailout.base.errors import Abort, AbortCode, UsageError
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.port import SourceMailout
from mailout.outbox.queue import queue_rows
from tests.unit.outbox.queue.driving import Drive, drive


class Counting(MarkdownFiles):
    """Counts what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: Counter[str] = Counter()

    def load(self, ref: str) -> SourceMailout:
        self.read["page"] += 1
        loaded = super().load(ref)

        def read_media(source: str) -> bytes:
            self.read["picture"] += 1
            return loaded.read_media(source)

        return replace(loaded, read_media=read_media)


@pytest.fixture
def source() -> Counting:
    return Counting()


@pytest.fixture
def made(tmp_path: Path, source: Counting) -> Drive:
    made = drive(tmp_path / "home", source_of=lambda ref: source, PUBLIC_URL="https://mail.example.org")
    made.store.import_subscribers([SubscriberRow("ana@example.org", "ana@example.org")])
    return made


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    Image.new("RGB", (4, 4)).save(tmp_path / "boat.png")
    path = tmp_path / "letter.md"
    path.write_text("---\nsubject: Hello\n---\n![A boat](boat.png)\n", encoding="utf-8")
    return path


def test_what_was_validated_is_neither_read_nor_stored_again(
    made: Drive, source: Counting, letter: Path
) -> None:
    id = made.engine.intake.validate(str(letter))
    announced = made.engine.intake.announcement(str(letter))
    letter.write_text("---\nsubject: Changed meanwhile\n---\nOther words.\n", encoding="utf-8")
    mailout = made.engine.intake.enqueue(str(letter))
    assert announced is not None
    assert (mailout.id, mailout.subject, announced.people) == (id, "Hello", 1)
    assert source.read == {"page": 1, "picture": 1}


def test_it_is_used_once_and_a_later_test_reads_the_file_again(
    made: Drive, source: Counting, letter: Path
) -> None:
    made.engine.intake.validate(str(letter), test=True)
    made.engine.intake.enqueue(str(letter), test=True)
    letter.write_text("---\nsubject: Second thoughts\n---\nOther words.\n", encoding="utf-8")
    assert made.engine.intake.enqueue(str(letter), test=True).subject == "Second thoughts"
    assert source.read["page"] == 2


def test_who_asks_for_another_text_than_the_one_that_waits_is_told_so(made: Drive, letter: Path) -> None:
    """They would agree to one letter, and people would get another."""
    intake, written = made.engine.intake, letter.read_text("utf-8")
    id = intake.enqueue(str(letter)).id
    assert intake.validate(str(letter)) == id
    letter.write_text("---\nsubject: February\n---\nOther words.\n", encoding="utf-8")
    with pytest.raises(UsageError, match="waits in the queue as “Hello”, with another") as refused:
        intake.validate(str(letter))
    assert "mailout queue cancel letter.md, then send again" in str(refused.value.remedy)
    assert made.store.mailout(id).subject == "Hello"
    made.store.cancel(id)
    assert intake.validate(str(letter)) == id
    about = intake.announcement(str(letter))
    assert about is not None
    assert (about.subject, about.people) == ("February", 1)
    assert intake.enqueue(str(letter)).subject == "February"
    letter.write_text(written, encoding="utf-8")
    with pytest.raises(UsageError, match="as “February”"):
        intake.validate(str(letter))


def test_a_missing_subject_is_named_before_a_missing_footer(tmp_path: Path, letter: Path) -> None:
    """Seed 000's order of checks: its error codes are what people look for."""
    made = drive(tmp_path / "bare", ORG_NAME="")
    made.store.import_subscribers([SubscriberRow("ana@example.org", "ana@example.org")])
    letter.write_text("---\nsubject:\n---\nWords.\n", encoding="utf-8")
    with pytest.raises(Abort) as refused:
        made.engine.intake.validate(str(letter))
    assert refused.value.code is AbortCode.SUBJECT_REQUIRED


def test_killed_at_any_point_a_letter_is_never_in_the_queue_without_its_content(
    made: Drive, letter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever took it up then would fail it for everybody, and for good."""

    class Killed(BaseException):
        pass

    acts = ("put", "enqueue", "set_content", "discard_unbegun")
    done = []
    for n in range(6):  # the content and what was found in it are both put
        count = iter(range(100))
        for act in acts:
            real = getattr(type(made.store), act)

            def may_die(
                *args: object, real: Any = real, n: int = n, count: Any = count, **more: object
            ) -> Any:
                if next(count) >= n:
                    raise Killed
                return real(made.store, *args, **more)

            monkeypatch.setattr(made.store, act, may_die)
        try:
            done.append(made.engine.intake.enqueue(str(letter)).id)
        except Killed:
            done.append("")
        for one in queue_rows.mailouts(made.store):
            assert one.content_hash is not None
    assert done[0] == ""
    assert done[-1]


def test_a_test_asked_for_again_while_the_same_one_waits_is_that_one(made: Drive, letter: Path) -> None:
    """The first answer was lost: else the queue mails a second copy later."""
    intake = made.engine.intake
    first = intake.enqueue(str(letter), test=True)
    assert intake.enqueue(str(letter), test=True) == first
    letter.write_text("---\nsubject: Another text\n---\nHello.\n", encoding="utf-8")
    assert intake.enqueue(str(letter), test=True).id != first.id
