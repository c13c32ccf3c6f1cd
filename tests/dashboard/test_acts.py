"""What people do on the pages, and what comes of it. What they cannot undo, they must have meant."""

from __future__ import annotations

import sqlite3

from mailout.queue.mailout import Status
from mailout.queue.port import How, Request
from tests.dashboard.conftest import Site
from tests.dashboard.scene import PAGE

ANA = "person000@example.org"


def test_a_letter_goes_to_people_only_with_their_number_typed(dashboard: Site) -> None:
    dashboard.sign_in()
    size = dashboard.store.audience_size("newsletter")
    send = f"/letters/{dashboard.ids['test']}/send"
    for typed in ("", "1", str(size + 1), "all"):
        assert "Nothing is sent" in dashboard.act(send, number=typed).text
        assert dashboard.store.asked(waiting=0) == []
    assert "It goes out within a minute" in dashboard.act(send, number=f"{size:,}").text
    assert dashboard.store.asked(waiting=0) == [Request(PAGE, How.REAL)]
    assert [act.what for act in dashboard.store.acts()].count("asked to send a letter") == 1


def test_what_was_asked_for_already_is_not_asked_for_again(dashboard: Site) -> None:
    dashboard.sign_in()
    size = dashboard.store.audience_size("newsletter")
    for name in ("sent", "going"):
        dashboard.act(f"/letters/{dashboard.ids[name]}/send", number=str(size))
    assert dashboard.store.asked(waiting=0) == []


def test_a_test_is_asked_for_once_a_minute(dashboard: Site) -> None:
    dashboard.sign_in()
    assert "on its way" in dashboard.act(f"/letters/{dashboard.ids['test']}/test").text
    assert "less than a minute ago" in dashboard.act(f"/letters/{dashboard.ids['test']}/test").text
    assert dashboard.store.asked(waiting=0) == [Request(PAGE, How.TEST)]


def test_a_new_letter_begins_with_a_test_of_its_page(dashboard: Site) -> None:
    dashboard.sign_in()
    assert "no address of a Notion page" in dashboard.act("/letters", page="https://example.org").text
    dashboard.act("/letters", page=f"https://www.notion.so/News-{PAGE.replace('-', '')}")
    (request,) = dashboard.store.asked(waiting=0)
    assert request.how is How.TEST


def test_pause_resume_and_take_back(dashboard: Site) -> None:
    dashboard.sign_in()
    id = dashboard.ids["going"]
    assert "It is paused" in dashboard.act(f"/letters/{id}/pause").text
    assert dashboard.store.mailout(id).defer_reason == "paused"
    assert "goes on within a minute" in dashboard.act(f"/letters/{id}/resume").text
    assert "not held" in dashboard.act(f"/letters/{id}/resume").text
    assert "taken back" in dashboard.act(f"/letters/{id}/cancel").text
    assert dashboard.store.mailout(id).status is Status.CANCELLED
    assert [act.what for act in dashboard.store.acts(limit=3)] == [
        "took a letter back",
        "resumed a letter",
        "paused a letter",
    ]


def test_everything_pauses_and_goes_on(dashboard: Site) -> None:
    dashboard.sign_in()
    dashboard.act("/pause-all", paused="yes")
    assert dashboard.store.all_paused()
    assert "Go on with everything" in dashboard.client.get("/").text
    dashboard.act("/pause-all", paused="no")
    assert not dashboard.store.all_paused()


def test_failures_are_retried_and_doubts_settled(dashboard: Site) -> None:
    dashboard.sign_in()
    id = dashboard.ids["failed"]
    assert "Choose what became" in dashboard.act(f"/letters/{id}/settle", **{"as": "lost"}).text
    assert "settled as sent" in dashboard.act(f"/letters/{id}/settle", **{"as": "sent"}).text
    assert dashboard.store.mailout(id).ledger.unknown == 0
    dashboard.act(f"/letters/{id}/retry")
    ledger = dashboard.store.mailout(id).ledger
    assert (ledger.failed, ledger.pending) == (0, 3)


def test_what_if_plays_the_forecast_with_other_numbers(dashboard: Site) -> None:
    dashboard.sign_in()
    page = f"/letters/{dashboard.ids['going']}"
    assert "Then: done by" in dashboard.client.get(page, params={"rate": "1"}).text
    assert "cannot be played" in dashboard.client.get(page, params={"window": "morning"}).text


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
    assert "Nobody is found" in get("/people", params={"q": "Person 7"}).text
    assert "person007@" in get("/people", params={"q": "Person 7", "anywhere": "1"}).text
    first = get("/people").text
    assert "person048@" in first
    assert "person060@" in get("/people", params={"after": "person048@example.org"}).text


def test_a_person_is_added_unsubscribed_and_forgotten(dashboard: Site) -> None:
    dashboard.sign_in()
    added = dashboard.act("/people/add", email="New@Example.org", name="New", list="newsletter")
    assert "new@example.org is on the list" in added.text
    assert "no address" in dashboard.act("/people/add", email="nothing").text
    dashboard.act("/person/unsubscribe", email="new@example.org")
    assert dashboard.store.subscriber("new@example.org")["status"] == "unsubscribed"
    page = dashboard.client.get("/person", params={"email": ANA}).text
    assert "Autumn at the harbour" in page
    assert "Nobody is forgotten" in dashboard.act("/person/forget", email=ANA, again="person001@x.org").text
    assert "is forgotten" in dashboard.act("/person/forget", email=ANA, again=ANA).text
    assert dashboard.client.get("/person", params={"email": ANA}).status_code == 404
    assert "asked to be forgotten" in dashboard.act("/people/add", email=ANA).text
    assert not any("@" in act.about for act in dashboard.store.acts())


def upload(dashboard: Site, name: str, text: str) -> str:
    files = {"file": (name, text.encode())}
    answer = dashboard.client.post(
        "/people/import", data={"csrf": dashboard.csrf()}, files=files, follow_redirects=True
    )
    return str(answer.url.params["file"])


def test_an_import_is_shown_first_and_a_wrong_column_can_be_set_right(dashboard: Site) -> None:
    dashboard.sign_in()
    text = "Email,Mitglied,Stand\nzoe@example.org,Zoe,ja\nyan@example.org,Yan,fort\n"
    file = upload(dashboard, "members.csv", text)
    preview = "/people/import/preview"
    chosen = {"file": file, "column:Mitglied": "name", "column:Stand": "status"}
    first = dashboard.client.get(preview, params=chosen).text
    assert "“fort” (1)" in first
    assert "Import 2 people" not in first
    confirmed = dashboard.act("/people/import/confirm", **chosen)
    assert "no known status" in confirmed.text
    assert dashboard.client.get("/person", params={"email": "zoe@example.org"}).status_code == 404
    chosen |= {"word:fort": "unsubscribed", "word:ja": "active", "list": "members"}
    assert "Import 2 people" in dashboard.client.get(preview, params=chosen).text
    assert "2 new" in dashboard.act("/people/import/confirm", **chosen).text
    zoe = dashboard.store.subscriber("zoe@example.org")
    assert (zoe["status"], zoe["attributes"]["name"], zoe["lists"][0]["list_key"]) == (
        "active",
        "Zoe",
        "members",
    )
    assert dashboard.store.subscriber("yan@example.org")["status"] == "unsubscribed"
    assert list((dashboard.home / "imports").iterdir()) == []


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


def test_two_columns_mapped_to_the_address_are_refused_in_words(dashboard: Site) -> None:
    dashboard.sign_in()
    file = upload(dashboard, "people.csv", "Email,Other\na@example.org,b@example.org\n")
    asked = {"file": file, "column:Email": "email", "column:Other": "email"}
    assert "more than one column email" in dashboard.client.get("/people/import/preview", params=asked).text


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


def test_a_dead_letter_is_put_back(dashboard: Site) -> None:
    dashboard.sign_in()
    (dead,) = dashboard.store.dead_letters()
    assert "back in the inbox" in dashboard.act("/problems/requeue", id=dead["id"]).text
    assert len(dashboard.store.waiting_events(10)) == 1
    assert "not there any more" in dashboard.act("/problems/requeue", id=dead["id"]).text


def test_what_is_not_there_is_said_in_words(dashboard: Site) -> None:
    dashboard.sign_in()
    for path in ("/letters/nothing", "/letters/nothing/mail", "/person?email=no@example.org", "/person"):
        answer = dashboard.client.get(path)
        assert (answer.status_code, "Go to Home" in answer.text) == (404, True), path
    assert "There is no" in dashboard.act("/letters/nothing/pause").text
