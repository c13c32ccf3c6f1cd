"""What Notion has yet to be told survives everything but being told."""

from __future__ import annotations

from mailout.base import error_log
from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.insight.page_status import report_rows
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.stores import StoreFactory


def test_a_report_is_due_until_it_was_made(store: Store) -> None:
    """A mailout that ended while Notion was away would show `Sending` for ever."""
    assert report_rows.due_reports(store) == {}
    store.ask_report("m")
    due = report_rows.due_reports(store)
    assert set(due) == {"m"}
    store.report_made("m", due["m"])
    assert report_rows.due_reports(store) == {}
    store.ask_report("m")
    assert set(report_rows.due_reports(store)) == {"m"}


def test_what_is_asked_for_while_somebody_reports_stays_due(store: Store) -> None:
    """He told what was true before: a retry's `Sending` would stay on the page after its end."""
    store.ask_report("m")
    asked = report_rows.due_reports(store)["m"]
    store.ask_report("m")
    store.report_made("m", asked)
    assert set(report_rows.due_reports(store)) == {"m"}
    store.report_made("m", report_rows.due_reports(store)["m"])
    store.report_made("m", asked)  # somebody slow
    assert report_rows.due_reports(store) == {}


def test_nobody_else_becomes_due(store: Store) -> None:
    store.ask_report("a")
    store.report_made("b", 1)
    assert set(report_rows.due_reports(store)) == {"a"}


def test_each_error_is_reported_once_and_the_oldest_first(store: Store) -> None:
    errors = [ErrorRecord(f"E{n}", "m", "delivery", "ses", "x", "a@b.org", 2, NOON + n) for n in range(3)]
    store.put(ERROR_TABLE, errors)
    found = report_rows.unreported_errors(store, since=0.0)
    assert list(found.values()) == errors
    store.errors_reported(list(found)[:2])
    assert [error.code for error in report_rows.unreported_errors(store, since=0.0).values()] == ["E2"]
    assert len(error_log.errors(store, "x")) == 3


def test_errors_of_long_ago_are_left_alone(store: Store, factory: StoreFactory) -> None:
    """Who sets up the errors database after a year does not want that year in it."""
    store.put(
        ERROR_TABLE, [ErrorRecord("OLD", "m", "content", at=NOON - 100), ErrorRecord("NEW", "m", "content")]
    )
    assert [error.code for error in report_rows.unreported_errors(store, since=NOON - 10).values()] == ["NEW"]
    assert len(report_rows.unreported_errors(store, since=0.0, limit=1)) == 1
