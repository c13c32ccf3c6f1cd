"""Subscribers: what an import may change, and how the list is read."""

from __future__ import annotations

import sqlite3
from itertools import permutations

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailout.base.errors import NotFound
from mailout.base.ids import uuid_of
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import PRIORITY, ImportCounts, SubscriberRow
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received
from mailout.store import Store
from tests.clocks import NOON, FakeClock
from tests.contract.scenes import subscribe
from tests.contract.stores import StoreFactory
from tests.contract.test_join import confirmation
from tests.ses_events import ses_event

ANN, BOB = "ann@example.org", "bob@example.org"
STATUSES = list(PRIORITY)


def row(email: str = ANN, **fields: object) -> SubscriberRow:
    return SubscriberRow(email, email, **fields)  # type: ignore[arg-type]


def test_a_new_subscriber_is_written_as_the_file_has_them(store: Store) -> None:
    counts = store.import_subscribers(
        [
            SubscriberRow(
                "Ann@Example.org",
                ANN,
                from_name="Ann's shop",
                ocd_ids=["ocd-division/country:us"],
                attributes={"город": "Пермь"},
                lists=["weekly", "daily"],
            )
        ]
    )
    found = subscriber_rows.subscriber(store, ANN)
    assert counts == ImportCounts(added=1)
    assert (found["email"], found["email_norm"], found["status"]) == ("Ann@Example.org", ANN, "active")
    assert (found["from_name"], found["created_at"]) == ("Ann's shop", NOON)
    assert (found["ocd_ids"], found["attributes"]) == (["ocd-division/country:us"], {"город": "Пермь"})
    assert [(entry["list_key"], entry["unsubscribed_at"]) for entry in found["lists"]] == [
        ("daily", None),
        ("weekly", None),
    ]


@pytest.mark.parametrize("known", STATUSES)
@pytest.mark.parametrize("incoming", STATUSES)
def test_an_import_never_lowers_a_status(store: Store, known: str, incoming: str) -> None:
    """An old file must not bring back who has left."""
    subscribe(store, ANN, status=known)
    counts = store.import_subscribers([row(status=incoming)])
    kept = PRIORITY[incoming] < PRIORITY[known]
    assert subscriber_rows.subscriber(store, ANN)["status"] == (known if kept else incoming)
    assert counts.kept_status == int(kept)


@pytest.mark.parametrize("order", list(permutations(STATUSES)))
def test_twice_in_one_file_the_stronger_status_stays(store: Store, order: tuple[str, ...]) -> None:
    store.import_subscribers([row(status=status) for status in order])
    assert subscriber_rows.subscriber(store, ANN)["status"] == "bounced"


def test_a_bounce_brings_its_type(store: Store) -> None:
    subscribe(store, ANN)
    store.import_subscribers([row(status="bounced", bounce_type="Permanent", bounce_subtype="General")])
    store.import_subscribers([row(status="active", bounce_type="Transient")])
    found = subscriber_rows.subscriber(store, ANN)
    assert (found["bounce_type"], found["bounce_subtype"]) == ("Permanent", "General")


def test_a_second_import_adds_to_what_is_known(store: Store, factory: StoreFactory) -> None:
    """A file with fewer columns must not empty the others."""
    store.import_subscribers(
        [row(from_name="Shop", ocd_ids=["a"], attributes={"city": "Rome", "tier": "1"}, lists=["weekly"])]
    )
    factory.set_now(NOON + 60)
    store.import_subscribers([row(attributes={"tier": "2", "lang": "it"}, lists=["daily"])])
    found = subscriber_rows.subscriber(store, ANN)
    assert found["attributes"] == {"city": "Rome", "tier": "2", "lang": "it"}
    assert (found["from_name"], found["ocd_ids"], found["created_at"]) == ("Shop", ["a"], NOON)
    assert [entry["list_key"] for entry in found["lists"]] == ["daily", "weekly"]
    store.import_subscribers([row(from_name="New shop")])
    assert subscriber_rows.subscriber(store, ANN)["from_name"] == "New shop"


def test_an_import_does_not_subscribe_anew_who_left_a_list(store: Store, factory: StoreFactory) -> None:
    subscribe(store, ANN, lists=["weekly"])
    factory.raw("UPDATE subscriptions SET unsubscribed_at = ?", (NOON,))
    counts = store.import_subscribers([row(lists=["weekly"])])
    (entry,) = subscriber_rows.subscriber(store, ANN)["lists"]
    assert entry["unsubscribed_at"] is not None
    assert (counts.updated, counts.unchanged) == (0, 1)


def test_the_counts_tell_what_changed(store: Store) -> None:
    """A person checks an import by them."""
    subscribe(store, "same@example.org", "named@example.org", "listed@example.org")
    subscribe(store, "gone@example.org", status="unsubscribed")
    counts = store.import_subscribers(
        [
            row("same@example.org"),
            row("named@example.org", from_name="Shop"),
            row("listed@example.org", lists=["weekly"]),
            row("gone@example.org"),
            row("new@example.org"),
        ]
    )
    assert counts == ImportCounts(added=1, updated=2, unchanged=2, kept_status=1)


def test_the_same_file_again_changes_nothing(store: Store, factory: StoreFactory) -> None:
    rows = [row(ANN, attributes={"b": "1", "a": "2"}, ocd_ids=["x"], lists=["weekly"]), row(BOB)]
    store.import_subscribers(rows)
    before = subscriber_rows.subscribers(store)
    factory.set_now(NOON + 60)
    assert store.import_subscribers(rows) == ImportCounts(unchanged=2)
    assert subscriber_rows.subscribers(store) == before


def test_nothing_imported_is_nothing_changed(store: Store) -> None:
    assert store.import_subscribers([]) == ImportCounts()


def test_the_list_is_read_by_key_past_a_thousand(store: Store) -> None:
    """An API that caps its answers would leave out everybody after the first thousand."""
    emails = [f"p{number:05}@example.org" for number in range(2345)]
    subscribe(store, *reversed(emails), lists=["weekly"])
    read, after = [], ""
    while page := subscriber_rows.subscribers(store, after=after):
        read += [found["email_norm"] for found in page]
        after = read[-1]
        assert len(page) <= 1000
        assert page[0]["lists"] == ["weekly"]
    assert read == emails
    assert subscriber_rows.subscriber_counts(store) == {"active": 2345, "unsubscribed": 0, "bounced": 0}
    assert len(subscriber_rows.subscribers(store, limit=7)) == 7


def test_a_list_has_somebody_on_it_while_one_active_subscriber_has_not_left_it(store: Store) -> None:
    """A letter to a list whose name was mistyped would be done, sent to nobody, and never be sent again."""
    subscribe(store, ANN, BOB, lists=["weekly"])
    assert (subscriber_rows.anybody_on(store, "weekly"), subscriber_rows.anybody_on(store, "weakly")) == (
        True,
        False,
    )
    store.unsubscribe(ANN, "weekly")
    assert subscriber_rows.anybody_on(store, "weekly")
    subscribe(store, BOB, status="bounced")
    assert not subscriber_rows.anybody_on(store, "weekly")


def test_a_subscriber_who_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(NotFound, match="nobody@"):
        subscriber_rows.subscriber(store, "nobody@example.org")


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(STATUSES), st.booleans()), min_size=1, max_size=6))
def test_in_any_order_the_strongest_word_wins(factory: StoreFactory, words: list[tuple[str, bool]]) -> None:
    """Whether a file says it, SES, or the person."""
    store = factory.make(FakeClock())
    subscribe(store, ANN)
    for number, (status, imported) in enumerate(words):
        if imported or status == "active":
            store.import_subscribers([row(status=status)])
        elif status == "unsubscribed":
            store.unsubscribe(ANN, None)
        else:
            store.receive_events([Received(uuid_of("sns", str(number)), "sns", ses_event("Bounce", ANN))])
            ingest(store, "smart")
    assert subscriber_rows.subscriber(store, ANN)["status"] == max(
        (word for word, _ in words), key=PRIORITY.__getitem__
    )


def test_the_list_can_be_narrowed_to_a_status_and_to_a_part_of_the_address_or_the_name(store: Store) -> None:
    store.import_subscribers(
        [
            row(ANN, attributes={"first_name": "Анна", "last_name": "Öst"}),
            row(BOB, status="unsubscribed", attributes={"name": "Bob 100%_Ö"}),
            row("cy@shop.example", attributes={"note": "bob"}),
        ]
    )

    def found(**narrowed: str) -> list[str]:
        return [one["email_norm"] for one in subscriber_rows.subscribers(store, **narrowed)]  # type: ignore[arg-type]

    assert found(status="unsubscribed") == [BOB]
    assert found(search="EXAMPLE.org") == [ANN, BOB]
    assert (found(search="анна ö"), found(search="100%_ö"), found(search="bob")) == ([ANN], [BOB], [BOB])
    assert found(status="active", search="bob") == []
    assert found(search="b_b") == []  # no pattern
    assert found(after=ANN, search="example.org") == [BOB]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("attributes", one) for one in ('"scalar"', "[]", "7", None)),
        *(("ocd_ids", one) for one in ('"x"', "{}", None)),
        *(("hard_status", one) for one in ("bounced", "nonsense")),
    ],
)
def test_a_row_that_no_letter_could_use_is_refused_by_the_table(
    store: Store, factory: StoreFactory, column: str, value: str | None
) -> None:
    """Whoever writes into the table by hand is told at once, not by a letter that fails."""
    subscribe(store, "ann@example.org")
    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
        factory.raw(f"UPDATE subscribers SET {column} = ?", (value,))


def test_people_are_found_by_an_attribute_and_its_value(store: Store) -> None:
    store.import_subscribers(
        [
            row(ANN, attributes={"city": "Lisbon", "name": "Ann"}),
            row(BOB, attributes={"city": "Porto"}, status="unsubscribed"),
            row("cy@example.org", attributes={"city": " "}),
        ]
    )

    def found(**wanted: str) -> list[str]:
        return [one["email_norm"] for one in subscriber_rows.subscribers(store, **wanted)]  # type: ignore[arg-type]

    assert found(attribute="city") == [ANN, BOB]
    assert found(attribute="city", value="LISBON") == [ANN]
    assert found(attribute="city", status="unsubscribed") == [BOB]
    assert found(attribute="city", search="ann") == [ANN]
    assert found(attribute="town") == []


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("Österreich", "ÖSTERREICH"),
        ("Москва", "МОСКВА"),
        ("ΓΙΩΡΓΟΣ", "Γιώργος".replace("ώ", "ω")),
        ("İpek", "ipek"),
        ("Zoe\u0308", "ZOË"),
    ],
)
def test_capitals_are_no_other_letters_in_any_script(store: Store, written: str, asked: str) -> None:
    """Who looks for somebody by what the screen shows finds them, on every store."""
    store.import_subscribers([row(ANN, attributes={"name": written}), row(BOB, attributes={"name": "Bob"})])
    for word in (written, asked):
        assert [one["email_norm"] for one in subscriber_rows.subscribers(store, search=word)] == [ANN]
        found = subscriber_rows.subscribers(store, attribute="name", value=word)
        assert [one["email_norm"] for one in found] == [ANN]


def test_who_is_imported_as_they_are_is_not_changed(store: Store) -> None:
    """Also if something else than an import has written what is known of them."""
    store.confirm_sign_up(confirmation(ANN, name="Ann"))
    store.import_subscribers([row(ANN, attributes={"city": "Lisbon"})])
    store.confirm_sign_up(confirmation(BOB, name="Bob"))
    again = [row(ANN, attributes={"city": "Lisbon", "name": "Ann"}), row(BOB, attributes={"name": "Bob"})]
    assert store.import_subscribers(again) == ImportCounts(unchanged=2)
    assert store.import_subscribers([row(BOB, attributes={"name": "Rob"})]) == ImportCounts(updated=1)


def test_an_edit_leaves_what_it_says_and_nothing_else(store: Store) -> None:
    store.import_subscribers([row(ANN, attributes={"city": "Lisbon", "name": "Ann"})])
    assert store.edit_subscriber(ANN, {"name": "Anna", "shoe": 38})
    assert subscriber_rows.subscriber(store, ANN)["attributes"] == {"name": "Anna", "shoe": 38}
    assert not store.edit_subscriber("nobody@example.org", {"name": "N"})
