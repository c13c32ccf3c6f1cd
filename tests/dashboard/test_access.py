"""Who gets in, for how long, and what nobody can do without being asked by our own page."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from gateway.dashboard import login
from gateway.dashboard.desk import Desk, Tools
from gateway.dashboard.login import local_path
from gateway.dashboard.sessions import (
    COOKIE,
    SESSION_SECONDS,
    SIGN_OUT_POLL_SECONDS,
    Role,
    Sessions,
    SignedOut,
)
from gateway.wrong_passwords import (
    LOCKOUT_SECONDS,
    MANY_OVER_ALL,
    MOST_FROM_ONE,
    SITES_KEPT,
    WrongPasswords,
)
from mailout.base.errors import SettingsError
from mailout.base.settings import Settings, load_settings
from mailout.insight.history import history_rows
from mailout.outbox.queue.mailout import DeferReason
from tests.dashboard.conftest import ADMIN, EDITOR, Site, site
from tests.dashboard.scene import PAGE, real_forecast
from tests.gateway.serving import served

PAGES = (
    "/",
    "/letters",
    "/people",
    "/person?email=odd@example.org",
    "/people/import",
    "/segments",
    "/articles",
    "/notifications",
    "/problems",
    "/system",
    "/single-mails",
    f"/draft?ref={PAGE}",
    f"/draft/letter?ref={PAGE}",
    f"/draft/live?ref={PAGE}",
    "/letters/drafts",
)
ACTS = (
    *("/logout", "/letters", "/pause-all", "/people/add", "/person/unsubscribe", "/person/forget"),
    *(
        "/segments",
        "/segments/delete",
        "/people/import",
        "/people/import/confirm",
        "/people/import/undo",
        "/problems/requeue",
        "/problems/drop",
        "/notifications/requeue",
    ),
    *("/draft/test", "/draft/send", "/draft/schedule", "/draft/cancel", "/problems/close"),
    *("/person/edit", "/person/undo", "/single-mails/retry", "/single-mails/cancel", "/single-mails/settle"),
)
LETTER_ACTS = ("pause", "resume", "cancel", "retry", "settle", "test", "send")


def all_acts(dashboard: Site) -> list[str]:
    return [*ACTS, *(f"/letters/{dashboard.ids['going']}/{act}" for act in LETTER_ACTS)]


def test_nobody_sees_anything_before_signing_in(dashboard: Site) -> None:
    id = dashboard.ids["sent"]
    more = ("/home/live", "/live", "/system/checks", "/people.csv", f"/draft/mail?ref={PAGE}")
    for page in (*PAGES, *more, f"/letters/{id}", f"/letters/{id}/mail"):
        answer = dashboard.client.get(page)
        assert (answer.status_code, urlsplit(answer.headers["location"]).path) == (303, "/login"), page
    for act in all_acts(dashboard):
        assert dashboard.client.post(act, data={"csrf": "0" * 64}).headers["location"] == "/login", act


def test_without_a_password_the_page_says_how_to_set_one_and_nothing_else(
    filled: Path, tmp_path: Path
) -> None:
    with site(filled, tmp_path / "home", admin_password=None, editor_password=EDITOR) as closed:
        for page in ("/", "/login"):
            answer = closed.client.get(page)
            assert answer.status_code == 403
            assert "ADMIN_PASSWORD" in answer.text
            assert "harbour" not in answer.text
        assert closed.sign_in("").status_code == 403
        assert closed.sign_in(EDITOR).status_code == 403


def test_in_and_out(dashboard: Site) -> None:
    answer = dashboard.sign_in()
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie  # plain http: the browser would not send it back
    assert dashboard.client.get("/").status_code == 200
    assert "signed in" in dashboard.client.get("/system").text
    assert dashboard.act("/logout").url.path == "/login"
    assert dashboard.client.get("/").status_code == 303


def test_whoever_signs_out_leaves_no_cookie_behind_that_still_opens_the_door(dashboard: Site) -> None:
    """A copy of the cookie, taken from a shared computer, must not work for the rest of twelve hours."""
    dashboard.sign_in()
    copied = {"Cookie": f"{COOKIE}={dashboard.client.cookies[COOKIE]}"}
    assert dashboard.act("/logout").url.path == "/login"
    for page in ("/", "/people", "/live"):
        assert httpx.get(f"{dashboard.address}{page}", headers=copied, trust_env=False).status_code == 303
    assert dashboard.sign_in().status_code == 303
    assert dashboard.client.get("/").status_code == 200, "a new session is another one"


def test_every_gateway_learns_within_seconds_that_somebody_signed_out(dashboard: Site) -> None:
    clock = [0.0]
    session = Sessions(SecretStr(ADMIN)).read(Sessions(SecretStr(ADMIN)).begin(Role.ADMIN))
    assert session is not None
    here = SignedOut(dashboard.store)
    elsewhere = SignedOut(dashboard.store, lambda: clock[0])
    assert not elsewhere.has(session)
    here.end(session)
    assert here.has(session)
    clock[0] += SIGN_OUT_POLL_SECONDS
    assert elsewhere.has(session)


def test_behind_tls_the_cookie_never_goes_over_plain_http(dashboard: Site) -> None:
    headers = {"x-forwarded-proto": "https"}
    answer = dashboard.client.post("/login", data={"password": ADMIN}, headers=headers)
    assert "secure" in answer.headers["set-cookie"].lower()
    # The sentence for the next page is a cookie, too.
    dashboard.sign_in()
    act = {"csrf": dashboard.csrf(), "paused": "yes"}
    acted = dashboard.client.post("/pause-all", data=act, headers=headers)
    assert "; secure" in acted.headers["set-cookie"].lower()


def test_a_proxy_that_does_not_tell_of_tls_is_known_by_its_address(filled: Path, tmp_path: Path) -> None:
    with site(filled, tmp_path / "home", public_url="https://mail.example.org") as here:
        for host, is_secure in (("mail.example.org", True), ("192.168.1.7:8080", False)):
            answer = here.client.post("/login", data={"password": ADMIN}, headers={"Host": host})
            assert ("secure" in answer.headers["set-cookie"].lower()) is is_secure, host


def test_ten_wrong_passwords_and_the_address_waits(dashboard: Site) -> None:
    """Also for the right one: else a guess would still be told from the answer."""
    for _ in range(MOST_FROM_ONE):
        assert dashboard.sign_in("wrong").status_code == 401
    answer = dashboard.sign_in()
    assert answer.status_code == 429
    assert "minutes" in answer.text
    assert COOKIE not in answer.headers.get("set-cookie", "")


def test_a_guess_that_is_slowed_down_is_counted_with_those_that_came_meanwhile(dashboard: Site) -> None:
    """Else as many guesses as there are connections would be looked at together."""

    async def meanwhile(_: float) -> None:
        for _ in range(MOST_FROM_ONE):
            wrong.one_more("127.0.0.1")

    wrong = WrongPasswords(sleep=meanwhile)
    settings = Settings(mailout_home=dashboard.home, admin_password=SecretStr(ADMIN))
    app = FastAPI()
    app.state.desk = Desk(settings, dashboard.store, real_forecast(dashboard.store), None, wrong, Tools())
    app.include_router(login.routes)
    with served(app) as client:
        assert client.post("/login", data={"password": ADMIN}).status_code == 429


def test_many_wrong_ones_from_everywhere_slow_everybody_and_lock_nobody_out() -> None:
    clock = [0.0]
    wrong = WrongPasswords(lambda: clock[0])
    for n in range(MANY_OVER_ALL):
        assert wrong.slow_by == 0
        wrong.one_more(f"192.0.2.{n}")
    assert wrong.slow_by > 0
    assert wrong.wait_of("198.51.100.1") is None
    clock[0] = LOCKOUT_SECONDS
    assert wrong.slow_by == 0


def test_whoever_has_many_addresses_frees_nobody_who_has_to_wait() -> None:
    """A network of its own has 65,536 of them: it must not make us forget its own, nor that we are slow."""
    wrong = WrongPasswords(lambda: 0.0)
    for _ in range(MOST_FROM_ONE):
        wrong.one_more("192.0.2.1")
    for n in range(SITES_KEPT + 20):
        wrong.one_more(f"site {n}")
    assert wrong.wait_of("192.0.2.1") is not None
    assert wrong.slow_by > 0
    assert len(wrong._counts) == SITES_KEPT


def test_a_session_ends_after_twelve_hours_and_with_its_password() -> None:
    now = [1000.0]
    sessions = Sessions(SecretStr(ADMIN), SecretStr(EDITOR), lambda: now[0])
    cookie = sessions.begin(Role.ADMIN)
    session = sessions.read(cookie)
    assert session is not None
    assert session.is_admin
    assert Sessions(SecretStr("another one altogether"), None, lambda: now[0]).read(cookie) is None
    now[0] += SESSION_SECONDS
    assert sessions.read(cookie) is None


@pytest.mark.parametrize("change", ["admin", "editor.9999999999.x", "", "a.b.c.d", "admin..x.y"])
def test_a_cookie_that_is_not_ours_is_nobodys(change: str) -> None:
    sessions = Sessions(SecretStr(ADMIN), SecretStr(EDITOR))
    role, said, signature = sessions.begin(Role.EDITOR).split(".")
    longer = urlsafe_b64encode(urlsafe_b64decode(f"{said}==").replace(b'"ends_at":', b'"ends_at":9')).decode()
    assert sessions.read(change) is None
    assert sessions.read(f"admin.{said}.{signature}") is None
    assert sessions.read(f"{role}.{longer.rstrip('=')}.{signature}") is None
    assert sessions.read(f"{role}.{said}.{signature}") is not None


def test_every_act_needs_the_forms_own_token(dashboard: Site) -> None:
    dashboard.sign_in()
    before = dashboard.store.mailout(dashboard.ids["going"])
    for act in all_acts(dashboard):
        for fields in ({}, {"csrf": ""}, {"csrf": "0" * 64}):
            assert dashboard.client.post(act, data=fields).status_code == 403, act
    assert dashboard.store.mailout(dashboard.ids["going"]) == before


def test_every_act_refuses_a_form_of_another_site(dashboard: Site) -> None:
    dashboard.sign_in()
    token = dashboard.csrf()
    for act in all_acts(dashboard):
        for headers in ({"origin": "https://elsewhere.example"}, {"sec-fetch-site": "cross-site"}):
            assert dashboard.client.post(act, data={"csrf": token}, headers=headers).status_code == 403, act
    elsewhere = {"sec-fetch-site": "cross-site"}
    assert dashboard.client.post("/login", data={"password": ADMIN}, headers=elsewhere).status_code == 403


def test_behind_a_proxy_that_keeps_the_host_to_itself_forms_still_work(filled: Path, tmp_path: Path) -> None:
    with site(filled, tmp_path / "home", public_url="https://mail.example.org/") as here:
        seen = {"origin": "https://mail.example.org", "sec-fetch-site": "same-origin"}
        assert here.client.post("/login", data={"password": ADMIN}, headers=seen).status_code == 303
        for other in ("http://mail.example.org", "https://mail.example.org.evil.example", "https://"):
            refused = here.client.post("/login", data={"password": ADMIN}, headers={"origin": other})
            assert refused.status_code == 403, other


def test_an_editor_sees_letters_and_tests_and_nothing_more(dashboard: Site) -> None:
    dashboard.sign_in(EDITOR)
    token, id = dashboard.csrf(), dashboard.ids["failed"]
    for page in (
        "/people",
        "/person?email=odd@example.org",
        "/people/import",
        "/people.csv",
        "/single-mails",
        "/system/checks",
        f"/letters/{id}/recipients.csv",
    ):
        assert dashboard.client.get(page).status_code == 403, page
    open_to_editors = {"/logout", "/letters", "/draft/test", f"/letters/{dashboard.ids['going']}/test"}
    for act in set(all_acts(dashboard)) - open_to_editors:
        assert dashboard.client.post(act, data={"csrf": token}).status_code == 403, act
    for page in (
        "/",
        "/letters",
        "/letters?show=drafts",
        f"/letters/{id}",
        "/problems",
        "/system",
    ):
        text = dashboard.client.get(page).text
        assert "@example.org" not in text, page
    tested = dashboard.act(f"/letters/{dashboard.ids['test']}/test")
    assert "on its way" in tested.text
    assert history_rows.acts(dashboard.store)[0].what == "asked for a test"


def test_an_editor_reads_nobodys_address_in_what_a_letter_waits_for(dashboard: Site) -> None:
    """Nor in the filter of its segment, which may name somebody."""
    id = dashboard.ids["planned"]
    dashboard.store.defer(
        id, DeferReason.PAUSED, None, "2 people have no value: ana@example.org and another."
    )
    told = json.dumps({"text": 'email = "bo@example.org"', "of": 9, "hash": "x"})
    with dashboard.store.db.write() as tx:
        tx.execute("UPDATE campaign_queue SET segment_filter = ? WHERE id = ?", (told, id))
    pages = ("/", "/letters", "/letters?show=planned", f"/letters/{id}", f"/letters/{id}/live", "/problems")
    seen = {}
    for password in (ADMIN, EDITOR):
        dashboard.sign_in(password)
        seen[password] = "".join(dashboard.client.get(page).text for page in pages)
    for address in ("ana@example.org", "bo@example.org"):
        assert address in seen[ADMIN]
        assert address not in seen[EDITOR]


def test_nothing_runs_but_what_we_serve(dashboard: Site) -> None:
    dashboard.sign_in()
    for page in (*PAGES, *(f"/letters/{id}" for id in dashboard.ids.values())):
        answer = dashboard.client.get(page)
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy, page
        assert "unsafe" not in policy, page
        assert answer.headers["x-frame-options"] == "DENY", page
        assert answer.headers["cache-control"] == "no-store", page
        assert " style=" not in answer.text, page
        assert "<style" not in answer.text, page
        assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", ""), page
        assert len(answer.content) < 150_000, page


def test_a_mail_is_shown_where_nothing_can_run(dashboard: Site) -> None:
    dashboard.sign_in()
    answer = dashboard.client.get(f"/letters/{dashboard.ids['sent']}/mail")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none';")
    assert "script" not in policy
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert 'src="/media/' in answer.text  # its picture lies here, and is shown from here
    assert "https://mail.example.org/media" not in answer.text


@pytest.mark.parametrize(
    "path", ["//elsewhere.example", "https://elsewhere.example", "/\\elsewhere", "/login", ""]
)
def test_the_login_leads_nowhere_else(path: str) -> None:
    assert local_path(path) == "/"


def test_the_login_leads_back_to_the_page_that_was_asked_for(dashboard: Site) -> None:
    asked = dashboard.client.get("/letters?show=waiting").headers["location"]
    wanted = dict(httpx.QueryParams(urlsplit(asked).query))["next"]
    answer = dashboard.client.post("/login", data={"password": ADMIN, "next": wanted})
    assert answer.headers["location"] == "/letters?show=waiting"


def test_what_is_sent_after_the_session_ended_is_said_to_be_lost_and_its_page_comes_back(
    dashboard: Site,
) -> None:
    page = f"{dashboard.address}/person?email=odd%40example.org"
    answer = dashboard.client.post("/person/edit", data={"name": "Odd"}, headers={"Referer": page})
    wanted = dict(httpx.QueryParams(urlsplit(answer.headers["location"]).query))["next"]
    assert wanted == "/person?email=odd%40example.org"
    assert "what you sent was not saved" in dashboard.client.get(answer.headers["location"]).text
    for elsewhere in ("https://elsewhere.example/x", "http://[", ""):
        answer = dashboard.client.post("/person/edit", headers={"Referer": elsewhere})
        assert answer.headers["location"] == "/login"
    part = {"HX-Request": "true", "HX-Current-URL": f"{dashboard.address}/letters?show=waiting"}
    answer = dashboard.client.get("/home/live", headers=part)
    assert answer.headers["HX-Redirect"] == "/login?next=/letters%3Fshow%3Dwaiting"


def test_what_is_not_there_is_said_without_a_command(dashboard: Site) -> None:
    dashboard.sign_in()
    for page in ("/letters/xyz", "/person?email=nobody@example.org", "/lists/one?key=qqq"):
        answer = dashboard.client.get(page)
        assert answer.status_code == 404, page
        assert "There is no" in answer.text, page
        assert "`" not in answer.text, page


def test_an_editor_sees_that_a_check_fails_and_not_which(dashboard: Site) -> None:
    dashboard.sign_in(EDITOR)
    dashboard.client.get("/system")  # the checks have been made
    page = dashboard.client.get("/problems").text
    assert "The administrator sees what." in page
    assert "FROM_EMAIL" not in page
    dashboard.client.cookies.clear()
    dashboard.sign_in()
    assert "FROM_EMAIL" in dashboard.client.get("/problems").text


def test_a_short_password_or_the_same_twice_is_refused() -> None:
    with pytest.raises(SettingsError, match="ADMIN_PASSWORD: must have at least 12 characters"):
        load_settings({"ADMIN_PASSWORD": "short"})
    with pytest.raises(SettingsError, match="EDITOR_PASSWORD: is the same"):
        load_settings({"ADMIN_PASSWORD": ADMIN, "EDITOR_PASSWORD": ADMIN})


def test_only_our_own_files_are_served(dashboard: Site) -> None:
    assert dashboard.client.get("/assets/htmx.min.js").status_code == 200
    for name in ("../desk.py", "..%2fdesk.py", "htmx.LICENSE", "nothing.js"):
        assert dashboard.client.get(f"/assets/{name}").status_code == 404
