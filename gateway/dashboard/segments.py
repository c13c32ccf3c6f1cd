"""Segments: filters over subscribers by name, how many people each means, and (for administrators) who."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlencode

from fastapi import Response

from gateway.dashboard.desk import AdminAct, Visit, Visitor, page_routes
from mailout.base.errors import UsageError
from mailout.base.redact import redact_text
from mailout.letters.audience.segment_tree import SegmentError, whole
from mailout.outbox.queue import segment_names

routes = page_routes()


@routes.get("/segments")
def segments(visit: Visitor, name: str = "") -> Response:
    return _page(visit, name)


def _page(visit: Visit, name: str, typed: tuple[str, str] = ("", ""), refused: str = "") -> Response:
    """`typed`: the name and the filter that were refused."""
    store = visit.desk.store
    known = segment_names.segments(store)
    if not visit.session.is_admin:  # a filter may name somebody
        known = [replace(one, filter=redact_text(one.filter)) for one in known]
    chosen = next((one for one in known if one.name == name), None)
    people = of = 0
    sample: Sequence[str] = ()
    problem = ""
    if chosen is not None:
        try:
            tree = segment_names.usable_segment(store, name).tree
            people = store.audience_size(None, tree)
            of = store.audience_size(None, whole(None, tree))
            if visit.session.is_admin:
                sample = store.audience_sample(None, tree, segment_names.SAMPLE_PEOPLE)
        except SegmentError as error:
            problem = str(error)
    return visit.page(
        "segments.html.j2",
        400 if refused else 404 if name and chosen is None else 200,
        segments=known,
        asked=name,
        chosen=chosen,
        people=people,
        of=of,
        sample=sample,
        problem=problem,
        typed=typed,
        refused=refused,
        letters=segment_names.waiting(store, name) if chosen is not None else (),
    )


@routes.post("/segments")
def save(act: AdminAct) -> Response:
    name, written = act.form.get("name"), act.form.get("filter")
    try:
        made, warnings = segment_names.save(act.desk.store, name, written)
    except UsageError as error:
        is_known = any(one.name == name for one in segment_names.segments(act.desk.store))
        return _page(act, name if is_known else "", (name, written), str(error))
    act.back_to("/segments?" + urlencode({"name": made.name}))
    return act.done("saved a segment", made.name, " ".join(["The segment is saved.", *warnings]))


@routes.post("/segments/delete")
def delete(act: AdminAct) -> Response:
    act.back_to("/segments")
    name = act.form.get("name")
    segment_names.delete(act.desk.store, name)
    return act.done(
        "deleted a segment", name, "The segment is deleted. What was sent to it keeps its filter."
    )
