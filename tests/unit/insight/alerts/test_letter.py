"""Alerts as a mail."""

from __future__ import annotations

from mailout.insight.alerts.port import Alert, AlertKind
from mailout.insight.alerts.sender import letter
from mailout.letters.content.model import Segments, mark


def alert(n: int, text: str = "Something.\n\nDo this:\n  mailout status") -> Alert:
    return Alert(
        key=f"{n}", kind=AlertKind.QUOTA, subject=f"Subject {n}", text=text, about="quota", name="quota"
    )


def test_one_thing_is_the_letter() -> None:
    content = letter([alert(1)])
    assert content.subject == "Subject 1"
    assert content.text.startswith("Something.\n\nDo this:\n  mailout status\n")
    assert "ADMIN_EMAIL" in content.text


def test_ten_things_are_one_letter() -> None:
    """An account that is refused holds the whole queue: ten letters would be read less than one."""
    content = letter([alert(n) for n in range(1, 11)])
    assert content.subject == "10 things wait for you"
    assert content.text.count("mailout status") == 10
    assert "10. Subject 10\n\nSomething." in content.text


def test_whatever_a_subject_holds_it_is_text() -> None:
    """A mark would be asked for a value, and a tag would be a tag."""
    written = f"<script>alert(1)</script> {mark('unsubscribe_url')} & more"
    content = letter([alert(1, written)])
    assert Segments.of(content.html).names == Segments.of(content.text).names == ()
    assert "<script>" not in content.html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in content.html
    assert "<script>alert(1)</script>" in content.text
