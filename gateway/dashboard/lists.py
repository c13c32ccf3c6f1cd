"""Lists: what people can subscribe to, how many are on each, and the form to join one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.forms import Form
from gateway.dashboard.people_counts import lists_now, people_now
from mailout.letters.audience.list_changes import BRAND, add_list, edit_list
from mailout.letters.audience.list_rows import GENERAL, List, by_key_or_name, lists
from mailout.letters.content.languages import FALLBACK, language, shipped
from mailout.letters.content.signup_form import signup_form

TEXTS = ("name", "description", "from_name", "reply_to", "footer", "welcome_ref", *BRAND)
"""What a person writes; an empty field takes a value away."""
CHOICES = ("public", "archive")


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    @routes.get("/lists")
    def all_lists(request: Request) -> Response:
        session = desk.visitor(request, admin=True)
        known, counted = lists(desk.store), _counted(desk)
        people = {
            one.key: counted[one.key] if one.key in counted else desk.store.audience_size(one.key)
            for one in known
        }
        return desk.views.page(request, "lists.html.j2", session, lists=known, people=people)

    @routes.get("/lists/one")
    def one_list(request: Request, key: str = "") -> Response:
        session = desk.visitor(request, admin=True)
        one = by_key_or_name(desk.store, key)
        return desk.views.page(
            request,
            "list.html.j2",
            session,
            one=one,
            people=desk.store.audience_size(one.key),
            snoozed=desk.store.audience_size(one.key, snoozed=True),
            links=", ".join(f"{label}={address}" for label, address in one.brand.get("links", ())),
            languages=[(code, language(code).pages["language_name"]) for code in shipped()],
            form=_form(desk, one),
        )

    @routes.post("/lists/add")
    async def add(request: Request) -> Response:
        session, form = await desk.acting(request)
        key = form.get("key").strip()
        name = form.get("name").strip() or key
        return await desk.do(
            request,
            session,
            partial(add_list, desk.store, key, {"name": name}),
            what="added a list",
            about=key,
            said=f"The list {name} is there. Say here what its letters look like, and who may join.",
            back=_page_of(key),
        )

    @routes.post("/lists/edit")
    async def edit(request: Request) -> Response:
        session, form = await desk.acting(request)
        key = form.get("key")
        return await desk.do(
            request,
            session,
            partial(edit_list, desk.store, key, _given(form)),
            what="changed a list",
            about=key,
            said="Saved. Letters that wait in the queue stay as they are.",
            back=_page_of(key),
        )

    return routes


def _counted(desk: Desk) -> Mapping[str, int]:
    """As the last reconcile counted them: a million people take too long for a page."""
    counted = lists_now(desk)
    return {**counted, GENERAL: people_now(desk)["active"]} if counted else {}


def _given(form: Form) -> dict[str, Any]:
    return {name: form.get(name).strip() for name in TEXTS} | {
        name: form.get(name) == "yes" for name in CHOICES
    }


def _form(desk: Desk, one: List) -> str:
    """Empty: nobody can join it so."""
    address, spoken = desk.settings.public_url, one.brand.get("language") or desk.settings.language
    return signup_form(one.key, address, language(spoken or FALLBACK)) if address and one.public else ""


def _page_of(key: str) -> str:
    return f"/lists/one?{urlencode({'key': key})}"
