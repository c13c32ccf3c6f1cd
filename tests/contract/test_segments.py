"""Segments: the same people in both stores as in plain Python, when counted, sampled and frozen."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailout.base.errors import MailoutError, NotFound, StoreError, UsageError
from mailout.base.ids import mailout_id
from mailout.letters.audience import segment_names
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.audience.segment_meaning import Person, fold, matches
from mailout.letters.audience.segment_tree import Segment, SegmentError, Tree, lists_of
from mailout.letters.audience.segments import read_segment
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received
from mailout.outbox.queue.port import Recipient
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import Sender, enqueue, freeze, handed_mailout, result, states, subscribe
from tests.contract.stores import StoreFactory
from tests.ses_events import ses_event

SPRING, SUMMER = mailout_id("spring"), mailout_id("summer")
OHIO = "ocd-division/country:us/state:oh"
DAY = 86_400.0
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
    store.save_segment(Segment("chosen", "as it was written", tree))
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
