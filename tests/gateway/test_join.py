"""`/join`: a form that strangers use, and that nobody can use against strangers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
from httpx import Client, Response

from mailout.adapters.sqlite import SqliteStore
from mailout.app import wiring
from mailout.base.errors import NotFound, SettingsError
from mailout.base.settings import Settings, load_settings
from mailout.base.signed_links import SignedLinks
from mailout.insight.metrics import metric_rows
from mailout.insight.metrics.port import Counter
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.languages import language, shipped
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received
from mailout.readers.port import CONFIRM_SECONDS
from tests.clocks import FakeClock
from tests.gateway.conftest import SECRET, Open
from tests.ses_events import ses_event

ANN = "ann@example.org"
PUBLIC = "https://mail.example.org"


@pytest.fixture(autouse=True)
def lists(store: SqliteStore) -> None:
    store.put(LIST_TABLE, [List("general", "Everything", public=False)])
    store.put(LIST_TABLE, [List("news", "News & views", "Each <Monday>.", public=True)])
    store.put(LIST_TABLE, [List("weekly", "Weekly", public=True)])
    store.put(LIST_TABLE, [List("staff", "Staff")])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        mailout_home=tmp_path,
        signup=True,
        public_url=PUBLIC,
        unsubscribe_secret=SECRET,
        unsubscribe_base_url=f"{PUBLIC}/unsubscribe",
        org_name="Harbour Association",
        org_address="1 Quay Street",
        from_email="news@example.org",
        send_rate_per_sec=0,
    )


@pytest.fixture
def gateway(open_gateway: Open) -> Client:
    return open_gateway(signup=True, public_url=PUBLIC, trusted_proxies=("127.0.0.1",))


def post(gateway: Client, email: str = ANN, *keys: str, headers: Any = None, **fields: str) -> Response:
    data = {"email": email, "name": "Ann", "list": list(keys or ("news",)), **fields}
    return gateway.post("/join", data=data, headers=headers)


def mails(settings: Settings, store: SqliteStore, clock: FakeClock) -> Sequence[Any]:
    """All that has been sent so far, each as a mail program reads it."""
    engine = wiring.build(settings, clock, store=store, inline=True)
    engine.sending.send_single_mails(5.0, until_idle=True)
    files = sorted((settings.mailout_home / "outbox").rglob("*.eml"))
    return [message_from_bytes(file.read_bytes(), policy=policy.default) for file in files]


def text_of(mail: Any) -> str:
    return str(mail.get_body(("plain",)).get_content())


def test_a_script_may_send_form_data(
    gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock
) -> None:
    fields = {"email": (None, ANN), "list": (None, "news")}
    assert gateway.post("/join", files=fields, headers={"accept": "application/json"}).status_code == 200
    assert len(mails(settings, store, clock)) == 1


def link_in(mail: Any) -> str:
    """The link's path and token; its host is PUBLIC_URL's."""
    (found,) = re.findall(rf"{re.escape(PUBLIC)}(/join/confirm\?token=[\w.-]+)", text_of(mail))
    return str(found)


def link(gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock) -> str:
    post(gateway)
    return link_in(mails(settings, store, clock)[-1])


def is_known(store: SqliteStore, email: str = ANN) -> bool:
    try:
        return subscriber_rows.subscriber(store, email)["status"] == "active"
    except NotFound:
        return False


def counted(store: SqliteStore, result: str) -> float:
    return metric_rows.counts(store).get((Counter.SIGN_UPS, result), 0.0)


# ── The whole way ──


def test_from_the_form_to_the_list(
    gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock
) -> None:
    form = gateway.get("/join")
    assert "News &amp; views" in form.text
    assert "Each &lt;Monday&gt;." in form.text
    assert "Staff" not in form.text
    assert post(gateway).status_code == 200
    (mail,) = mails(settings, store, clock)
    assert (mail["To"], mail["Subject"]) == (ANN, "Please confirm: News & views")
    assert not is_known(store)
    path = link_in(mail)
    page = gateway.get(path)
    assert page.status_code == 200
    assert ANN in page.text
    assert not is_known(store), "a scanner follows every link in a mail"
    assert "You are subscribed" in gateway.post(path).text
    assert is_known(store)
    (consent,) = subscriber_rows.consents(store, ANN)
    assert consent["wording"] == (
        "I would like to get News & views from Harbour Association by e\u2011mail."
        " I can unsubscribe at any time."
    )
    assert consent["source"] == f"{PUBLIC}/join"


def test_programs_get_json(gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock) -> None:
    asks = {"Accept": "application/json"}
    answer = post(gateway, headers=asks)
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert answer.headers["access-control-allow-origin"] == "*"
    (mail,) = mails(settings, store, clock)
    assert gateway.get(link_in(mail), headers=asks).json() == {"ok": False, "confirm": "POST"}
    assert gateway.post(link_in(mail), headers=asks).json() == {"ok": True}
    assert post(gateway, "nobody", headers=asks).status_code == 400


def test_a_form_on_another_site_says_where_it_stands(
    gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock
) -> None:
    """The consent names that page, without what its address may say of the visitor."""
    headers = {"Origin": "https://shop.example", "Referer": "https://shop.example/about?visitor=7#x"}
    assert post(gateway, headers=headers).status_code == 200
    gateway.post(link_in(mails(settings, store, clock)[0]))
    assert subscriber_rows.consents(store, ANN)[0]["source"] == "https://shop.example/about"


@pytest.mark.parametrize("header", ["Referer", "Origin"])
def test_a_header_that_is_no_address_is_no_error_of_ours(gateway: Client, header: str) -> None:
    assert post(gateway, headers={header: "http://["}).status_code in (200, 403)


@pytest.mark.parametrize("code", shipped())
def test_pages_and_mail_speak_the_readers_language(
    gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock, code: str
) -> None:
    words, headers = language(code).pages, {"Accept-Language": code}
    form = gateway.get("/join", headers=headers)
    assert (form.headers["content-language"], words["join_lists"] in form.text) == (code, True)
    assert words["asked_title"] in post(gateway, headers=headers).text
    (mail,) = mails(settings, store, clock)
    assert mail["Subject"] == words["confirm_mail_subject"].format(lists="News & views")
    assert words["confirm_mail_ignore"] in text_of(mail)
    assert words["confirm_title"] in gateway.get(link_in(mail), headers=headers).text
    assert words["joined_title"] in gateway.post(link_in(mail), headers=headers).text


def test_one_list_alone_needs_no_choice(gateway: Client) -> None:
    form = gateway.get("/join?list=weekly").text
    assert 'type="hidden" name="list" value="weekly"' in form
    assert "News" not in form
    assert "News" in gateway.get("/join?list=staff").text, "a list that is not public is shown to nobody"


def test_without_signup_there_is_nothing_to_join(open_gateway: Open) -> None:
    closed = open_gateway(public_url=PUBLIC)
    assert {closed.get("/join").status_code, closed.post("/join").status_code} == {404}
    assert closed.post("/join/confirm").status_code == 404


def test_signup_without_what_it_needs_is_refused_by_name() -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings({"SIGNUP": "true"})
    assert all(name in str(refused.value) for name in ("PUBLIC_URL", "UNSUBSCRIBE_SECRET", "FROM_EMAIL"))


# ── What a visitor gets wrong ──


@pytest.mark.parametrize(
    "email", ["", "ann", "ann@localhost", "ann@example.org, bea@example.org", "a\0@b.org"]
)
def test_what_is_no_address_is_said(gateway: Client, store: SqliteStore, email: str) -> None:
    answer = post(gateway, email, name="Ann <i>")
    assert answer.status_code == 400
    assert "No mail can be sent to this address" in answer.text
    assert "Ann &lt;i&gt;" in answer.text, "what was typed is kept, and escaped"
    assert not store.select(outbox_rows.MESSAGES)


@pytest.mark.parametrize("keys", [["staff"], ["nothing"], []])
def test_only_public_lists_can_be_joined(gateway: Client, store: SqliteStore, keys: list[str]) -> None:
    answer = gateway.post("/join", data={"email": ANN, "list": keys})
    assert answer.status_code == 400
    assert "choose at least one" in answer.text
    assert not store.select(outbox_rows.MESSAGES)


def test_a_form_that_is_too_large_is_refused(gateway: Client) -> None:
    assert post(gateway, name="a" * 9000).status_code == 413
    assert gateway.post("/join", content="&".join(["list=news"] * 600)).status_code == 400


# ── Attacks ──


def test_the_answer_tells_nobody_who_is_subscribed(gateway: Client, store: SqliteStore) -> None:
    rows = [
        SubscriberRow("active@example.org", "active@example.org", lists=("news",)),
        SubscriberRow("gone@example.org", "gone@example.org", status="unsubscribed"),
        SubscriberRow("bounced@example.org", "bounced@example.org", status="bounced"),
    ]
    store.import_subscribers(rows)
    complain(store, "angry@example.org")
    names = ("active", "gone", "bounced", "angry", "new", "active")  # the last one is over its limit
    answers = [post(gateway, f"{name}@example.org") for name in names]
    assert len({answer.text for answer in answers}) == 1
    assert {answer.status_code for answer in answers} == {200}
    assert "news@example.org" in answers[0].text, "whom to write to, if nothing comes"


def complain(store: SqliteStore, email: str) -> None:
    told = ses_event("Complaint", complainedRecipients=[{"emailAddress": email}], destination=[email])
    store.receive_events([Received(f"complaint {email}", "sns", told)])
    ingest(store, "smart")


def test_whatever_is_posted_is_one_write(
    gateway: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is sent, refused or a program's: the time it takes tells nothing."""
    writes: list[str] = []
    write = store.db.write

    def count() -> Any:
        writes.append("write")
        return write()

    monkeypatch.setattr(store.db, "write", count)
    each = []
    for fields in ({}, {}, {"website": "spam"}):
        writes.clear()
        post(gateway, **fields)
        each.append(len(writes))
    assert each == [1, 1, 1]


def test_a_mail_bomb_is_one_mail(
    gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock
) -> None:
    """Other lists, other spellings, other networks: it is one mailbox."""
    for n, email in enumerate((ANN, "ANN@example.org", " ann@EXAMPLE.org ", ANN)):
        for keys in (("news",), ("weekly",), ("news", "weekly")):
            post(gateway, email, *keys, headers={"X-Forwarded-For": f"192.0.{n}.7"})
    assert len(mails(settings, store, clock)) == 1
    assert counted(store, "address") == 11


def test_a_network_is_what_the_trusted_proxy_says(gateway: Client, store: SqliteStore) -> None:
    """All come from the proxy's address: the limit must not be everybody's."""
    for n in range(31):
        post(gateway, f"reader{n}@example.org", headers={"X-Forwarded-For": f"192.0.2.{n}"})
    assert counted(store, "network") == 1, "one /24"
    for n in range(31):
        post(gateway, f"other{n}@example.org", headers={"X-Forwarded-For": f"2001:db8:1:ff{n:02x}::1"})
    assert counted(store, "network") == 2, "one /56"
    post(gateway, "more@example.org", headers={"X-Forwarded-For": "2001:db8:2::1"})
    assert counted(store, "sent") == 61


def test_nobody_chooses_their_network_without_a_trusted_proxy(open_gateway: Open, store: SqliteStore) -> None:
    plain = open_gateway(signup=True, public_url=PUBLIC)
    for n in range(32):
        post(plain, f"reader{n}@example.org", headers={"X-Forwarded-For": f"10.{n}.0.1"})
    assert counted(store, "network") == 2


def test_programs_that_fill_in_everything_send_nothing(gateway: Client, store: SqliteStore) -> None:
    answer = post(gateway, website="https://casino.example")
    assert "One more step" in answer.text, "and do not learn it"
    assert (counted(store, "bot"), store.select(outbox_rows.MESSAGES)) == (1, [])


def test_a_form_that_comes_back_at_once_was_filled_in_by_a_program(
    gateway: Client, store: SqliteStore, clock: FakeClock
) -> None:
    (started,) = re.findall(r'name="started" value="([^"]+)"', gateway.get("/join").text)
    post(gateway, started=started)
    post(gateway, started=f"{started}x")
    confirm_key = SignedLinks([SECRET], "join").make({"at": 0})
    post(gateway, started=confirm_key)
    assert (counted(store, "bot"), counted(store, "sent")) == (3, 0)
    clock.wall += 5
    post(gateway, started=started)
    assert counted(store, "sent") == 1


def test_a_clock_that_is_set_back_makes_nobody_a_program(
    gateway: Client, store: SqliteStore, clock: FakeClock
) -> None:
    """Their form was shown in the future; they were told to look into their mailbox, and nothing came."""
    (started,) = re.findall(r'name="started" value="([^"]+)"', gateway.get("/join").text)
    clock.wall -= 60
    post(gateway, started=started)
    assert (counted(store, "bot"), counted(store, "sent")) == (0, 1)


def test_who_corrects_a_mistake_quickly_is_no_program(
    gateway: Client, store: SqliteStore, clock: FakeClock
) -> None:
    """They would be told to look into their mailbox, and nothing would come."""
    first = gateway.get("/join").text
    clock.wall += 10
    field = r'name="started" value="([^"]+)"'
    again = post(gateway, "ann@localhost", started=re.findall(field, first)[0]).text
    post(gateway, started=re.findall(field, again)[0])
    assert (counted(store, "bot"), counted(store, "sent")) == (0, 1)


def test_what_strangers_type_does_not_reach_who_they_type_it_about(
    gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock
) -> None:
    """Else our mail is somebody's advertisement."""
    post(gateway, name="Buy at https://casino.example", headers={"Referer": "https://casino.example/x"})
    (mail,) = mails(settings, store, clock)
    words = text_of(mail) + str(mail.get_body(("html",)).get_content())
    assert "casino" not in words
    assert "Buy at" not in words


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_scanners_confirm_nothing(
    gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock, method: str
) -> None:
    gateway.request(method, link(gateway, settings, store, clock))
    assert not is_known(store)


def test_a_link_is_good_for_a_week(
    gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock
) -> None:
    path = link(gateway, settings, store, clock)
    clock.wall += CONFIRM_SECONDS + 60
    for answer in (gateway.get(path), gateway.post(path)):
        assert answer.status_code == 400
        assert 'href="/join"' in answer.text
    assert not is_known(store)


@pytest.mark.parametrize("purpose", ["join form", "view", "sign-in"])
def test_a_link_that_was_made_for_something_else_confirms_nothing(
    gateway: Client, store: SqliteStore, purpose: str
) -> None:
    payload = {"at": store.now(), "email": ANN, "written": ANN, "lists": ["news"], "name": ""}
    token = SignedLinks([SECRET], purpose).make({**payload, "wording": "", "page": ""})
    assert gateway.post(f"/join/confirm?token={token}").status_code == 400
    assert not is_known(store)


def test_a_changed_link_confirms_nothing(
    gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock
) -> None:
    path = link(gateway, settings, store, clock)
    for changed in (path[:-2], path.replace("token=", "token=x"), "/join/confirm", f"{path}.x"):
        assert gateway.post(changed).status_code == 400
    assert not is_known(store)


def test_an_old_link_brings_nobody_back(
    gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock
) -> None:
    path = link(gateway, settings, store, clock)
    assert [gateway.post(path).status_code for _ in range(2)] == [200, 200]
    store.unsubscribe(ANN, None)
    assert gateway.post(path).status_code == 400
    assert not is_known(store)


def test_who_complained_is_told_whom_to_write_to(
    gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock
) -> None:
    path = link(gateway, settings, store, clock)
    complain(store, ANN)
    answer = gateway.post(path)
    assert answer.status_code == 409
    assert "news@example.org" in answer.text
    assert not is_known(store)


def test_the_secret_link_is_in_the_mail_alone(
    gateway: Client, settings: Settings, store: SqliteStore, clock: FakeClock
) -> None:
    """Whoever may look at pages, exports, backups or logs must not be able to confirm for others."""
    token = link(gateway, settings, store, clock).partition("token=")[2]
    signature = token.partition(".")[2]
    kept = "\n".join(store.db._connection.iterdump())
    assert signature not in kept
    assert token not in kept


def test_pages_run_nothing_and_are_framed_by_nobody(gateway: Client) -> None:
    for answer in (gateway.get("/join"), post(gateway), gateway.get("/join/confirm?token=x")):
        csp = answer.headers["content-security-policy"]
        assert "default-src 'none'" in csp
        assert "frame-ancestors 'none'" in csp
        assert "<script" not in answer.text
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_every_language_says_everything() -> None:
    """A page that misses a word in one language answers 500 there."""
    english = language("en").pages
    for code in shipped():
        pages = language(code).pages
        assert pages.keys() == english.keys()
        for key, words in english.items():
            assert set(re.findall(r"{\w+}", pages[key])) == set(re.findall(r"{\w+}", words)), (code, key)
