"""The pages never say more than is known, and acts answer with what really happened."""

from __future__ import annotations

import csv
import io
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest

from gateway.dashboard import letter_numbers
from mailout.base.errors import SourceRefused
from mailout.base.ids import mailout_id
from mailout.insight.history import history_rows
from mailout.insight.history.history_rows import keep_written_pages
from mailout.insight.history.notion_troubles import PAGE, READING, keep
from mailout.insight.history.port import WrittenPage
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.model import Content, mark
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import DeferReason, Status
from tests.contract.test_single_mails import mail
from tests.dashboard.conftest import Site
from tests.dashboard.scene import Scene
from tests.stubs.notion_pages import id_of

ANA = "person000@example.org"


def heard_of(dashboard: Site, seconds_ago: float = 0.0) -> None:
    """When the sender of the letter that is going was heard of last; the scene was made some time ago."""
    dashboard.store.db.change(
        "UPDATE campaign_queue SET locked_at = ? WHERE id = ?",
        (dashboard.store.now() - seconds_ago, dashboard.ids["going"]),
    )


def test_what_waits_on_home_is_named_after_its_letter(dashboard: Site) -> None:
    dashboard.sign_in()
    home = dashboard.client.get("/").text
    names = re.findall(r'<section class="card attention" aria-label="([^"]*)"', home)
    assert "Waits for you: Come to the lantern walk" in names
    assert len(set(names)) == len(names) > 1


def test_home_and_problems_say_that_a_letter_is_due_and_nobody_sends_it(dashboard: Site) -> None:
    """It said “planned for” a time that had passed, and that nothing waited."""
    dashboard.sign_in()
    store = dashboard.store
    store.defer(dashboard.ids["going"], DeferReason.PAUSED, None)
    store.db.change(
        "UPDATE campaign_queue SET scheduled_at = ?, created_at = created_at - 9000 WHERE id = ?",
        (store.now() - 3600, dashboard.ids["planned"]),
    )
    said = "and nobody has taken it up"
    assert said in dashboard.client.get("/problems").text
    home = dashboard.client.get("/home/live").text
    assert said in home
    assert "planned for" not in home
    letter = dashboard.client.get(f"/letters/{dashboard.ids['planned']}").text
    assert said in letter
    store.resume(dashboard.ids["going"])
    store.start(dashboard.ids["going"], "worker-1")  # now it waits for its turn
    assert said not in dashboard.client.get("/problems").text


def test_home_says_that_letters_failed_and_that_health_is_red(dashboard: Site) -> None:
    """It once said "All is well." while three had failed."""
    dashboard.sign_in()
    store = dashboard.store
    heard_of(dashboard)
    for name in ("held", "odd"):
        store.cancel(dashboard.ids[name])
    store.settle(dashboard.ids["failed"], State.SENT, wait=0)
    home = dashboard.client.get("/").text
    assert "One letter failed or stopped: “The pier is open again”." in home
    assert f'href="/letters/{dashboard.ids["failed"]}"' in home
    dashboard.act("/problems/close", key=f"letter {dashboard.ids['failed']}")
    assert "UNSUBSCRIBE_SECRET" in dashboard.client.get("/system").text  # the checks have been made
    heard_of(dashboard)
    home = dashboard.client.get("/").text
    assert "checks fail." in home
    assert "All is well." not in home


def test_nothing_is_forecast_while_nobody_sends(dashboard: Site) -> None:
    dashboard.sign_in()
    id = dashboard.ids["going"]
    heard_of(dashboard)
    assert "Forecast: done by" in dashboard.client.get(f"/letters/{id}").text
    heard_of(dashboard, 3600)
    for page in ("/", f"/letters/{id}", f"/letters/{dashboard.ids['planned']}"):
        assert "done by" not in dashboard.client.get(page).text, page
    assert "Nobody is sending it" in dashboard.client.get("/").text


def test_what_nobody_has_reported_is_a_dash_and_no_zero(dashboard: Site) -> None:
    dashboard.sign_in()
    scene = Scene(dashboard.store, dashboard.home)
    for id in dashboard.ids.values():
        scene.metrics(id)
    letter = dashboard.client.get(f"/letters/{dashboard.ids['sent']}").text
    assert letter.count("not reported yet") == 4
    assert "not reported yet" in dashboard.client.get("/").text
    health = dashboard.client.get("/system").text
    assert "0.00%" not in health
    assert health.count("<b>–</b> not reported yet") == 2
    scene.metrics(dashboard.ids["sent"], unsubscribed=2)  # told to us, not by SES
    assert dashboard.client.get(f"/letters/{dashboard.ids['sent']}").text.count("not reported yet") == 3


def test_two_messages_are_no_chart_and_more_follow_the_live_count(dashboard: Site) -> None:
    dashboard.sign_in()
    scene, store = Scene(dashboard.store, dashboard.home), dashboard.store
    id = scene.letter("small", "Two of them")
    scene.freeze(id)
    scene.send(id, [State.SENT] * 2)
    assert "Messages sent over time" not in dashboard.client.get(f"/letters/{id}").text
    scene.send(id, [State.SENT] * 20)
    with store.db.write() as tx:
        tx.execute("UPDATE email_outbox SET sent_at = sent_at - 60 WHERE campaign_id = ? AND seq % 2", (id,))
    live = dashboard.client.get(f"/letters/{id}/live").text
    assert "Messages sent over time" in live
    assert "22 sent in" in live


def test_a_persons_letters_are_apart_from_what_was_only_tried(dashboard: Site) -> None:
    dashboard.sign_in()
    scene = Scene(dashboard.store, dashboard.home)
    id = scene.letter("tried", "Only a trial", test=True)
    scene.freeze(id)
    page = dashboard.client.get("/person", params={"email": ANA}).text
    letters, tried = page.split("<summary>1 test or rehearsal</summary>")
    assert "Autumn at the harbour" in letters
    assert "Only a trial" not in letters
    assert "Only a trial" in tried


def test_a_retry_says_what_the_checks_refuse_and_the_button_counts_the_others(dashboard: Site) -> None:
    """`Retry 1 failed` answered that no message had failed."""
    dashboard.sign_in()
    scene, store = Scene(dashboard.store, dashboard.home), dashboard.store
    id = scene.letter("refused", "Refused by the checks")
    scene.freeze(id)
    scene.send(id, [State.VALIDATION_FAILED] + [State.FAILED] * 2)
    page = dashboard.client.get(f"/letters/{id}").text
    assert "Retry 2 failed" in page
    assert "1 message refused by the checks before sending" in page
    assert (
        "2 messages are tried again within a minute. 1 other stay"
        in dashboard.act(f"/letters/{id}/retry").text
    )
    assert "Retry" not in dashboard.client.get(f"/letters/{id}/live").text
    again = dashboard.act(f"/letters/{id}/retry").text
    assert "the checks refused 1 before sending" in again
    assert "No message of it has failed" not in again
    assert store.mailout(id).ledger.failed == 1


def test_cancelling_says_how_many_got_it_and_how_many_do_not(dashboard: Site) -> None:
    dashboard.sign_in()
    ledger = dashboard.store.mailout(dashboard.ids["going"]).ledger
    said = dashboard.act(f"/letters/{dashboard.ids['going']}/cancel").text
    assert f"Cancelled. {ledger.sent} people got it before; the other {ledger.pending} get nothing." in said
    assert "Cancelled. Nobody got it." in dashboard.act(f"/letters/{dashboard.ids['planned']}/cancel").text


def test_a_mail_is_shown_without_marks_or_braces(dashboard: Site) -> None:
    dashboard.sign_in()
    store = dashboard.store
    content = Content(
        f"News for {mark('var:first_name|friend')}",
        f'<p>Dear {mark("html:first_name|friend")}, <a href="https://x.org/?e={mark("url:email")}">see</a>'
        f' {mark("html:shoe_size")}</p><a href="{mark("unsubscribe_url")}">bye</a>',
        "text",
    )
    keep_content(store, content)
    with store.db.write() as tx:
        tx.execute(
            "UPDATE campaign_queue SET content_hash = ?, subject = ? WHERE id = ?",
            (content.hash, "News for {{ first_name | friend }}", dashboard.ids["sent"]),
        )
    shown = dashboard.client.get(f"/letters/{dashboard.ids['sent']}/mail").text
    assert "<p>Dear Alex, " in shown
    assert "e=alex.sample%40example.com" in shown
    assert "shoe size" in shown
    for page in ("/letters", f"/letters/{dashboard.ids['sent']}"):
        text = dashboard.client.get(page).text
        assert "News for friend" in text, page
        assert "{{" not in text, page


def test_adding_somebody_who_unsubscribed_says_what_that_means(dashboard: Site) -> None:
    dashboard.sign_in()
    said = dashboard.act("/people/add", email="person005@example.org").text
    assert "person005@example.org had unsubscribed and stays so: no letter goes there." in said
    assert subscriber_rows.subscriber(dashboard.store, "person005@example.org")["status"] == "unsubscribed"


def test_an_unsubscribe_made_here_is_undone_here_and_a_readers_own_is_not(dashboard: Site) -> None:
    dashboard.sign_in()
    assert "you can undo it here" in dashboard.act("/person/unsubscribe", email=ANA).text
    assert "You can undo that until" in dashboard.client.get("/person", params={"email": ANA}).text
    assert f"{ANA} gets mail again" in dashboard.act("/person/undo", email=ANA).text
    assert subscriber_rows.subscriber(dashboard.store, ANA)["status"] == "active"
    dashboard.store.unsubscribe(ANA, None)
    page = dashboard.client.get("/person", params={"email": ANA}).text
    assert "You can undo it until" not in page
    assert "Only they themselves can come back" in page
    assert "cannot be undone here" in dashboard.act("/person/undo", email=ANA).text
    assert subscriber_rows.subscriber(dashboard.store, ANA)["status"] == "unsubscribed"


def test_a_persons_name_and_attributes_are_edited_and_nothing_else(dashboard: Site) -> None:
    dashboard.sign_in()
    dashboard.store.edit_subscriber(ANA, {"name": "Ana", "city": "Porto", "visits": {"n": 3}})
    fields = {"attribute:name": "Ana Maria", "attribute:city": " ", "new": "boat", "value": "Gaivota"}
    assert "Saved." in dashboard.act("/person/edit", email=ANA, **fields).text
    known = subscriber_rows.subscriber(dashboard.store, ANA)["attributes"]
    assert known == {"name": "Ana Maria", "boat": "Gaivota", "visits": {"n": 3}}
    said = dashboard.act("/person/edit", email=ANA, new="", value="Porto").text
    assert "Saved. “Porto” was left out: it has no attribute&#39;s name." in said


def test_what_came_while_the_form_was_open_stays(dashboard: Site) -> None:
    """A language that the reader chose, an attribute that an import brought."""
    dashboard.sign_in()
    dashboard.store.edit_subscriber(ANA, {"name": "Ana", "city": "Porto", "language": "de"})
    dashboard.act("/person/edit", email=ANA, **{"attribute:name": "Ana", "attribute:city": ""})
    known = subscriber_rows.subscriber(dashboard.store, ANA)["attributes"]
    assert known == {"name": "Ana", "language": "de"}


def test_somebody_is_put_on_the_list_that_is_meant_or_on_none(dashboard: Site) -> None:
    dashboard.sign_in()
    (known,) = [one for one in list_rows.lists(dashboard.store) if one.key == "newsletter"]
    dashboard.act("/people/add", email="new@example.org", list=known.name.upper())
    lists = subscriber_rows.subscriber(dashboard.store, "new@example.org")["lists"]
    assert [one["list_key"] for one in lists] == ["newsletter"]
    for odd in ("no<script>", "a\r\nBcc: x@example.org", "x" * 1800):
        assert "There is no list" in dashboard.act("/people/add", email="stranger@example.org", list=odd).text
    mistyped = dashboard.act("/people/add", email="stranger@example.org", list="newsleter").text
    assert "There is no list newsleter. Did you mean newsletter?" in mistyped
    assert not subscriber_rows.is_known(dashboard.store, "stranger@example.org")
    said = dashboard.act("/people/add", email="stranger@example.org").text
    assert "stranger@example.org gets the next letter to everybody." in said


def test_the_export_has_whom_the_filter_shows(dashboard: Site) -> None:
    dashboard.sign_in()
    dashboard.store.import_subscribers(
        [SubscriberRow("zoe@example.org", "zoe@example.org", attributes={"city": "Porto", "name": "=Zoe"})]
    )
    asked = {"attribute": "city", "value": "porto", "status": "active"}
    assert "zoe@example.org" in dashboard.client.get("/people", params=asked).text
    answer = dashboard.client.get("/people.csv", params=asked)
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert (row["email"], row["city"], row["name"]) == ("zoe@example.org", "Porto", "'=Zoe")
    everybody = list(csv.DictReader(io.StringIO(dashboard.client.get("/people.csv").text)))
    assert len(everybody) == 302


def test_people_are_filtered_by_a_list(dashboard: Site) -> None:
    dashboard.sign_in()
    dashboard.store.import_subscribers([SubscriberRow("zoe@example.org", "zoe@example.org", lists=["boats"])])
    shown = dashboard.client.get("/people", params={"list": "boats"}).text
    assert "zoe@example.org" in shown
    assert ANA not in shown
    (row,) = csv.DictReader(io.StringIO(dashboard.client.get("/people.csv?list=boats").text))
    assert row["email"] == "zoe@example.org"


def test_single_mails_are_listed_retried_cancelled_and_settled(dashboard: Site) -> None:
    dashboard.sign_in()
    store = dashboard.store
    store.accept_single_mails([mail("a", email="buyer@example.org"), mail("b", email="other@example.org")])
    rows = {row["email"]: row for row in history_rows.single_mails_to(store, "buyer@example.org")}
    page = dashboard.client.get("/single-mails?state=pending").text
    assert "buyer@example.org" in page
    assert "Single mails" in dashboard.client.get("/").text  # in the menu
    id = str(rows["buyer@example.org"]["id"])
    assert "It has not failed" in dashboard.act("/single-mails/retry", id=id).text
    assert "Cancelled: it is not sent." in dashboard.act("/single-mails/cancel", id=id, state="pending").text
    assert outbox_rows.message(store, id)["state"] == State.SUPPRESSED
    assert "does not wait" in dashboard.act("/single-mails/cancel", id=id).text
    assert "Choose what became of it" in dashboard.act("/single-mails/settle", id=id, **{"as": "lost"}).text
    nobody = dashboard.client.get("/single-mails?state=pending&company=nobody").text
    assert "other@example.org" not in nobody


def test_the_last_letters_are_side_by_side(dashboard: Site) -> None:
    dashboard.sign_in()
    Scene(dashboard.store, dashboard.home).metrics(dashboard.ids["failed"], delivered=270, bounced=9)
    page = dashboard.client.get("/letters?show=numbers").text
    for shown in ("Autumn at the harbour", "The pier is open again", "270", "<svg"):
        assert shown in page, shown


def test_nine_bounces_beside_hundreds_of_mails_are_seen_in_the_chart(dashboard: Site) -> None:
    """On the scale of what was sent they would lie on the line of zero."""
    dashboard.sign_in()
    Scene(dashboard.store, dashboard.home).metrics(dashboard.ids["failed"], delivered=270, bounced=9)
    page = dashboard.client.get("/letters?show=numbers").text
    found = re.findall(r'cy="([\d.]+)" r="5"><title>[^<]*: ([\d,]+ \w+)</title>', page)
    height = {said: float(y) for y, said in found}
    assert height["0 complained"] - height["9 bounced"] > 60


def test_a_letter_that_is_over_leaves_the_problems(dashboard: Site) -> None:
    dashboard.sign_in()
    link = f'href="/letters/{dashboard.ids["failed"]}"'
    assert link in dashboard.client.get("/problems").text
    dashboard.store.settle(dashboard.ids["failed"], State.SENT, wait=0)
    scene = Scene(dashboard.store, dashboard.home)
    dashboard.act(f"/letters/{dashboard.ids['failed']}/retry")
    scene.send(dashboard.ids["failed"], [State.SENT] * 3)
    assert dashboard.store.complete(dashboard.ids["failed"]).status is Status.COMPLETED
    assert link not in dashboard.client.get("/problems").text
    assert dashboard.store.mailout(mailout_id("failed")).ledger.failed == 0


def test_the_chart_of_an_old_letter_ends_where_its_counts_do(
    dashboard: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not today: then all of it would be one step at the left."""
    (known,) = queue_rows.mailouts(dashboard.store, statuses=(Status.COMPLETED,), limit=1)
    letter = replace(known, metrics={"delivered": 90}, ledger=replace(known.ledger, sent=100))
    kept = [(1.0, {"sent": 50, "delivered": 40}), (2.0, {"sent": 100, "delivered": 90})]
    monkeypatch.setattr(history_rows, "mailout_over_time", lambda store, id: kept)
    monkeypatch.setattr(letter_numbers, "chart", lambda name, title, lines, **_: lines)
    drawn: Any = letter_numbers.events_chart(dashboard.store, letter, UTC)
    assert [line.points for line in drawn] == [[(1.0, 40), (2.0, 90)]]
    drawn = letter_numbers.events_chart(dashboard.store, replace(letter, metrics={"delivered": 91}), UTC)
    assert [[n for _, n in line.points] for line in drawn] == [[40, 90, 91]]


def test_people_whose_status_nobody_knows_are_in_the_numbers(dashboard: Site) -> None:
    """Others may write into the same table: people with a word of theirs were nowhere to be seen."""
    dashboard.sign_in()
    assert "unknown status" not in dashboard.client.get("/").text
    with closing(sqlite3.connect(dashboard.home / "mailout.db")) as table:
        table.execute("PRAGMA ignore_check_constraints = ON")
        table.execute("UPDATE subscribers SET status = 'Active' WHERE email_norm = ?", (ANA,))
        table.commit()
    assert "1 of unknown status" in dashboard.client.get("/").text
    page = dashboard.client.get("/people", params={"q": ANA}).text
    assert "<dt>Unknown status</dt><dd>1</dd>" in page
    assert ">Active</span>" in page
    assert "has the status “Active”" in dashboard.act("/people/add", email=ANA).text


def test_home_and_problems_say_that_notion_cannot_be_read(dashboard: Site) -> None:
    """Letters waited, and nobody was told."""
    dashboard.sign_in()
    said = "Notion answered 401."
    keep(dashboard.store, READING, {"": SourceRefused(said, remedy="Check NOTION_TOKEN.")})
    for page in ("/problems", "/home/live"):
        shown = dashboard.client.get(page).text
        assert "Notion cannot be read" in shown
    assert f"{said} Check NOTION_TOKEN." in dashboard.client.get("/problems").text
    keep(dashboard.store, READING, {})
    assert "Notion cannot be read" not in dashboard.client.get("/problems").text


def test_a_page_that_waits_is_named_and_linked(dashboard: Site) -> None:
    dashboard.sign_in()
    page = id_of("a page")
    keep(dashboard.store, PAGE, {page: SourceRefused("Notion answered 403.")})
    keep_written_pages(dashboard.store, [WrittenPage(page, "Spring letter", "Ready", is_ready=True)])
    shown = dashboard.client.get("/problems").text
    assert "“Spring letter” waits" in shown
    assert f"/draft?ref={page}" in shown
