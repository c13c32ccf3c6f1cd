"""Pages that ask to be sent, and pages that are told: the engine against a Notion over HTTP."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC
from typing import Any

import pytest

from mailout.app.engine import Engine
from mailout.base import error_log, ids
from mailout.base.errors import Abort
from mailout.insight.page_status import report_rows
from mailout.insight.reporting.phrases import waiting
from mailout.kinds.mailouts import readiness
from mailout.kinds.mailouts.early_checks import check_early
from mailout.kinds.mailouts.readiness import TakenBack
from mailout.kinds.mailouts.requests import answer, enqueue_ready
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout, MailoutOutcome, Status
from mailout.outbox.queue.port import Request, RequestKind
from tests.e2e.notion.conftest import PAGE, PEOPLE, Build, Notion, Refusing, mails
from tests.stubs.notion_pages import id_of, p, words
from tests.stubs.notion_workspace import MAILOUTS, mailout_page, workspace

REAL = ids.mailout_id(PAGE)


def run_queue(engine: Engine) -> None:
    """What the flow does every minute."""
    enqueue_ready(engine.intake)
    for mailout in queue_rows.due_mailouts(engine.store, stale=60):
        engine.deliver(mailout.id)
    check_early(engine.intake)


def test_a_page_that_is_ready_is_sent_once_and_says_so(engine: Engine, notion: Notion) -> None:
    notion.load(status="Ready")
    for _ in range(3):
        run_queue(engine)
    assert len(mails(engine)) == 3
    assert notion.statuses() == ["Sending", "Send"]
    assert notion.errors() == []


def test_drafts_and_pages_of_tomorrow_wait(engine: Engine, notion: Notion) -> None:
    notion.load(status="Ready", send_at={"start": "2999-01-01"})
    run_queue(engine)
    notion.load(status="Draft")
    run_queue(engine)
    assert (mails(engine), notion.written()) == ([], [])


def test_a_letter_with_a_time_of_its_own_is_not_brought_forward_by_its_page(
    engine: Engine, notion: Notion
) -> None:
    """Scheduled on the dashboard for next week: the page may be Ready long before."""
    notion.load(status="Ready")
    planned = Request(PAGE, RequestKind.REAL, not_before=engine.store.now() + 5 * 86_400)
    engine.store.ask(planned, repeat=0)
    for _ in range(2):
        run_queue(engine)
    assert answer(engine.intake, Request(PAGE, RequestKind.IF_READY)) is None
    assert mails(engine) == []
    (comment,) = notion.comments()
    assert comment.startswith("Waits until ")
    assert "somebody has scheduled it. Then it goes on by itself." in comment
    assert queue_rows.planned(engine.store) == [planned]
    engine.store.answered(planned)
    engine.pages.show_planned(PAGE, None)
    assert "It no longer waits." in str(notion.stub.comments(PAGE))
    run_queue(engine)
    assert len(mails(engine)) == 3


def test_what_is_taken_back_while_its_page_is_read_is_not_sent(engine: Engine, notion: Notion) -> None:
    request = Request(PAGE, RequestKind.REAL)
    engine.store.ask(request, repeat=0)

    def slowly(ref: str, test: bool | None, asked_at: float | None) -> Mailout:
        loaded = engine.intake.load(ref, test, asked_at)
        assert engine.store.answered(request), "somebody cancels"
        return engine.intake.enqueue_loaded(loaded)

    with pytest.raises(TakenBack):
        answer(engine.intake, request, slowly)
    assert queue_rows.mailouts(engine.store) == []
    assert error_log.errors(engine.store, PAGE) == []


def test_who_presses_retry_is_believed(engine: Engine, notion: Notion) -> None:
    """A refusal has answered the request; corrected, the letter goes out all the same."""
    request = Request(PAGE, RequestKind.REAL)
    engine.store.ask(request, repeat=0)
    notion.load(p("Dear {{ code }}"))
    with pytest.raises(Abort):
        answer(engine.intake, request)
    notion.load(p("Dear friend"))
    with pytest.raises(TakenBack):
        answer(engine.intake, request)
    assert answer(engine.intake, request, by_hand=True) is not None


def test_a_refusal_after_a_test_is_another_one(engine: Engine, notion: Notion) -> None:
    """Else the dashboard would take it for past: the test is newer."""
    notion.load(p("Dear {{ code }}"))
    for how in (RequestKind.AS_WRITTEN, RequestKind.AS_WRITTEN, RequestKind.TEST, RequestKind.AS_WRITTEN):
        request = Request(PAGE, how)
        engine.store.ask(request, repeat=0)
        with suppress(Abort):
            answer(engine.intake, request)
    assert [one.code for one in error_log.errors(engine.store, PAGE)] == ["variable_missing"] * 2


YES = {"type": "select", "select": {"name": "Yes"}}
UNREADABLE: list[tuple[str, str | None, dict[str, Any] | None, str]] = [
    ("is_test", None, None, "The database has no checkbox is_test. Add it"),
    ("is_test", "Is test", {"type": "checkbox", "checkbox": True}, "Is test has to be called is_test."),
    ("is_test", "is_test", YES, "is_test has the type select, not checkbox."),
    (
        "list",
        "list",
        {"type": "multi_select", "multi_select": [{"name": "board"}]},
        "multi-select, not select",
    ),
    ("list", "List", {"type": "select", "select": {"name": "board"}}, "List has to be called list."),
    ("segment", "segment", {"type": "formula", "formula": {"string": "x"}}, "formula, not select or text"),
    ("send_at", "send_at", {"type": "rich_text", "rich_text": []}, "send_at has the type text, not date."),
    ("send_at", "Send at", {"type": "date", "date": {"start": "2999-01-01"}}, "has to be called send_at."),
]


@pytest.mark.parametrize(("ours", "theirs", "value", "why"), UNREADABLE)
def test_a_page_that_does_not_say_to_whom_or_when_goes_to_nobody(
    engine: Engine, notion: Notion, ours: str, theirs: str | None, value: dict[str, Any] | None, why: str
) -> None:
    """A test that is not recognised as one would go to everybody."""
    page = mailout_page("Hello", "Ready")
    page["properties"].pop(ours, None)
    if theirs:
        page["properties"][theirs] = value
    notion.stub.load(workspace(pages={PAGE: page}, blocks={PAGE: [p("Hi")]}))
    run_queue(engine)
    run_queue(engine)
    assert mails(engine) == []
    assert notion.statuses() == ["Failed"]
    (comment,) = notion.comments()
    assert why in comment
    assert comment.endswith("then set Ready again.")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Is test", {"type": "checkbox", "checkbox": True}),
        ("List ", YES),
    ],
)
def test_an_empty_property_beside_a_filled_one_that_is_called_alike_is_not_believed(
    engine: Engine, notion: Notion, name: str, value: dict[str, Any]
) -> None:
    page = mailout_page("Hello", "Ready")
    page["properties"][name] = value
    notion.stub.load(workspace(pages={PAGE: page}, blocks={PAGE: [p("Hi")]}))
    run_queue(engine)
    assert (mails(engine), notion.statuses()) == ([], ["Failed"])
    assert f"{name} has to be called" in notion.comments()[0]


@pytest.mark.parametrize("by_webhook", [True, False])
def test_a_property_that_was_renamed_is_known_by_its_id(
    engine_with: Build, notion: Notion, by_webhook: bool
) -> None:
    """A letter for the board went to everybody when `list` was called “Liste”."""

    def load(name: str) -> None:
        page = mailout_page("Hello", "Ready", list={"name": "board"})
        page["properties"][name] = page["properties"].pop("list") | {"id": "li%3Ds"}
        content = workspace(pages={PAGE: page}, blocks={PAGE: [p("Hi")]})
        properties = content["databases"][MAILOUTS]["properties"]
        properties[name] = properties.pop("list") | {"id": "li%3Ds"}
        notion.stub.load(content)

    load("list")
    before = engine_with()
    assert before.pages.reporter is not None
    assert before.pages.reporter.ready(0.0) == [PAGE]
    load("Liste")
    engine = engine_with()  # another process
    if by_webhook:
        assert answer(engine.intake, Request.of(PAGE, if_ready=True)) is None
    else:
        run_queue(engine)
    assert (mails(engine), notion.statuses()) == ([], ["Failed"])
    assert notion.comments() == [
        "The property list is now called Liste. Rename it back to list, then set Ready again."
    ]
    engine = engine_with(NOTION_PROP_LIST="Liste")
    load("Liste")
    run_queue(engine)
    assert "No list is called board" in notion.comments()[0]


def test_what_notion_computes_beside_an_empty_property_keeps_nobody_from_sending(
    engine: Engine, notion: Notion
) -> None:
    page = mailout_page("Hello", "Ready")
    page["properties"]["Send At"] = {"type": "formula", "formula": {"type": "string", "string": None}}
    page["properties"]["List"] = {"type": "rollup", "rollup": {"type": "array", "array": []}}
    notion.stub.load(workspace(pages={PAGE: page}, blocks={PAGE: [p("Hi")]}))
    run_queue(engine)
    assert len(mails(engine)) == 3


def test_a_property_of_another_kind_that_is_empty_keeps_nobody_from_sending(
    engine: Engine, notion: Notion
) -> None:
    page = mailout_page("Hello", "Ready")
    del page["properties"]["list"]
    page["properties"]["List"] = {"type": "multi_select", "multi_select": []}
    notion.stub.load(workspace(pages={PAGE: page}, blocks={PAGE: [p("Hi")]}))
    run_queue(engine)
    assert len(mails(engine)) == 3


@pytest.mark.parametrize(("test", "sent"), [(None, 0), (False, 3), (True, 1)])
def test_a_page_of_tomorrow_that_is_asked_for_by_hand_waits_unless_somebody_says_for_real_or_test(
    engine_with: Build, notion: Notion, test: bool | None, sent: int
) -> None:
    notion.load(send_at={"start": "2999-01-01T00:00:00Z"})
    engine = engine_with()
    request = Request.of(PAGE, test)
    engine.store.ask(request, repeat=60)
    mailout = answer(engine.intake, request)
    assert mailout is not None
    engine.deliver(mailout.id)
    assert len(mails(engine)) == sent
    if test is None:
        planned = engine.store.mailout(mailout.id)
        assert (planned.planned_for, planned.ledger.pending) == (32_472_144_000.0, 3)
        assert waiting(planned, UTC) == "It is planned for 1 Jan 2999 00:00 UTC, to 3 people."


def test_a_test_page_goes_to_test_emails_and_back_to_draft_as_often_as_asked(
    engine: Engine, notion: Notion
) -> None:
    for run in (1, 2):
        notion.load(status="Ready", is_test=True)
        run_queue(engine)
        run_queue(engine)
        assert notion.written() == [{"status": "Sending"}, {"status": "Draft"}]  # no sent_at, no counts
        assert [mail.name.split("--")[0] for mail in mails(engine)] == ["editor@example.org"] * run
    notion.load(status="Ready")
    run_queue(engine)
    assert len(mails(engine)) == 2 + 3, "the real one was not blocked"


def test_a_page_that_is_unticked_while_its_test_runs_goes_back_to_draft(
    engine: Engine, notion: Notion
) -> None:
    """It said Sending for ever, and its writer did not dare to touch it."""
    notion.load(status="Ready", is_test=True)
    (mailout,) = enqueue_ready(engine.intake)
    notion.stub.edit(PAGE, status="Sending", is_test=False, blocks=[p("How are you?")])
    engine.deliver(mailout.id)
    assert notion.statuses() == ["Sending", "Draft"]


def test_a_test_that_ends_while_the_real_one_is_sent_leaves_the_page_in_sending(
    engine: Engine, notion: Notion
) -> None:
    notion.load(status="Ready", is_test=True)
    (test,) = enqueue_ready(engine.intake)
    notion.stub.edit(PAGE, status="Sending", is_test=False, blocks=[p("How are you?")])
    engine.intake.enqueue(PAGE)
    engine.deliver(test.id)
    assert notion.statuses() == ["Sending"]


def test_a_test_of_a_page_that_was_sent_does_not_undo_it(engine: Engine, notion: Notion) -> None:
    """Back in `Draft`, somebody would send it to everybody again."""
    notion.load(status="Ready")
    run_queue(engine)
    notion.load(status="Ready", is_test=True, sent_at={"start": "2026-11-15"})
    run_queue(engine)
    run_queue(engine)
    assert len(mails(engine)) == 3 + 1
    assert set(notion.statuses()) == {"Send"}


def test_a_test_whose_page_cannot_be_told_is_not_sent(engine: Engine, notion: Notion) -> None:
    """It would ask again every minute, and every minute the editor would get another mail."""
    notion.load(status="Ready", is_test=True)
    notion.stub.script({"method": "PATCH", "status": 403, "body": "{}", "times": 100})
    run_queue(engine)
    assert (mails(engine), queue_rows.mailouts(engine.store)) == ([], [])


@pytest.mark.parametrize("away", ["PATCH", "everything"])
def test_a_test_that_could_not_begin_is_asked_for_again(
    engine_with: Build, notion: Notion, away: str
) -> None:
    """Three answers of 503 set the page to Draft, and its writer waited for a mail in vain."""
    notion.load(status="Ready", is_test=True)
    fault = {"method": "PATCH"} if away == "PATCH" else {}

    def as_notion_goes_away(ref: str, test: bool | None, asked_at: float | None) -> Mailout:
        mailout = engine.intake.enqueue(ref, test, asked_at)
        notion.stub.script(fault | {"status": 503, "times": 1000})
        return mailout

    engine = engine_with()
    assert enqueue_ready(engine.intake, as_notion_goes_away) == []
    notion.stub.script()
    before = len(notion.written())
    run_queue(engine_with())  # a minute later
    run_queue(engine_with())
    assert [mail.name.split("--")[0] for mail in mails(engine)] == ["editor@example.org"]
    assert [write["status"] for write in notion.written()[before:]] == ["Sending", "Draft"]


def test_a_real_one_whose_page_cannot_be_told_is_sent_once_and_told_later(
    engine_with: Build, notion: Notion
) -> None:
    notion.load(status="Ready")
    notion.stub.script({"method": "PATCH", "status": 500, "times": 1000})
    engine = engine_with()
    run_queue(engine)
    run_queue(engine)
    assert len(mails(engine)) == 3
    assert engine.store.mailout(REAL).outcome is MailoutOutcome.SENT
    notion.stub.script()
    run_queue(engine_with())  # a minute later
    assert notion.statuses()[-1] == "Send"
    assert notion.errors() == [], "nobody asked for it twice"
    assert len(mails(engine)) == 3


def test_an_edit_while_it_is_being_sent_changes_nothing(engine: Engine, notion: Notion) -> None:
    notion.load(p("The first words."), status="Ready")
    (mailout,) = enqueue_ready(engine.intake)
    notion.load(p("Other words."), subject="Another subject", status="Sending")
    engine.deliver(mailout.id)
    assert engine.store.mailout(mailout.id).content_hash == mailout.content_hash
    for mail in mails(engine):
        written = mail.read_text(encoding="utf-8")
        assert "The first words." in written
        assert "Subject: Hello" in written
        assert "Other words." not in written


def test_a_page_that_cannot_be_sent_asks_no_more_and_the_others_go_on(engine: Engine, notion: Notion) -> None:
    good = id_of("a good page")
    pages = {PAGE: mailout_page("", "Ready"), good: mailout_page("Good", "Ready")}
    notion.stub.load(workspace(pages=pages, blocks={PAGE: [p("x")], good: [p("x")]}))
    run_queue(engine)
    run_queue(engine)
    assert notion.written() == [{"status": "Failed"}]
    assert notion.statuses(good) == ["Sending", "Send"]
    assert [error["code"] for error in notion.errors()] == ["subject_required"]


def test_a_page_for_an_empty_list_fails_with_the_reason(engine_with: Build, notion: Notion) -> None:
    notion.load(status="Ready")
    run_queue(engine_with(people=()))
    assert notion.written() == [{"status": "Failed"}]
    (error,) = notion.errors()
    assert error["code"] == "cannot_be_sent"
    assert "mailout subscribers import" in error["message"]


@pytest.mark.parametrize("by_webhook", [True, False])
def test_a_page_that_webhook_and_look_both_find_is_sent_once_and_no_error(
    engine: Engine, notion: Notion, by_webhook: bool
) -> None:
    """A letter that went out well once left errors in Notion and on the dashboard."""
    notion.load(status="Ready")

    def after_the_other_one(ref: str, test: bool | None, asked_at: float | None) -> Mailout:
        run_queue(engine)
        return engine.intake.enqueue(ref, test, asked_at)

    if by_webhook:
        request = Request.of(PAGE, if_ready=True)
        engine.store.ask(request, repeat=60)
        assert answer(engine.intake, request, after_the_other_one) is None
        assert queue_rows.asked(engine.store, waiting=0) == []
    else:
        assert enqueue_ready(engine.intake, after_the_other_one) == []
    assert len(mails(engine)) == 3
    assert notion.statuses() == ["Sending", "Send"]
    assert (notion.errors(), error_log.errors(engine.store)) == ([], [])


def test_a_sent_page_that_is_set_to_ready_again_goes_back_to_send(
    engine: Engine, notion: Notion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "SAME_ASK_SECONDS", 0.0)  # it was set a minute later
    notion.load(status="Ready")
    run_queue(engine)
    notion.load(status="Ready", sent_at={"start": "2026-11-15"})
    run_queue(engine)
    run_queue(engine)
    assert len(mails(engine)) == 3
    assert notion.statuses() == ["Send"]
    assert [error["code"] for error in notion.errors()] == ["mailout_already_sent"]


def test_a_copy_of_a_sent_page_says_that_nobody_got_it(engine: Engine, notion: Notion) -> None:
    """Set to Send, it was taken for sent. The store may be a new one, so it is not sent either."""
    notion.load(status="Ready", sent_at={"start": "2026-10-01"}, sent_count=3)
    run_queue(engine)
    run_queue(engine)
    assert (mails(engine), notion.written()) == ([], [{"status": "Failed"}])
    (comment,) = notion.comments()
    assert comment.startswith("This page already has a sent_at date, perhaps because it was duplicated.")
    assert "clear sent_at, then set Ready again." in comment
    notion.load(status="Ready")
    run_queue(engine)
    assert len(mails(engine)) == 3


def test_notion_away_keeps_nobody_from_sending_what_is_due(engine: Engine, notion: Notion) -> None:
    notion.load(status="Ready")
    enqueue_ready(engine.intake)
    notion.stub.script({"drop": True, "times": 1000})
    run_queue(engine)
    assert len(mails(engine)) == 3


def test_failures_are_on_the_page_and_in_the_errors_database(engine_with: Build, notion: Notion) -> None:
    notion.load(status="Ready")
    people = [f"p{n:02}@example.org" for n in range(30)]
    engine = engine_with(people=people, refusing=Refusing(*people[:25]))
    run_queue(engine)
    assert notion.statuses() == ["Sending", "Failed"]
    told = notion.written()[-1]
    assert (told["sent_count"], told["failed_count"], bool(told["sent_at"])) == (5, 25, True)
    group, *single = notion.errors()
    assert group["code"] == "MESSAGE_REJECTED"
    assert group["message"].startswith("25 messages: p00@example.org, p01@example.org")
    assert "and 20 more. No such box" in group["message"]
    assert group["mailout"] == f"Hello ({REAL})"
    assert [error["email"] for error in single] == people[:25]
    assert single[0]["Name"] == "MESSAGE_REJECTED: Hello, p00@example.org"
    assert {(error["stage"], error["provider"], error["attempts"]) for error in single} == {
        ("delivery", "stub", 1)
    }


def test_only_retry_goes_on_with_a_failed_page_and_then_it_is_told_again(
    engine_with: Build, notion: Notion
) -> None:
    notion.load(status="Ready")
    refusing = Refusing(PEOPLE[0])
    engine = engine_with(refusing=refusing)
    run_queue(engine)
    run_queue(engine)
    assert notion.statuses() == ["Sending", "Failed"]
    assert len(notion.errors()) == 1, "each error once"
    refusing.refused.clear()
    engine.store.retry_failed(REAL)
    engine.report(REAL)  # as `queue retry` does
    run_queue(engine)
    assert notion.statuses() == ["Sending", "Failed", "Sending", "Send"]
    assert (notion.written()[-1]["sent_count"], notion.written()[-1]["failed_count"]) == (3, 0)
    assert len(mails(engine)) == 3


def test_what_nobody_knows_keeps_the_page_failed_until_it_is_settled(
    engine_with: Build, notion: Notion
) -> None:
    notion.load(status="Ready")
    engine = engine_with(refusing=Refusing(lost=PEOPLE[:1]))
    run_queue(engine)
    assert notion.statuses()[-1] == "Failed"
    (error,) = notion.errors()
    assert (error["code"], error["email"]) == ("OUTCOME_UNKNOWN", PEOPLE[0])
    engine.store.settle(REAL, State.SENT, wait=0.0)
    engine.report(REAL)
    assert notion.statuses()[-1] == "Send"


def test_deliveries_and_bounces_come_to_the_page_when_they_come(engine: Engine, notion: Notion) -> None:
    notion.load(status="Ready")
    run_queue(engine)
    with engine.store.db.write() as tx:  # type: ignore[attr-defined]
        metrics = '{"delivered": 2, "bounced": 1, "unsubscribed": 1, "opened": 9}'
        tx.execute("UPDATE campaign_queue SET metrics = ?", (metrics,))
    engine.pages.refresh()
    assert notion.written()[-1] == {"delivered_count": 2, "bounce_rate": 0.3333, "unsub_rate": 0.3333}
    before = len(notion.written())
    engine.pages.refresh()
    assert len(notion.written()) == before, "what the page says already is not written again"


@pytest.mark.parametrize("missing", [("sent_count", "bounce_rate"), ("sent_at", "failed_count")])
def test_a_database_that_lacks_properties_gets_the_others(
    engine: Engine, notion: Notion, missing: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    page: dict[str, Any] = mailout_page("Hello", "Ready")
    for name in missing:
        del page["properties"][name]
    notion.stub.load(workspace(pages={PAGE: page}, blocks={PAGE: [p("x")]}))
    run_queue(engine)
    assert engine.store.mailout(REAL).status is Status.COMPLETED
    assert notion.statuses() == ["Sending", "Send"]
    assert len([one for one in caplog.records if "no property to write" in one.message]) == 1


def test_a_cancelled_mailout_is_not_left_in_sending(engine: Engine, notion: Notion) -> None:
    notion.load(status="Ready")
    enqueue_ready(engine.intake)
    engine.store.cancel(REAL)
    run_queue(engine)
    assert notion.statuses() == ["Sending", "Failed"]
    assert "sent_at" not in notion.written()[-1]


def test_without_an_errors_database_errors_stay_in_the_store(engine_with: Build, notion: Notion) -> None:
    notion.load(subject="", status="Ready")
    engine = engine_with(NOTION_DB_ERRORS="")
    run_queue(engine)
    assert notion.errors() == []
    assert [error.code for error in error_log.errors(engine.store, PAGE)] == ["subject_required"]


def test_a_process_that_dies_after_the_last_mail_leaves_no_page_in_sending(
    engine_with: Build, notion: Notion
) -> None:
    notion.load(status="Ready")
    engine = engine_with()
    (mailout,) = enqueue_ready(engine.intake)
    engine.sending.freeze(mailout.id)
    engine.sending.start(mailout.id)
    engine.sending.conclude(mailout.id, engine.sending.send_for(mailout.id))  # and no report
    assert notion.statuses() == ["Sending"]
    run_queue(engine_with())
    assert notion.statuses() == ["Sending", "Send"]


def test_a_test_for_nobody_fails_and_says_so(engine_with: Build, notion: Notion) -> None:
    notion.load(status="Ready", is_test=True)
    run_queue(engine_with(TEST_EMAILS=""))
    assert notion.written() == [{"status": "Failed"}]
    assert [error["code"] for error in notion.errors()] == ["test_emails_empty"]


def test_a_page_that_notion_cannot_give_is_asked_again(engine_with: Build, notion: Notion) -> None:
    notion.load(status="Ready")
    notion.stub.script({"path": "/children", "status": 503, "times": 5})
    run_queue(engine_with())
    assert (notion.written(), notion.errors()) == ([], [])
    run_queue(engine_with())
    assert notion.statuses() == ["Sending", "Send"]


def test_a_page_that_notion_refuses_to_give_fails_with_its_words(engine: Engine, notion: Notion) -> None:
    notion.load(status="Ready")
    said = '{"code": "validation_error", "message": "This block is odd."}'
    notion.stub.script({"path": "/children", "status": 400, "body": said, "times": 9})
    run_queue(engine)
    assert notion.written() == [{"status": "Failed"}]
    (error,) = notion.errors()
    assert "This block is odd." in error["message"]


def test_equal_problems_of_a_page_are_one_line(engine: Engine, notion: Notion) -> None:
    notion.load(p("Words"), *(words(f"new_{n}", "x") for n in range(7)), status="Ready")
    run_queue(engine)
    (error,) = notion.errors()
    assert (error["code"], error["stage"]) == ("content_block_unsupported", "content")
    assert error["message"].startswith("7 times: ")
    assert error["message"].endswith("And 2 more.")


def test_a_wrong_errors_database_keeps_no_page_from_being_told(engine_with: Build, notion: Notion) -> None:
    """And what it should have been told is kept until somebody sets it right."""
    notion.load(subject="", status="Ready")
    engine = engine_with(NOTION_DB_ERRORS=id_of("nowhere"))
    run_queue(engine)
    assert notion.statuses() == ["Failed"]
    run_queue(engine_with())
    assert [error["code"] for error in notion.errors()] == ["subject_required"]


def test_a_page_that_was_thrown_away_is_not_told_for_ever(engine: Engine, notion: Notion) -> None:
    notion.load(status="Ready")
    enqueue_ready(engine.intake)
    notion.stub.load(workspace(pages={}, blocks={}))
    run_queue(engine)
    assert len(mails(engine)) == 3
    assert report_rows.due_reports(engine.store) == {}


def test_a_page_in_the_trash_keeps_no_other_page_from_being_sent(engine: Engine, notion: Notion) -> None:
    """Every letter written in Notion waited for it, without a word."""
    notion.load(status="Ready")
    run_queue(engine)
    other = id_of("the next letter")
    thrown_away = mailout_page("Hello", "Send", sent_at={"start": "2026-11-15"}) | {"in_trash": True}
    pages = {PAGE: thrown_away, other: mailout_page("Next", "Ready")}
    notion.stub.load(workspace(pages=pages, blocks={PAGE: [p("x")], other: [p("x")]}))
    with engine.store.db.write() as tx:  # type: ignore[attr-defined]
        tx.execute("UPDATE campaign_queue SET metrics = ?", ('{"delivered": 2}',))
    engine.pages.refresh()  # there is something new to say of it
    run_queue(engine)
    assert notion.statuses(other) == ["Sending", "Send"]
    assert (notion.written(), report_rows.due_reports(engine.store)) == ([], {})


@pytest.mark.parametrize("shows", ["Ready", "Sending"])
def test_a_page_that_notion_never_takes_keeps_no_other_from_being_sent(
    engine: Engine, notion: Notion, shows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given up once the letter is out; one that still says Ready is not asked to be sent again."""
    monkeypatch.setattr(readiness, "SAME_ASK_SECONDS", 0.0)  # each run is a minute later
    notion.load(status="Ready")
    said = '{"code": "validation_error", "message": "Can\'t edit page on block with an archived ancestor."}'
    refused = {"method": "PATCH", "path": PAGE, "status": 400, "body": said, "times": 100}
    if shows == "Ready":
        notion.stub.script(refused)
    (mailout,) = enqueue_ready(engine.intake)
    notion.stub.script(refused)
    engine.deliver(mailout.id)
    other = id_of("the next letter")
    pages = {PAGE: mailout_page("Hello", shows), other: mailout_page("Next", "Ready")}
    notion.stub.load(workspace(pages=pages, blocks={PAGE: [p("x")], other: [p("x")]}))
    notion.stub.script(refused)
    run_queue(engine)
    run_queue(engine)
    assert notion.statuses(other) == ["Sending", "Send"]
    assert list(report_rows.due_reports(engine.store)) == ([REAL] if shows == "Ready" else [])
    assert (len(mails(engine)), notion.errors()) == (6, [])


def test_a_page_set_to_done_by_hand_is_told_once_how_to_send_it(engine: Engine, notion: Notion) -> None:
    """Its author believes that it was sent, and nobody has got it."""
    notion.load(status="Send")
    notion.stub.load(
        workspace(pages={PAGE: mailout_page("Hello", "Send") | {"last_edited_time": "2999-01-01"}})
    )
    for _ in range(2):
        run_queue(engine)
    comments = [call["body"] for call in notion.stub.calls("POST") if call["path"] == "/v1/comments"]
    assert [one["rich_text"][0]["text"]["content"] for one in comments] == [
        "Send means done; to send, set Ready."
    ]
    assert [error["code"] for error in notion.errors()] == ["set_to_done_by_hand"]
    assert (mails(engine), notion.statuses()) == ([], [])
