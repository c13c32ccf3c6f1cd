"""Signing in by a mailed link: what a stranger, a second browser and a second click get."""

from __future__ import annotations

import asyncio
import email.policy
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from email import message_from_bytes
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import SecretStr

from gateway.dashboard.login import BROWSER_COOKIE, LINK_SAID
from gateway.dashboard.sessions import COOKIE, SESSION_SECONDS, Role, Sessions
from gateway.dashboard.sign_in_links import (
    LINK_SECONDS,
    MAILS_PER_WINDOW,
    OTHER_BROWSER,
    PURPOSE,
    TOO_OLD,
    USED,
    LinkRefused,
    SignInLinks,
    letter,
)
from gateway.dashboard.views import SAID
from gateway.wrong_passwords import MOST_FROM_ONE
from mailout.adapters.sqlite import SqliteStore
from mailout.app.single_mail_run import send_what_waits
from mailout.app.wiring import build
from mailout.base.clock import SystemClock
from mailout.base.errors import SettingsError
from mailout.base.settings import load_settings
from mailout.base.signed_links import SignedLinks
from mailout.insight.history import history_rows
from tests.clocks import NOON
from tests.dashboard.conftest import ADMIN, Site, site
from tests.ports import free_port
from tests.transports import delivering

ANA, BEN, STRANGER = "ana@example.org", "ben@example.org", "stranger@example.org"
SECRET = "a secret for links, long enough"


@contextmanager
def by_link(filled: Path, home: Path, **changes: Any) -> Iterator[Site]:
    port = free_port()
    given: dict[str, Any] = {
        "sign_in_admins": ANA,
        "sign_in_editors": f"{BEN}; {ANA}",
        "public_url": f"http://127.0.0.1:{port}/",
        "unsubscribe_secret": SECRET,
        "from_email": "news@example.org",
    }
    with site(filled, home, port=port, **given | changes) as opened:
        yield opened


@pytest.fixture
def dashboard(filled: Path, tmp_path: Path) -> Iterator[Site]:
    with by_link(filled, tmp_path / "home") as opened:
        yield opened


def ask(dashboard: Site, address: str) -> httpx.Response:
    return dashboard.client.post("/login/link", data={"email": address})


def waiting(dashboard: Site) -> list[str]:
    """To whom mails with a link wait in the outbox."""
    rows = dashboard.store.db.read(
        "SELECT email FROM email_outbox WHERE company_id = 'mailout' AND variables IS NOT NULL ORDER BY seq"
    )
    return [row["email"] for row in rows]


def until_waiting(dashboard: Site, mails: int) -> None:
    """The mail is handed in after the answer."""
    while len(waiting(dashboard)) < mails:
        time.sleep(0.01)


def mailed(dashboard: Site, mails: int = 1) -> list[str]:
    """The links of the mails that were really sent, in order."""
    until_waiting(dashboard, mails)
    clock = SystemClock()
    engine = build(
        dashboard.settings,
        clock,
        store=dashboard.store,
        transport=delivering(dashboard.settings, clock),
        inline=True,
    )
    send_what_waits(engine.sending)
    found = []
    for path in sorted((dashboard.home / "outbox").rglob("*.eml"), key=lambda path: path.stat().st_mtime_ns):
        mail = message_from_bytes(path.read_bytes(), policy=email.policy.default)
        text = mail.get_body(("plain",))
        assert text is not None
        found += re.findall(r"http\S+/login/confirm\?token=\S+", text.get_content())
    return found


def links_of(dashboard: Site, now: list[float]) -> SignInLinks:
    return SignInLinks(dashboard.settings, dashboard.store, rehearses=False, now=lambda: now[0])


def path_of(link: str) -> str:
    return f"{urlsplit(link).path}?{urlsplit(link).query}"


def token_of(link: str) -> str:
    return link.partition("token=")[2]


def confirm(client: httpx.Client, link: str) -> httpx.Response:
    return client.post("/login/confirm", data={"token": token_of(link)})


def another_browser(dashboard: Site) -> httpx.Client:
    return httpx.Client(base_url=dashboard.address, trust_env=False, timeout=300)


def is_in(client: httpx.Client) -> bool:
    return client.get("/letters").status_code == 200


def test_a_link_opened_and_confirmed_signs_its_owner_in_and_the_log_names_her(dashboard: Site) -> None:
    answer = ask(dashboard, " Ana@Example.org ")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert LINK_SAID in dashboard.client.get("/login").text
    (link,) = mailed(dashboard)
    shown = dashboard.client.get(path_of(link))
    assert "Sign in as ana@example.org?" in shown.text
    assert not is_in(dashboard.client), "looking at it signed in: a mail scanner would have used it up"
    entered = confirm(dashboard.client, link)
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert "httponly" in entered.headers["set-cookie"].lower()
    assert dashboard.client.get("/people").status_code == 200
    dashboard.act("/pause-all", paused="yes")
    acts = history_rows.acts(dashboard.store)
    assert {act.who for act in acts[:2]} == {"ana@example.org (127.0.0.1)"}
    assert "ana@example.org" in dashboard.client.get("/system").text
    assert dashboard.act("/logout").url.path == "/login"
    assert not is_in(dashboard.client)


def test_an_editor_who_comes_by_a_link_is_an_editor(dashboard: Site) -> None:
    ask(dashboard, BEN)
    (link,) = mailed(dashboard)
    confirm(dashboard.client, link)
    assert is_in(dashboard.client)
    assert dashboard.client.get("/people").status_code == 403


def test_a_link_works_once_also_for_two_at_the_same_moment(dashboard: Site) -> None:
    ask(dashboard, ANA)
    (link,) = mailed(dashboard)
    cookies = {BROWSER_COOKIE: dashboard.client.cookies[BROWSER_COOKIE]}

    def attempt(_: int) -> int:
        with another_browser(dashboard) as client:
            client.cookies.update(cookies)
            return confirm(client, link).status_code

    with ThreadPoolExecutor(4) as pool:
        answers = sorted(pool.map(attempt, range(4)))
    assert answers == [303, 400, 400, 400]
    again = confirm(dashboard.client, link)
    assert again.status_code == 400
    assert USED in again.text


def test_a_used_link_stays_used_for_a_gateway_that_starts_later(dashboard: Site) -> None:
    ask(dashboard, ANA)
    (link,) = mailed(dashboard)
    browser = dashboard.client.cookies[BROWSER_COOKIE]
    assert confirm(dashboard.client, link).status_code == 303
    store = SqliteStore(dashboard.home / "mailout.db", SystemClock())
    later = SignInLinks(dashboard.settings, store, rehearses=False)
    with pytest.raises(LinkRefused, match="used already"):
        later.use(token_of(link), browser)
    store.close()


def test_opened_in_another_browser_it_says_to_use_the_first(dashboard: Site) -> None:
    """Whoever gets hold of the mail alone, or forwards it, opens nothing."""
    ask(dashboard, ANA)
    (link,) = mailed(dashboard)
    with another_browser(dashboard) as other:
        other.post("/login/link", data={"email": STRANGER})  # has a cookie of its own
        for answer in (other.get(path_of(link)), confirm(other, link)):
            assert answer.status_code == 400
            assert OTHER_BROWSER in answer.text
            assert dashboard.address in answer.text
        assert not is_in(other)
    assert confirm(dashboard.client, link).status_code == 303, "the failed tries used it up"


def test_a_forged_or_foreign_link_opens_nothing(dashboard: Site) -> None:
    ask(dashboard, STRANGER)  # for the cookie
    hashed = sha256(dashboard.client.cookies[BROWSER_COOKIE].encode()).hexdigest()
    now = int(time.time())
    payload = {"email": ANA, "at": now, "browser": hashed}
    ours, mine = SignedLinks([SECRET], PURPOSE), SignedLinks(["mine"], PURPOSE)
    good = ours.make(payload)
    body, _, signature = good.partition(".")
    forgeries = {
        "another purpose": SignedLinks([SECRET], "join").make(payload),
        "a session's": SignedLinks([SECRET], "session").make(payload),
        "another secret": mine.make(payload),
        "no signature": body,
        "another's payload": f"{mine.make(payload | {'email': BEN}).partition('.')[0]}.{signature}",
        "an address that may not": ours.make(payload | {"email": STRANGER}),
        "from the future": ours.make(payload | {"at": now + 3600}),
        "too old": ours.make(payload | {"at": now - int(LINK_SECONDS) - 1}),
        "nothing": "",
        "long": "a" * 9000 + ".b",
    }
    for name, token in forgeries.items():
        for answer in (
            dashboard.client.get("/login/confirm", params={"token": token}),
            dashboard.client.post("/login/confirm", data={"token": token}),
        ):
            assert (answer.status_code, TOO_OLD in answer.text) == (400, True), name
    assert not is_in(dashboard.client)
    assert dashboard.client.post("/login/confirm", data={"token": good}).status_code == 303


def test_a_form_of_another_site_neither_asks_nor_confirms(dashboard: Site) -> None:
    """Else a page elsewhere could make visitors ask for mails, or sign them in as somebody else."""
    ask(dashboard, ANA)
    (link,) = mailed(dashboard)
    for headers in ({"origin": "https://elsewhere.example"}, {"sec-fetch-site": "cross-site"}):
        form = {"token": token_of(link)}
        assert dashboard.client.post("/login/confirm", data=form, headers=headers).status_code == 403
        assert dashboard.client.post("/login/link", data={"email": ANA}, headers=headers).status_code == 403
    assert waiting(dashboard) == [ANA]


def test_a_stranger_is_answered_like_a_person_of_the_list_and_gets_no_mail(dashboard: Site) -> None:
    """Else the page tells who the administrators are."""
    answers = []
    for address in (ANA, STRANGER, "no address", ""):
        with another_browser(dashboard) as client:
            answer = client.post("/login/link", data={"email": address})
            said = (answer.status_code, answer.content, sorted({*answer.headers} - {"date"}))
            answers.append((*said, answer.headers["location"], sorted(answer.cookies), answer.cookies[SAID]))
    assert all(answer == answers[0] for answer in answers)
    until_waiting(dashboard, 1)
    assert waiting(dashboard) == [ANA]


def test_the_answer_never_waits_for_what_an_address_costs(
    dashboard: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does its time tell: nothing that depends on the address is done before it is sent."""
    go_on, real = threading.Event(), dashboard.store.accept_single_mails

    def held(mails: Any) -> Any:
        go_on.wait()
        return real(mails)

    monkeypatch.setattr(dashboard.store, "accept_single_mails", held)
    try:
        assert ask(dashboard, ANA).status_code == 303
        assert waiting(dashboard) == []
    finally:
        go_on.set()
    until_waiting(dashboard, 1)


def test_whoever_asks_and_asks_waits_and_the_password_is_still_a_way_in(dashboard: Site) -> None:
    for _ in range(MOST_FROM_ONE):
        assert ask(dashboard, STRANGER).status_code == 303
    refused = ask(dashboard, ANA)
    assert refused.status_code == 429
    assert "minutes" in refused.text
    assert dashboard.sign_in().status_code == 303
    assert waiting(dashboard) == []


def test_nobody_can_fill_an_administrators_mailbox_from_many_places(dashboard: Site) -> None:
    """So many in a quarter of an hour, whoever asks, and by way of whichever gateway."""
    now = [NOON]
    gateways = [links_of(dashboard, now), links_of(dashboard, now)]

    async def asked_from_everywhere() -> None:
        for n in range(2 * MAILS_PER_WINDOW):
            await gateways[n % 2]._send(ANA, f"browser {n}")

    asyncio.run(asked_from_everywhere())
    assert waiting(dashboard) == [ANA] * MAILS_PER_WINDOW
    now[0] += LINK_SECONDS
    asyncio.run(asked_from_everywhere())
    assert waiting(dashboard) == [ANA] * 2 * MAILS_PER_WINDOW


def test_a_secret_that_was_changed_signs_nobody_in(filled: Path, tmp_path: Path) -> None:
    """It may have been changed because somebody knows it. Links in letters go on working."""
    old = "the secret before, long enough"
    said = {"email": ANA, "ends_at": 9_999_999_999, "nonce": "x"}
    with by_link(filled, tmp_path / "home", unsubscribe_secrets_old=(old,)) as here:
        for secret, status in ((old, 303), (SECRET, 200)):
            cookie = f"{COOKIE}=link.{SignedLinks([secret], 'session').make(said)}"
            assert here.client.get("/people", headers={"Cookie": cookie}).status_code == status


def test_taking_an_address_out_ends_its_sessions_and_moving_it_changes_its_rights() -> None:
    now = [1000.0]

    def sessions(people: dict[str, Role], secrets: tuple[str, ...] = (SECRET,)) -> Sessions:
        return Sessions(SecretStr(ADMIN), None, lambda: now[0], people, secrets)

    cookie = sessions({ANA: Role.ADMIN}).begin_named(ANA)
    session = sessions({ANA: Role.ADMIN}).read(cookie)
    assert session is not None
    assert (session.is_admin, session.name) == (True, ANA)
    moved = sessions({ANA: Role.EDITOR}).read(cookie)
    assert moved is not None
    assert not moved.is_admin
    assert sessions({BEN: Role.ADMIN}).read(cookie) is None
    assert sessions({}).read(cookie) is None
    assert sessions({ANA: Role.ADMIN}, ("new",)).read(cookie) is None
    forged = SignedLinks([SECRET], PURPOSE).make({"email": ANA, "ends_at": 9_999_999_999, "nonce": "x"})
    assert sessions({ANA: Role.ADMIN}).read(f"link.{forged}") is None
    now[0] += SESSION_SECONDS
    assert sessions({ANA: Role.ADMIN}).read(cookie) is None


def test_a_link_lasts_fifteen_minutes_and_ends_with_the_address(dashboard: Site) -> None:
    now = [NOON]
    links = links_of(dashboard, now)
    token = links.signed.make({"email": ANA, "at": int(NOON), "browser": sha256(b"one").hexdigest()})
    now[0] = NOON + LINK_SECONDS
    assert links.check(token, "one") == ANA
    now[0] += 1
    with pytest.raises(LinkRefused, match="15 minutes"):
        links.check(token, "one")


def test_without_a_password_the_link_is_the_way_in(filled: Path, tmp_path: Path) -> None:
    with by_link(filled, tmp_path / "home", admin_password=None, editor_password=None) as opened:
        shown = opened.client.get("/login").text
        assert 'name="email"' in shown
        assert 'name="password"' not in shown
        assert opened.sign_in("").status_code == 401
        ask(opened, ANA)
        (link,) = mailed(opened)
        assert confirm(opened.client, link).status_code == 303
        assert COOKIE in opened.client.cookies


def test_at_another_address_the_page_leads_to_the_public_one(dashboard: Site) -> None:
    """The link leads to PUBLIC_URL: a cookie that was set elsewhere would not come along."""
    shown = dashboard.client.get("/login", headers={"Host": "localhost:1"}).text
    assert f'href="{dashboard.address}/login"' in shown
    assert 'action="/login/link"' not in shown


def test_no_page_shows_a_link_to_sign_in(dashboard: Site) -> None:
    ask(dashboard, ANA)
    (link,) = mailed(dashboard)
    signature = token_of(link).partition(".")[2]
    confirm(dashboard.client, link)
    for page in (f"/person?email={ANA}", "/system", "/problems", "/", "/letters"):
        assert signature not in dashboard.client.get(page).text, page
    for path in dashboard.home.rglob("*"):
        if path.is_file() and path.suffix != ".eml":
            assert signature.encode() not in path.read_bytes(), path


def test_ses_is_told_not_to_track_the_link() -> None:
    """It would lead it over its own address, and report it with every click."""
    assert "<a ses:no-track href=" in letter(None).html


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("https://Mail.Example.org", "mail.example.org"),
        ("https://mail.example.org:443/", "mail.example.org"),
        ("https://bücher.example", "xn--bcher-kva.example"),
    ],
)
def test_however_the_public_address_is_written_people_get_in(
    filled: Path, tmp_path: Path, written: str, host: str
) -> None:
    with by_link(filled, tmp_path / "home", public_url=written) as here:
        there = {"Host": host, "Origin": f"https://{host}"}
        assert 'action="/login/link"' in here.client.get("/login", headers=there).text
        asked = here.client.post("/login/link", data={"email": ANA}, headers=there)
        assert all("; secure" in one.lower() for one in asked.headers.get_list("set-cookie"))


@pytest.mark.parametrize("missing", ["PUBLIC_URL", "UNSUBSCRIBE_SECRET", "FROM_EMAIL"])
def test_a_missing_setting_is_named_before_somebody_waits_for_a_mail(missing: str) -> None:
    env = {
        "SIGN_IN_EDITORS": BEN,
        "PUBLIC_URL": "https://mail.example.org",
        "UNSUBSCRIBE_SECRET": SECRET,
        "FROM_EMAIL": "news@example.org",
    }
    assert load_settings(env).sign_in_editors == (BEN,)
    with pytest.raises(SettingsError, match=f"{missing}: is missing. SIGN_IN_EDITORS needs it"):
        load_settings({name: value for name, value in env.items() if name != missing})
    with pytest.raises(SettingsError, match="SIGN_IN_EDITORS: must be e-mail addresses"):
        load_settings(env | {"SIGN_IN_EDITORS": "ben at example.org"})
