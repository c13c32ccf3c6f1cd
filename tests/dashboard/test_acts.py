"""What people do on the pages, and what comes of it. What they cannot undo, they must have meant."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from gateway.dashboard import people
from gateway.dashboard.forms import UPLOAD_KEPT_SECONDS, KeptFiles
from mailout.base import error_log
from mailout.base.time_format import spoken
from mailout.insight.history import history_rows
from mailout.insight.history.history_rows import keep_run, keep_written_pages
from mailout.insight.history.port import WrittenPage
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.single_mails import SingleMailsHeld
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Status
from mailout.outbox.queue.port import Request, RequestKind
from tests.contract.scenes import Sender, result
from tests.contract.test_single_mails import mail
from tests.dashboard.conftest import Site, site
from tests.dashboard.scene import PAGE, SCRIPT, ZONE
from tests.gateway.letters import letter
from tests.prefect_server import wait_for
from tests.unit.letters.audience.test_table_file import change_sheet, far_cell, many_commas, with_entity

ANA = "person000@example.org"


def test_a_letter_goes_to_people_only_with_their_number_typed(dashboard: Site) -> None:
    dashboard.sign_in()
    size = dashboard.store.audience_size("newsletter")
    send = f"/letters/{dashboard.ids['test']}/send"
    for typed in ("", "1", str(size + 1), "all"):
        assert "Nothing is sent" in dashboard.act(send, number=typed).text
        assert queue_rows.asked(dashboard.store, waiting=0) == []
    assert "It goes out within a minute" in dashboard.act(send, number=f"{size:,}").text
    assert queue_rows.asked(dashboard.store, waiting=0) == [Request(PAGE, RequestKind.REAL)]
    assert [act.what for act in history_rows.acts(dashboard.store)].count("asked to send a letter") == 1


def test_what_was_asked_for_already_is_not_asked_for_again(dashboard: Site) -> None:
    dashboard.sign_in()
    size = dashboard.store.audience_size("newsletter")
    for name in ("sent", "going"):
        dashboard.act(f"/letters/{dashboard.ids[name]}/send", number=str(size))
    assert queue_rows.asked(dashboard.store, waiting=0) == []


def test_a_test_is_asked_for_once_until_it_is_answered(dashboard: Site) -> None:
    dashboard.sign_in()
    test, request = f"/letters/{dashboard.ids['test']}/test", Request(PAGE, RequestKind.TEST)
    assert "on its way" in dashboard.act(test).text
    assert "It is asked for already." in dashboard.act(test).text
    assert queue_rows.asked(dashboard.store, waiting=0) == [request]
    dashboard.store.answered(request)
    assert "on its way" in dashboard.act(test).text, "somebody who looks at a test may want another"


def test_a_new_letter_is_looked_at_before_anything_is_sent(dashboard: Site) -> None:
    dashboard.sign_in()
    assert "no address of a Notion page" in dashboard.act("/letters", page="https://example.org").text
    shown = dashboard.act("/letters", page=f"https://www.notion.so/News-{PAGE.replace('-', '')}")
    assert str(shown.url).endswith(f"/draft?ref={PAGE}")
    assert queue_rows.asked(dashboard.store, waiting=0) == []
    dashboard.act("/draft/test", ref=PAGE)
    (request,) = queue_rows.asked(dashboard.store, waiting=0)
    assert request.how is RequestKind.TEST


def test_pause_resume_and_cancel(dashboard: Site) -> None:
    dashboard.sign_in()
    id = dashboard.ids["going"]
    assert "It is paused" in dashboard.act(f"/letters/{id}/pause").text
    assert dashboard.store.mailout(id).defer_reason == "paused"
    assert "goes on within a minute" in dashboard.act(f"/letters/{id}/resume").text
    assert "It is not held: it goes on by itself." in dashboard.act(f"/letters/{id}/resume").text
    assert "Cancelled." in dashboard.act(f"/letters/{id}/cancel").text
    assert dashboard.store.mailout(id).status is Status.CANCELLED
    assert [act.what for act in history_rows.acts(dashboard.store, limit=3)] == [
        "cancelled a letter",
        "resumed a letter",
        "paused a letter",
    ]


def test_everything_pauses_and_goes_on(dashboard: Site) -> None:
    dashboard.sign_in()
    dashboard.act("/pause-all", paused="yes")
    assert queue_rows.all_paused(dashboard.store)
    assert "Resume everything" in dashboard.client.get("/").text
    for page in ("/", "/letters", f"/letters/{dashboard.ids['planned']}"):
        shown = dashboard.client.get(page).text
        assert "It waits: everything is paused." in shown, page
        assert "waits for its turn" not in shown, page
    assert "Everything is paused. 3 letters wait for you." in dashboard.client.get("/").text
    resumed = dashboard.act(f"/letters/{dashboard.ids['odd']}/resume").text
    assert "It goes on once everything is resumed on Home." in resumed
    retried = dashboard.act(f"/letters/{dashboard.ids['failed']}/retry").text
    assert "3 messages are tried again once everything is resumed on Home." in retried
    settled = f"/letters/{dashboard.ids['failed']}/settle"
    assert "too recently to be sent again" in dashboard.act(settled, **{"as": "pending"}).text
    dashboard.store.db.change("UPDATE email_outbox SET unknown_at = 0 WHERE unknown_at IS NOT NULL")
    again = dashboard.act(settled, **{"as": "pending"}).text
    assert "They are sent again once everything is resumed on Home." in again
    dashboard.act("/pause-all", paused="no")
    assert not queue_rows.all_paused(dashboard.store)


def test_failures_are_retried_and_doubts_settled(dashboard: Site) -> None:
    dashboard.sign_in()
    id = dashboard.ids["failed"]
    assert "Choose what became" in dashboard.act(f"/letters/{id}/settle", **{"as": "lost"}).text
    assert "settled as sent" in dashboard.act(f"/letters/{id}/settle", **{"as": "sent"}).text
    assert dashboard.store.mailout(id).ledger.unknown == 0
    dashboard.act(f"/letters/{id}/retry")
    ledger = dashboard.store.mailout(id).ledger
    assert (ledger.failed, ledger.pending) == (0, 3)


def test_the_csv_has_a_line_for_everybody(dashboard: Site) -> None:
    dashboard.sign_in()
    id = dashboard.ids["failed"]
    answer = dashboard.client.get(f"/letters/{id}/recipients.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert len(answer.text.splitlines()) == 1 + dashboard.store.mailout(id).ledger.recipients


def test_a_person_is_found_by_the_beginning_and_by_the_name(dashboard: Site) -> None:
    dashboard.sign_in()
    get = dashboard.client.get
    found = get("/people", params={"q": "PERSON00"}).text
    assert ANA in found
    assert "person011@" not in found
    assert ANA in get("/people", params={"q": ANA}).text
    assert "person007@" in get("/people", params={"q": "Person 7"}).text
    assert (
        "Nobody was found"
        in get("/people", params={"q": "Person 7", "status": "bounced", "attribute": "x"}).text
    )
    first = get("/people").text
    assert "person048@" in first
    assert "person060@" in get("/people", params={"after": "person048@example.org"}).text


def test_many_people_are_found_by_address_first_and_by_name_all_the_same(
    dashboard: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "SEARCHED_AT_ONCE_PEOPLE", 10)
    dashboard.sign_in()
    found = dashboard.client.get("/people", params={"q": "person00"}).text
    assert ANA in found
    assert "Look through all names and addresses" in found
    assert "person007@" in dashboard.client.get("/people", params={"q": "son 7"}).text


def test_those_who_come_before_in_the_alphabet_hide_nobody(
    dashboard: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "SEARCHED_AT_ONCE_PEOPLE", 10)
    names = [f"ann{n:03}" for n in range(60)] + [f"anna{n:03}" for n in range(30)]
    rows = [SubscriberRow(f"{one}@example.net", f"{one}@example.net") for one in names]
    dashboard.store.import_subscribers(rows)
    dashboard.sign_in()
    assert dashboard.client.get("/people", params={"q": "anna"}).text.count("anna0") >= 30


def test_what_only_reading_everybody_finds_is_not_called_the_beginning_of_an_address(
    dashboard: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "SEARCHED_AT_ONCE_PEOPLE", 10)
    zoe = SubscriberRow("zoe@example.org", "zoe@example.org", attributes={"name": "Zoé Müller"})
    dashboard.store.import_subscribers([zoe])
    dashboard.sign_in()
    page = dashboard.client.get("/people", params={"q": "zoé"}).text
    assert "zoe@example.org" in page
    assert "Only addresses that begin" not in page
    assert "Only addresses that begin" in dashboard.client.get("/people", params={"q": "person"}).text


def test_a_person_is_added_unsubscribed_and_forgotten(dashboard: Site) -> None:
    dashboard.sign_in()
    added = dashboard.act("/people/add", email="New@Example.org", name="New", list="newsletter")
    assert "new@example.org gets the next letter to the list newsletter." in added.text
    for wrong in ("nothing", "mika@example", "New <new@example.org>"):
        assert "is not an address" in dashboard.act("/people/add", email=wrong).text, wrong
    page = dashboard.client.get("/person", params={"email": "new@example.org"}).text
    assert ("Take off general only" in page, "Take off newsletter only" in page) == (True, True)
    dashboard.act("/person/unsubscribe", email="new@example.org")
    assert subscriber_rows.subscriber(dashboard.store, "new@example.org")["status"] == "unsubscribed"
    page = dashboard.client.get("/person", params={"email": ANA}).text
    assert "Autumn at the harbour" in page
    assert "Nobody is forgotten" in dashboard.act("/person/forget", email=ANA, again="person001@x.org").text
    assert "is forgotten" in dashboard.act("/person/forget", email=ANA, again=ANA).text
    assert dashboard.client.get("/person", params={"email": ANA}).status_code == 404
    assert "asked to be forgotten" in dashboard.act("/people/add", email=ANA).text
    assert not any("@" in act.about for act in history_rows.acts(dashboard.store))


def upload(dashboard: Site, name: str, content: str | bytes) -> str:
    files = {"file": (name, content.encode() if isinstance(content, str) else content)}
    answer = dashboard.client.post(
        "/people/import", data={"csrf": dashboard.csrf()}, files=files, follow_redirects=True
    )
    return str(answer.url.params["file"])


FILE = "Email,Mitglied,Kein Newsletter\nzoe@example.org,Zoe,\nyan@example.org,Yan,x\nxia@example.org,Xia,?\n"


def test_who_wants_mail_is_asked_and_nothing_written_before(dashboard: Site) -> None:
    dashboard.sign_in()
    file = upload(dashboard, "members.csv", FILE)
    preview = "/people/import/preview"
    chosen = {"file": file, "column:Mitglied": "name", "list": "members"}
    first = dashboard.client.get(preview, params=chosen).text
    assert "“Kein Newsletter”: who should get mail?" in first
    assert "(empty) 1, ? 1, x 1" in first
    assert "Import 3 people" not in first
    confirmed = dashboard.act("/people/import/confirm", **chosen)
    assert "may say who wants mail" in confirmed.text
    assert dashboard.client.get("/person", params={"email": "zoe@example.org"}).status_code == 404
    chosen |= {"who:Kein Newsletter": "values", "mail:Kein Newsletter": ""}
    assert "Import 3 people" in dashboard.client.get(preview, params=chosen).text
    assert "3 new" in dashboard.act("/people/import/confirm", **chosen).text
    zoe = subscriber_rows.subscriber(dashboard.store, "zoe@example.org")
    assert (zoe["status"], zoe["attributes"], zoe["lists"][0]["list_key"]) == (
        "active",
        {"name": "Zoe"},
        "members",
    )
    for said_no in ("yan@example.org", "xia@example.org"):
        assert subscriber_rows.subscriber(dashboard.store, said_no)["status"] == "unsubscribed"
    assert list((dashboard.home / "imports").iterdir()) == []


def test_a_list_that_cannot_be_loses_no_answer_and_a_new_one_is_said(dashboard: Site) -> None:
    dashboard.sign_in()
    chosen = {"file": upload(dashboard, "members.csv", FILE), "column:Mitglied": "name"}
    chosen |= {"who:Kein Newsletter": "everybody", "agreed": "1"}
    page = dashboard.act("/people/import/confirm", list="My Friends", **chosen).text
    assert "There is no list My Friends." in page
    for kept in ('value="My Friends"', 'name="agreed" value="1" checked', 'value="everybody" checked'):
        assert kept in page, kept
    assert '<option value="newsletter">' in page
    assert page.count('name="csrf"') == 2
    made = dashboard.act("/people/import/confirm", list="friends", **chosen).text
    assert "A new list friends was made. 3 people for the list friends: 3 new" in made
    chosen["file"] = upload(dashboard, "members.csv", FILE)
    again = dashboard.act("/people/import/confirm", list="Friends", **chosen).text
    assert "3 people for the list friends: 0 new" in again
    assert "A new list" not in again


def test_who_would_stop_getting_mail_is_said_before_an_import(dashboard: Site) -> None:
    dashboard.sign_in()
    dashboard.act("/people/add", email="yan@example.org")
    chosen = {"file": upload(dashboard, "members.csv", FILE)}
    preview = "/people/import/preview"
    assert "stops getting it" not in dashboard.client.get(preview, params=chosen).text, "not decided yet"
    chosen |= {"who:Kein Newsletter": "without"}
    said = dashboard.client.get(preview, params=chosen).text
    assert "1 person who gets mail now stops getting it, and undoing the import will not change that." in said
    chosen |= {"who:Kein Newsletter": "everybody"}
    assert "stops getting it" not in dashboard.client.get(preview, params=chosen).text


@pytest.mark.parametrize(
    ("who", "active"), [("everybody", "zoe yan xia"), ("with", "yan xia"), ("without", "zoe"), ("values", "")]
)
def test_each_answer_on_the_page_means_what_it_says(dashboard: Site, who: str, active: str) -> None:
    dashboard.sign_in()
    file = upload(dashboard, "members.csv", FILE)
    dashboard.act("/people/import/confirm", file=file, agreed="1", **{"who:Kein Newsletter": who})
    found = subscriber_rows.subscribers(dashboard.store, search="example.org", status="active", limit=1000)
    here = {"zoe@example.org", "yan@example.org", "xia@example.org"} & {one["email"] for one in found}
    assert here == {f"{name}@example.org" for name in active.split()}


@pytest.mark.parametrize("many", [1, 30])
def test_all_but_those_with_a_refusal_in_their_name_is_an_answer(dashboard: Site, many: int) -> None:
    dashboard.sign_in()
    rows = "".join(f"no{n}@example.org,Bo {n} (unsubscribed)\n" for n in range(many))
    file = upload(dashboard, "members.csv", f"Email,Name\nzoe@example.org,Zoe\n{rows}")
    page = dashboard.client.get("/people/import/preview", params={"file": file}).text
    assert "All but Bo 0 (unsubscribed)" in page
    dashboard.act("/people/import/confirm", file=file, **{"who:Name": "but"})
    assert subscriber_rows.subscriber(dashboard.store, "zoe@example.org")["status"] == "active"
    for n in range(many):
        assert subscriber_rows.subscriber(dashboard.store, f"no{n}@example.org")["status"] == "unsubscribed"
    file = upload(dashboard, "members.csv", FILE)
    refused = dashboard.act("/people/import/confirm", file=file, **{"who:Kein Newsletter": "but"})
    assert "may say who wants mail" in refused.text


def test_a_list_that_says_nothing_is_imported_only_after_somebody_said_they_agreed(dashboard: Site) -> None:
    dashboard.sign_in()
    file = upload(dashboard, "members.csv", "Email,City\nzoe@example.org,Lima\n")
    assert "agree to that?" in dashboard.client.get("/people/import/preview", params={"file": file}).text
    assert "somebody has to say" in dashboard.act("/people/import/confirm", file=file).text
    assert "1 new" in dashboard.act("/people/import/confirm", file=file, agreed="1").text


def test_past_imports_are_shown_with_what_was_decided_and_can_be_taken_back(dashboard: Site) -> None:
    dashboard.sign_in()
    file = upload(dashboard, "members.csv", FILE)
    answered = {"who:Kein Newsletter": "without"}
    dashboard.act("/people/import/confirm", file=file, **answered)
    page = dashboard.client.get("/people/import").text
    assert "members.csv" in page
    assert "(empty) → gets mail (1), ? → unsubscribed (1), x → unsubscribed (1)" in page
    (one, *_) = subscriber_rows.imports(dashboard.store)
    assert one.by.startswith("admin")
    done = dashboard.act("/people/import/undo", id=one.id).text
    assert "Removed: 1 person and 0 list entries. 2 stay: they get no mail" in done
    assert "undone" in dashboard.client.get("/people/import").text
    assert dashboard.client.get("/person", params={"email": "zoe@example.org"}).status_code == 404
    assert "undone already" in dashboard.act("/people/import/undo", id=one.id).text


def test_an_encoding_that_nobody_can_tell_is_chosen_by_how_a_line_reads(dashboard: Site) -> None:
    dashboard.sign_in()
    files = {"file": ("people.csv", "Email,Who\nzoe@example.org,Žluťoučký\n".encode("cp1250"))}
    answer = dashboard.client.post(
        "/people/import", data={"csrf": dashboard.csrf()}, files=files, follow_redirects=True
    )
    assert "Žluťoučký" in answer.text
    file = str(answer.url.params["file"])
    said = dashboard.act("/people/import/confirm", file=file, encoding="Windows-1250", agreed="1")
    assert "1 new" in said.text
    assert subscriber_rows.subscriber(dashboard.store, "zoe@example.org")["attributes"] == {
        "Who": "Žluťoučký"
    }


def test_a_file_that_cannot_be_read_is_called_by_its_own_name(dashboard: Site) -> None:
    """Not by the folder on this machine in which it lies."""
    dashboard.sign_in()
    file = upload(dashboard, "members.csv", "Name,City\nZoe,Lima\n")
    shown = dashboard.client.get("/people/import/preview", params={"file": file})
    told = dashboard.act("/people/import/confirm", file=file, agreed="1")
    for page in (shown.text, told.text):
        assert "members.csv has no column `email`" in unescape(page)
        assert str(dashboard.home) not in page


def test_a_file_with_too_many_columns_for_a_form_is_told_so(dashboard: Site) -> None:
    dashboard.sign_in()
    names = [f"Field {n}" for n in range(500)]
    text = ",".join(["Email", *names]) + "\n" + ",".join(["zoe@example.org", *names]) + "\n"
    file = upload(dashboard, "wide.csv", text)
    shown = dashboard.client.get("/people/import/preview", params={"file": file})
    assert shown.status_code == 200
    assert "too many for a form" in shown.text


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("far.xlsx", lambda path: change_sheet(path, far_cell)),
        ("entity.xlsx", lambda path: change_sheet(path, with_entity)),
        ("commas.csv", many_commas),
    ],
)
def test_a_file_that_ends_its_reader_is_answered_with_400_and_the_gateway_goes_on(
    dashboard: Site, tmp_path: Path, name: str, make: Callable[[Path], Path]
) -> None:
    dashboard.sign_in()
    file = upload(dashboard, name, make(tmp_path / name).read_bytes())
    shown = dashboard.client.get("/people/import/preview", params={"file": file})
    assert shown.status_code == 400
    assert f"{name} " in shown.text
    assert name in dashboard.act("/people/import/confirm", file=file).text
    assert dashboard.client.get("/people").status_code == 200


def test_a_long_name_in_any_script_is_shortened_to_what_a_disk_takes(dashboard: Site) -> None:
    dashboard.sign_in()
    file = upload(dashboard, f"{'名' * 120}.csv", "Email\na@example.org\n")
    (kept,) = (dashboard.home / "imports" / file).iterdir()
    assert kept.name.endswith("名.csv")


def test_people_whose_name_is_no_text_are_listed_all_the_same(dashboard: Site) -> None:
    """Attributes may come from elsewhere: a form of somebody's site that writes into the same table."""
    with sqlite3.connect(dashboard.home / "mailout.db") as db:
        db.execute("""UPDATE subscribers SET attributes = '{"first_name": 7, "last_name": ["x"]}'""")
    dashboard.sign_in()
    assert dashboard.client.get("/people").status_code == 200
    assert dashboard.client.get("/person", params={"email": ANA}).status_code == 200


def test_a_second_column_of_addresses_stands_in_for_the_first(dashboard: Site) -> None:
    dashboard.sign_in()
    file = upload(dashboard, "people.csv", "Email,Other\na@example.org,b@example.org\n,c@example.org\n")
    asked = {"file": file, "column:Email": "email", "column:Other": "email"}
    assert "Import 2 people" in dashboard.client.get("/people/import/preview", params=asked).text


def test_an_uploads_name_leads_nowhere_and_a_file_that_is_gone_is_asked_for_again(dashboard: Site) -> None:
    dashboard.sign_in()
    file = upload(dashboard, "../../../outside/.people.csv", "Email\na@example.org\n")
    (kept,) = (dashboard.home / "imports" / file).iterdir()
    assert kept.name == "people.csv"
    for gone in ("0" * 32, "..", "../..", ""):
        asked = dashboard.client.get("/people/import/preview", params={"file": gone})
        assert asked.headers["location"] == "/people/import"


def test_more_than_a_file_may_have_is_refused_before_it_is_read(dashboard: Site) -> None:
    dashboard.sign_in()
    files = {"file": ("people.csv", b"x" * (21 * 1024 * 1024))}
    answer = dashboard.client.post("/people/import", data={"csrf": dashboard.csrf()}, files=files)
    assert answer.status_code in (303, 413)
    assert not (dashboard.home / "imports").exists()


def test_an_upload_that_nobody_imports_is_gone_after_an_hour(tmp_path: Path) -> None:
    """It holds people's addresses."""
    now, timers = [time.time()], list[Callable[[], None]]()
    kept = KeptFiles(tmp_path / "imports", lambda: now[0], lambda _, do: timers.append(do))
    first = kept.keep("people.csv", b"Email\n")
    kept.keep("more.csv", b"Email\n")
    assert len(timers) == 1
    now[0] += UPLOAD_KEPT_SECONDS / 2
    timers.pop()()
    assert kept.path(first) is not None
    now[0] += UPLOAD_KEPT_SECONDS
    timers.pop()()
    assert list((tmp_path / "imports").iterdir()) == []
    assert timers == []


def test_what_a_store_cannot_hold_is_refused_in_words(dashboard: Site) -> None:
    dashboard.sign_in()
    refused = dashboard.act("/people/add", email="nul@example.org", name="N\0l")
    assert (refused.status_code, "cannot be stored" in refused.text) == (400, True)
    for path in ("/people?q=%00", "/letters/%00", "/person?email=a%00@example.org"):
        assert dashboard.client.get(path).status_code == 404, path


def test_a_forgotten_persons_mail_is_found_by_nobody(dashboard: Site) -> None:
    """Messages are found by an id made of the address, which stays."""
    dashboard.sign_in()
    dashboard.act("/person/forget", email=ANA, again=ANA)
    assert history_rows.messages_to(dashboard.store, ANA) == []


def test_the_page_of_a_person_tells_that_their_mail_was_throttled(dashboard: Site) -> None:
    dashboard.store.accept_single_mails([mail("a", email="buyer@example.org")])
    sender = Sender(dashboard.store, None)
    for _ in range(2):
        (begun,) = sender.begin(1)
        throttled = result(begun, State.PENDING, code="SES_THROTTLING", message="Too <fast>.", give_back=True)
        sender.step(results=[throttled])
    (begun,) = sender.begin(1)
    sender.step(results=[replace(throttled, attempt=begun.attempt, retry_in=3600.0)])
    dashboard.sign_in()
    page = dashboard.client.get(f"/person?email=buyer@example.org&message={begun.attempt.id}").text
    assert "Too &lt;fast&gt;. (SES_THROTTLING), 3 times" in page
    assert not re.search(r"\d{4}-\d\d-\d\dT", page)
    assert "goes on" in page


def test_somebody_on_no_list_who_got_a_single_mail_has_a_page(dashboard: Site) -> None:
    dashboard.store.accept_single_mails([mail("a", email="buyer@example.org")])
    dashboard.sign_in()
    assert "/person?email=buyer%40example.org" in dashboard.client.get("/people?q=buyer@example.org").text
    page = dashboard.client.get("/person?email=buyer@example.org").text
    assert "Not on your list" in page
    assert "Your receipt" in page
    assert "Unsubscribe from everything" not in page
    gone = dashboard.act("/person/forget", email="buyer@example.org", again="buyer@example.org")
    assert "is forgotten" in gone.text
    assert dashboard.client.get("/person?email=buyer@example.org").status_code == 404


def test_drafts_are_shown_as_the_watch_read_them(dashboard: Site, filled: Path, tmp_path: Path) -> None:
    dashboard.sign_in()
    page = "/letters?show=drafts"
    assert "NOTION_TOKEN" in dashboard.client.get(page).text
    later = dashboard.store.now() + 86_400
    keep_written_pages(
        dashboard.store,
        [
            WrittenPage(PAGE, SCRIPT, "Draft", is_ready=False, list_key=SCRIPT),
            WrittenPage("x", "Winter", "Ready", is_ready=True, send_at=later),
        ],
    )
    shown = dashboard.client.get(page).text
    assert f'href="/draft?ref={PAGE}"' in shown
    assert "<script>window" not in shown
    assert f"It goes out {spoken(later, ZONE)} (Ready in Notion)." in shown
    assert "Read from Notion" in shown
    assert f"goes out {spoken(later, ZONE)} (Ready in Notion)." in dashboard.client.get("/").text
    draft = dashboard.client.get(f"/draft?ref={PAGE}").text
    assert f"https://www.notion.so/{PAGE.replace('-', '')}" in draft


def test_what_was_requested_is_not_said_to_be_read_while_everything_is_paused(dashboard: Site) -> None:
    dashboard.sign_in()
    dashboard.store.ask(Request(PAGE, RequestKind.REAL), repeat=0.0)
    assert "is being read and starts" in dashboard.client.get("/").text
    dashboard.store.pause_all(True)
    home = dashboard.client.get("/").text
    assert "was requested and waits: everything is paused" in home
    assert "is being read" not in home


def test_one_letter_leads_to_its_run_in_prefect(filled: Path, tmp_path: Path) -> None:
    with site(
        filled, tmp_path / "home", run_address=lambda run: f"https://prefect.example/runs/{run}"
    ) as shown:
        shown.sign_in()
        page = f"/letters/{shown.ids['sent']}"
        assert "prefect.example" not in shown.client.get(page).text
        keep_run(shown.store, shown.ids["sent"], "run-1")
        assert 'href="https://prefect.example/runs/run-1"' in shown.client.get(page).text


def test_the_number_on_a_letter_is_its_own(dashboard: Site) -> None:
    """Of its list, without those who left it, left everything or bounced."""
    dashboard.sign_in()
    everybody = dashboard.store.audience_size(None)
    dashboard.store.import_subscribers([SubscriberRow("x@example.org", "x@example.org", lists=("other",))])
    dashboard.store.unsubscribe(ANA, "newsletter")
    size = dashboard.store.audience_size("newsletter")
    assert size < everybody
    page = dashboard.client.get(f"/letters/{dashboard.ids['test']}").text
    assert f"Send to {size} people…" in page
    assert f"{size} people on the list newsletter would get it." in page
    frozen = dashboard.store.mailout(dashboard.ids["going"]).ledger.recipients
    assert f"{frozen} people on the list" in dashboard.client.get(f"/letters/{dashboard.ids['going']}").text


def test_refused_webhooks_are_shown_with_what_to_do(dashboard: Site) -> None:
    for _ in range(3):
        assert dashboard.client.post("/ses-events", content=b"no").status_code == 403
    dashboard.client.post("/webhooks/notion", json={"type": "page.created"})
    dashboard.sign_in()
    wait_for(lambda: len(history_rows.refusals(dashboard.store)) == 2, "the refusals are written down")
    page = dashboard.client.get("/problems").text
    assert "Delivery report (SNS) refused" in page
    assert "not JSON (3 times)" in page
    assert "<code>NOTION_WEBHOOK_TOKEN</code>" in page


def test_a_dead_message_is_sent_again_or_taken_off_the_list(dashboard: Site) -> None:
    dashboard.sign_in()
    id = dashboard.ids["failed"]
    message = str(outbox_rows.messages(dashboard.store, id, limit=1, states=[State.FAILED])[0]["id"])
    dashboard.store.db.change(
        "INSERT INTO dead_letters VALUES ('one', 'send', ?, 'It failed for good.', 0)",
        (json.dumps({"mailout": id, "message": message}),),
    )
    dead = next(one for one in error_log.dead_letters(dashboard.store) if one["topic"] == "send")
    assert "tried again within a minute" in dashboard.act("/problems/requeue", id=dead["id"]).text
    assert dashboard.store.mailout(id).ledger.pending == 1
    (other,) = [one for one in error_log.dead_letters(dashboard.store) if one["topic"] == "ses-events"]
    assert "Removed from the list" in dashboard.act("/problems/drop", id=other["id"]).text
    assert "no longer on the list" in dashboard.act("/problems/drop", id=other["id"]).text


def test_a_dead_letter_is_put_back(dashboard: Site) -> None:
    dashboard.sign_in()
    (dead,) = error_log.dead_letters(dashboard.store)
    assert "tried again within a minute" in dashboard.act("/problems/requeue", id=dead["id"]).text
    assert len(feedback_rows.waiting_events(dashboard.store, 10)) == 1
    assert "There is no dead letter" in dashboard.act("/problems/requeue", id=dead["id"]).text


def test_what_is_not_there_is_said_in_words(dashboard: Site) -> None:
    dashboard.sign_in()
    for path in ("/letters/nothing", "/letters/nothing/mail", "/person?email=no@example.org", "/person"):
        answer = dashboard.client.get(path)
        assert (answer.status_code, "Go to Home" in answer.text) == (404, True), path
    assert "There is no" in dashboard.act("/letters/nothing/pause").text


def test_home_and_problems_say_that_and_why_single_mails_wait(dashboard: Site) -> None:
    dashboard.sign_in()
    for page in ("/", "/problems"):
        assert "Single mails wait" not in dashboard.client.get(page).text
    dashboard.store.accept_single_mails([mail("held", is_rehearsal=False)])
    held = SingleMailsHeld(dashboard.store.now(), "SES_ACCESS_DENIED", "Allow <b>it</b> to these.", True)
    dashboard.store.hold_single_mails(held, rehearsal=False)
    for page in ("/", "/problems"):
        shown = dashboard.client.get(page).text
        assert "Single mails wait" in shown
        assert "Allow &lt;b&gt;it&lt;/b&gt; to these." in shown


def test_a_letter_is_published_and_unpublished_and_it_is_written_down(filled: Path, tmp_path: Path) -> None:
    with site(filled, tmp_path / "home", public_url="https://mail.example.org") as dashboard:
        dashboard.sign_in()
        id = letter(dashboard.store, "On the web", public=False)
        slug = dashboard.store.mailout(id).slug
        assert "Not in the archive." in dashboard.client.get(f"/letters/{id}").text
        assert "It is in the archive" in dashboard.act(f"/letters/{id}/publish").text
        assert f'href="/archive/{slug}"' in dashboard.client.get(f"/letters/{id}").text
        assert dashboard.client.get(f"/archive/{slug}").status_code == 200
        assert "gone from the archive" in dashboard.act(f"/letters/{id}/unpublish").text
        assert dashboard.client.get(f"/archive/{slug}").status_code == 410
        assert "A test or a rehearsal" in dashboard.act(f"/letters/{dashboard.ids['test']}/publish").text
        done = [act.what for act in history_rows.acts(dashboard.store) if act.about == id]
        assert sorted(done) == ["published a letter", "unpublished a letter"]
