"""What people write into Supabase's tables by hand, in the table editor or by SQL of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from mailout.adapters.supabase import SupabaseStore
from mailout.insight.history import history_rows
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import Choice, SubscriberRow
from tests.clocks import FakeClock
from tests.contract.postgres import PostgresRpc, database, empty, migrate
from tests.contract.scenes import enqueue, freeze, states, subscribe
from tests.contract.test_soft_bounces import ANN, Told, hear, soft, status

BOB = "bob@example.org"
ANY_STATUS = """alter table subscribers alter column status drop not null,
    drop constraint subscribers_status_known, drop constraint subscribers_hard_status_known"""
"""As a project whose column had words of its own before mailout came."""


@pytest.fixture(scope="module")
def address() -> str:
    made = database("by_hand")
    migrate(made)
    with psycopg.connect(made) as owner:
        owner.execute(ANY_STATUS)
    return made


@pytest.fixture
def hand(address: str) -> Iterator[psycopg.Connection[Any]]:
    """The table editor: it writes as the owner."""
    empty(address)
    with psycopg.connect(address, autocommit=True, row_factory=dict_row) as connection:
        yield connection


@pytest.fixture
def store(hand: psycopg.Connection[Any], address: str) -> Iterator[SupabaseStore]:
    made = SupabaseStore.over(PostgresRpc(address, FakeClock()))
    yield made
    made.close()


def audience(store: SupabaseStore, list_key: str | None = None) -> list[str]:
    return list(store.audience_sample(list_key, None, 9))


# ── a status ──


def test_who_was_set_back_to_active_and_complains_gets_no_more_mail(
    hand: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    subscribe(store, ANN)
    hear(store, *soft((1, 1), (2, 2), (3, 3)))
    assert status(store) == "bounced"
    hand.execute("update subscribers set status = 'active'")
    assert subscriber_rows.subscriber(store, ANN)["bounce_type"] is None
    hear(store, Told("Complaint", 9, 20))
    assert (status(store), audience(store)) == ("unsubscribed", [])


@pytest.mark.parametrize("word", ["unsubscribed", "opted_out", None])
def test_a_late_delivery_does_not_bring_back_whom_a_person_took_off(
    hand: psycopg.Connection[Any], store: SupabaseStore, word: str | None
) -> None:
    subscribe(store, ANN)
    hear(store, *soft((1, 1), (2, 2), (3, 3)))
    hand.execute("update subscribers set status = %s", (word,))
    hear(store, Told("Delivery", 4, 2))
    assert (status(store), audience(store)) == (word or "unknown", [])


def test_what_soft_bounces_hide_is_kept_of_bounced_people_alone(
    hand: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    subscribe(store, ANN)
    with pytest.raises(psycopg.errors.CheckViolation):
        hand.execute("update subscribers set hard_status = 'active'")


WORDS = ["Unsubscribed", "opted_out", "Active", None]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_mailout_does_not_know_is_not_made_active_by_an_import(
    hand: psycopg.Connection[Any], store: SupabaseStore, word: str | None
) -> None:
    hand.execute("insert into subscribers (email, status) values (%s, %s)", (ANN, word))
    subscribe(store, ANN)
    assert (status(store), audience(store)) == (word or "unknown", [])
    subscribe(store, ANN, status="unsubscribed")
    assert status(store) == "unsubscribed"


@pytest.mark.parametrize("word", WORDS)
def test_who_has_such_a_word_can_unsubscribe_and_does_not_become_active_by_a_mistake(
    hand: psycopg.Connection[Any], store: SupabaseStore, word: str | None
) -> None:
    hand.execute("insert into subscribers (email, status) values (%s, %s)", (ANN, word))
    assert not store.unsubscribe(ANN, None)
    assert status(store) == "unsubscribed"
    assert not store.resubscribe(ANN, None)


@pytest.mark.parametrize("word", ["opted_out", None])
def test_a_second_spelling_makes_nobody_active(
    hand: psycopg.Connection[Any], store: SupabaseStore, word: str | None
) -> None:
    for row in ((ANN.upper(), word), (ANN, "active")):
        hand.execute("insert into subscribers (email, status) values (%s, %s)", row)
    assert (status(store), audience(store)) == (word or "unknown", [])


@pytest.mark.parametrize(
    ("word", "stands"),
    [("Unsubscribed", "unsubscribed"), ("bounced", "bounced"), ("pending", "active"), (None, "active")],
)
def test_a_second_row_takes_only_those_off_the_list_who_left(
    hand: psycopg.Connection[Any], store: SupabaseStore, word: str | None, stands: str
) -> None:
    """A project that confirms addresses itself writes a second row for whoever signs up again."""
    subscribe(store, ANN)
    hand.execute("insert into subscribers (email, status) values (%s, %s)", (ANN, word))
    assert status(store) == stands


@pytest.mark.parametrize("kind", ["text", "varchar(20)"])
def test_of_two_spellings_that_were_there_before_the_active_one_does_not_win(kind: str) -> None:
    made = database("two_spellings")
    with psycopg.connect(made, autocommit=True) as owner:
        owner.execute(
            f"create table subscribers (id serial primary key, email text, status {kind});"
            "insert into subscribers (email, status) values"
            " ('ann@example.org', 'active'), ('Ann@example.org', 'opted_out'), ('bob@example.org', 'active')"
        )
    for _ in range(2):
        migrate(made)
    store = SupabaseStore.over(PostgresRpc(made))
    assert audience(store) == [BOB]
    store.close()


def test_who_has_such_a_word_and_bounces_can_still_unsubscribe(
    hand: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    hand.execute("insert into subscribers (email, status) values (%s, 'pending')", (ANN,))
    hear(store, *soft((1, 1), (2, 2), (3, 3)))
    store.unsubscribe(ANN, None)
    hear(store, Told("Delivery", 4, 2))
    assert status(store) == "unsubscribed"


def test_people_with_such_a_word_are_counted(hand: psycopg.Connection[Any], store: SupabaseStore) -> None:
    """They were in no number at all, and one empty status ended the count of a day."""
    hand.execute(
        "insert into subscribers (email, status) values"
        " ('a@example.org', 'active'), ('b@example.org', 'Active'), ('c@example.org', null),"
        " ('d@example.org', ''), ('e@example.org', 'unknown')"
    )
    counts = subscriber_rows.subscriber_counts(store)
    assert counts == {"active": 1, "unsubscribed": 0, "bounced": 0, "Active": 1, "unknown": 3}
    store.keep_counts("2026-01-01")
    ((_, kept),) = history_rows.people_over_time(store, "2026-01-01")
    assert kept == {"active": 1, "Active": 1, "unknown": 3}


# ── an address ──


def test_a_changed_address_keeps_its_lists_and_what_was_left(
    hand: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    subscribe(store, ANN, BOB, lists=["weekly"])
    store.unsubscribe(BOB, "weekly")
    store.unsubscribe(BOB, "general")
    hand.execute("insert into consents values (%s, 'weekly', now(), 'I agree', 'a page')", (ANN,))
    hand.execute("update subscribers set email = 'Anna@example.org' where email_norm = %s", (ANN,))
    hand.execute("update subscribers set email = 'bobby@example.org' where email_norm = %s", (BOB,))
    assert (audience(store, "weekly"), audience(store)) == (["anna@example.org"], ["anna@example.org"])
    assert [one["wording"] for one in subscriber_rows.consents(store, "anna@example.org")] == ["I agree"]
    assert hand.execute("select 1 from subscriptions where email in (%s, %s)", (ANN, BOB)).fetchall() == []


@pytest.mark.parametrize("between", ["ann@", "ann@müller.de", BOB, ""])
def test_an_address_that_is_wrong_for_a_while_keeps_what_was_left(
    hand: psycopg.Connection[Any], store: SupabaseStore, between: str
) -> None:
    """Bob's address was taken: the row is a duplicate until it is corrected."""
    subscribe(store, ANN, BOB)
    store.unsubscribe(ANN, "general")
    (row,) = hand.execute("select id from subscribers where email_norm = %s", (ANN,)).fetchall()
    hand.execute("update subscribers set email = %s where id = %s", (between, row["id"]))
    store.normalise_addresses()
    assert audience(store) == [BOB]
    hand.execute("update subscribers set email = 'anna@example.org' where id = %s", (row["id"],))
    assert audience(store) == [BOB]
    left = hand.execute("select email from subscriptions where unsubscribed_at is not null").fetchall()
    assert left == [{"email": "anna@example.org"}]


def test_nothing_stays_of_a_row_without_a_key_that_is_deleted(
    hand: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    subscribe(store, ANN, BOB, lists=["weekly"])
    hand.execute("update subscribers set email = 'ann@' where email_norm = %s", (ANN,))
    store.keep_counts("2026-01-01")
    ((_, kept),) = history_rows.people_over_time(store, "2026-01-01")
    assert kept["list:weekly"] == 1
    hand.execute("delete from subscribers where email = 'ann@'")
    assert hand.execute("select email from subscriptions").fetchall() == [{"email": BOB}]


@pytest.mark.parametrize("who_left", [ANN, BOB])
def test_who_had_left_a_list_under_one_of_two_addresses_has_left_it(
    hand: psycopg.Connection[Any], store: SupabaseStore, who_left: str
) -> None:
    subscribe(store, ANN, BOB, lists=["weekly"])
    store.unsubscribe(who_left, "weekly")
    hand.execute("delete from subscribers where email_norm = %s", (BOB,))
    hand.execute("update subscribers set email = %s", (BOB,))
    assert audience(store, "weekly") == []


@pytest.mark.parametrize("written", ["Zed@New.org", " zed@new.org "])
def test_a_key_that_is_typed_in_is_believed_only_in_its_own_form(
    hand: psycopg.Connection[Any], store: SupabaseStore, written: str
) -> None:
    """Nobody whose key has capitals could ever unsubscribe."""
    hand.execute("insert into subscribers (email, email_norm) values (%s, %s)", (ANN.upper(), written))
    assert audience(store) == [ANN]
    hand.execute("update subscribers set email_norm = %s", (written,))
    assert audience(store) == [ANN]
    hand.execute("update subscribers set email_norm = null")
    assert audience(store) == [ANN]
    store.unsubscribe(ANN, None)
    assert audience(store) == []


def test_who_is_put_on_a_list_by_hand_is_on_it_however_the_address_is_written(
    hand: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    subscribe(store, ANN)
    hand.execute("insert into subscriptions (email, list_key) values (' Ann@Example.org ', 'weekly')")
    assert audience(store, "weekly") == [ANN]


@pytest.mark.parametrize("word", ["active", "unsubscribed"])
def test_of_two_spellings_the_second_takes_the_place_of_one_that_is_deleted(
    hand: psycopg.Connection[Any], store: SupabaseStore, word: str
) -> None:
    """It stayed a duplicate of nobody. Who had left under the first must not be mailed under it."""
    hand.execute("insert into subscribers (email) values (%s), (%s)", (ANN, ANN.upper()))
    if word == "unsubscribed":
        store.unsubscribe(ANN, None)
    hand.execute("delete from subscribers where email = %s", (ANN,))
    assert status(store) == word
    assert freeze(store, enqueue(store)) == (word == "active")
    store.forget(ANN, "forgotten:1")
    assert hand.execute("select 1 from subscribers").fetchall() == []


def test_who_paused_does_so_under_the_second_spelling_too(
    hand: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    hand.execute("insert into subscribers (email) values (%s), (%s)", (ANN, ANN.upper()))
    store.choose(ANN, Choice(snooze_seconds=86_400.0))
    hand.execute("delete from subscribers where email = %s", (ANN,))
    assert audience(store) == []
    assert store.audience_size(None, snoozed=True) == 1


# ── who was forgotten, or complained ──


def test_who_was_forgotten_is_not_mailed_at_an_international_domain_either(
    hand: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    written, key = "ann@müller.de", "ann@xn--mller-kva.de"
    store.import_subscribers([SubscriberRow(written, key)])
    store.forget(key, "forgotten:1")
    hand.execute("insert into subscribers (email) values (%s)", (written,))
    store.normalise_addresses()
    assert audience(store) == []


def test_who_was_forgotten_and_is_added_by_hand_can_unsubscribe(
    hand: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    subscribe(store, ANN)
    store.forget(ANN, "forgotten:1")
    hand.execute("insert into subscribers (email) values (%s)", (ANN,))
    id = enqueue(store)
    freeze(store, id)
    assert list(states(store, id)) == [ANN]
    store.unsubscribe(ANN, None)
    assert status(store) == "unsubscribed"


def test_nobody_who_complained_is_made_active_by_hand_without_a_word(
    hand: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    store.import_subscribers([SubscriberRow(ANN, ANN)])
    hear(store, Told("Complaint", 1, 1))
    store.forget(ANN, "forgotten:1")
    hand.execute("insert into subscribers (email) values (%s)", (ANN,))
    found = subscriber_rows.subscriber(store, ANN)
    assert (found["status"], found["complained_at"] is None) == ("unsubscribed", False)
