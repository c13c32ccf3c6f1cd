"""Lists: `general` is everybody's, every other one needs its row. On every store."""

from __future__ import annotations

from typing import Any

import pytest

from mailout.base.errors import NotFound, UsageError
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.audience.list_changes import add_list, edit_list
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.letters.audience.subscriber_rows import Wanted, matching
from mailout.outbox.delivery.states import State
from mailout.store import Store
from tests.contract.scenes import Sender, enqueue, freeze, states, subscribe

ANN, BOB, CYD = "ann@example.org", "bob@example.org", "cyd@example.org"


@pytest.fixture(autouse=True)
def people(store: Store) -> None:
    subscribe(store, ANN)
    subscribe(store, BOB, lists=("general",))
    subscribe(store, CYD, lists=("events",))


def audience(store: Store, **fields: Any) -> set[str]:
    id = enqueue(store, **fields)
    freeze(store, id)
    return set(states(store, id))


@pytest.mark.parametrize("list_key", [None, "general"])
def test_everybody_is_on_general_whether_they_have_a_row_or_not(store: Store, list_key: str | None) -> None:
    assert store.audience_size(list_key) == 3
    assert subscriber_rows.anybody_on(store, "general")
    assert audience(store, list_key=list_key) == {ANN, BOB, CYD}


@pytest.mark.parametrize("list_key", [None, "general"])
def test_who_has_left_general_gets_no_mailout_without_a_list_either(
    store: Store, list_key: str | None
) -> None:
    store.unsubscribe(ANN, "general")
    store.unsubscribe(BOB, "general")
    assert store.audience_size(list_key) == 1
    assert audience(store, list_key=list_key) == {CYD}


@pytest.mark.parametrize("list_key", [None, "general"])
def test_who_leaves_general_before_their_turn_is_passed_over(store: Store, list_key: str | None) -> None:
    id = enqueue(store, list_key=list_key)
    freeze(store, id)
    store.start(id, "worker")
    store.unsubscribe(BOB, "general")
    begun = {claimed.email for claimed in Sender(store, id).begin(3)}
    assert begun == {ANN, CYD}
    assert states(store, id)[BOB] is State.SUPPRESSED


def test_every_other_list_needs_its_row(store: Store) -> None:
    assert store.audience_size("events") == 1
    assert not subscriber_rows.anybody_on(store, "nobody-is-here")
    assert audience(store, list_key="events") == {CYD}


def test_who_has_left_general_stays_on_their_other_lists(store: Store) -> None:
    store.unsubscribe(CYD, "general")
    assert audience(store, list_key="events") == {CYD}


def test_whoever_comes_back_to_general_gets_mail_again(store: Store) -> None:
    store.unsubscribe(ANN, "general")
    assert store.resubscribe(ANN, "general")
    assert audience(store) == {ANN, BOB, CYD}


def test_nobody_is_on_general_when_all_have_left(store: Store) -> None:
    for person in (ANN, BOB, CYD):
        store.unsubscribe(person, "general")
    assert not subscriber_rows.anybody_on(store, "general")


# ── what lists are called, and how their letters look ──


def test_general_is_there_from_the_start_and_so_is_what_an_import_has_made(store: Store) -> None:
    assert [one.key for one in list_rows.lists(store)] == ["events", "general"]
    events = list_rows.by_key_or_name(store, "events")
    assert (events.name, events.public, events.is_saved) == ("events", False, False)


def test_a_list_comes_back_as_it_was_saved(store: Store) -> None:
    brand = {"color": "#aabbcc", "links": [["Web", "https://example.org"]], "language": "pt-BR"}
    full = List(
        "weekly",
        "Wöchentlich",
        "Jeden “Freitag”.",
        True,
        "Ann",
        "ann@example.org",
        "Weil.",
        brand,
        True,
        "ref",
    )
    store.put(LIST_TABLE, [full])
    store.put(LIST_TABLE, [full])
    assert list_rows.by_key_or_name(store, "weekly") == full
    plain = List("weekly", "Weekly")
    store.put(LIST_TABLE, [plain])
    assert list_rows.list_or_none(store, "weekly") == plain
    assert [one.key for one in list_rows.public_lists(store)] == ["general"]


def test_a_list_is_found_by_key_or_name_and_a_slip_names_the_nearest(store: Store) -> None:
    add_list(store, "weekly", {"name": "Weekly news"})
    for written in ("weekly", " Weekly ", "weekly NEWS"):
        assert list_rows.by_key_or_name(store, written).key == "weekly"
    with pytest.raises(NotFound, match=r"Did you mean Weekly news \(weekly\)\?"):
        list_rows.by_key_or_name(store, "weekly newz")
    with pytest.raises(NotFound, match="mailout lists list"):
        list_rows.by_key_or_name(store, "quite another")


def test_who_describes_a_list_of_an_import_keeps_its_people(store: Store) -> None:
    add_list(store, "events", {"name": "Our events", "public": True})
    assert audience(store, list_key="events") == {CYD}
    with pytest.raises(UsageError, match="already"):
        add_list(store, "events", {})


def test_a_key_that_only_unsubscribed_people_have_is_no_list_any_more(store: Store) -> None:
    store.unsubscribe(CYD, "events")
    with pytest.raises(NotFound):
        list_rows.by_key_or_name(store, "events")


def test_an_edit_changes_what_it_names_alone_and_an_empty_text_takes_away(store: Store) -> None:
    add_list(
        store, "weekly", {"name": "Weekly", "from_name": "Ann", "color": "#abc", "logo": "https://x.org/l"}
    )
    edited = edit_list(store, "Weekly", {"from_name": "", "color": "", "footer": "You asked."})
    assert (edited.from_name, edited.footer, edited.name) == (None, "You asked.", "Weekly")
    assert edited.brand == {"logo": "https://x.org/l"}
    assert list_rows.by_key_or_name(store, "weekly") == edited


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("Our List", {}),
        ("", {}),
        ("new", {"name": "General"}),
        ("new", {"name": "EVENTS"}),
        ("new", {"reply_to": "nobody"}),
        ("new", {"color": "red"}),
        ("new", {"logo": "javascript:x"}),
        ("new", {"from_name": "Ann\nBcc: x@example.org"}),
        ("new", {"name": "x" * 300}),
    ],
)
def test_what_no_list_can_have_is_refused_and_nothing_is_written(
    store: Store, key: str, changes: dict[str, Any]
) -> None:
    with pytest.raises(UsageError):
        add_list(store, key, changes)
    assert len(list_rows.lists(store)) == 2


def test_people_are_found_by_a_list_they_are_on(store: Store) -> None:
    subscribe(store, "ann@example.org")
    subscribe(store, "bob@example.org", lists=("trips", "trips-far"))
    subscribe(store, "cid@example.org", lists=("trips-far",), attributes={"city": "Porto"})
    store.unsubscribe("bob@example.org", "general", None)
    store.unsubscribe("bob@example.org", "trips-far", None)

    def found(key: str, **more: str) -> list[str]:
        emails = (one["email_norm"] for one in matching(store, Wanted(list_key=key, **more)))
        return [email for email in emails if email[:3] in ("ann", "bob", "cid")]

    assert found("trips") == ["bob@example.org"]
    assert found("trips-far") == ["cid@example.org"]
    assert found("general") == ["ann@example.org", "cid@example.org"]
    assert found("general", attribute="city") == ["cid@example.org"]
    assert found("nobody") == []
