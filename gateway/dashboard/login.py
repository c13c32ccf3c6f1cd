"""Signing in and out."""

from __future__ import annotations

from math import ceil
from urllib.parse import urlsplit

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from gateway.access import site_in
from gateway.dashboard.desk import AnyAct, Desk, from_here, page_routes, signed_in
from gateway.dashboard.forms import read_form
from gateway.dashboard.sessions import COOKIE, SESSION_SECONDS
from gateway.dashboard.sign_in_links import CONFIRM_PATH, LINK_SECONDS, LinkRefused, SignInLinks, new_browser
from gateway.dashboard.views import go_to
from mailout.insight.history.history_rows import ACT_TABLE
from mailout.insight.history.port import Act
from mailout.insight.reporting.phrases import count

BROWSER_COOKIE = "mailout_browser"
"""Set when a link is asked for: the link works in this browser alone."""
LINK_SAID = (
    "If this address may sign in, a mail with a link is on its way."
    " Open the link in this browser within 15 minutes."
)


routes = page_routes()


def _show(request: Request, status: int = 200, problem: str = "", wanted: str = "") -> Response:
    desk: Desk = request.app.state.desk
    if not desk.sessions.open:
        return desk.closed(request)
    return desk.views.page(
        request,
        "login.html.j2",
        status=status,
        problem=problem,
        wanted=wanted,
        has_password=desk.sessions.has_password,
        links=desk.links,
        is_at_home=desk.links is not None and is_at(request, desk.links.public_url),
    )


def _too_many(request: Request, wait: float, wanted: str = "", what: str = "wrong passwords") -> Response:
    minutes = count(ceil(wait / 60), "minute")
    return _show(request, 429, f"Too many {what}. Try again in {minutes}.", wanted)


async def _begin(request: Request, who: str, cookie: str, wanted: str) -> Response:
    act = Act(f"{who} ({site_in(request)})", "signed in")
    await run_in_threadpool(request.app.state.desk.store.put, ACT_TABLE, [act])
    response = go_to(wanted)
    _keep(response, COOKIE, cookie, SESSION_SECONDS)
    return response


@routes.get("/login")
async def login(request: Request, next: str = "") -> Response:
    if signed_in(request) is not None:
        return go_to(local_path(next))
    return _show(request, wanted=local_path(next))


@routes.post("/login")
async def sign_in(request: Request) -> Response:
    desk: Desk = request.app.state.desk
    if not desk.sessions.open or not from_here(request):
        return _show(request, 403, "Sign in on this page.")
    here = site_in(request)
    if (wait := desk.wrong.wait_of(here)) is not None:
        return _too_many(request, wait)
    form = await read_form(request)
    wanted = local_path(form.get("next"))
    if (wait := await desk.wrong.take_turn(here)) is not None:
        return _too_many(request, wait, wanted)
    role = desk.sessions.role_of(form.get("password"))
    if role is None:
        desk.wrong.one_more(here)
        return _show(request, 401, "That is not the password.", wanted)
    return await _begin(request, role.value, desk.sessions.begin(role), wanted)


@routes.post("/login/link")
async def ask_for_link(request: Request) -> Response:
    """The answer comes first, and is the same for every address."""
    links: SignInLinks | None = request.app.state.desk.links
    if links is None or not from_here(request):
        return _show(request, 403, "Sign in on this page.")
    here, form = site_in(request), await read_form(request)
    if (wait := await links.asked.take_turn(here)) is not None:
        return _too_many(request, wait, what="links were asked for")
    links.asked.one_more(here)
    browser = request.cookies.get(BROWSER_COOKIE) or new_browser()
    links.send_soon(form.get("email"), browser)
    response = go_to("/login", LINK_SAID)
    _keep(response, BROWSER_COOKIE, browser, LINK_SECONDS)
    return response


@routes.get(CONFIRM_PATH)
async def confirm(request: Request, token: str = "") -> Response:
    """Programs that check mail open every link: this one only shows a button."""
    desk: Desk = request.app.state.desk
    if desk.links is None:
        return _show(request, 403)
    try:
        email = desk.links.check(token, request.cookies.get(BROWSER_COOKIE))
    except LinkRefused as refused:
        return _show(request, 400, str(refused))
    return desk.views.page(request, "confirm_sign_in.html.j2", token=token, email=email)


@routes.post(CONFIRM_PATH)
async def sign_in_by_link(request: Request) -> Response:
    desk: Desk = request.app.state.desk
    if desk.links is None or not from_here(request):
        return _show(request, 403, "Sign in on this page.")
    token, browser = (await read_form(request)).get("token"), request.cookies.get(BROWSER_COOKIE)
    try:
        email = await run_in_threadpool(desk.links.use, token, browser)
    except LinkRefused as refused:
        return _show(request, 400, str(refused))
    return await _begin(request, email, desk.sessions.begin_named(email), "/")


@routes.post("/logout")
def sign_out(act: AnyAct) -> Response:
    act.desk.signed_out.end(act.session)
    response = go_to("/login", "You are signed out.")
    response.delete_cookie(COOKIE)
    return response


def _keep(response: Response, name: str, value: str, seconds: float) -> None:
    response.set_cookie(name, value, max_age=int(seconds), httponly=True, samesite="lax")


def is_at(request: Request, url: str) -> bool:
    """Whether the browser is at this address: a cookie that it gets here comes back there."""
    return urlsplit(url).netloc == request.headers.get("host")


def local_path(written: str) -> str:
    """A page of ours: a link to the login must not lead elsewhere afterwards."""
    plain = written.startswith("/") and not written.startswith(("//", "/\\")) and written.isprintable()
    return written if plain and not written.startswith("/login") else "/"
