"""`mailout messages`: a single mail that failed is no dead end."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mailout.app import wiring
from mailout.base.ids import transactional_id
from mailout.base.settings import load_settings
from mailout.base.time_format import iso
from mailout.letters.content.model import Content
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.protocol import Pace, Result, Step
from mailout.outbox.delivery.single_mails import SingleMail, SingleMailsHeld
from mailout.outbox.delivery.states import State
from tests.contract.scenes import dead_event
from tests.unit.cli.conftest import Run

FAILED, WAITS = transactional_id("shop", "failed"), transactional_id("shop", "waits")


def single(id: str, email: str) -> SingleMail:
    content = Content("Your receipt", "<p>Thank you</p>", "Thank you")
    return SingleMail(
        id=id, company_id="shop", request_id=email, email=email, content=content, is_rehearsal=True
    )


@pytest.fixture
def mails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has failed, and one that waits."""
    monkeypatch.setenv("MAILOUT_HOME", str(folder / "home"))
    with closing(wiring.open_store(load_settings())) as store:
        store.accept_single_mails([single(FAILED, "ana@example.org")])
        session = store.open_session(None, worker="test", transport="folder", lease=10.0)
        step = Step(session=session, n=1, lease=10.0, pace=Pace("folder", 0), want=1)
        (row,) = store.step(step).rows
        refused = Result(row.attempt, State.FAILED, code="SES_MESSAGE_REJECTED", message="No.")
        store.step(Step(session=session, n=2, lease=10.0, pace=step.pace, results=[refused], close=True))
        store.accept_single_mails([single(WAITS, "bo@example.org")])


@pytest.mark.usefixtures("mails")
def test_failed_single_mails_are_listed_with_the_reason_and_what_to_do(run: Run) -> None:
    listed = run("messages", "list", "--state", "failed", "--company", "shop")
    assert listed.code == 0
    for said in (FAILED, "ana@example.org", "SES_MESSAGE_REJECTED: No.", "mailout messages retry ID"):
        assert said in listed.out
    assert WAITS not in listed.out
    assert "No single mail is in doubt." in run("messages", "list", "--state", "unknown").out
    unknown = run("messages", "list", "--company", "zoo")
    assert (unknown.code, "There is no company zoo." in unknown.err) == (2, True)
    (one,) = run("messages", "list", "--state", "pending", "--json").data
    assert (one["id"], one["state"], one["subject"]) == (WAITS, "PENDING", "Your receipt")


@pytest.mark.usefixtures("mails")
@pytest.mark.parametrize("command", [("messages", "retry"), ("queue", "retry")])
def test_the_remedy_that_is_named_for_a_failed_single_mail_works(run: Run, command: tuple[str, str]) -> None:
    assert f"mailout messages retry {FAILED}" in run("status", "--message", FAILED).out
    assert run(*command, FAILED).code == 0
    assert run("status", "--message", FAILED, "--json").data["state"] == "PENDING"
    again = run(*command, FAILED)
    assert (again.code, "has not failed: it is PENDING" in again.err) == (2, True)


@pytest.mark.usefixtures("mails")
def test_a_waiting_single_mail_is_cancelled_and_a_failed_one_is_not(run: Run) -> None:
    (one,) = run("messages", "cancel", WAITS, "--yes", "--json").data
    assert (one["state"], one["error_message"]) == ("SUPPRESSED", "cancelled by a person")
    assert "\ncancelled by a person\n" in run("status", "--message", WAITS).out  # and no “(None)” for a code
    refused = run("messages", "cancel", FAILED, "--yes")
    assert (refused.code, "mailout messages retry ID" in refused.err) == (2, True)
    for command in ("retry", "cancel"):
        unknown = run("messages", command, "nobody")
        assert (unknown.code, "mailout messages list --state" in unknown.err) == (2, True)


@pytest.mark.usefixtures("mails")
def test_status_says_that_single_mails_wait_and_why(run: Run) -> None:
    with closing(wiring.open_store(load_settings())) as store:
        held = SingleMailsHeld(store.now(), "SES_ACCESS_DENIED", "Allow it, then resume.", needs_person=True)
        store.hold_single_mails(held, rehearsal=True)
    assert "1 single mail waits, since" in run("status").out
    assert run("status", "--json").data["single_mails"]["code"] == "SES_ACCESS_DENIED"
    assert "Allow it, then resume." in run("status", "--message", WAITS).out
    assert "Allow it, then resume." not in run("status", "--message", FAILED).out


@pytest.mark.usefixtures("mails")
def test_a_throttled_single_mail_says_so_and_when_it_goes_on(run: Run) -> None:
    with closing(wiring.open_store(load_settings())) as store:
        session = store.open_session(None, worker="test", transport="folder", lease=10.0)
        for n in (1, 3):
            begun = Step(session=session, n=n, lease=10.0, pace=Pace("folder", 0), want=1)
            (row,) = store.step(begun).rows
            throttled = Result(
                *(row.attempt, State.PENDING),
                code="SES_THROTTLING",
                message="Too fast.",
                retry_in=90.0 if n == 3 else None,
                give_back=True,
            )
            store.step(replace(begun, n=n + 1, results=[throttled], want=0, close=n == 3))
        goes_on = iso(outbox_rows.message(store, WAITS)["next_attempt_at"])
    said = run("status", "--message", WAITS).out
    assert "PENDING after 0 attempts" in said
    assert "Too fast. (SES_THROTTLING)" in said
    assert f"{goes_on}" in said
    last = run("status", "--message", WAITS, "--json").data["events"][-1]
    told = last["metadata"]
    assert (last["type"], told["errorCode"], told["count"]) == ("PENDING", "SES_THROTTLING", 2)


def test_an_event_that_nobody_can_read_is_listed_without_a_recipient(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stars would say that there is one, who is kept secret."""
    monkeypatch.setenv("MAILOUT_HOME", str(folder / "home"))
    with closing(wiring.open_store(load_settings())) as store:
        dead_event(store, '{"broken"')
    listed = run("dead-letters", "list").out
    assert "Nobody can read it." in listed
    assert "*" not in listed
