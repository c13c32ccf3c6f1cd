"""Imports are kept with what was decided for them, and can be taken back until somebody is mailed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailout.base.errors import NotFound, StoreError
from mailout.base.ids import uuid_of
from mailout.insight.reporting.rows import people_lines
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.letters.audience.people_import import import_people, read_people
from mailout.letters.audience.port import Choice, ImportCounts, ImportRecord, SubscriberRow, Undone
from mailout.letters.audience.subscriber_rows import IMPORT_TABLE
from mailout.letters.audience.wishes import Answers
from mailout.outbox.delivery.states import State
from mailout.readers.confirmations import erase_unconfirmed
from mailout.readers.port import CONFIRM_SECONDS, Confirmed
from mailout.store import Store
from tests.clocks import NOON, FakeClock
from tests.contract.scenes import Sender, assert_ledger, enqueue, freeze, result, states, subscribe
from tests.contract.stores import StoreFactory
from tests.contract.test_events import hear
from tests.contract.test_join import ask, confirm
from tests.ses_events import ses_event

ANN, BOB, CYN = "ann@example.org", "bob@example.org", "cyn@example.org"
FIRST, SECOND = uuid_of("first import"), uuid_of("second import")
DECIDED = {"columns": {"No newsletter": "(empty) → gets mail (2), x → unsubscribed (1)"}, "agreed": "ops"}


def bring(
    store: Store, id: str, *emails: str, status: str = "active", lists: tuple[str, ...] = ()
) -> ImportCounts:
    store.put(
        IMPORT_TABLE, [ImportRecord(id, "ops (command line)", "people.csv", DECIDED, {"rows": len(emails)})]
    )
    return store.import_subscribers(
        [SubscriberRow(email, email, status=status, lists=lists) for email in emails], import_id=id
    )


def known(store: Store) -> list[str]:
    return [one["email_norm"] for one in subscriber_rows.subscribers(store)]


def test_what_was_decided_by_whom_and_how_many_is_kept(store: Store) -> None:
    """Somebody asks one day why they get mail."""
    subscribe(store, ANN)
    bring(store, FIRST, ANN, BOB)
    store.import_subscribers([SubscriberRow(CYN, CYN)], import_id=FIRST)  # a large file comes in parts
    (one,) = subscriber_rows.imports(store)
    assert (one.id, one.by, one.file, one.decisions) == (FIRST, "ops (command line)", "people.csv", DECIDED)
    assert {name: one.counts[name] for name in ("rows", "added", "unchanged")} == {
        "rows": 2,
        "added": 2,
        "unchanged": 1,
    }
    assert (one.at > 0, one.undone_at) == (True, None)


def test_the_newest_import_comes_first(store: Store, factory: StoreFactory) -> None:
    bring(store, FIRST, ANN)
    factory.set_now(NOON + 60)
    bring(store, SECOND, BOB)
    assert [one.id for one in subscriber_rows.imports(store)] == [SECOND, FIRST]
    assert [one.id for one in subscriber_rows.imports(store, limit=1)] == [SECOND]


def test_an_import_is_taken_back_and_those_known_before_stay(store: Store) -> None:
    """The wrong half of a file was imported: nobody should have to find them one by one."""
    subscribe(store, ANN)
    bring(store, FIRST, ANN, BOB, CYN, lists=("news",))
    assert store.undo_import(FIRST) == Undone(people=2, lists=1, kept=0)
    assert known(store) == [ANN]
    assert subscriber_rows.subscriber(store, ANN)["lists"] == []
    (one,) = subscriber_rows.imports(store)
    assert one.undone_at is not None
    with pytest.raises(StoreError, match="undone already"):
        store.undo_import(FIRST)
    assert bring(store, SECOND, BOB).added == 1


def test_who_would_stop_getting_mail_is_known_before_an_import(store: Store) -> None:
    """Undoing it brings nobody back: also a no that came by mistake is a no."""
    many = [f"p{n:04}@example.org" for n in range(1_200)]
    subscribe(store, *many)
    store.unsubscribe(many[0], None)
    assert subscriber_rows.active_among(store, [*many, ANN]) == 1_199
    assert subscriber_rows.active_among(store, []) == 0
    bring(store, FIRST, *many[:3], status="unsubscribed")
    store.undo_import(FIRST)
    assert subscriber_rows.active_among(store, many) == 1_197


def test_an_import_that_is_not_there_is_not_found(store: Store) -> None:
    for id in (FIRST, "nonsense"):
        with pytest.raises(NotFound):
            store.undo_import(id)


def test_who_has_spoken_for_themselves_since_stays(store: Store, factory: StoreFactory) -> None:
    """A no that is deleted would be a yes after the next import."""
    bring(store, FIRST, ANN, BOB, CYN)
    factory.set_now(NOON + 60)
    store.unsubscribe(ANN, None)
    store.unsubscribe(BOB, "news")
    assert store.undo_import(FIRST) == Undone(people=1, lists=0, kept=2)
    assert subscriber_rows.subscriber(store, ANN)["status"] == "unsubscribed"
    assert known(store) == [ANN, BOB]


@pytest.mark.parametrize("status", ["unsubscribed", "bounced"])
def test_a_no_that_came_with_the_import_stays(store: Store, factory: StoreFactory, status: str) -> None:
    """They may have said it themselves since, and that is written nowhere else."""
    bring(store, FIRST, ANN, status=status)
    factory.set_now(NOON + 60)
    store.unsubscribe(ANN, None)
    assert store.undo_import(FIRST) == Undone(people=0, lists=0, kept=1)
    bring(store, SECOND, ANN)
    assert subscriber_rows.subscriber(store, ANN)["status"] == status


def test_who_wants_to_stay_on_a_list_stays_on_it(store: Store) -> None:
    bring(store, FIRST, ANN, BOB, lists=("news",))
    store.unsubscribe(ANN, "news")
    assert store.resubscribe(ANN, "news")
    assert store.undo_import(FIRST) == Undone(people=1, lists=0, kept=1)
    assert store.audience_size("news") == 1


def test_who_came_again_with_another_import_or_by_hand_stays(store: Store) -> None:
    bring(store, FIRST, ANN, BOB, CYN)
    bring(store, SECOND, ANN)
    subscribe(store, BOB)
    assert store.undo_import(FIRST) == Undone(people=1, lists=0, kept=2)
    assert store.undo_import(SECOND) == Undone(people=0, lists=0, kept=0)
    assert known(store) == [ANN, BOB]


def test_nothing_is_taken_back_once_somebody_was_mailed(store: Store) -> None:
    bring(store, FIRST, ANN, BOB)
    id = enqueue(store)
    freeze(store, id)
    store.start(id, "worker")
    sender = Sender(store, id)
    claimed = sender.begin_one()
    with pytest.raises(StoreError, match="were mailed"):
        store.undo_import(FIRST)
    sender.step(results=[result(claimed, State.SENT)])
    with pytest.raises(StoreError, match="were mailed"):
        store.undo_import(FIRST)
    assert known(store) == [ANN, BOB]


def test_who_waits_for_a_letter_gets_none_after_the_import_is_taken_back(store: Store) -> None:
    subscribe(store, ANN)
    bring(store, FIRST, BOB)
    id = enqueue(store)
    freeze(store, id)
    assert store.undo_import(FIRST).people == 1
    assert states(store, id) == {ANN: State.PENDING, BOB: State.SUPPRESSED}
    assert_ledger(store, id)


def test_a_rehearsal_is_no_mail(store: Store) -> None:
    bring(store, FIRST, ANN)
    id = enqueue(store, is_rehearsal=True)
    freeze(store, id)
    store.start(id, "worker")
    sender = Sender(store, id)
    sender.step(results=[result(sender.begin_one())])
    assert store.undo_import(FIRST).people == 1


def test_a_forgotten_person_is_in_no_import(store: Store, factory: StoreFactory) -> None:
    bring(store, FIRST, ANN, BOB)
    store.forget(ANN, "forgotten:1")
    assert ANN not in str(factory.raw("SELECT * FROM import_people"))
    assert store.undo_import(FIRST).people == 1


def test_who_complained_about_a_single_mail_is_in_no_audience_of_a_later_import(store: Store) -> None:
    """Nobody is written to again who complained, whether they were a subscriber then or not."""
    hear(store, ses_event("Complaint", ANN))
    counts = store.import_subscribers([SubscriberRow(ANN, ANN), SubscriberRow(BOB, BOB)])
    assert (counts.added, counts.kept_status) == (2, 1)
    person = subscriber_rows.subscriber(store, ANN)
    assert person["status"] == "unsubscribed"
    assert person["complained_at"] is not None
    assert store.audience_size(None) == 1


def test_who_is_off_a_list_is_counted_when_a_file_would_put_them_on_it(store: Store) -> None:
    """Whoever joined by the form is off every list that they did not choose: nobody should wonder later."""
    store.put(LIST_TABLE, [List("members", "Members")])
    subscribe(store, BOB, lists=("members",))
    confirm(store, ANN, "weekly")
    subscribe(store, CYN, lists=("members", "weekly"))
    for key in ("members", "weekly"):
        store.unsubscribe(CYN, key)
    rows = [SubscriberRow(email, email, lists=("members", "weekly")) for email in (ANN, BOB, CYN)]
    counts = store.import_subscribers(rows)
    assert (counts.updated, counts.unchanged, counts.stayed_off) == (1, 2, 2)
    assert store.import_subscribers(rows, own_sign_up=True).stayed_off == 0


@pytest.mark.parametrize("is_erased", [False, True])
def test_an_address_that_bounced_for_good_is_in_no_audience_of_a_later_import(
    store: Store, factory: StoreFactory, is_erased: bool
) -> None:
    """Of a receipt, a sign-up, a notification: each letter more to it costs the sender's reputation."""
    if is_erased:
        ask(store)
        hear(store, ses_event("Bounce", ANN))
        factory.set_now(NOON + CONFIRM_SECONDS + 60)
        assert erase_unconfirmed(store) == 1
    else:
        hear(store, ses_event("Bounce", ANN))
    counts = store.import_subscribers([SubscriberRow(ANN, ANN), SubscriberRow(BOB, BOB)])
    assert (counts.added, counts.kept_status) == (2, 1)
    person = subscriber_rows.subscriber(store, ANN)
    assert (person["status"], person["bounce_type"]) == ("bounced", "Permanent")
    assert store.audience_size(None) == 1


def test_what_people_left_and_who_complained_comes_along_to_another_store(
    store: Store, factory: StoreFactory, tmp_path: Path
) -> None:
    """Else everybody gets again what they took themselves off."""
    subscribe(store, ANN, BOB, CYN, lists=("weekly",))
    store.unsubscribe(ANN, "general")
    store.unsubscribe(BOB, "weekly")
    hear(store, ses_event("Complaint", CYN))
    path = tmp_path / "people.csv"
    path.write_text("".join(people_lines(store, subscriber_rows.Wanted())), encoding="utf-8")
    store = factory.make(FakeClock())
    subscribe(store, CYN)
    _, counts = import_people(store, read_people(path), by="ops")
    assert (counts.added, counts.updated, counts.unchanged) == (2, 1, 0)
    assert store.audience_sample(None, None, 9) == [BOB]
    assert store.audience_sample("weekly", None, 9) == [ANN]
    person = subscriber_rows.subscriber(store, CYN)
    assert (person["status"], person["complained_at"]) == ("unsubscribed", NOON)
    assert confirm(store, CYN) is Confirmed.COMPLAINED
    factory.set_now(NOON + 60)
    assert import_people(store, read_people(path), by="ops")[1].unchanged == 3


def test_undoing_an_import_takes_back_also_people_who_were_off_a_list_in_its_file(store: Store) -> None:
    row = SubscriberRow(ANN, ANN, lists=("news",), left_lists=("general", "news"))
    store.put(IMPORT_TABLE, [ImportRecord(FIRST, "ops", "people.csv", {}, {})])
    store.import_subscribers([row], import_id=FIRST)
    assert store.audience_size("news") == 0, "of two words about one list, the no counts"
    assert store.undo_import(FIRST).people == 1
    subscribe(store, ANN)
    assert store.audience_size(None) == 0, "undoing reactivates nobody"


@pytest.mark.parametrize("said", ["no", "false", "0", "yes", "2024-05-06"])
def test_another_product_s_word_about_complaints_makes_nobody_a_complainer_for_ever(
    store: Store, tmp_path: Path, said: str
) -> None:
    """Only what our own export writes, a moment."""
    path = tmp_path / "people.csv"
    path.write_text(f"email,status,complained_at\n{ANN},unsubscribed,{said}\n", encoding="utf-8")
    answers = Answers.from_options(no_mail_if=[("status", "unsubscribed")], ignored=["complained_at"])
    import_people(store, read_people(path, answers), by="ops")
    person = subscriber_rows.subscriber(store, ANN)
    assert (person["status"], person["complained_at"] is None) == (
        "unsubscribed",
        not said.startswith("2024"),
    )


def test_an_import_run_twice_is_one_also_if_another_says_that_they_agreed(
    store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    path.write_text(f"email\n{ANN}\n", encoding="utf-8")
    (id, _), (again, _) = (
        import_people(store, read_people(path), by=who, agreed=who) for who in ("ops", "ann")
    )
    assert again == id
    assert store.undo_import(id).people == 1


def test_a_file_that_says_who_left_a_list_takes_those_off_whom_a_file_had_put_on_it(store: Store) -> None:
    """Who joined it by an act of their own stays: the file may be older."""
    subscribe(store, ANN, CYN, lists=("weekly",))
    confirm(store, BOB, "weekly")
    counts = store.import_subscribers([SubscriberRow(one, one, left_lists=("weekly",)) for one in (ANN, BOB)])
    assert (counts.added, counts.updated, counts.unchanged) == (0, 1, 1)
    assert store.audience_sample("weekly", None, 9) == [BOB, CYN]


def test_who_signs_up_again_at_the_desk_has_no_pause_any_more(store: Store) -> None:
    subscribe(store, ANN, BOB)
    for email in (ANN, BOB):
        assert store.choose(email, Choice(snooze_seconds=86_400.0))
    store.import_subscribers([SubscriberRow(ANN, ANN)], own_sign_up=True)
    subscribe(store, BOB)
    assert store.audience_sample(None, None, 9) == [ANN]
