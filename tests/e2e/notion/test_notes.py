"""What waits for a person is told on the page itself: whoever writes there looks nowhere else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from mailout.app.engine import Engine
from mailout.app.queue_run import QueueRun
from mailout.kinds.mailouts.requests import enqueue_ready, show_all_is_paused
from mailout.outbox.queue import actions
from mailout.outbox.queue.mailout import DeferReason
from tests.e2e.conftest import Commands
from tests.e2e.notion.conftest import PAGE, PEOPLE, Build, Notion, Refusing, mails, plain
from tests.e2e.notion.test_queue import run_queue
from tests.stubs.notion_pages import block, p
from tests.stubs.notion_workspace import mailout_page, workspace
from tests.unit.outbox.queue.driving import Quiet

PAUSED = "Waits for a person: somebody paused it. Your administrator can let it go on."


def beside(notion: Notion) -> list[str]:
    """What stands beside the page now."""
    return [_text(comment) for comment in notion.stub.comments(PAGE)]


def _text(comment: dict[str, Any]) -> str:
    return "".join(item["plain_text"] for item in comment["rich_text"])


def waiting(engine: Engine) -> str:
    (mailout,) = enqueue_ready(engine.intake)
    actions.pause(engine.store, mailout.id)
    return mailout.id


def queue_run(engine: Engine) -> None:
    """As the flow does it, with its looks."""
    QueueRun(engine.sending, Quiet(engine), look=lambda: enqueue_ready(engine.intake)).run()


def test_what_it_waits_for_is_told_once_however_often_the_queue_looks(
    engine_with: Build, notion: Notion
) -> None:
    notion.load(status="Ready")
    waiting(engine_with())
    for _ in range(3):
        run_queue(engine_with())  # each in a process of its own
    assert notion.comments() == [PAUSED]
    assert notion.statuses() == ["Sending"]


def test_a_ready_page_says_that_everything_is_paused_and_later_that_it_goes_on(
    engine_with: Build, notion: Notion
) -> None:
    """Nothing reads it then, so nothing else would tell its writer why it stays Ready."""
    notion.load(status="Ready")
    engine_with().store.pause_all(True)
    for _ in range(2):
        show_all_is_paused(engine_with().intake)
    assert beside(notion) == [
        "Waits for a person: everything is paused. Your administrator can let it go on."
    ]
    assert notion.statuses() == []
    engine_with().store.pause_all(False)
    run_queue(engine_with())
    assert beside(notion) == ["It no longer waits."]
    assert len(mails(engine_with())) == len(PEOPLE)


def test_a_page_that_is_a_draft_again_does_not_wait(engine_with: Build, notion: Notion) -> None:
    notion.load(status="Ready")
    engine_with().store.pause_all(True)
    show_all_is_paused(engine_with().intake)
    notion.stub.edit(PAGE, status="Draft", is_test=False, blocks=[p("Hi")])
    engine_with().store.pause_all(False)
    for _ in range(2):
        run_queue(engine_with())
    assert beside(notion) == ["It no longer waits."]
    assert notion.statuses() == []


def test_where_it_may_not_comment_the_property_says_it_until_it_goes_on(
    engine_with: Build, notion: Notion
) -> None:
    page = mailout_page("Hello", "Ready")
    page["properties"]["status_note"] = {"type": "rich_text", "rich_text": []}
    notion.stub.load(workspace(pages={PAGE: page}, blocks={PAGE: [p("Hi")]}))
    notion.stub.script({"path": "/comments", "status": 403, "body": "{}", "times": 99})
    id = waiting(engine_with())
    for _ in range(2):
        run_queue(engine_with())
    actions.resume(engine_with().store, id)
    run_queue(engine_with())
    notes = [
        plain(call["body"]["properties"]["status_note"])
        for call in notion.stub.calls("PATCH")
        if "status_note" in call["body"]["properties"]
    ]
    assert [note[:19] for note in notes] == ["Waits for a person:", "It no longer waits."]


def test_what_has_gone_on_says_so_and_another_pause_is_told(engine_with: Build, notion: Notion) -> None:
    """A letter that was sent said for ever that it waits for a person; a second pause was not told at all."""
    notion.load(status="Ready")
    id = waiting(engine_with())
    run_queue(engine_with())
    actions.resume(engine_with().store, id)
    enqueue_ready(engine_with().intake)
    assert beside(notion) == ["It no longer waits."]
    actions.pause(engine_with().store, id)
    run_queue(engine_with())
    assert beside(notion) == [PAUSED]
    actions.resume(engine_with().store, id)
    run_queue(engine_with())
    assert notion.statuses()[-1] == "Send"
    assert beside(notion) == ["It no longer waits."]
    assert len(notion.comments()) == 1, "one note, brought up to date"


def test_a_letter_that_waits_for_its_hours_says_until_when(engine_with: Build, notion: Notion) -> None:
    """It said Sending for hours, without a word."""
    notion.load(status="Ready")
    opens = datetime.now(UTC) + timedelta(hours=5)
    window = f"{opens:%H:00}-{opens + timedelta(hours=1):%H:00}"
    for _ in range(3):
        run_queue(engine_with(SEND_WINDOW=window))
    (said,) = notion.comments()
    until = f"{opens.day} {opens:%b %Y %H:00} UTC"
    assert said == f"Waits until {until}: it is outside the hours for sending. Then it goes on by itself."
    assert beside(notion) == [said]
    run_queue_in_time(engine_with())
    assert beside(notion) == ["It no longer waits."]


def run_queue_in_time(engine: Engine) -> None:
    """As when its hour has come."""
    with engine.store.db.write() as tx:  # type: ignore[attr-defined]
        tx.execute("UPDATE campaign_queue SET deferred_until = 0 WHERE defer_reason IS NOT NULL")
    run_queue(engine)


def test_hour_after_hour_it_is_one_note(engine_with: Build, notion: Notion) -> None:
    notion.load(status="Ready")
    run_queue(engine_with(LIMIT_PER_HOUR="1"))
    (said,) = beside(notion)
    assert said.startswith("Waits until ")
    assert said.endswith(": this hour's limit is used up. Then it goes on by itself.")
    run_queue_in_time(engine_with(LIMIT_PER_HOUR="2"))
    run_queue_in_time(engine_with())
    assert (notion.statuses()[-1], beside(notion)) == ("Send", ["It no longer waits."])
    assert len(notion.comments()) == 1


def test_while_everything_is_paused_the_page_says_so(engine_with: Build, notion: Notion) -> None:
    notion.load(status="Ready")
    engine = engine_with()
    enqueue_ready(engine.intake)
    engine.store.pause_all(True)
    for _ in range(3):
        engine_with().pages.update_due()  # as the flow does it
    said = "Waits for a person: everything is paused. Your administrator can let it go on."
    assert notion.comments() == [said]
    engine.store.pause_all(False)
    run_queue(engine_with())
    assert (notion.statuses()[-1], beside(notion)) == ("Send", ["It no longer waits."])


def test_a_draft_that_stops_nothing_is_told_so(engine_with: Build, notion: Notion) -> None:
    """It was set back to Sending, and went out to everybody."""
    notion.load(status="Ready")
    waiting(engine_with())
    for _ in range(2):
        run_queue(engine_with())
        notion.stub.edit(PAGE, status="Draft", is_test=False, blocks=[p("How are you?")])
    run_queue(engine_with())
    said = "This letter is already on its way, and Draft does not stop it: only your administrator can."
    assert notion.comments() == [PAUSED, said]
    assert notion.statuses()[-1] == "Sending"


def test_a_draft_that_somebody_else_sends_is_no_attempt_to_stop_it(engine: Engine, notion: Notion) -> None:
    notion.load(status="Draft")
    engine.deliver(engine.intake.enqueue(PAGE).id)
    assert (notion.statuses(), notion.comments()) == (["Sending", "Send"], [])


def test_a_page_that_asks_for_the_test_it_waits_for_gets_it_and_goes_on(
    engine_with: Build, notion: Notion
) -> None:
    """The note told its writer to ask, and nothing happened."""
    notion.load(status="Ready")
    engine = engine_with(REQUIRE_TEST="true")
    for _ in range(2):
        queue_run(engine)
    (said,) = notion.comments()
    assert said.endswith("Tick is_test and set the page to Ready: after the test it goes on by itself.")
    notion.stub.edit(PAGE, status="Ready", is_test=True, blocks=[p("How are you?")])
    queue_run(engine)
    sent = [mail.name.split("--")[0] for mail in mails(engine)]
    assert sorted(sent) == sorted(["editor@example.org", *PEOPLE])
    assert notion.statuses() == ["Sending", "Sending", "Send"]
    queue_run(engine)
    assert len(mails(engine)) == len(sent)


def test_a_letter_whose_page_cannot_be_read_again_just_now_goes_on_by_itself(
    engine_with: Build, notion: Notion
) -> None:
    """With REQUIRE_TEST it is read when it begins; one answer of 503 held it until a person came."""
    notion.load(status="Ready")
    engine = engine_with(REQUIRE_TEST="true")
    (mailout,) = enqueue_ready(engine.intake)
    notion.stub.script({"path": "/children", "status": 503, "times": 100})
    for times, pause in enumerate((60.0, 300.0), start=1):
        with engine.store.db.write() as tx:  # type: ignore[attr-defined]
            tx.execute("UPDATE campaign_queue SET deferred_until = 0 WHERE defer_reason IS NOT NULL")
        began = engine.store.now()
        QueueRun(engine.sending, Quiet(engine)).run()
        waits = engine.store.mailout(mailout.id)
        assert waits.defer_reason is DeferReason.TRANSIENT_ERRORS
        assert "Notion answered 503" in (waits.defer_note or "")
        assert waits.transient_pauses == times
        assert (waits.deferred_until or 0.0) >= began + pause
    assert mails(engine) == []


def test_why_a_page_was_refused_is_told_beside_it(engine: Engine, notion: Notion) -> None:
    notion.load(subject="", status="Ready")
    run_queue(engine)
    assert notion.statuses() == ["Failed"]
    (said,) = notion.comments()
    assert said == "There is no subject. Give the page a title. Then set the page to Ready again."


def test_a_picture_without_a_public_address_is_for_the_administrator(
    engine_with: Build, notion: Notion
) -> None:
    """The page said: replace it, or make it smaller."""
    picture = block("image", {"type": "file", "file": {"url": "{files}/chart.png"}, "caption": []})
    notion.load(picture, status="Ready")
    run_queue(engine_with(PUBLIC_URL="", UNSUBSCRIBE_BASE_URL="https://mail.example.org/unsubscribe"))
    (said,) = notion.comments()
    assert said.startswith("Readers could not see chart.png: mailout has no public address yet")
    assert "your administrator has to set" in said
    assert "smaller" not in said


def test_every_missing_variable_is_told_at_once_with_words_to_use_and_without_addresses(
    engine_with: Build, notion: Notion
) -> None:
    """The writer mends the page once, and the list of readers stays where it is."""
    notion.load(p("Dear {{ first_name }}, how is {{ city }}, and {{ company_name }}?"), status="Ready")
    engine = engine_with(people=("ana@example.org", "bo@example.org"), ADMIN_PASSWORD="a few long words")
    run_queue(engine)
    (said,) = notion.comments()
    for words in ("first_name | friend", "city | your city", "company_name | your company"):
        assert f"{{{{ {words} }}}}" in said
    assert "2 people have no value for {{ first_name }}" in said
    assert "@" not in said
    assert said.endswith("On the dashboard: https://mail.example.org/problems")


def test_a_letter_that_did_not_reach_everybody_says_how_many_and_links_to_the_dashboard(
    engine_with: Build, notion: Notion
) -> None:
    notion.load(status="Ready")
    engine = engine_with(refusing=Refusing(PEOPLE[0]), ADMIN_PASSWORD="a few long words")
    run_queue(engine)
    (said,) = notion.comments()
    assert f"{len(PEOPLE) - 1} of {len(PEOPLE)} messages" in said
    assert "Your administrator can send it to those it did not reach, and to nobody else." in said
    assert "https://mail.example.org/letters/" in said
    assert "mailout queue" not in said


def asked_to_test(notion: Notion) -> None:
    notion.stub.edit(PAGE, status="Ready", is_test=True, blocks=[p("How are you?")])


def test_a_test_that_reached_nobody_says_so_and_the_next_one_that_it_did(
    engine_with: Build, notion: Notion
) -> None:
    """The page went back to Draft, as after a test that everybody has."""
    asked_to_test(notion)
    run_queue(engine_with(refusing=Refusing("editor@example.org")))
    assert notion.statuses() == ["Sending", "Draft"]
    failed = "Test run. 0 of 1 message were sent; 1 failed. Your administrator can see why."
    assert beside(notion) == [failed]
    asked_to_test(notion)
    run_queue(engine_with(refusing=Refusing(lost=["editor@example.org"])))
    assert beside(notion) == [failed.replace("1 failed", "1 is in doubt")]
    asked_to_test(notion)
    run_queue(engine_with())
    assert beside(notion) == ["The last test run was sent to all test readers."]
    asked_to_test(notion)
    run_queue(engine_with(refusing=Refusing("editor@example.org")))
    assert beside(notion) == [failed]
    assert len(notion.comments()) == 1


def test_a_test_that_lies_in_a_folder_says_so(commands: Commands, notion: Notion) -> None:
    """Its writer waited for a mail in vain."""
    asked_to_test(notion)
    commands("send", PAGE, "--test")
    said = "Test run: 2 letters. Written to a folder. Nothing was sent to anybody."
    assert notion.comments() == [f"{said} Your administrator can switch sending on."]


NOT_OURS = {
    "path": "/comments/",
    "method": "PATCH",
    "status": 404,
    "body": '{"object":"error","status":404,"code":"object_not_found","message":"x"}',
    "times": 99,
}


def test_a_comment_that_is_not_ours_keeps_no_page_from_being_told(engine: Engine, notion: Notion) -> None:
    """Notion answers as if it were not there; taken for a page that is gone, each run would send a test."""
    notion.load(status="Ready", is_test=True)
    reporter = engine.pages.reporter
    assert reporter is not None
    for words in ("Waits for a person: somebody paused it.", "Test run. Looks great, thanks!"):
        reporter.note(PAGE, words)
    notion.stub.script(NOT_OURS)
    for _ in range(3):
        run_queue(engine)
    assert notion.statuses() == ["Sending", "Draft"]
    assert len(mails(engine)) == 1


def test_where_another_s_comment_begins_like_ours_one_of_our_own_is_kept(
    engine_with: Build, notion: Notion
) -> None:
    notion.load(status="Ready")
    engine = engine_with(LIMIT_PER_HOUR="1")
    reporter = engine.pages.reporter
    assert reporter is not None
    reporter.note(PAGE, "Waits until tomorrow, I hope.")
    (theirs,) = notion.stub.comments(PAGE)
    notion.stub.script({**NOT_OURS, "path": f"/comments/{theirs['id']}"})
    for _ in range(3):
        run_queue(engine)
    first, ours = notion.comments()
    assert first == "Waits until tomorrow, I hope."
    assert ours.startswith("Waits until ")
