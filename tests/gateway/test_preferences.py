"""`/preferences`: readers choose for themselves, nobody else can, and nobody who is gone comes back by it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from httpx import Client, Response

from gateway.dashboard.desk import Tools
from gateway.readers.own_data import known_of
from mailout.adapters.sqlite import SqliteStore
from mailout.base.signed_links import SignedLinks, Tokens
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.list_changes import add_list
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content import content_rows
from mailout.letters.content.footer import Footer
from mailout.letters.content.languages import shipped
from mailout.outbox.delivery.compose import SingleComposer
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received
from tests.clocks import FakeClock
from tests.contract.scenes import Sender, result
from tests.contract.test_join import WORDING, confirmation
from tests.gateway.conftest import SECRET, Open
from tests.ses_events import ses_event

ANN, BOB = "ann@example.org", "bob@example.org"
DAY = 86_400.0
PUBLIC = "https://mail.example.org"
Visit = Callable[..., Response]


@pytest.fixture(autouse=True)
def people(store: SqliteStore) -> None:
    store.import_subscribers(
        [SubscriberRow(ANN, ANN, lists=["weekly", "staff"], attributes={"name": "Ann Secretname"})]
    )
    store.import_subscribers([SubscriberRow(BOB, BOB, lists=["board"])])
    add_list(store, "weekly", {"name": "Weekly news", "description": "Every Friday.", "public": True})
    add_list(store, "events", {"name": "Events <b>&", "public": True})
    add_list(store, "board", {"name": "The board"})


@pytest.fixture
def gateway(open_gateway: Open, store: SqliteStore) -> Client:
    return open_gateway(
        public_url=f"{PUBLIC}/", tools=Tools(forget=lambda email: store.forget(email, "forgotten:1"))
    )


def link(email: str = ANN, list_key: str | None = None, secret: str = SECRET) -> str:
    return f"/preferences?token={Tokens([secret]).make(email, list_key)}"


def lists(store: SqliteStore, email: str = ANN) -> set[str]:
    rows = subscriber_rows.subscriber(store, email)["lists"]
    return {row["list_key"] for row in rows if row["unsubscribed_at"] is None}


def snapshot(store: SqliteStore) -> list[list[tuple[Any, ...]]]:
    tables = ("subscribers", "subscriptions", "consents", "delivery_events", "email_outbox", "contents")
    return [[tuple(row) for row in store.db.read(f"SELECT * FROM {table} ORDER BY 1, 2")] for table in tables]


# ── choosing ──


def test_a_reader_sees_public_lists_and_their_own_and_never_their_name(gateway: Client) -> None:
    answer = gateway.get(link())
    assert answer.status_code == 200
    shown = re.findall(r'name="list" value="([^"]+)"( checked)?', answer.text)
    assert shown == [("general", " checked"), ("events", ""), ("staff", " checked"), ("weekly", " checked")]
    assert "Events &lt;b&gt;&amp;" in answer.text
    assert ANN in answer.text
    assert "Secretname" not in answer.text
    assert "board" not in answer.text
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"


def test_lists_go_on_and_off_and_twice_is_once(gateway: Client, store: SqliteStore) -> None:
    form = {"shown": ["general", "events", "staff", "weekly"], "list": ["general", "events", "weekly"]}
    for _ in range(2):
        answer = gateway.post(link(), data=form)
        assert (answer.status_code, "Saved." in answer.text) == (200, True)
    assert lists(store) == {"weekly", "events"}
    assert store.audience_size("staff") == 0
    (consent,) = store.db.read("SELECT * FROM consents")
    assert (consent["list_key"], consent["wording"]) == ("events", "Events <b>&")
    assert consent["source"] == f"{PUBLIC}/preferences"
    gateway.post(link(), data={"shown": ["general"], "list": []})
    assert store.audience_size(None) == 1  # Bob
    gateway.post(link(), data={"shown": ["general"], "list": ["general"]})
    assert store.audience_size(None) == 2


def test_a_list_that_the_page_did_not_show_stays_as_it_was(gateway: Client, store: SqliteStore) -> None:
    """Somebody may have added one while the page was open."""
    gateway.post(link(), data={"shown": ["weekly"], "list": ["weekly"]})
    assert lists(store) == {"weekly", "staff"}


@pytest.mark.parametrize("days", [30, 90])
def test_a_pause_lasts_as_long_as_was_chosen_and_can_be_ended(
    gateway: Client, store: SqliteStore, clock: FakeClock, days: int
) -> None:
    answer = gateway.post(link(), data={"pause": str(days)})
    assert "Paused until" in answer.text
    assert store.audience_size(None) == 1
    clock.wall += days * DAY - 60
    assert store.audience_size(None) == 1
    gateway.post(link(), data={"pause": ""})  # as it is
    assert "End the pause" in gateway.get(link()).text
    gateway.post(link(), data={"pause": "end"})
    assert store.audience_size(None) == 2
    gateway.post(link(), data={"pause": "100000"})
    assert store.audience_size(None) == 2


def test_a_chosen_language_is_the_language_of_the_pages_whatever_the_browser_wishes(
    gateway: Client, store: SqliteStore
) -> None:
    assert "Сохранено." in gateway.post(link(), data={"language": "ru"}).text
    wishes = {"accept-language": "fr"}
    assert "Выбрать, что получать" in gateway.get(link(), headers=wishes).text
    token = link().partition("?")[2]
    assert gateway.post(f"/unsubscribe?{token}", headers=wishes).headers["content-language"] == "ru"
    assert subscriber_rows.subscriber(store, ANN)["attributes"]["name"] == "Ann Secretname"


@pytest.mark.parametrize("code", shipped())
def test_every_language_has_all_the_pages(gateway: Client, code: str) -> None:
    speaks = {"accept-language": code}
    for answer in (
        gateway.get(link(), headers=speaks),
        gateway.post(link(), data={"pause": "30"}, headers=speaks),
        gateway.post(link(), data={"action": "data"}, headers=speaks),
        gateway.get(link("nobody@example.org"), headers=speaks),
        gateway.get("/preferences/data?token=x", headers=speaks),
    ):
        assert answer.headers["content-language"] == code
        assert "{" not in re.sub(r"<style>.*?</style>", "", answer.text, flags=re.DOTALL)


def test_unsubscribing_from_everything_is_one_click_away(gateway: Client, store: SqliteStore) -> None:
    page = gateway.get(link()).text
    target = re.search(r'action="(unsubscribe\?token=[^"]+)"', page)
    assert target is not None
    assert gateway.post(f"/{target[1]}").status_code == 200
    assert subscriber_rows.subscriber(store, ANN)["status"] == "unsubscribed"


# ── who may not ──


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"])
def test_scanners_change_nothing(gateway: Client, store: SqliteStore, method: str) -> None:
    before = snapshot(store)
    for path in (link(), f"{link()}&list=weekly&pause=30&action=delete", mailed_link("delete")):
        gateway.request(method, path)
    assert snapshot(store) == before


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        "e30.e30",
        Tokens(["another secret"]).make(ANN),
        SignedLinks([SECRET], "join").make({"email": ANN}),
        SignedLinks([SECRET], "own-data").make({"email": ANN, "at": 0}),
        Tokens([SECRET]).make(ANN)[:-2],
        Tokens([SECRET]).make("not an address"),
    ],
)
def test_a_forged_token_opens_nothing(gateway: Client, store: SqliteStore, token: str) -> None:
    before = snapshot(store)
    everything = {"shown": ["weekly"], "list": [], "pause": "30", "language": "de"}
    answers = [
        gateway.get(f"/preferences?token={token}"),
        gateway.post(f"/preferences?token={token}", data=everything),
        gateway.post(f"/preferences?token={token}", data={"action": "delete"}),
    ]
    assert [answer.status_code for answer in answers] == [400, 400, 400]
    assert ANN not in "".join(answer.text for answer in answers)
    assert snapshot(store) == before


def test_a_token_with_a_list_governs_that_list_alone(gateway: Client, store: SqliteStore) -> None:
    path = link(list_key="weekly")
    page = gateway.get(path).text
    assert re.findall(r'name="list" value="([^"]+)"', page) == ["weekly"]
    assert 'name="pause"' not in page
    assert 'name="language"' not in page
    everything = {
        "shown": ["weekly", "staff", "events", "general"],
        "list": ["events"],
        "pause": "90",
        "language": "de",
    }
    assert gateway.post(path, data=everything).status_code == 200
    assert lists(store) == {"staff"}
    person = subscriber_rows.subscriber(store, ANN)
    assert (person["snoozed_until"], person["attributes"]) == (None, {"name": "Ann Secretname"})
    assert store.audience_size(None) == 2
    gateway.post(path, data={"shown": ["weekly"], "list": ["weekly"]})
    assert lists(store) == {"staff", "weekly"}


@pytest.mark.parametrize("list_key", [None, "board"])
def test_nobody_joins_a_private_list_that_they_were_never_on(
    gateway: Client, store: SqliteStore, list_key: str | None
) -> None:
    form = {"shown": ["board", "nowhere"], "list": ["board", "nowhere"]}
    assert gateway.post(link(list_key=list_key), data=form).status_code == 200
    assert lists(store) == {"weekly", "staff"}


def test_nobody_comes_back_to_a_private_list_that_they_were_taken_off(
    gateway: Client, store: SqliteStore
) -> None:
    """Its letters are still in their mailbox, and each has the link."""
    store.unsubscribe_by_hand(ANN, "staff")
    path = link(list_key="staff")
    assert 'name="list"' not in gateway.get(path).text
    assert gateway.post(path, data={"shown": ["staff"], "list": ["staff"]}).status_code == 200
    kept = gateway.post(path.replace("preferences", "unsubscribe"), data={"action": "keep"})
    assert (kept.status_code, lists(store)) == (409, {"weekly"})
    assert gateway.post(path.replace("preferences", "unsubscribe")).status_code == 200
    kept = gateway.post(path.replace("preferences", "unsubscribe"), data={"action": "keep"})
    assert (kept.status_code, lists(store)) == (409, {"weekly"})
    assert 'value="staff"' not in gateway.get(link()).text


@pytest.mark.parametrize("list_key", [None, "staff"])
def test_who_unticks_their_own_private_list_may_tick_it_again_for_a_day(
    gateway: Client, store: SqliteStore, clock: FakeClock, list_key: str | None
) -> None:
    """They were on it, and it may have been a mistake."""
    path = link(list_key=list_key)
    for wanted in ([], ["staff"], []):
        page = gateway.post(path, data={"shown": ["staff"], "list": wanted})
        assert (page.status_code, 'value="staff"' in page.text) == (200, True)
        assert ("staff" in lists(store)) is bool(wanted)
    clock.sleep(DAY + 1)
    assert 'value="staff"' not in gateway.get(path).text
    gateway.post(path, data={"shown": ["staff"], "list": ["staff"]})
    assert "staff" not in lists(store)


def test_who_joins_by_the_form_is_offered_no_private_list(gateway: Client, store: SqliteStore) -> None:
    """They are off every list that they did not choose, and were never on it."""
    cyn = "cyn@example.org"
    store.confirm_sign_up(confirmation(cyn, "weekly"))
    assert 'value="board"' not in gateway.get(link(cyn)).text


@pytest.mark.parametrize("gone", ["unsubscribed", "bounced", "complained", "forgotten"])
def test_nobody_who_is_gone_comes_back_by_it(gateway: Client, store: SqliteStore, gone: str) -> None:
    if gone == "unsubscribed":
        store.unsubscribe(ANN, None)
    elif gone == "bounced":
        store.import_subscribers([SubscriberRow(ANN, ANN, status="bounced")])
    elif gone == "complained":
        store.receive_events([Received("sns-1", "sns", ses_event("Complaint", ANN))])
        ingest(store, "any")
    else:
        store.forget(ANN, "forgotten:1")
    before = snapshot(store)
    assert "Nothing to choose" in gateway.get(link()).text
    form = {"shown": ["events", "general"], "list": ["events", "general"], "pause": "end", "language": "de"}
    assert gateway.post(link(), data=form).status_code == 409
    assert snapshot(store) == before


# ── one's own data, and deletion ──


def mailed_link(what: str, email: str = ANN, at: float = 0, purpose: str | None = None) -> str:
    payload = {"email": email, "at": at, "language": "en"}
    return f"/preferences/{what}?token={SignedLinks([SECRET], purpose or f'own-{what}').make(payload)}"


def sent_link(store: SqliteStore) -> str:
    """The only single mail that waits, as it is sent; the path of its link."""
    sender = Sender(store, None)
    row = sender.begin_one()
    mail = SingleComposer(
        partial(content_rows.content, store),
        footer=lambda: Footer("", "", ""),
        tokens=None,
        from_email="news@example.org",
        from_name="",
        reply_to=None,
        link_secrets=[SECRET],
        public_url=PUBLIC,
    )(row)
    sender.step(results=[result(row)])
    text = mail.content.text_segments.fill(mail.values)
    html = mail.content.html_segments.fill(mail.values)
    found = re.search(rf"{PUBLIC}(\S+)", text)
    assert mail.to == ANN
    assert found is not None
    assert f'href="{PUBLIC}{found[1]}"' in html
    assert "ses:no-track" in html
    return found[1]


def test_all_that_is_known_is_shown_to_the_mailbox_and_not_to_the_letter(
    gateway: Client, store: SqliteStore
) -> None:
    gateway.post(link(), data={"shown": ["events"], "list": ["events"]})
    asked = [gateway.post(link(), data={"action": "data"}) for _ in range(3)]
    assert all("Check your inbox" in answer.text for answer in asked)
    assert not any("Secretname" in answer.text for answer in asked)
    assert len(store.db.read("SELECT 1 FROM email_outbox")) == 1  # three clicks, one mail
    path = sent_link(store)
    page = gateway.get(path)
    assert page.status_code == 200
    assert all(word in page.text for word in ("Ann Secretname", "weekly", "staff"))
    known = gateway.get(f"{path}&format=json").json()
    assert known["values"]["email"] == ANN
    assert {one["list_key"] for one in known["lists"]} == {"weekly", "staff", "events"}
    assert [(one["list_key"], one["source"]) for one in known["consents"]] == [
        ("events", f"{PUBLIC}/preferences")
    ]
    assert known["attributes"] == {"name": "Ann Secretname"}
    assert BOB not in json.dumps(known)


def test_the_secret_link_is_nowhere_in_the_store(gateway: Client, store: SqliteStore) -> None:
    gateway.post(link(), data={"action": "delete"})
    path = sent_link(store)
    signature = path.partition("token=")[2].partition(".")[2]
    assert len(signature) > 20
    assert signature not in str(snapshot(store))


def test_a_reader_is_deleted_by_the_button_behind_the_mailed_link_and_twice_is_once(
    gateway: Client, store: SqliteStore
) -> None:
    gateway.post(link(), data={"action": "delete"})
    path = sent_link(store)
    assert "Delete everything?" in gateway.get(path).text
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active"
    for _ in range(2):
        answer = gateway.post(path)
        assert (answer.status_code, "Your data has been deleted" in answer.text) == (200, True)
    assert not subscriber_rows.subscribers(store, search=ANN)
    assert ANN not in str([tuple(row) for row in store.db.read("SELECT * FROM email_outbox")])
    assert subscriber_rows.subscriber(store, BOB)["status"] == "active"


def test_the_link_of_before_does_not_delete_who_has_signed_up_again(
    gateway: Client, store: SqliteStore, clock: FakeClock
) -> None:
    gateway.post(link(), data={"action": "delete"})
    path = sent_link(store)
    gateway.post(path)
    clock.wall += 60
    store.import_subscribers([SubscriberRow(ANN, ANN)], own_sign_up=True)
    assert gateway.post(path).status_code == 400
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active"


def test_who_has_signed_up_again_can_be_deleted_again_within_the_hour(
    gateway: Client, store: SqliteStore, clock: FakeClock
) -> None:
    """They were told to look into their mailbox, and nothing came."""
    gateway.post(link(), data={"action": "delete"})
    gateway.post(sent_link(store))
    clock.wall += 60
    store.import_subscribers([SubscriberRow(ANN, ANN)], own_sign_up=True)
    assert "Check your inbox" in gateway.post(link(), data={"action": "delete"}).text
    assert "Your data has been deleted" in gateway.post(sent_link(store)).text
    assert not subscriber_rows.subscribers(store, search=ANN)


def test_a_reader_whose_mail_is_leaving_right_now_is_asked_to_try_again(
    gateway: Client, store: SqliteStore, clock: FakeClock
) -> None:
    gateway.post(link(), data={"action": "data"})
    Sender(store, None).begin_one()
    answer = gateway.post(mailed_link("delete", at=clock.now()))
    assert (answer.status_code, "try again in a minute" in answer.text) == (409, True)
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active"


def test_a_mailed_link_works_for_one_hour(gateway: Client, store: SqliteStore, clock: FakeClock) -> None:
    gateway.post(link(), data={"action": "delete"})
    path = sent_link(store)
    clock.wall += 3601
    assert (gateway.get(path).status_code, gateway.post(path).status_code) == (400, 400)
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active"


def test_no_link_does_the_work_of_another(gateway: Client, store: SqliteStore, clock: FakeClock) -> None:
    """Whoever was forwarded a letter, or shown their own data, must not be able to delete anybody."""
    token = link().partition("token=")[2]
    for path in (
        f"/preferences/delete?token={token}",
        mailed_link("delete", at=clock.now(), purpose="own-data"),
        mailed_link("delete", at=clock.now(), purpose="join"),
        mailed_link("delete", at=clock.now() + 60),
    ):
        assert gateway.post(path).status_code == 400
    assert gateway.get(f"/preferences/data?token={token}").status_code == 400
    assert gateway.get(mailed_link("data", at=clock.now(), purpose="own-delete")).status_code == 400
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active"


def test_asking_again_and_again_mails_once_in_an_hour(
    gateway: Client, store: SqliteStore, clock: FakeClock
) -> None:
    for _ in range(20):
        gateway.post(link(), data={"action": "delete"})
    assert len(store.db.read("SELECT 1 FROM email_outbox")) == 1
    clock.wall += 3600
    gateway.post(link(), data={"action": "delete"})
    assert len(store.db.read("SELECT 1 FROM email_outbox")) == 2


def test_who_unsubscribed_can_still_ask_for_their_data(gateway: Client, store: SqliteStore) -> None:
    store.unsubscribe(ANN, None)
    assert "Show my data" in gateway.get(link()).text
    gateway.post(link(), data={"action": "data"})
    assert gateway.get(sent_link(store)).status_code == 200


def test_nothing_is_mailed_to_somebody_whom_nobody_knows_any_more(
    gateway: Client, store: SqliteStore
) -> None:
    """A row for it would bring the address back into the store of who asked to be forgotten."""
    store.forget(ANN, "forgotten:1")
    before = snapshot(store)
    for action in ("data", "delete"):
        assert "Nothing to choose" in gateway.post(link(), data={"action": action}).text
    assert snapshot(store) == before


def test_who_is_gone_is_shown_where_to_join_unless_they_complained(
    open_gateway: Open, store: SqliteStore
) -> None:
    gateway = open_gateway(public_url=PUBLIC, signup=True)
    store.unsubscribe(ANN, None)
    assert '<a href="join">' in gateway.get(link()).text
    store.receive_events([Received("sns-1", "sns", ses_event("Complaint", ANN))])
    ingest(store, "any")
    assert '<a href="join">' not in gateway.get(link()).text


@pytest.mark.parametrize("why", ["bounced", "complained"])
def test_who_no_mail_reaches_is_not_told_that_one_is_on_its_way(
    open_gateway: Open, store: SqliteStore, why: str
) -> None:
    gateway = open_gateway(public_url=PUBLIC, reply_to="us@example.org")
    if why == "bounced":
        store.import_subscribers([SubscriberRow(ANN, ANN, status="bounced")])
    else:
        store.receive_events([Received("sns-1", "sns", ses_event("Complaint", ANN))])
        ingest(store, "any")
    for page in (gateway.get(link()), gateway.post(link(), data={"action": "delete"})):
        assert "on its way" not in page.text
        assert "For your data or its deletion, please write to" in page.text
        assert "us@example.org" in page.text


def test_without_a_public_address_nothing_that_needs_a_mail_is_offered(
    open_gateway: Open, store: SqliteStore
) -> None:
    gateway = open_gateway()
    assert "Show my data" not in gateway.get(link()).text
    gateway.post(link(), data={"action": "delete"})
    assert not store.db.read("SELECT 1 FROM email_outbox")
    assert gateway.get(mailed_link("delete")).status_code == 404


def test_ones_own_data_tells_what_one_agreed_to(gateway: Client, store: SqliteStore) -> None:
    store.confirm_sign_up(confirmation(ANN, "weekly", at=store.now() - 1))
    (consent,) = known_of(store, ANN)["consents"]
    assert (consent["list_key"], consent["wording"]) == ("weekly", WORDING)
