"""Alerts as one mail, however many there are."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mailout.insight.alerts.port import Alert
from mailout.letters.content.model import Content, clean

MAX_ALERTS = 20
"""In one letter; the others follow in the next."""
CLOSING = (
    "You get this because ADMIN_EMAIL is set to this address. While something lasts you hear of it once a"
    " day at most, for a week; what is put right is not repeated."
)


def letter(alerts: Sequence[Alert]) -> Content:
    """Plain text, and the same as the simplest HTML."""
    if len(alerts) == 1:
        subject, text = alerts[0].subject, alerts[0].text
    else:
        subject = f"{len(alerts)} things wait for you"
        text = "\n\n\n".join(
            f"{number}. {alert.subject}\n\n{alert.text}" for number, alert in enumerate(alerts, 1)
        )
    text = clean(f"{text}\n\n-- \n{CLOSING}\n")
    return Content(subject=clean(subject), html=_html(text), text=text)


def _html(text: str) -> str:
    """As it was written: commands on lines of their own, and nothing that a subject could add."""
    return (
        '<!doctype html><html><head><meta charset="utf-8"></head><body>'
        '<div style="white-space:pre-wrap;font:15px/1.5 sans-serif;max-width:40em">'
        f"{escape(text)}</div></body></html>"
    )
