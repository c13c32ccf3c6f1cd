"""What is written, as the dashboard shows it before it is sent."""

from __future__ import annotations

from pathlib import Path

from mailout.app.drafts import Drafts
from mailout.base.settings import load_settings
from tests.clocks import FakeClock
from tests.environment import SENDER
from tests.new_sqlite import open_new


def test_after_the_clock_was_set_back_an_edit_is_shown(tmp_path: Path) -> None:
    """It was shown hours later, and whoever pressed Send had not seen what went out."""
    clock, file = FakeClock(), tmp_path / "letter.md"
    file.write_text("---\nsubject: Before\n---\nText")
    settings = load_settings(env={"MAILOUT_HOME": str(tmp_path), **SENDER})
    drafts = Drafts(settings, open_new(tmp_path / "mailout.db", clock), clock)
    drafts.read(str(file))
    file.write_text("---\nsubject: After\n---\nText")
    clock.wall -= 7200
    content = drafts.read(str(file)).content
    assert content is not None
    assert content.subject == "After"
