"""Signing in and out."""

from __future__ import annotations

from math import ceil

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from gateway.dashboard.desk import Desk, from_here, page_route, signed_in
from gateway.dashboard.forms import read_form
from gateway.dashboard.sessions import COOKIE, SESSION_SECONDS
from gateway.dashboard.views import go_to
from mailout.insight.history.port import Act
from mailout.insight.reporting.phrases import count


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    def show(request: Request, status: int = 200, problem: str = "", wanted: str = "") -> Response:
        if not desk.sessions.open:
            return desk.views.page(request, "closed.html.j2", status=403)
        return desk.views.page(request, "login.html.j2", status=status, problem=problem, wanted=wanted)

    def too_many(request: Request, wait: float, wanted: str = "") -> Response:
        minutes = count(ceil(wait / 60), "minute")
        return show(request, 429, f"Too many wrong passwords. Try again in {minutes}.", wanted)

    @routes.get("/login")
    async def login(request: Request, next: str = "") -> Response:
        if signed_in(request) is not None:
            return go_to(local_path(next))
        return show(request, wanted=local_path(next))

    @routes.post("/login")
    async def sign_in(request: Request) -> Response:
        if not desk.sessions.open or not from_here(request):
            return show(request, 403, "Sign in on this page.")
        site = desk.site(request)
        if (wait := desk.wrong.wait_of(site)) is not None:
            return too_many(request, wait)
        form = await read_form(request)
        wanted = local_path(form.get("next"))
        if (wait := await desk.wrong.take_turn(site)) is not None:
            return too_many(request, wait, wanted)
        role = desk.sessions.role_of(form.get("password"))
        if role is None:
            desk.wrong.one_more(site)
            return show(request, 401, "That is not the password.", wanted)
        await run_in_threadpool(desk.store.write_act, Act(f"{role.value} ({site})", "signed in"))
        response = go_to(wanted)
        response.set_cookie(
            COOKIE,
            desk.sessions.begin(role),
            max_age=int(SESSION_SECONDS),
            httponly=True,
            samesite="lax",
        )
        return response

    @routes.post("/logout")
    async def sign_out(request: Request) -> Response:
        session, _ = await desk.acting(request, admin=False)
        await run_in_threadpool(desk.signed_out.end, session)
        response = go_to("/login", "You are signed out.")
        response.delete_cookie(COOKIE)
        return response

    return routes


def local_path(written: str) -> str:
    """A page of ours: a link to the login must not lead elsewhere afterwards."""
    plain = written.startswith("/") and not written.startswith(("//", "/\\")) and written.isprintable()
    return written if plain and not written.startswith("/login") else "/"
