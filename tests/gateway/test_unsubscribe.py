"""`/unsubscribe`: whoever wants to leave, leaves; nobody else can make them."""

from __future__ import annotations

import hmac
import json
import re
import threading
from base64 import b64encode, urlsafe_b64encode
from hashlib import sha256, sha512
from typing import Any

import pytest
from httpx import Client

from mailout.adapters.sqlite import SqliteStore
from mailout.base import ids
from mailout.base.errors import NotFound, StoreUnavailable
from mailout.base.signed_links import Tokens
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.delivery.single_mails import Category
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received
from tests.clocks import FakeClock
from tests.contract.scenes import Sender, mailout, result
from tests.contract.test_single_mails import mail
from tests.gateway.conftest import SECRET, Open
from tests.ses_events import ses_event

ANN = "ann@example.org"
ONE_CLICK = {"List-Unsubscribe": "One-Click"}


@pytest.fixture(autouse=True)
def ann(store: SqliteStore) -> None:
    store.import_subscribers([SubscriberRow(ANN, ANN, lists=["weekly", "daily"])])


def link(email: str = ANN, list_key: str | None = None, secret: str = SECRET) -> str:
    return f"/unsubscribe?token={Tokens([secret]).make(email, list_key)}"


def status(store: SqliteStore, email: str = ANN) -> str:
    return str(subscriber_rows.subscriber(store, email)["status"])


def lists(store: SqliteStore) -> set[str]:
    return {
        entry["list_key"]
        for entry in subscriber_rows.subscriber(store, ANN)["lists"]
        if not entry["unsubscribed_at"]
    }


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_one_click_is_enough_and_a_second_changes_nothing(
    gateway: Client, store: SqliteStore, method: str
) -> None:
    answers = [gateway.request(method, link()) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert "You are unsubscribed" in answers[0].text
    assert ANN in answers[0].text
    assert status(store) == "unsubscribed"


def test_a_machine_gets_json(gateway: Client, store: SqliteStore) -> None:
    answer = gateway.get(link(), headers={"accept": "application/json"})
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert status(store) == "unsubscribed"
    bad = gateway.get("/unsubscribe?token=x", headers={"accept": "application/json"})
    assert (bad.status_code, bad.json()) == (400, {"error": "bad request"})


def test_with_a_list_only_that_list_ends(gateway: Client, store: SqliteStore) -> None:
    page = gateway.get(link(list_key="weekly"))
    assert (page.status_code, "weekly" in page.text) == (200, True)
    assert (status(store), lists(store)) == ("active", {"daily"})


def test_an_address_that_we_do_not_know_is_remembered(gateway: Client, store: SqliteStore) -> None:
    assert gateway.get(link("stranger@example.net")).status_code == 200
    assert status(store, "stranger@example.net") == "unsubscribed"


def test_an_old_secret_s_links_still_work(open_gateway: Open, store: SqliteStore) -> None:
    gateway = open_gateway(unsubscribe_secrets_old="older,oldest")
    assert gateway.get(link(secret="oldest")).status_code == 200
    assert status(store) == "unsubscribed"


@pytest.mark.parametrize(
    "email", ["ännä@exämple.org", "ann@пример.рф", "ann+news@example.org", "o'hara@example.ie"]
)
def test_a_link_that_we_signed_always_works(gateway: Client, email: str) -> None:
    """Whatever the address looks like: its owner wants to leave."""
    answer = gateway.get(link(email))
    assert answer.status_code == 200


@pytest.mark.parametrize("confirm", [True, False])
def test_readers_know_their_address_again(open_gateway: Open, confirm: bool) -> None:
    """`xn--e1afmkfd.xn--p1ai` is no address that anybody has ever typed."""
    page = open_gateway(unsubscribe_confirm=confirm).get(link("ann@пример.рф")).text
    assert "<strong>ann@пример.рф</strong>" in page
    assert "xn--" not in page


@pytest.mark.parametrize("written", ["damaged", "gone"])
def test_the_address_to_write_to_is_read_as_people_write_it_and_leads_to_every_mail_program(
    open_gateway: Open, store: SqliteStore, written: str
) -> None:
    gateway = open_gateway(reply_to="office@bücher.example")
    if written == "damaged":
        page = gateway.get("/unsubscribe?token=x").text
    else:
        store.receive_events([Received("1", "sns", ses_event("Complaint"))])
        ingest(store, "any")
        page = gateway.post(link(), data={"action": "keep"}).text
    assert '<a href="mailto:office@xn--bcher-kva.example">office@bücher.example</a>' in page


# ── The sender's look ────────────────────────────────────────────────────────────────────────────


LOGO, LOGO_DARK = "https://cdn.example.org/logo.png", "https://dark.example.org/logo.png"


def test_the_page_wears_the_senders_logo_and_colour_and_its_policy_lets_them_be_seen(
    open_gateway: Open,
) -> None:
    """A logo that the policy forbids is a broken picture; a style that it forbids, a bare page."""
    gateway = open_gateway(brand_logo=LOGO, brand_logo_dark=LOGO_DARK, brand_color="#7a1fa2")
    answer = gateway.get(link())
    assert f'<img src="{LOGO}" alt="Harbour Association">' in answer.text
    assert f'<source srcset="{LOGO_DARK}" media="(prefers-color-scheme: dark)">' in answer.text
    assert "--accent: #7a1fa2" in answer.text
    policy = answer.headers["content-security-policy"]
    assert "img-src https://cdn.example.org https://dark.example.org" in policy
    (style,) = re.findall("<style>(.*?)</style>", answer.text, re.DOTALL)
    assert f"style-src 'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'" in policy


def test_the_button_has_the_senders_own_colour_as_in_the_letter(open_gateway: Open) -> None:
    """A yellow that was darkened until white words can be read on it is brown."""
    page = open_gateway(brand_color="#f2c14e", unsubscribe_confirm=True).get(link()).text
    assert "--button: #f2c14e; --on-button: #000000" in page


def test_a_logo_without_a_dark_one_gets_a_light_plate(open_gateway: Open) -> None:
    """Black letters on a dark ground are not seen."""
    page = open_gateway(brand_logo=LOGO).get(link()).text
    assert f'<img src="{LOGO}" alt="Harbour Association" class="on-a-plate">' in page
    both = open_gateway(brand_logo=LOGO, brand_logo_dark=LOGO_DARK).get(link()).text
    assert 'class="on-a-plate"' not in both


def test_without_a_logo_the_senders_name_stands_there_and_no_picture_is_loaded(gateway: Client) -> None:
    answer = gateway.get(link())
    assert '<header class="sender">Harbour Association</header>' in answer.text
    assert "img-src" not in answer.headers["content-security-policy"]


# ── Asking first ─────────────────────────────────────────────────────────────────────────────────


def test_asking_first_changes_nothing_until_the_button(open_gateway: Open, store: SqliteStore) -> None:
    """Scanners follow every link in a mail: they must not unsubscribe its reader."""
    gateway = open_gateway(unsubscribe_confirm=True)
    page = gateway.get(link())
    assert (page.status_code, status(store)) == (200, "active")
    assert '<form method="post">' in page.text
    assert ANN in page.text
    assert gateway.get(link(), headers={"accept": "application/json"}).json()["ok"] is False
    assert status(store) == "active"
    assert gateway.post(link()).status_code == 200
    assert status(store) == "unsubscribed"


@pytest.mark.parametrize("confirm", [True, False])
def test_rfc_8058_always_acts(open_gateway: Open, store: SqliteStore, confirm: bool) -> None:
    """Gmail and Yahoo press the button for their users, without cookies and without reading our page."""
    answer = open_gateway(unsubscribe_confirm=confirm).post(link(), data=ONE_CLICK)
    assert (answer.status_code, status(store)) == (200, "unsubscribed")


@pytest.mark.parametrize(("hours", "asks"), [(1, True), (25, False)])
def test_by_default_the_link_of_a_fresh_mail_asks(
    gateway: Client, store: SqliteStore, clock: FakeClock, hours: int, asks: bool
) -> None:
    """Scanners follow the links of fresh mail; whoever clicks a week later is a person."""
    sender = Sender(store, mailout(store, ANN))
    sender.step(results=[result(sender.begin_one())], close=True)
    clock.sleep(hours * 3600)
    assert gateway.get(link()).status_code == 200
    assert status(store) == ("active" if asks else "unsubscribed")
    assert gateway.get(link(), headers={"accept": "application/json"}).json() == {"ok": True}
    assert status(store) == "unsubscribed"


def test_so_does_the_link_of_a_welcome_letter(gateway: Client, store: SqliteStore) -> None:
    welcome = {"id": ids.welcome_id("general", ANN), "category": Category.MARKETING}
    store.accept_single_mails([mail("welcome", email=ANN, **welcome)])
    sender = Sender(store, None)
    sender.step(results=[result(sender.begin_one())], close=True)
    assert gateway.get(link()).status_code == 200
    assert status(store) == "active"


def test_so_does_the_link_of_a_mail_that_is_just_being_sent(gateway: Client, store: SqliteStore) -> None:
    """SES has it, and a scanner may read it, before we have written so down."""
    Sender(store, mailout(store, ANN)).begin_one()
    assert gateway.get(link()).status_code == 200
    assert status(store) == "active"


def test_so_does_the_link_of_a_welcome_letter_that_is_just_being_sent(
    gateway: Client, store: SqliteStore
) -> None:
    welcome = {"id": ids.welcome_id("general", ANN), "category": Category.MARKETING}
    store.accept_single_mails([mail("welcome", email=ANN, **welcome)])
    Sender(store, None).begin_one()
    assert gateway.get(link()).status_code == 200
    assert status(store) == "active"


@pytest.mark.parametrize(
    "accept",
    ["application/json, text/plain, */*", "application/json;q=0.9, */*;q=0.1", "application/json, text/*"],
)
def test_a_scanner_that_takes_anything_is_asked_too(gateway: Client, store: SqliteStore, accept: str) -> None:
    """The first is what every script with axios says."""
    sender = Sender(store, mailout(store, ANN))
    sender.step(results=[result(sender.begin_one())], close=True)
    assert gateway.get(link(), headers={"accept": accept}).json() == {"ok": False, "confirm": "POST"}
    assert status(store) == "active"


@pytest.mark.parametrize("header", ["Purpose", "Sec-Purpose", "X-Moz"])
def test_a_prefetch_does_nothing(gateway: Client, store: SqliteStore, header: str) -> None:
    assert gateway.get(link(), headers={header: "prefetch"}).status_code == 200
    assert status(store) == "active"


def test_a_head_request_does_nothing(gateway: Client, store: SqliteStore) -> None:
    assert gateway.head(link()).status_code == 405
    assert status(store) == "active"


# ── It was a mistake ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("list_key", [None, "weekly"])
def test_a_mistake_can_be_taken_back(gateway: Client, store: SqliteStore, list_key: str | None) -> None:
    page = gateway.get(link(list_key=list_key))
    assert 'name="action" value="keep"' in page.text
    kept = gateway.post(link(list_key=list_key), data={"action": "keep"})
    assert (kept.status_code, "You are still subscribed" in kept.text) == (200, True)
    assert (status(store), lists(store)) == ("active", {"weekly", "daily"})


def test_a_form_in_parts_is_read_like_any_other(gateway: Client, store: SqliteStore) -> None:
    """RFC 8058 has mail programs send either; what is broken keeps nobody from leaving."""
    assert gateway.post(link(), files={"List-Unsubscribe": (None, "One-Click")}).status_code == 200
    assert status(store) == "unsubscribed"
    assert gateway.post(link(), files={"action": (None, "keep")}).status_code == 200
    assert status(store) == "active"
    broken = {"content-type": "multipart/form-data"}
    assert gateway.post(link(), content=b"--x", headers=broken).status_code == 200
    assert status(store) == "unsubscribed"


@pytest.mark.parametrize("name", ["Complaint", "Bounce"])
def test_after_a_complaint_or_bounce_there_is_no_way_back(
    gateway: Client, store: SqliteStore, name: str
) -> None:
    store.receive_events([Received("1", "sns", ses_event(name))])
    ingest(store, "any")
    before = status(store)
    assert "keep" not in gateway.get(link()).text
    answer = gateway.post(link(), data={"action": "keep"})
    assert (answer.status_code, status(store)) == (409, before)
    as_json = gateway.post(link(), data={"action": "keep"}, headers={"accept": "application/json"})
    assert (as_json.status_code, as_json.json()) == (409, {"error": "not possible"})


def test_keeping_needs_a_good_token_and_a_post(gateway: Client, store: SqliteStore) -> None:
    gateway.get(link())
    assert gateway.post(link(secret="other"), data={"action": "keep"}).status_code == 400
    gateway.get(link() + "&action=keep")
    assert status(store) == "unsubscribed"


# ── Forgeries ────────────────────────────────────────────────────────────────────────────────────


def b64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


PAYLOAD = json.dumps({"email": ANN}, separators=(",", ":")).encode()
GOOD = Tokens([SECRET]).make(ANN)
HEAD, TAIL = GOOD.split(".")
BAD: dict[str, str] = {
    "nothing": "",
    "no signature": HEAD,
    "an empty signature": f"{HEAD}.",
    "cut short": GOOD[:-1],
    "too long": GOOD + "A",
    "three parts": f"{GOOD}.{TAIL}",
    "padding": GOOD + "=",
    "another secret": Tokens(["other"]).make(ANN),
    "no secret": Tokens([" "]).make(ANN),
    "another algorithm": f"{HEAD}.{b64(hmac.digest(SECRET.encode(), PAYLOAD, sha512))}",
    "a bare hash": f"{HEAD}.{b64(sha256(PAYLOAD).digest())}",
    "alg none": b64(b'{"alg":"none"}') + f".{HEAD}.",
    "a JWT": b64(b'{"alg":"HS256"}') + f".{HEAD}.{TAIL}",
    "another address": f"{b64(PAYLOAD.replace(b'ann', b'bob'))}.{TAIL}",
    "megabytes": "A" * 60_000,
    "not ASCII": "жжж.жжж",
    "NUL": "%00.%00",
}


@pytest.mark.parametrize("why", list(BAD))
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_forged_or_damaged_token_changes_nothing(
    gateway: Client, store: SqliteStore, why: str, method: str
) -> None:
    answer = gateway.request(method, f"/unsubscribe?token={BAD[why]}")
    assert answer.status_code == 400
    assert status(store) == "active"
    assert ANN not in answer.text


def test_without_a_secret_no_token_is_good(open_gateway: Open, store: SqliteStore) -> None:
    assert open_gateway(unsubscribe_secret=None).get(link()).status_code == 400
    assert status(store) == "active"


@pytest.mark.parametrize(
    "email",
    [
        "ann@example.org\r\nSet-Cookie: x=1",
        "ann@example.org\nbcc: bob@example.org",
        "a b@example.org",
        "ann",
        "\x00@x",
    ],
)
def test_an_address_cannot_smuggle_a_header(gateway: Client, store: SqliteStore, email: str) -> None:
    answer = gateway.get(link(email))
    assert answer.status_code == 400
    assert "set-cookie" not in answer.headers
    with pytest.raises(NotFound):
        subscriber_rows.subscriber(store, email)


def test_what_a_token_says_is_escaped_on_the_page(gateway: Client) -> None:
    page = gateway.get(link('"<script>alert(1)</script>"@example.org', "<img src=x onerror=alert(1)>"))
    assert "<script" not in page.text
    assert "<img" not in page.text


def test_the_page_is_private_and_runs_nothing(gateway: Client) -> None:
    headers = gateway.get(link()).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "unsafe" not in policy
    assert headers["cache-control"] == "no-store"
    assert "noindex" in headers["x-robots-tag"]
    assert headers["referrer-policy"] == "no-referrer"


def test_a_form_of_megabytes_is_not_read(gateway: Client, store: SqliteStore) -> None:
    assert gateway.post(link(), content=b"x" * 1_000_000).status_code == 413
    assert status(store) == "active"


def test_tokens_of_the_mails_are_the_ones_that_work(gateway: Client, store: SqliteStore) -> None:
    """The composer makes them with several secrets at hand; the first one counts."""
    token: Any = Tokens([SECRET, "older"]).make("ANN@example.org")
    assert gateway.get(f"/unsubscribe?token={token}").status_code == 200
    assert status(store) == "unsubscribed"


# ── Which message ──


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_link_says_which_message_it_stands_in(
    open_gateway: Open, store: SqliteStore, method: str
) -> None:
    gateway = open_gateway(unsubscribe_confirm=False)
    tokens = Tokens([SECRET])
    first, second = (sent_to(store, ref) for ref in ("first", "second"))
    url = f"{link()}&m={tokens.make_message(ids.message_id(first, ANN))}"
    assert gateway.request(method, url).status_code == 200
    assert store.mailout(first).metrics == {"unsubscribed": 1}
    assert store.mailout(second).metrics == {}


@pytest.mark.parametrize("lost", ["", "x", "ж", "A" * 43, "A" * 60_000])
def test_a_message_that_was_cut_off_or_changed_keeps_nobody_from_leaving(
    open_gateway: Open, store: SqliteStore, lost: str
) -> None:
    gateway = open_gateway(unsubscribe_confirm=False)
    last = sent_to(store, "last")
    assert gateway.get(f"{link()}&m={lost}").status_code == 200
    assert status(store) == "unsubscribed"
    assert store.mailout(last).metrics == {"unsubscribed": 1}, "as with older links: the last one"


def sent_to(store: SqliteStore, ref: str) -> str:
    id = mailout(store, ANN, ref=ref)
    sender = Sender(store, id)
    sender.step(results=[result(one) for one in sender.begin(1)])
    return id


@pytest.mark.parametrize(
    ("accept", "said", "lang"),
    [("de-DE,en;q=0.5", "Dieser Link funktioniert nicht", "de"), ("ja", "This link does not work", "en")],
)
def test_the_page_is_in_the_language_that_the_readers_browser_wishes(
    gateway: Client, accept: str, said: str, lang: str
) -> None:
    answer = gateway.get("/unsubscribe?token=x", headers={"accept": "text/html", "accept-language": accept})
    assert said in answer.text
    assert f'<html lang="{lang}">' in answer.text


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Language": "de"}


def test_a_reader_sees_a_page_while_the_store_is_away(
    gateway: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise StoreUnavailable("It is away.")

    monkeypatch.setattr(store, "unsubscribe", away)
    page = gateway.post(link(), headers=BROWSER)
    assert (page.status_code, page.headers["retry-after"]) == (503, "10")
    assert "Bitte versuchen Sie es in ein paar Minuten noch einmal." in page.text
    assert "style-src 'sha256-" in page.headers["content-security-policy"]
    assert gateway.post(link(), data=ONE_CLICK).json() == {"error": "try again later"}


def test_a_reader_sees_a_page_when_it_takes_too_long(
    open_gateway: Open, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = threading.Event()
    monkeypatch.setattr(store, "unsubscribe", lambda *_: hold.wait(300))
    gateway = open_gateway(answer_seconds=0.2)
    try:
        page = gateway.post(link(), headers=BROWSER)
    finally:
        hold.set()
    assert (page.status_code, page.headers["retry-after"]) == (503, "10")
    assert "Bitte versuchen Sie es später" in page.text


def test_a_reader_sees_a_page_when_something_fails(
    gateway: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "unsubscribe", lambda *_: 1 / 0)
    page = gateway.post(link(), headers=BROWSER)
    assert (page.status_code, "Bitte versuchen Sie es später" in page.text) == (500, True)
