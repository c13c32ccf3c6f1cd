"""Articles: their batches; of one batch the variants, how many people get each, and how each looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fastapi import Response

from gateway.dashboard.desk import Visitor, page_routes
from gateway.dashboard.letters import one_page
from gateway.dashboard.mail_view import letter_view, mail_page
from mailout.base.errors import NotFound
from mailout.kinds.articles import article_rows
from mailout.letters.content.port import Kind
from mailout.outbox.queue import queue_rows

VARIANTS_PER_PAGE = 100

routes = page_routes()


@routes.get("/articles")
def articles(visit: Visitor, before: str = "") -> Response:
    return visit.page("articles.html.j2", **one_page(visit.desk, before, visit.desk.modes, kind=Kind.ARTICLE))


@routes.get("/articles/{id}")
def article(visit: Visitor, id: str, variant: str = "", view: str = "", skip: int = 0) -> Response:
    desk = visit.desk
    batch = desk.store.mailout(id)
    # Who would get what, as it was counted when the batch was asked for.
    census = article_rows.article_batch(desk.store, batch.id).census
    variants = census.get("variants", [])
    chosen = _of(variants, variant) or next(iter(variants), None)
    skip = max(0, skip)
    shown = replace(batch, content_hash=chosen["content_hash"]) if chosen else None
    return visit.page(
        "article.html.j2",
        mailout=batch,
        all_paused=queue_rows.all_paused(desk.store),
        census=census,
        variants=variants[skip : skip + VARIANTS_PER_PAGE],
        skip=skip,
        more=skip + VARIANTS_PER_PAGE if len(variants) > skip + VARIANTS_PER_PAGE else 0,
        chosen=chosen,
        view=view,
        mail=letter_view(desk, visit.request, shown) if shown else None,
    )


@routes.get("/articles/{id}/mail")
def mail(visit: Visitor, id: str, variant: str = "", scheme: str = "light") -> Response:
    desk = visit.desk
    batch = desk.store.mailout(id)
    chosen = _of(article_rows.article_batch(desk.store, batch.id).census.get("variants", []), variant)
    if chosen is None:
        raise NotFound("This batch has no such variant.")
    shown = letter_view(desk, visit.request, replace(batch, content_hash=chosen["content_hash"]))
    return mail_page(desk, shown, dark=scheme == "dark")


def _of(variants: Sequence[Mapping[str, Any]], content_hash: str) -> Mapping[str, Any] | None:
    return next((one for one in variants if one["content_hash"] == content_hash), None)
