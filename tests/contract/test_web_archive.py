"""Letters on the web: which are public, since when, and under which name. On every store."""

from __future__ import annotations

import pytest

from mailout.base.errors import NotFound, UsageError
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.port import Kind
from mailout.readers import web_archive
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import NOWHERE
from tests.contract.stores import StoreFactory
from tests.gateway.letters import content_of, letter, send


def shown(store: Store) -> list[str]:
    return [one.title for one in web_archive.web_letters(store) if one.public]


def test_a_list_says_whether_its_letters_are_public_and_a_letter_may_say_otherwise(store: Store) -> None:
    store.put(LIST_TABLE, [List("weekly", "Weekly", archive=True)])
    letter(store, "By its list", list_key="weekly", public=None)
    letter(store, "Not this one", list_key="weekly", public=False)
    letter(store, "Of no list", public=None)
    letter(store, "Of a list that nobody described", list_key="events", public=None)
    letter(store, "By itself", public=True)
    assert set(shown(store)) == {"By itself", "By its list"}


def test_a_letter_is_on_the_web_from_its_first_message_on(store: Store) -> None:
    id = letter(store, "Soon", sent=False)
    assert store.mailout(id).public
    assert shown(store) == []
    send(store, id)
    assert shown(store) == ["Soon"]


def test_tests_and_rehearsals_are_never_in_the_archive(store: Store) -> None:
    letter(store, "Test", is_test=True)
    letter(store, "Rehearsal", is_rehearsal=True)
    assert web_archive.web_letters(store) == []


def test_publishing_and_unpublishing_keep_their_times_and_doing_it_twice_changes_nothing(
    store: Store, factory: StoreFactory
) -> None:
    id = letter(store, "News", public=False)
    assert web_archive.web_letters(store) == []
    factory.set_now(NOON + 100)
    published = web_archive.publish(store, id)
    assert (published.public, published.published_at, published.unpublished_at) == (True, NOON + 100, None)
    factory.set_now(NOON + 200)
    assert web_archive.publish(store, id) == published
    gone = web_archive.unpublish(store, id)
    assert (gone.public, gone.published_at, gone.unpublished_at) == (False, NOON + 100, NOON + 200)
    factory.set_now(NOON + 300)
    assert web_archive.unpublish(store, id) == gone
    (known,) = web_archive.web_letters(store)
    assert (known.public, known.changed_at, known.sent_at) == (False, NOON + 200, NOON)
    factory.set_now(NOON + 400)
    web_archive.publish(store, id)
    (known,) = web_archive.web_letters(store)
    assert (known.public, known.changed_at, known.updated_at) == (True, NOON + 400, NOON + 400)


def test_a_letter_keeps_its_name_whatever_its_subject_becomes(store: Store) -> None:
    id = letter(store, "Größe & Ärger: Привет, {{ first_name | friend }}!", sent=False)
    slug = store.mailout(id).slug
    assert slug == f"grosse-arger-privet-friend-{id[:6]}"
    other = content_of("Another subject")
    store.set_content(id, keep_content(store, other), other.subject, replace=True)
    send(store, id)
    (known,) = web_archive.web_letters(store)
    assert (known.title, known.slug) == ("Another subject", slug)
    assert web_archive.web_letter(store, slug) == known
    assert web_archive.web_letter(store, "another-subject") is None


def test_what_has_no_page_for_everybody_cannot_be_published(store: Store) -> None:
    named = letter(store, "Dear {{ first_name }}", public=False)
    trial = letter(store, "Trial", is_test=True, public=False)
    rehearsal = letter(store, "Rehearsal", is_rehearsal=True, public=False)
    article = letter(store, "Article", kind=Kind.ARTICLE, public=False)
    for id, why in (
        (named, r"\{\{ first_name \}\} has no fallback"),
        (trial, "test"),
        (rehearsal, "rehearsal"),
        (article, "article"),
    ):
        with pytest.raises(UsageError, match=why):
            web_archive.publish(store, id)
        assert not store.mailout(id).public
    for act in (web_archive.publish, web_archive.unpublish):
        with pytest.raises(NotFound):
            act(store, NOWHERE)


def test_letters_are_listed_with_their_lists_the_newest_first(store: Store, factory: StoreFactory) -> None:
    store.put(LIST_TABLE, [List("weekly", "Weekly <news>", public=True)])
    letter(store, "First")
    factory.set_now(NOON + 60)
    letter(store, "Second", list_key="weekly")
    newest, oldest = web_archive.web_letters(store)
    assert (newest.title, newest.list_key, newest.list_title, newest.joinable) == (
        "Second",
        "weekly",
        "Weekly <news>",
        True,
    )
    assert (oldest.title, oldest.list_key, oldest.list_title) == ("First", "general", "General")
