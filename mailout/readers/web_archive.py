"""The archive on the web: which letters are in it, under which names, and who may put one there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from slugify import slugify

from mailout.base.errors import UsageError
from mailout.base.select import Reads, View, every, first
from mailout.letters.content import content_rows
from mailout.letters.content.port import Kind
from mailout.letters.content.variables import by_fallback, without_fallback
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import Queue

SLUG_WORDS_CHARS = 60
SLUG_ID_CHARS = 6


@dataclass(frozen=True, slots=True)
class ArchivedLetter:
    """A letter that is in the archive on the web, or was (`public` is false then)."""

    id: str
    slug: str
    content_hash: str
    subject: str  # with marks where it has variables
    list_key: str
    list_name: str | None
    joinable: bool  # anybody may sign up for its list
    public: bool
    sent_at: float  # when its sending began
    published_at: float | None  # later, by a person
    changed_at: float

    @property
    def title(self) -> str:
        return by_fallback(self.subject)

    @property
    def list_title(self) -> str:
        return self.list_name or self.list_key

    @property
    def updated_at(self) -> float:
        """Of what a reader sees."""
        return max(self.sent_at, self.published_at or 0.0)


WEB_LETTERS = View("read_web_letters", ArchivedLetter, ("id",))


def web_letters(store: Reads) -> Sequence[ArchivedLetter]:
    """All that are or were in the archive, the newest first."""
    return list(every(store, WEB_LETTERS, order=["-sent_at"]))


def web_letter(store: Reads, slug: str) -> ArchivedLetter | None:
    return first(store, WEB_LETTERS, {"slug": slug})


def slug_of(subject: str, id: str) -> str:
    """A letter's name on the web, for good: its subject in ASCII words, and the beginning of its id."""
    words = slugify(by_fallback(subject), max_length=SLUG_WORDS_CHARS, word_boundary=True)
    return "-".join(part for part in (words, id[:SLUG_ID_CHARS]) if part)


def publish(store: Queue, id: str) -> Mailout:
    """Into the archive, from its first message on."""
    mailout = store.mailout(id)
    if mailout.is_test or mailout.is_rehearsal:
        raise UsageError("A test or a rehearsal is never in the archive.", remedy="Publish the real letter.")
    if mailout.kind is Kind.ARTICLE:
        raise UsageError(
            "An article has another text for every place: there is no one page to publish.",
            remedy="Its readers have a link to theirs: View in browser.",
        )
    if mailout.content_hash is None or mailout.slug is None:
        raise UsageError("It has no content yet.", remedy="Wait until it is in the queue with its content.")
    if missing := without_fallback(content_rows.content(store, mailout.content_hash)):
        raise UsageError(
            f"It cannot be public: {', '.join(missing)} has no fallback, so nobody could read it.",
            remedy="In the next letter write what everybody may read: {{ first_name | friend }}.",
        )
    return store.set_public(id, True)


def unpublish(store: Queue, id: str) -> Mailout:
    """Out of the archive. Links in the letters themselves go on working: their readers have it anyway."""
    return store.set_public(store.mailout(id).id, False)
