"""Segments: the same people in both stores as in plain Python, when counted, sampled and frozen."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailout.base.errors import MailoutError, NotFound, StoreError, UsageError
from mailout.base.ids import mailout_id
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.letters.audience.port import Choice, ImportRecord, SubscriberRow
from mailout.letters.audience.segment_tree import Segment, SegmentError, Tree, fold, lists_of
from mailout.letters.audience.segments import read_segment
from mailout.letters.audience.subscriber_rows import IMPORT_TABLE
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received
from mailout.outbox.queue import segment_names
from mailout.outbox.queue.port import Recipient
from mailout.outbox.queue.segment_names import SEGMENT_TABLE
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import Sender, enqueue, freeze, handed_mailout, result, states, subscribe
from tests.contract.stores import StoreFactory
from tests.segment_meaning import Person, matches
from tests.ses_events import ses_event

SPRING, SUMMER = mailout_id("spring"), mailout_id("summer")
OHIO = "ocd-division/country:us/state:oh"
DAY = 86_400.0
LETTER_2 = Content("Other news", "<p>Hello again</p>", "Hello again")
NASTY: list[Any] = [
    "Porto",
    "PORTO",
    "porto ",
    "",
    " \t",
    None,
    [],
    ["porto"],
    {"x": "porto"},
    True,
    False,
    5,
    2.5,
    -3,
    "5",
    "5.0",
    "05",
    "-3",
    "2.50",
    "1e3",
    "12345678901234567",
    "2026-01-31",
    "2026-01-31T10:00:00Z",
    "2026-02-01 noon",
    "2026-13-01",
    "ΟΔΟΣ",
    "οδος",
    "οδοσ",
    "İstanbul",
    "istanbul",
    "ẞ",
    "ß",
    "Жуков",
    "a'b",
    'a"b',
    "a\\b",
    "%",
    "'; drop table subscribers; --",
    "$1",
    "%L",
    "{1,2}",
]
FIELDS = ["city", 'odd "name"', "o'brien", "$.x", "Город", "email", "no such"]
LISTS = ["general", "events", "o'lists"]
PLACES = [
    OHIO,
    f"{OHIO}/county:franklin",
    f"{OHIO}/county:franklin/place:bexley",
    "ocd-division/country:us/state:in",
]


def everybody() -> list[tuple[SubscriberRow, Person, float]]:
    """A person for each value, under each name, and what a segment may know of them."""
    found = []
    for n, value in enumerate(NASTY):
        email = f"p{n:02}@example.org"
        attributes = {"city": value, FIELDS[n % 5]: NASTY[(n * 7) % len(NASTY)]}
        lists = [key for m, key in enumerate(LISTS[1:]) if n % (m + 2) == 0]
        places = [PLACES[n % 4]] if n % 3 else []
        came = NOON - (n % 4) * DAY / 2
        row = SubscriberRow(email, email, ocd_ids=places, attributes=attributes, lists=lists)
        left_general = n % 5 == 0
        person = Person(
            email=email,
            joined=datetime.fromtimestamp(came, UTC).date().isoformat(),
            attributes=attributes,
            places=places,
            lists=[*lists, *([] if left_general else ["general"])],
            got=[id for id, every in ((SPRING, 3), (SUMMER, 4)) if n % every == 0],
            clicked=[SPRING] if n % 6 == 0 else [],
        )
        found.append((row, person, came))
    return found


@pytest.fixture
def people(store: Store, factory: StoreFactory) -> dict[str, Person]:
    known = everybody()
    for row, _, came in sorted(known, key=lambda one: one[2]):
        factory.set_now(came)
        store.import_subscribers([row])
    factory.set_now(NOON)
    for id, ref in ((SPRING, "spring"), (SUMMER, "summer")):
        got = [Recipient(person.email) for _, person, _ in known if id in person.got]
        assert handed_mailout(store, *got, ref=ref) == id
        sender = Sender(store, id)
        begun = sender.begin(len(got))
        sender.step(results=[result(one) for one in begun])
        for one in begun if id == SPRING else ():
            if any(person.email == one.email and person.clicked for _, person, _ in known):
                event = ses_event("Click", one.email, attempt=one.attempt, campaign=id, ses_id=one.email)
                store.receive_events([Received(one.email, "sns", event)])
    ingest(store, "any")
    for _, person, _ in known:
        if "general" not in person.lists:
            store.unsubscribe(person.email, "general")
    return {person.email: person for _, person, _ in known}


def meant(tree: Tree, people: dict[str, Person], list_key: str | None = None) -> list[str]:
    """By plain Python: who is on the list (or on one that the segment asks for), and in the segment."""
    lists = {list_key} if list_key else {"general", *lists_of(tree)}
    return sorted(e for e, one in people.items() if lists & set(one.lists) and matches(tree, one))


VALUES = st.one_of(
    st.sampled_from([str(one) for one in NASTY if str(one).strip()]).map(lambda v: ["text", fold(v)]),
    st.sampled_from(["5", "-3", "2.5", "0", "5.00", "99999"]).map(lambda v: ["number", v]),
    st.sampled_from(["2026-01-31", "2026-02-01", "1999-12-31"]).map(lambda v: ["day", v]),
)
DAYS = st.integers(-3, 1).map(
    lambda n: ["day", datetime.fromtimestamp(NOON + n * DAY, UTC).date().isoformat()]
)
ORDERS = st.sampled_from(["<", "<=", ">", ">="])
LEAVES = st.one_of(
    st.sampled_from([*FIELDS, "joined"]).map(lambda f: ["has", f]),
    st.builds(
        lambda f, v: ["compare", f, "in", v],
        st.sampled_from(FIELDS),
        st.lists(VALUES, min_size=1, max_size=4),
    ),
    st.builds(lambda f, o, v: ["compare", f, o, [v]], st.sampled_from(FIELDS), ORDERS, VALUES),
    st.builds(
        lambda f, v: ["compare", f, "contains", [["text", fold(v)]]],
        st.sampled_from(FIELDS),
        st.sampled_from(["o", "ΟΔ", "'", '"', "\\", "%", "5", "P1", "İ"]),
    ),
    st.builds(lambda o, v: ["compare", "joined", o, [v]], ORDERS, DAYS),
    st.lists(DAYS, min_size=1, max_size=2).map(lambda v: ["compare", "joined", "in", v]),
    st.sampled_from([*LISTS, "nobody's"]).map(lambda key: ["list", key]),
    st.builds(
        lambda p, e: ["place", p, e],
        st.sampled_from(PLACES),
        st.sampled_from(["", "/county:franklin", "/place:bexley"]),
    ),
    st.sampled_from([["got", SPRING], ["got", SUMMER], ["clicked", SPRING], ["clicked", SUMMER], ["mailed"]]),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda t: ["not", t]),
        st.builds(
            lambda w, t: [w, *t], st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3)
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=TREES, list_key=st.sampled_from([None, None, "general", "events"]))
def test_a_segment_means_the_same_people_in_every_store(
    store: Store, people: dict[str, Person], tree: Tree, list_key: str | None
) -> None:
    wanted = meant(tree, people, list_key)
    assert list(store.audience_sample(list_key, tree, 1000)) == wanted
    assert store.audience_size(list_key, tree) == len(wanted)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=TREES, chunk=st.sampled_from([1, 5, 1000]))
def test_what_was_counted_is_what_is_frozen(
    store: Store, people: dict[str, Person], tree: Tree, chunk: int
) -> None:
    store.put(SEGMENT_TABLE, [Segment("chosen", "as it was written", tree)])
    id = enqueue(store, ref=json.dumps([tree, chunk]), segment="chosen")
    counted = store.audience_size(None, tree)
    assert freeze(store, id, chunk=chunk) == counted
    assert sorted(states(store, id)) == meant(tree, people)
    kept = store.mailout(id)
    assert kept.segment_filter is not None
    assert kept.segment_filter["tree"] == tree
    assert kept.segment_filter["of"] == sum(
        1 for one in people.values() if {"general", *lists_of(tree)} & set(one.lists)
    )


def test_who_unsubscribed_bounced_or_paused_is_out_whatever_the_filter_says(store: Store) -> None:
    people = ("ann@example.org", "bob@example.org", "cyd@example.org", "dan@example.org")
    subscribe(store, *people, attributes={"city": "Porto"})
    store.unsubscribe("bob@example.org", None)
    subscribe(store, "cyd@example.org", status="bounced")
    assert store.choose("dan@example.org", Choice(snooze_seconds=DAY))
    for text in ('city = "Porto"', 'not city = "Lisboa"', "not has nothing", 'email contains "@"'):
        tree = read_segment(text).tree
        assert store.audience_sample(None, tree, 10) == ["ann@example.org"]
        assert (store.audience_size(None, tree), store.audience_size(None, tree, snoozed=True)) == (1, 1)
    segment_names.save(store, "porto", 'city = "Porto"')
    segment_names.save(store, "nobody", "not has email")
    for name, counts in (("porto", (1, 1)), ("nobody", (0, 0))):
        id = enqueue(store, ref=name, segment=name)
        freeze(store, id)
        assert (store.mailout(id).ledger.recipients, store.mailout(id).snoozed) == counts


def test_several_lists_are_reached_at_once_and_each_person_once(store: Store, factory: StoreFactory) -> None:
    """Also those who joined one list alone, and never were on `general`."""
    subscribe(store, "ann@example.org", lists=("a",))
    subscribe(store, "bob@example.org", lists=("a", "b"))
    subscribe(store, "cyd@example.org", "dan@example.org", lists=("b",))
    subscribe(store, "eve@example.org")
    for email in ("ann@example.org", "bob@example.org", "dan@example.org", "eve@example.org"):
        store.unsubscribe(email, "general")
    segment_names.save(store, "both", "in list a or in list b")
    id = enqueue(store, segment="both")
    assert freeze(store, id, chunk=2) == 4
    assert store.mailout(id).reach == "4 of 4"
    store.start(id, "worker")
    store.unsubscribe("dan@example.org", "b")
    begun = {one.email for one in Sender(store, id).begin(10)}
    assert begun == {"ann@example.org", "bob@example.org", "cyd@example.org"}
    assert states(store, id)["dan@example.org"] is State.SUPPRESSED


def test_who_leaves_the_list_that_a_segment_asks_for_gets_no_letter_to_it(
    store: Store, factory: StoreFactory
) -> None:
    """Also who is on `general`, as everybody is. By another part of the filter they are still meant."""
    ann, bob, cyd, dan = (f"{name}@example.org" for name in ("ann", "bob", "cyd", "dan"))
    subscribe(store, ann, dan, lists=("a",), attributes={"city": "Porto"})
    subscribe(store, bob, lists=("a", "b"))
    subscribe(store, cyd, lists=("a",))
    store.unsubscribe(dan, "a")
    factory.set_now(NOON + 60)
    segment_names.save(store, "both", "in list a or in list b or city = Porto")
    id = enqueue(store, segment="both")
    assert freeze(store, id) == 4
    store.start(id, "worker")
    factory.set_now(NOON + 120)
    for email in (ann, bob):
        store.unsubscribe_by_hand(email, "a")
    assert {one.email for one in Sender(store, id).begin(10)} == {bob, cyd, dan}
    assert states(store, id)[ann] is State.SUPPRESSED


def test_who_is_on_general_still_gets_what_a_segment_sends_to_it(store: Store, factory: StoreFactory) -> None:
    ann, bob = "ann@example.org", "bob@example.org"
    subscribe(store, ann, bob, lists=("a",))
    segment_names.save(store, "both", "in list general or in list a")
    id = enqueue(store, segment="both")
    assert freeze(store, id) == 2
    store.start(id, "worker")
    factory.set_now(NOON + 60)
    store.unsubscribe(ann, "a")
    for key in ("a", "general"):
        store.unsubscribe(bob, key)
    assert [one.email for one in Sender(store, id).begin(10)] == [ann]


def test_a_subscriber_of_a_later_day_lets_others_leave_a_segment(store: Store, factory: StoreFactory) -> None:
    """Others write into the same table, also with a clock that goes wrong."""
    ann, bob = "ann@example.org", "bob@example.org"
    factory.set_now(NOON + DAY)
    subscribe(store, bob, lists=("a",))
    factory.set_now(NOON)
    subscribe(store, ann, lists=("a",))
    segment_names.save(store, "of a", "in list a")
    id = enqueue(store, segment="of a")
    assert freeze(store, id) == 2
    store.start(id, "worker")
    factory.set_now(NOON + 60)
    store.unsubscribe(ann, "a")
    assert [one.email for one in Sender(store, id).begin(10)] == [bob]


def test_an_undone_import_sends_nothing_to_a_segment_of_its_list(store: Store) -> None:
    subscribe(store, "ann@example.org", "bob@example.org")
    record = ImportRecord("3f2a0000-0000-8000-8000-00000000000d", "me", "people.csv", {}, {})
    store.put(IMPORT_TABLE, [record])
    people = [SubscriberRow(email, email, lists=("a",)) for email in ("ann@example.org", "bob@example.org")]
    store.import_subscribers(people, import_id=record.id)
    segment_names.save(store, "of a", "in list a")
    waiting = enqueue(store, segment="of a")
    freeze(store, waiting)
    assert store.undo_import(record.id).lists == 2
    assert set(states(store, waiting).values()) == {State.SUPPRESSED}
    again = replace(record, id="3f2a0000-0000-8000-8000-00000000000e")
    store.put(IMPORT_TABLE, [again])
    store.import_subscribers(people, import_id=again.id)
    sent = enqueue(store, "another", segment="of a")
    freeze(store, sent)
    store.start(sent, "worker")
    Sender(store, sent).begin_one()
    with pytest.raises(StoreError, match="were mailed"):
        store.undo_import(again.id)


@pytest.mark.parametrize(
    ("written", "before", "row", "left", "stays"),
    [
        ("in list a or in list b", ("b",), {"lists": ("a",)}, None, True),
        ("in list a or in list b", (), {"lists": ("a", "b")}, None, False),
        ("in list a or in list b", ("b",), {"lists": ("a",)}, "b", False),
        ("in list a or in list general", (), {"lists": ("a",)}, None, True),
        ("in list a or in list general", (), {"lists": ("a", "general")}, None, True),
        ("in list a or in list general", (), {"lists": ("a",)}, "general", False),
        ("in list a or has email", (), {"lists": ("a",)}, "a", True),
        ("in list a or has email", (), {"left_lists": ("a",)}, None, True),
    ],
)
def test_an_undone_import_silences_those_alone_whom_it_had_put_into_the_segment(
    store: Store, written: str, before: tuple[str, ...], row: Any, left: str | None, stays: bool
) -> None:
    ann = "ann@example.org"
    store.put(LIST_TABLE, [List("a", "A")])
    subscribe(store, ann, lists=before)
    record = ImportRecord("3f2a0000-0000-8000-8000-00000000000d", "me", "people.csv", {}, {})
    store.put(IMPORT_TABLE, [record])
    store.import_subscribers([SubscriberRow(ann, ann, **row)], import_id=record.id)
    segment_names.save(store, "some", written)
    id = enqueue(store, segment="some")
    assert freeze(store, id) == 1
    if left is not None:
        store.unsubscribe(ann, left)
    store.undo_import(record.id)
    assert states(store, id) == {ann: State.PENDING if stays else State.SUPPRESSED}


def test_a_list_of_the_letter_is_not_widened_by_its_segment(store: Store) -> None:
    subscribe(store, "ann@example.org", lists=("a",))
    subscribe(store, "bob@example.org", lists=("a", "b"))
    tree = read_segment("in list a or in list b").tree
    assert store.audience_sample("b", tree, 10) == ["bob@example.org"]


def test_editing_a_segment_changes_nothing_that_is_being_frozen(store: Store) -> None:
    subscribe(store, *(f"{n}@example.org" for n in range(6)), attributes={"city": "Porto"})
    segment_names.save(store, "porto", 'city = "Porto"')
    id = enqueue(store, segment="porto")
    store.freeze_subscribers(id, chunk=2)
    segment_names.save(store, "porto", 'city != "Porto"')
    freeze(store, id, chunk=2)
    frozen = store.mailout(id)
    assert (frozen.ledger.recipients, frozen.reach) == (6, "6 of 6")
    assert frozen.segment_filter is not None
    assert frozen.segment_filter["text"] == 'city = "Porto"'
    assert frozen.segment_filter["hash"] == Segment("", "", read_segment('city = "Porto"').tree).hash


def test_another_content_takes_the_filter_anew(store: Store) -> None:
    subscribe(store, "ann@example.org", "bob@example.org", attributes={"city": "Porto"})
    segment_names.save(store, "some", 'city = "Porto"')
    id = enqueue(store, segment="some")
    freeze(store, id)
    segment_names.save(store, "some", 'email contains "ann"')
    other = LETTER_2
    store.set_content(id, keep_content(store, other), other.subject, replace=True)
    freeze(store, id)
    assert set(states(store, id)) == {"ann@example.org"}


def test_a_segment_that_a_letter_waits_for_is_not_deleted_and_the_letter_is_named(store: Store) -> None:
    subscribe(store, "ann@example.org", attributes={"city": "Porto"})
    segment_names.save(store, "porto", 'city = "Porto"')
    id = enqueue(store, segment="porto")
    with pytest.raises(UsageError, match=f"“News”.*{id}"):
        segment_names.delete(store, "porto")
    freeze(store, id)
    segment_names.delete(store, "porto")
    assert segment_names.segments(store) == []


def test_a_letter_whose_segment_is_gone_is_not_frozen(store: Store) -> None:
    subscribe(store, "ann@example.org")
    id = enqueue(store, segment="gone")
    with pytest.raises(NotFound, match="no segment gone"):
        freeze(store, id)
    assert states(store, id) == {}


def test_who_got_a_letter_that_retention_removed_is_refused_in_words(store: Store, people: object) -> None:
    segment_names.save(store, "readers", 'got "spring"')
    store.complete(SPRING)
    assert (state := store.archive_state(SPRING)) is not None
    assert store.mark_archived(SPRING, state, "here")
    with pytest.raises(SegmentError, match="retention has removed"):
        segment_names.usable_segment(store, "readers")
    with pytest.raises(SegmentError, match="retention has removed"):
        segment_names.save(store, "others", 'not clicked "spring"')
    id = enqueue(store, segment="readers")
    with pytest.raises(StoreError, match="retention has removed"):
        freeze(store, id)


BY_HAND = [
    ("filter", 'city = "Lisbon"'),
    ("filter", "city ="),
    ("filter", 'city = "Porto" and in list general and got "spring"'),
    ("filter", 'city = "Porto" and in list events and got "summer"'),
    ("tree", '{"a": 1}'),
    ("tree", '["and", {"a": 1}]'),
    ("tree", '["and"]'),
    ("tree", '"true"'),
]


@pytest.mark.parametrize(("column", "written"), BY_HAND)
def test_a_segment_that_was_changed_by_hand_is_refused(
    store: Store, factory: StoreFactory, people: object, column: str, written: str
) -> None:
    """Its filter would be shown and reported, and other people would get the letter."""
    segment_names.save(store, "porto", 'city = "Porto" and in list events and got "spring"')
    factory.raw(f"update segments set {column} = ?", [written])
    with pytest.raises(SegmentError, match="“porto” was changed by hand") as refused:
        segment_names.usable_segment(store, "porto")
    assert "mailout segments add porto " in (refused.value.remedy or "")
    segment_names.delete(store, "porto")


def test_a_segment_is_the_same_when_what_it_names_has_been_renamed(store: Store, people: object) -> None:
    """It stands by the key of its list and the id of its letter: neither is a change by hand."""
    store.put(LIST_TABLE, [List("events", "What is on")])
    written = (
        'not (city in (Porto, "são paulo") or age >= 5 or joined after 2026-01-01 or has nothing)'
        ' and in list "what is ON" and (got spring or clicked "Spring") and never mailed'
        f" and in place {OHIO} and email contains example"
    )
    subscribe(store, "zoe@example.org", attributes={"nothing": "x", "age": "5"})
    made, _ = segment_names.save(store, "many", written.replace('"Spring"', f'"{SPRING.upper()}"'))
    store.put(LIST_TABLE, [List("events", "Agenda")])
    store.forget("zoe@example.org", "gone")
    assert segment_names.usable_segment(store, "many").tree == made.tree


def test_whoever_was_there_for_a_removed_letter_counts_as_mailed(
    store: Store, factory: StoreFactory, people: object
) -> None:
    store.complete(SPRING)
    assert (state := store.archive_state(SPRING)) is not None
    assert store.mark_archived(SPRING, state, "here")
    factory.set_now(NOON + DAY)
    subscribe(store, "new@example.org")
    assert store.audience_sample(None, read_segment("never mailed").tree, 10) == ["new@example.org"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('cty = "Porto"', "Did you mean “city”"),
        ("has cty", "Did you mean “city”"),
        ("in list event", "Did you mean events"),
        ('got "sprin"', "Did you mean “spring”"),
        ('clicked "sumer"', "Did you mean “summer”"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    store: Store, people: object, written: str, said: str
) -> None:
    with pytest.raises(SegmentError, match=said):
        segment_names.save(store, "x", written)
    with pytest.raises(SegmentError, match="no segment “x”"):
        segment_names.segment(store, "x")


def test_a_letter_that_was_only_tested_was_got_by_nobody(store: Store) -> None:
    enqueue(store, "spring-letter", id=mailout_id("its test"), is_test=True)
    with pytest.raises(SegmentError, match="“spring-letter” was only tested or rehearsed"):
        segment_names.save(store, "x", 'got "spring-letter"')


def test_a_value_that_nobody_has_is_warned_about(store: Store, people: object) -> None:
    made, said = segment_names.save(
        store, "x", 'city = "Prto" or city = "porto" or in place ocd-division/country:pt'
    )
    assert said == [
        'No subscriber has city = "prto".',
        "No subscriber is in the place ocd-division/country:pt.",
    ]
    assert segment_names.segment(store, "x").tree == made.tree


@pytest.mark.parametrize("name", ['o\'hara "x" <b>', "Порту", "100%; drop table", "a\\b", "😀"])
def test_a_segment_may_have_any_name_that_people_can_read(store: Store, name: str) -> None:
    subscribe(store, "ann@example.org", attributes={"city": "Porto"})
    segment_names.save(store, name, 'city = "Porto"')
    assert [one.name for one in segment_names.segments(store)] == [name]
    id = enqueue(store, segment=name)
    assert freeze(store, id) == 1
    segment_names.delete(store, name)


@pytest.mark.parametrize("name", ["", " ", "a\0b", "x" * 101, "a\u202eb", "\ud800"])
def test_a_name_that_nobody_can_read_is_refused(store: Store, name: str) -> None:
    with pytest.raises(UsageError):
        segment_names.save(store, name, "has email")


@pytest.mark.parametrize(
    "tree",
    [
        ["drop", "table"],
        ["compare", "city", "= 'x' or true --", [["text", "x"]]],
        ["compare", "city", "<", [["text) or true --", "x"]]],
        ["compare", "joined", "; drop table subscribers; --", [["day", "2026-01-01"]]],
        ["compare", "joined", "<", [["day", "'; drop table subscribers; --"]]],
        ["and", ["nothing"]],
        [],
        "true",
        {"and": []},
    ],
)
def test_a_tree_that_is_none_is_refused_and_never_run(store: Store, tree: Any) -> None:
    subscribe(store, "ann@example.org", attributes={"city": "Porto"})
    with pytest.raises((MailoutError, ValueError, KeyError)):
        store.audience_size(None, tree)
    assert store.audience_size(None) == 1


def test_the_largest_filter_is_still_counted(store: Store) -> None:
    subscribe(store, "ann@example.org", attributes={"city": "Porto"})
    wide = " or ".join(f"city = v{n}" for n in range(200))
    deep = "(has city and (has city or " * 9 + '(city = "Porto" or has city)' + "))" * 9
    negated = "not (has nothing or " * 8 + "not not not has nothing" + ")" * 8
    many = f"city in ({', '.join(f'v{n}' for n in range(1200))}, porto)"
    assert store.audience_size(None, read_segment(wide).tree) == 0
    assert store.audience_size(None, read_segment(deep).tree) == 1
    assert store.audience_size(None, read_segment(negated).tree) == 1
    assert store.audience_size(None, read_segment(many).tree) == 1
