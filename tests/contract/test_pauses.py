"""Pauses and other choices of readers, on every store: nobody who asked for quiet is written to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mailout.insight.reporting.details import census_lines
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import Choice, ImportRecord, SubscriberRow
from mailout.letters.audience.subscriber_rows import IMPORT_TABLE
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received
from mailout.outbox.queue import segment_names
from mailout.outbox.queue.port import Recipient
from mailout.store import Store
from tests.clocks import NOON, FakeClock
from tests.contract.articles import TEX, UNA, engine_on, settle_in
from tests.contract.scenes import (
    Sender,
    assert_ledger,
    enqueue,
    freeze,
    handed_mailout,
    states,
    subscribe,
)
from tests.contract.stores import StoreFactory
from tests.ses_events import ses_event

ANN, BOB, CYD = "ann@example.org", "bob@example.org", "cyd@example.org"
DAY = 86_400.0
PAUSE = Choice(snooze_seconds=30 * DAY)


@pytest.fixture(autouse=True)
def people(store: Store) -> None:
    subscribe(store, ANN, BOB, CYD, lists=("weekly",))


@pytest.mark.parametrize("list_key", [None, "weekly"])
def test_who_paused_is_no_part_of_an_audience_and_is_counted(store: Store, list_key: str | None) -> None:
    assert store.choose(BOB, PAUSE)
    assert store.audience_size(list_key) == 2
    assert store.audience_size(list_key, snoozed=True) == 1
    assert store.lacking("city", list_key).people == 2
    id = enqueue(store, list_key=list_key)
    assert freeze(store, id, chunk=1) == 2
    assert set(states(store, id)) == {ANN, CYD}
    assert store.mailout(id).snoozed == 1


@pytest.mark.parametrize("to", [{}, {"list_key": "weekly"}, {"segment": "all"}])
def test_who_paused_gets_a_letter_that_is_planned_for_when_the_pause_is_over(
    store: Store, factory: StoreFactory, to: dict[str, str]
) -> None:
    """The audience is written weeks before: they asked for 30 days, and not for longer."""
    segment_names.save(store, "all", "in list weekly")
    store.choose(BOB, PAUSE)
    store.choose(CYD, Choice(snooze_seconds=90 * DAY))
    id = enqueue(store, scheduled_at=NOON + 40 * DAY, **to)
    freeze(store, id)
    assert (set(states(store, id)), store.mailout(id).snoozed) == ({ANN, BOB}, 1)
    assert store.mailout(id).reach == ("2 of 2" if "segment" in to else None)
    factory.set_now(NOON + 40 * DAY)
    store.choose(ANN, PAUSE)
    store.start(id, "worker")
    assert [one.email for one in Sender(store, id).begin(9)] == [BOB]


def test_a_pause_counts_only_for_the_lists_a_person_is_on(store: Store) -> None:
    store.choose(BOB, PAUSE)
    store.unsubscribe(BOB, "weekly")
    store.choose(CYD, PAUSE)
    id = enqueue(store, list_key="weekly")
    freeze(store, id)
    assert (store.mailout(id).snoozed, store.audience_size("weekly", snoozed=True)) == (1, 1)


def test_a_pause_ends_by_itself_or_by_their_wish(store: Store, factory: StoreFactory) -> None:
    store.choose(ANN, PAUSE)
    store.choose(BOB, PAUSE)
    store.choose(BOB, Choice(snooze_seconds=0))
    assert store.audience_size(None) == 2
    assert subscriber_rows.subscriber(store, BOB)["snoozed_until"] is None
    factory.set_now(store.now() + 30 * DAY + 1)
    assert store.audience_size(None) == 3
    assert store.audience_size(None, snoozed=True) == 0


@pytest.mark.parametrize("list_key", [None, "weekly"])
def test_who_pauses_before_their_turn_is_passed_over_and_it_says_why(
    store: Store, list_key: str | None
) -> None:
    id = enqueue(store, list_key=list_key)
    freeze(store, id)
    store.start(id, "worker")
    store.choose(BOB, PAUSE)
    store.unsubscribe(CYD, None)
    reply = Sender(store, id).step(want=3)
    assert ([one.email for one in reply.rows], reply.suppressed) == ([ANN], 2)
    told = {row["email"]: (row["state"], row["error_message"]) for row in outbox_rows.messages(store, id)}
    assert told[BOB] == (State.SUPPRESSED, "asked for a pause")
    assert told[CYD] == (State.SUPPRESSED, "no longer subscribed")
    assert_ledger(store, id)


def test_who_unsubscribed_and_paused_is_called_unsubscribed(store: Store) -> None:
    id = enqueue(store, list_key="weekly")
    freeze(store, id)
    store.start(id, "worker")
    store.choose(BOB, PAUSE)
    store.unsubscribe(BOB, "weekly")
    assert len(Sender(store, id).begin(3)) == 2
    told = {row["email"]: row["error_message"] for row in outbox_rows.messages(store, id)}
    assert told[BOB] == "no longer subscribed"


def test_a_test_reaches_its_testers_also_while_they_pause(store: Store) -> None:
    store.choose(ANN, PAUSE)
    id = handed_mailout(store, Recipient(ANN), is_test=True)
    assert [one.email for one in Sender(store, id).begin(1)] == [ANN]


def test_an_articles_readers_are_without_those_who_paused(store: Store) -> None:
    store.choose(BOB, PAUSE)
    asked: dict[str, Any] = {"limit": 10, "list_key": "weekly"}
    assert [one.email for one in store.members(**asked)] == [ANN, CYD]
    assert [one.email for one in store.members(**asked, snoozed=True)] == [BOB]
    assert [one.email for one in store.members(**asked, existed_at=store.now() + 1)] == [ANN, CYD]


def test_a_census_counts_who_paused_within_its_filter_alone(store: Store, tmp_path: Path) -> None:
    settle_in(store)
    store.choose(UNA, PAUSE)
    store.choose(TEX, PAUSE)
    census = engine_on(store, FakeClock(), tmp_path).intake.articles.census("budget", {"state": "OH"})
    assert (census.recipients, census.snoozed) == (1, 1)
    assert "1 person skipped: they asked for a pause." in census_lines(census.to_dict())


def test_a_reader_joins_what_they_chose_and_it_is_known_to_what_they_agreed(store: Store) -> None:
    store.unsubscribe(ANN, "weekly")
    choice = Choice(joins={"weekly": "Weekly news", "events": "Events"}, source="https://x.org/preferences")
    assert store.choose(ANN, choice)
    places = {one["list_key"]: one for one in subscriber_rows.subscriber(store, ANN)["lists"]}
    assert all(places[key]["unsubscribed_at"] is None for key in ("weekly", "events"))
    assert all(places[key]["joined_at"] is not None for key in ("weekly", "events"))
    before = places["weekly"]["joined_at"]
    assert store.choose(ANN, choice)  # twice is once
    again = {one["list_key"]: one for one in subscriber_rows.subscriber(store, ANN)["lists"]}
    assert again["weekly"]["joined_at"] == before
    assert store.audience_size("events") == 1


def test_a_language_is_kept_beside_what_else_is_known_and_can_be_taken_back(store: Store) -> None:
    store.import_subscribers([SubscriberRow(ANN, ANN, attributes={"name": "Ann"})])
    store.choose(ANN, Choice(language="pt"))
    assert subscriber_rows.subscriber(store, ANN)["attributes"] == {"name": "Ann", "language": "pt"}
    store.choose(ANN, Choice(language=""))
    store.choose(ANN, Choice(language=None))
    assert subscriber_rows.subscriber(store, ANN)["attributes"] == {"name": "Ann"}


@pytest.mark.parametrize("gone", ["unsubscribed", "bounced", "complained", "unknown"])
def test_no_choice_revives_whoever_is_gone(store: Store, gone: str) -> None:
    email = ANN
    if gone == "unsubscribed":
        store.unsubscribe(ANN, None)
    elif gone == "bounced":
        store.import_subscribers([SubscriberRow(ANN, ANN, status="bounced")])
    elif gone == "complained":
        store.receive_events([Received("sns-1", "sns", ses_event("Complaint", email=ANN))])
        ingest(store, "any")
    else:
        email = "stranger@example.org"
    assert not store.choose(email, Choice(joins={"events": "x"}, snooze_seconds=5.0, language="de"))
    assert store.audience_size("events") == 0
    if gone == "unknown":
        assert not subscriber_rows.subscribers(store, search="stranger")
    else:
        known = subscriber_rows.subscriber(store, ANN)
        assert known["status"] != "active"
        assert known["snoozed_until"] is None
        assert known["attributes"] == {}


def test_who_has_chosen_is_not_taken_back_with_their_import(store: Store) -> None:
    id = "3f2a0000-0000-8000-8000-00000000000c"
    store.put(IMPORT_TABLE, [ImportRecord(id, "me", "people.csv", {}, {})])
    rows = [SubscriberRow(email, email, lists=("new",)) for email in ("dan@example.org", "eva@example.org")]
    store.import_subscribers(rows, import_id=id)
    store.choose("dan@example.org", PAUSE)
    assert store.undo_import(id).people == 1
    assert subscriber_rows.subscriber(store, "dan@example.org")["lists"][0]["list_key"] == "new"


def test_whoever_is_forgotten_has_no_pause_and_no_lists(store: Store) -> None:
    store.choose(ANN, Choice(joins={"events": "Events"}, snooze_seconds=5.0))
    store.forget(ANN, "forgotten-1")
    subscribe(store, ANN)  # an import does not bring them back
    assert not subscriber_rows.subscribers(store, search=ANN)
    assert store.audience_size("events") == store.audience_size(None, snoozed=True) == 0
