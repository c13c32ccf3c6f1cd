"""A home with so many subscribers and a letter, for what is measured here."""

from __future__ import annotations

from pathlib import Path

from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.settings import load_settings
from mailout.letters.audience.port import SubscriberRow

LETTER = (
    "---\nid: bench\nsubject: A letter\n---\n\n" + "A paragraph of the usual kind, with a few words. " * 40
)


def engine_with(home: Path, recipients: int, **settings: str) -> tuple[Engine, str]:
    """An engine over a new home, and the path of the letter to send."""
    home.mkdir(parents=True)
    letter = home / "letter.md"
    letter.write_text(LETTER, encoding="utf-8")
    engine = wiring.build(
        load_settings(
            {
                "MAILOUT_HOME": str(home),
                "FROM_EMAIL": "news@example.org",
                "ORG_NAME": "The Gardeners",
                "ORG_ADDRESS": "1 Garden Lane",
                "UNSUBSCRIBE_BASE_URL": "https://example.org/unsubscribe",
                "UNSUBSCRIBE_SECRET": "not a secret",
                "SEND_RATE_PER_SEC": "0",
                **settings,
            }
        )
    )
    for start in range(0, recipients, 20_000):
        people = (f"reader-{n:07}@example.org" for n in range(start, min(recipients, start + 20_000)))
        engine.store.import_subscribers([SubscriberRow(email, email) for email in people])
    return engine, str(letter)
