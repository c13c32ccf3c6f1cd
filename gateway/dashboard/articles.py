"""Articles: their batches; of one batch the variants, how many people get each, and how each looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.letter_numbers import modes_shown
from gateway.dashboard.letters import LETTERS_PER_PAGE, page_key
from gateway.dashboard.mail_view import VIEWS, letter_view, mail_page
from mailout.base.errors import NotFound
from mailout.insight.history import history_rows
from mailout.kinds.articles import article_rows
from mailout.letters.content.port import Kind
from mailout.outbox.queue.mailout import Mailout

VARIANTS_PER_PAGE = 100


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    @routes.get("/articles")
    def articles(request: Request, before: str = "") -> Response:
        session = desk.visitor(request)
        modes = modes_shown(desk.queue_forecast.rehearses)
        page = history_rows.letters(
            desk.store, modes=modes, kind=Kind.ARTICLE, before=page_key(before), limit=LETTERS_PER_PAGE + 1
        )
        more = page[LETTERS_PER_PAGE - 1] if len(page) > LETTERS_PER_PAGE else None
        return desk.views.page(
            request,
            "articles.html.j2",
            session,
            batches=page[:LETTERS_PER_PAGE],
            more=f"{more.created_at!r}~{more.id}" if more else "",
        )

    @routes.get("/articles/{id}")
    def article(
        request: Request, id: str, variant: str = "", view: str = "desktop", skip: int = 0
    ) -> Response:
        session = desk.visitor(request)
        batch, census = _batch(desk, id)
        variants = census.get("variants", [])
        chosen = next((one for one in variants if one["content_hash"] == variant), None)
        chosen = chosen or next(iter(variants), None)
        skip = max(0, skip)
        return desk.views.page(
            request,
            "article.html.j2",
            session,
            mailout=batch,
            census=census,
            variants=variants[skip : skip + VARIANTS_PER_PAGE],
            skip=skip,
            more=skip + VARIANTS_PER_PAGE if len(variants) > skip + VARIANTS_PER_PAGE else 0,
            chosen=chosen,
            view=view if view in VIEWS else "desktop",
            views=VIEWS,
            mail=letter_view(desk, request, _as_variant(batch, chosen)) if chosen else None,
        )

    @routes.get("/articles/{id}/mail")
    def mail(request: Request, id: str, variant: str = "", scheme: str = "light") -> Response:
        desk.visitor(request)
        batch, census = _batch(desk, id)
        chosen = next((one for one in census.get("variants", []) if one["content_hash"] == variant), None)
        if chosen is None:
            raise NotFound("This batch has no such variant.")
        shown = letter_view(desk, request, _as_variant(batch, chosen))
        return mail_page(desk, shown, dark=scheme == "dark")

    return routes


def _batch(desk: Desk, id: str) -> tuple[Mailout, Mapping[str, Any]]:
    """The mailout, and who would get what as it was counted when the batch was asked for."""
    mailout = desk.store.mailout(id)
    return mailout, article_rows.article_batch(desk.store, mailout.id).census


def _as_variant(batch: Mailout, variant: Mapping[str, Any]) -> Mailout:
    return replace(batch, content_hash=variant["content_hash"])
