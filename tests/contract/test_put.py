"""`put`: plain rows, all of them or none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mailout.base import error_log
from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.base.errors import NotFound, StoreError
from mailout.kinds.single_mails import companies
from mailout.kinds.single_mails.companies import Company
from mailout.letters.audience.list_rows import LIST_TABLE, List, lists
from mailout.letters.audience.segment_tree import Segment
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content
from mailout.outbox.queue.segment_names import SEGMENT_TABLE, segment
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.stores import StoreFactory


def test_all_of_them_or_none(store: Store) -> None:
    good = ErrorRecord("A", "It failed.", "content")
    with pytest.raises(StoreError):
        store.put(ERROR_TABLE, [good, replace(good, code=None)])
    assert error_log.errors(store) == []
    store.put(ERROR_TABLE, [])
    assert error_log.errors(store) == []


def test_they_are_kept_in_the_order_they_came_in(store: Store) -> None:
    store.put(ERROR_TABLE, [ErrorRecord(f"E{n}", "It failed.", "content") for n in range(20)])
    assert [one.code for one in error_log.errors(store)] == [f"E{n}" for n in reversed(range(20))]


def test_a_row_without_a_time_gets_the_stores_and_one_with_a_time_keeps_it(store: Store) -> None:
    store.put(
        ERROR_TABLE, [ErrorRecord("A", "m", "content"), ErrorRecord("B", "m", "content", at=NOON - 7.25)]
    )
    assert [one.at for one in error_log.errors(store)] == [NOON - 7.25, store.now()]


def test_a_row_that_is_known_is_written_anew_whole(store: Store, factory: StoreFactory) -> None:
    full = List(
        "news", "News", "Weekly", True, "The newsroom", "us@example.org", "why", {"color": "#036"}, True
    )
    store.put(LIST_TABLE, [full])
    store.put(LIST_TABLE, [List("news", "Новости")])
    assert [one for one in lists(store) if one.key == "news"] == [List("news", "Новости")]
    store.put(SEGMENT_TABLE, [Segment("porto", 'city = "Porto"', ["=", "city", "Porto"])])
    factory.set_now(NOON + 60)
    store.put(SEGMENT_TABLE, [Segment("porto", 'city = "O’Porto"', ["=", "city", "O’Porto"])])
    found = segment(store, "porto")
    assert (found.tree, found.updated_at) == (["=", "city", "O’Porto"], NOON + 60)


def test_a_content_that_is_known_stays_as_it_is(store: Store, factory: StoreFactory) -> None:
    """Retention goes by its age; and a long letter is not written again for every request."""
    content = Content("Hello", "<p>Hello</p>", "Hello")
    keep_content(store, content)
    before = factory.raw("select created_at from contents")
    factory.set_now(NOON + 60)
    keep_content(store, content)
    assert factory.raw("select created_at from contents") == before


def test_a_company_keeps_its_limits_and_its_age(store: Store, factory: StoreFactory) -> None:
    made = companies.add_company(store, "acme")
    companies.set_limits(store, "acme", 10, None)
    factory.set_now(NOON + 60)
    assert companies.add_company(store, "acme") == replace(made, limit_per_hour=10)
    assert companies.companies(store) == [Company("acme", 10, None, made.created_at)]
    with pytest.raises(NotFound, match="no company nobody"):
        companies.set_limits(store, "nobody", 1, 1)
    assert len(companies.companies(store)) == 1
