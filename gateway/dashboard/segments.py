"""Segments: filters over subscribers by name, how many people each means, and (for administrators) who."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.views import go_to
from mailout.base.errors import MailoutError, StoreError
from mailout.insight.history.port import Act
from mailout.letters.audience.segment_tree import SegmentError, whole
from mailout.outbox.queue import segment_names


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    @routes.get("/segments")
    def segments(request: Request, name: str = "") -> Response:
        session = desk.visitor(request)
        known = segment_names.segments(desk.store)
        chosen = next((one for one in known if one.name == name), None)
        people = of = 0
        sample: Sequence[str] = ()
        problem = ""
        if chosen is not None:
            try:
                tree = segment_names.usable_segment(desk.store, name).tree
                people = desk.store.audience_size(None, tree)
                of = desk.store.audience_size(None, whole(None, tree))
                if session.is_admin:
                    sample = desk.store.audience_sample(None, tree, segment_names.SAMPLE_PEOPLE)
            except SegmentError as error:
                problem = str(error)
        waiting = segment_names.waiting(desk.store, name) if chosen is not None else ()
        return desk.views.page(
            request,
            "segments.html.j2",
            session,
            404 if name and chosen is None else 200,
            segments=known,
            asked=name,
            chosen=chosen,
            people=people,
            of=of,
            sample=sample,
            problem=problem,
            letters=waiting,
        )

    @routes.post("/segments")
    async def save(request: Request) -> Response:
        session, form = await desk.acting(request)
        name, filter = form.get("name"), form.get("filter")
        try:
            made, warnings = await run_in_threadpool(segment_names.save, desk.store, name, filter)
        except MailoutError as error:
            if isinstance(error, StoreError):
                raise
            return go_to("/segments", str(error))
        act = Act(desk.who(request, session), "saved a segment", made.name)
        await run_in_threadpool(desk.store.write_act, act)
        return go_to(_page_of(made.name), " ".join(["The segment is saved.", *warnings]))

    @routes.post("/segments/delete")
    async def delete(request: Request) -> Response:
        session, form = await desk.acting(request)
        name = form.get("name")
        return await desk.do(
            request,
            session,
            lambda: segment_names.delete(desk.store, name),
            what="deleted a segment",
            about=name,
            said="The segment is deleted. What was sent to it keeps its filter.",
            back="/segments",
        )

    return routes


def _page_of(name: str) -> str:
    return "/segments?" + urlencode({"name": name})
