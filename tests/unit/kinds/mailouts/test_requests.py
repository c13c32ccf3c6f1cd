"""What is asked for from outside is answered, and nothing that can be asked for stops the queue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from mailout.adapters.markdown_file import MarkdownFiles
from mailout.base import error_log
from mailout.base.errors import SourceUnavailable, UsageError
from mailout.insight.history import notion_troubles
from mailout.kinds.mailouts.requests import answer, enqueue_ready, enqueue_requested
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.port import SourceMailout
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.port import Request
from tests.unit.outbox.queue.driving import Drive, drive


class Strange(MarkdownFiles):
    """A source in which something goes wrong that nobody has thought of."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def load(self, ref: str):
        if ref == "strange.md":
            raise self.error
        return super().load(ref)


def asked_for(tmp_path: Path, error: Exception) -> Drive:
    """Somebody has asked for a strange mailout and, later, for a plain one."""
    letter = tmp_path / "letter.md"
    letter.write_text("---\nsubject: Hello\n---\nHow are you?\n")
    made = drive(tmp_path, source_of=lambda ref: Strange(error))
    made.store.import_subscribers([SubscriberRow("ana@example.org", "ana@example.org")])
    for ref in ("strange.md", str(letter)):
        made.store.ask(Request.of(ref), repeat=60)
        made.clock.sleep(60)
    return made


def test_a_request_that_breaks_what_reads_it_stops_no_other(tmp_path: Path) -> None:
    """Unanswered, it would break every run of the queue from then on, and nothing would be sent any more."""
    made = asked_for(tmp_path, ZeroDivisionError("oh"))
    assert [mailout.ref for mailout in enqueue_requested(made.engine.intake)] == ["letter.md"]
    assert queue_rows.asked(made.store, waiting=0) == []
    told = [(error.mailout, error.code, error.message) for error in error_log.errors(made.store)]
    assert told == [("strange.md", "cannot_be_sent", "ZeroDivisionError: oh")]


def test_a_source_that_is_away_is_asked_again(tmp_path: Path) -> None:
    made = asked_for(tmp_path, SourceUnavailable())
    assert len(enqueue_requested(made.engine.intake)) == 1
    assert queue_rows.asked(made.store, waiting=0) == [Request.of("strange.md")]


def test_what_was_asked_for_and_stays_away_is_told_until_it_is_there(tmp_path: Path) -> None:
    made = asked_for(tmp_path, SourceUnavailable("The file's host is away."))
    intake = made.engine.intake

    def look() -> list[tuple[str, str]]:
        enqueue_ready(intake)  # which finds no Notion here
        enqueue_requested(intake)
        return [(one.page, one.why) for one in notion_troubles.lasting(made.store)]

    assert look() == []
    made.clock.sleep(601)
    assert look() == [("strange.md", "The file's host is away.")]
    notion_troubles.keep(made.store, notion_troubles.PAGE, {"strange.md": SourceUnavailable()})
    made.clock.sleep(601)
    assert len(notion_troubles.lasting(made.store)) == 1
    made.store.answered(Request.of("strange.md"))
    assert look() == []


def test_a_file_host_that_is_away_is_asked_again(tmp_path: Path) -> None:
    """Seconds without it would end a letter for good."""
    away = True

    class Hosted(MarkdownFiles):
        def load(self, ref: str) -> SourceMailout:
            def read(source: str) -> bytes:
                if away:
                    raise SourceUnavailable("the file's host answered 503")
                return picture.read_bytes()

            return replace(super().load(ref), read_media=read)

    letter, picture = tmp_path / "letter.md", tmp_path / "boat.png"
    letter.write_text("---\nsubject: Hello\n---\nHow are you? ![A boat](boat.png)\n")
    Image.new("RGB", (9, 9)).save(picture)
    made = drive(tmp_path, source_of=lambda ref: Hosted(), PUBLIC_URL="https://mail.example.org")
    made.store.import_subscribers([SubscriberRow("ana@example.org", "ana@example.org")])
    made.store.ask(Request.of(str(letter)), repeat=60)
    made.clock.sleep(60)
    assert enqueue_requested(made.engine.intake) == []
    assert queue_rows.asked(made.store, waiting=0)
    away = False
    assert [one.ref for one in enqueue_requested(made.engine.intake)] == ["letter.md"]


def test_what_its_flow_cannot_send_is_written_down_as_what_the_queue_cannot(tmp_path: Path) -> None:
    """Whoever asked got an answer long ago: the errors database is where they learn of it."""
    made = drive(tmp_path)
    with pytest.raises(UsageError):
        answer(made.engine.intake, Request.of("gone.md"))
    (told,) = error_log.errors(made.store)
    assert (told.mailout, told.code) == ("gone.md", "cannot_be_sent")


@pytest.mark.parametrize("ref", ["a\0b.md", "x" * 5000 + ".md", "folder.md"])
def test_a_file_that_cannot_be_read_is_answered_for(tmp_path: Path, ref: str) -> None:
    made = drive(tmp_path)
    made.store.ask(Request.of(ref), repeat=60)
    made.clock.sleep(60)
    assert enqueue_requested(made.engine.intake) == []
    assert queue_rows.asked(made.store, waiting=0) == []
