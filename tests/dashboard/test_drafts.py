"""A draft is a letter: looked at, checked, tested, scheduled, sent and taken back on its page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.base.ids import mailout_id
from mailout.base.time_format import spoken
from mailout.insight.history import history_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.actions import pause
from mailout.outbox.queue.mailout import NewMailout
from mailout.outbox.queue.port import Request, RequestKind
from tests.dashboard.conftest import EDITOR, Site, site
from tests.dashboard.scene import PAGE, ZONE, Scene
from tests.stubs.notion import TOKEN
from tests.stubs.notion_pages import p
from tests.stubs.notion_workspace import MAILOUTS, mailout_page, workspace
from tests.stubs.running import NotionStub, notion_stub

SUBJECT = "Hello {{ first_name | friend }}"
NOTION: dict[str, Any] = {
    "notion_token": TOKEN,
    "notion_db_mailouts": MAILOUTS,
    "from_email": "news@harbour.example",
    "from_name": "Harbour News",
    "org_address": "1 Quay",
    "unsubscribe_base_url": "https://mail.harbour.example/unsubscribe",
    "unsubscribe_secret": "0123456789" * 4,
    "public_url": "https://mail.harbour.example",
    "mailout_transport": "ses",
}


@pytest.fixture(scope="module")
def notion() -> Iterator[NotionStub]:
    with notion_stub() as stub:
        yield stub


@pytest.fixture
def desk(notion: NotionStub, filled: Path, tmp_path: Path) -> Iterator[Site]:
    write(notion, "Dear {{ first_name | friend }} of {{ city | Lisbon }}.")
    with site(filled, tmp_path / "home", notion_base_url=notion.url, **NOTION) as opened:
        opened.sign_in()
        yield opened


def write(notion: NotionStub, *words: str, status: str = "Draft", **values: Any) -> None:
    page = mailout_page(SUBJECT, status, list={"name": "newsletter"}, **values)
    notion.load(workspace(pages={PAGE: page}, blocks={PAGE: [p(one) for one in words]}))


def read(desk: Site, **asked: str) -> str:
    return desk.client.get("/draft", params={"ref": PAGE, "read": "1", **asked}).text


def test_a_draft_is_shown_as_a_reader_would_get_it(desk: Site) -> None:
    """Never marks, never braces: whoever sends it sees what people read."""
    known = {"first_name": "Zoe", "city": "Porto"}
    zoe = SubscriberRow("zoe@example.org", "zoe@example.org", attributes=known, lists=("newsletter",))
    desk.store.import_subscribers([zoe])
    page = read(desk, view="text")
    for shown in ("Harbour News &lt;news@harbour.example&gt;", "<b>Hello Alex</b>", "Dear Alex of Lisbon."):
        assert shown in page, shown
    frame = desk.client.get("/draft/mail", params={"ref": PAGE}).text
    for text in (page, frame, desk.client.get("/letters?show=drafts&look=1").text):
        assert "{{" not in text
        assert "[html:" not in text
        assert "\ue000" not in text
    assert "Dear Alex of Lisbon." in frame


def test_an_administrator_sees_it_as_a_real_person_does_and_an_editor_not(desk: Site) -> None:
    person = SubscriberRow("eva@example.net", "eva@example.net", attributes={"first_name": "Eva<b>"})
    desk.store.import_subscribers([person])
    assert "<b>Hello Eva&lt;b&gt;</b>" in read(desk, **{"as": "eva@example.net"})
    assert "not on your list" in read(desk, **{"as": "nobody@example.net"})
    desk.sign_in(EDITOR)
    assert "<b>Hello Alex</b>" in read(desk, **{"as": "eva@example.net"})


def test_an_editor_is_told_what_stops_a_letter_without_whose_address(desk: Site, notion: NotionStub) -> None:
    write(notion, "Dear {{ nickname }}.")
    person = SubscriberRow(
        "eva@example.net", "eva@example.net", attributes={"nickname": "E"}, lists=["newsletter"]
    )
    desk.store.import_subscribers([person])
    told = read(desk)
    assert "have no value" in told
    assert "person0" in told
    desk.sign_in(EDITOR)
    for page in (read(desk), desk.client.get("/letters?show=drafts&look=1").text):
        assert "person0" not in page
    assert "p***@" in read(desk)


def test_what_would_stop_a_letter_is_said_before_it_is_sent(desk: Site, notion: NotionStub) -> None:
    write(notion, "Your code is {{ code }}.")
    page = read(desk)
    assert "no value for {{ code }}" in page
    assert "Send to" not in page


def test_what_would_stop_a_letter_is_said_once(desk: Site, notion: NotionStub) -> None:
    write(notion, "Dear {{ name | you }} and {{ name | you }")
    assert read(desk).count("“{{ name | you }”") == 1


def test_a_letter_is_sent_from_its_draft_and_the_page_follows_it(desk: Site) -> None:
    size = desk.store.audience_size("newsletter")
    assert f"Send to {size} people…" in read(desk)
    assert "Nothing is sent" in desk.act("/draft/send", ref=PAGE, number="1").text
    assert queue_rows.asked(desk.store, waiting=0) == []
    sent = desk.act("/draft/send", ref=PAGE, number=str(size))
    assert str(sent.url).endswith(f"/draft?ref={PAGE}")
    assert "the page is being read, and sending starts within a minute" in sent.text
    assert queue_rows.asked(desk.store, waiting=0) == [Request(PAGE, RequestKind.REAL)]
    assert "A letter that was tested" in desk.client.get("/").text  # named, not by its id
    live = f"/draft/live?ref={PAGE}&since={desk.store.now() - 5}"
    assert "HX-Redirect" not in desk.client.get(live).headers
    id = mailout_id(PAGE)
    desk.store.enqueue(NewMailout(id=id, kind=Kind.NOTION, ref=PAGE, subject=SUBJECT))
    assert desk.client.get(live).headers["HX-Redirect"] == f"/letters/{id}"
    assert desk.client.get(f"/draft?ref={PAGE}").headers["location"] == f"/letters/{id}"


def test_what_was_asked_for_can_be_taken_back_before_it_starts(desk: Site) -> None:
    desk.act("/draft/send", ref=PAGE, number=str(desk.store.audience_size("newsletter")))
    assert "Taken back" in desk.act("/draft/cancel", ref=PAGE).text
    assert queue_rows.asked(desk.store, waiting=0) == []
    assert "nothing to take back" in desk.act("/draft/cancel", ref=PAGE).text


def test_a_letter_is_scheduled_in_the_organisation_s_time_changed_and_taken_back(desk: Site) -> None:
    noon = (datetime.fromtimestamp(desk.store.now(), ZONE) + timedelta(days=2)).replace(
        hour=12, minute=30, second=0, microsecond=0
    )
    for wrong in ("", "tomorrow", "2020-01-01T09:00", "2999-01-01T09:00"):
        assert "Nothing is scheduled" in desk.act("/draft/schedule", ref=PAGE, at=wrong).text, wrong
    said = desk.act("/draft/schedule", ref=PAGE, at=f"{noon:%Y-%m-%dT%H:%M}").text
    assert f"It goes out {spoken(noon.timestamp(), ZONE)}, as it is written then." in said
    (planned,) = queue_rows.planned(desk.store)
    assert (planned.not_before, planned.how) == (noon.timestamp(), RequestKind.REAL)
    assert queue_rows.asked(desk.store, waiting=0) == []
    for page in ("/", "/letters", "/letters?show=waiting"):
        assert f"goes out {spoken(noon.timestamp(), ZONE)}" in desk.client.get(page).text, page
    later = noon + timedelta(hours=3)
    desk.act("/draft/schedule", ref=PAGE, at=f"{later:%Y-%m-%dT%H:%M}")
    assert [one.not_before for one in queue_rows.planned(desk.store)] == [later.timestamp()]
    assert "a draft again" in desk.act("/draft/cancel", ref=PAGE).text
    assert queue_rows.planned(desk.store) == []


def test_nothing_is_sent_by_a_page_that_cannot_be_read(desk: Site, notion: NotionStub) -> None:
    notion.script({"path": "pages", "status": 503, "times": 99})
    try:
        for typed in (str(desk.store.audience_size("newsletter")), "0"):
            assert (
                "Nothing is sent: the page cannot be read."
                in desk.act("/draft/send", ref=PAGE, number=typed).text
            )
    finally:
        notion.script()
    assert queue_rows.asked(desk.store, waiting=0) == []


def test_a_letter_whose_page_says_ready_is_not_called_cancelled(desk: Site, notion: NotionStub) -> None:
    """The next look at Notion would send it."""
    write(notion, "Hello.", status="Ready")
    request = Request(PAGE, RequestKind.REAL)
    desk.store.ask(request, repeat=0)
    said = desk.act("/draft/cancel", ref=PAGE).text
    assert "Nothing is cancelled: its page in Notion says Ready" in said
    assert queue_rows.asked(desk.store, waiting=0) == [request]
    write(notion, "Hello.")
    assert "Taken back: it is a draft again." in desk.act("/draft/cancel", ref=PAGE).text


def test_who_sends_again_after_taking_it_back_is_heard(desk: Site) -> None:
    size = str(desk.store.audience_size("newsletter"))
    for _ in range(2):
        assert "It goes out within a minute or two." in desk.act("/draft/send", ref=PAGE, number=size).text
        assert "Taken back" in desk.act("/draft/cancel", ref=PAGE).text


def test_a_test_hides_neither_the_buttons_nor_a_letter_that_starts(desk: Site) -> None:
    desk.act("/draft/test", ref=PAGE)
    page = read(desk)
    assert "A test was requested" in page
    assert 'action="/draft/send"' in page
    desk.store.ask(Request(PAGE, RequestKind.REAL), repeat=0)
    page = read(desk)
    assert "Requested: the page is being read" in page
    assert 'action="/draft/cancel"' in page
    assert 'action="/draft/send"' not in page


def test_a_request_that_nothing_takes_up_says_so(desk: Site) -> None:
    desk.store.ask(Request(PAGE, RequestKind.REAL), repeat=0)
    with desk.store.db.write() as tx:
        tx.execute("UPDATE requests SET asked_at = asked_at - 400")
    assert "more than five minutes ago and has not started" in read(desk)
    assert "What was requested does not start" in desk.client.get("/problems").text
    desk.store.pause_all(True)
    assert "What was requested does not start" not in desk.client.get("/problems").text


def test_a_page_that_is_ready_shows_at_once_with_why_not_yet(desk: Site, notion: NotionStub) -> None:
    """Whoever sets Ready and looks here must not wonder for two minutes."""
    desk.store.pause_all(True)
    write(notion, "Hi", status="Ready")
    assert "Ready, but everything is paused." in desk.client.get("/letters/drafts").text
    desk.store.pause_all(False)
    assert "it is read and sent within a minute or two" in desk.client.get("/letters/drafts").text
    write(notion, "Hi", status="Failed")
    desk.store.put(ERROR_TABLE, [ErrorRecord("empty_body", "There is no text.", "content", mailout=PAGE)])
    assert "It was not sent: There is no text." in desk.client.get("/letters/drafts").text


def test_a_letter_that_was_stopped_is_on_home_under_letters_and_leads_to_its_page(
    desk: Site, notion: NotionStub
) -> None:
    """`All is well` while three letters had failed: nobody would have looked."""
    other = "2429989f-e8ac-4eff-bc8f-57f56486db54"
    desk.store.put(ERROR_TABLE, [ErrorRecord("empty_body", "There is no text.", "content", mailout=other)])
    for page in ("/", "/problems", "/letters?show=failed"):
        shown = desk.client.get(page).text
        assert "It was not sent: There is no text." in shown, page
        assert f'href="/draft?ref={other}"' in shown, page
    assert "failed or stopped" in desk.client.get("/").text
    there = desk.client.get(f"/letters/{other}", follow_redirects=True)
    assert there.status_code == 200
    assert "It was not sent: There is no text." in there.text
    assert "https://www.notion.so/" in there.text
    desk.act("/problems/close", key=f"page {other}")
    assert "There is no text." not in desk.client.get("/problems").text
    assert "There is no text." not in desk.client.get("/").text


def test_a_problem_says_no_path_of_the_server(desk: Site) -> None:
    message = "The picture /home/ana/mailout/boat.png cannot be read; see https://example.org/a/b."
    desk.store.put(ERROR_TABLE, [ErrorRecord("media_unavailable", message, "content", mailout="a.md")])
    page = desk.client.get("/problems").text
    assert "The picture boat.png cannot be read; see https://example.org/a/b." in page
    assert "/home/ana" not in page


def test_resuming_a_letter_that_was_edited_says_so_and_asks(desk: Site, notion: NotionStub) -> None:
    """All get the text that the first ones got; whoever corrected a mistake must know that."""
    write(notion, "The first text.", status="Sending")
    scene, id = Scene(desk.store, desk.home), mailout_id(PAGE)
    desk.store.enqueue(NewMailout(id=id, kind=Kind.NOTION, ref=PAGE, subject="Hi", list_key="newsletter"))
    desk.store.set_content(id, scene.hash, "Hi")
    scene.freeze(id)
    scene.send(id, [State.SENT] * 71)
    pause(desk.store, id)
    ledger = desk.store.mailout(id).ledger
    asked = desk.act(f"/letters/{id}/resume").text
    expected = (
        f"It was edited in the meantime. 71 people got the earlier text, and the other {ledger.pending:,}"
        " will get that text too; the edit is not sent to anybody."
    )
    assert expected in asked
    assert desk.store.mailout(id).defer_reason == "paused"
    assert any(expected in str(one) for one in notion.comments(PAGE))
    assert "It goes on within a minute" in desk.act(f"/letters/{id}/resume", sure="yes").text
    assert desk.store.mailout(id).defer_reason is None


def test_no_file_of_the_machine_is_read_by_its_path(desk: Site) -> None:
    assert desk.client.get("/draft", params={"ref": "/etc/passwd", "read": "1"}).status_code == 404
    assert desk.client.get("/draft/mail", params={"ref": "README.md"}).status_code == 404


def test_acts_on_drafts_are_written_down(desk: Site) -> None:
    desk.act("/draft/test", ref=PAGE)
    desk.act("/draft/schedule", ref=PAGE, at="2027-01-01T09:00")
    desk.act("/draft/cancel", ref=PAGE)
    done = [act.what for act in history_rows.acts(desk.store, limit=3)]
    assert done == ["took back a letter", "scheduled a letter", "asked for a test"]


def test_without_addresses_for_tests_none_is_promised(
    notion: NotionStub, filled: Path, tmp_path: Path
) -> None:
    write(notion, "Hello.")
    asked = {"notion_base_url": notion.url, "test_emails": "", **NOTION}
    with site(filled, tmp_path / "home", **asked) as desk:
        desk.sign_in()
        assert "there is no valid address in it" in desk.act("/draft/test", ref=PAGE).text
        assert queue_rows.asked(desk.store, waiting=0) == []
