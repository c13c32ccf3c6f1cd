"""Problems: what waits for a person, a card each: what, since when, one button. Resolved ones are gone."""

from __future__ import annotations

import json

from fastapi import Response

from gateway.dashboard.desk import AdminAct, Desk, Visitor, page_routes
from gateway.dashboard.health import reds
from gateway.dashboard.troubles import CLOSED, Trouble, held_and_failed, other_troubles, waits_for_a_person
from mailout.base import error_log
from mailout.base.errors import UsageError
from mailout.insight.reporting.phrases import count, single_mails_wait
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue import dead_letters

routes = page_routes()


@routes.get("/problems")
def problems(visit: Visitor) -> Response:
    desk, hide = visit.desk, not visit.session.is_admin
    held, failed = held_and_failed(desk)
    dead = [] if hide else error_log.dead_letters(desk.store, limit=50)
    return visit.page(
        "problems.html.j2",
        urgent=[
            *(waits_for_a_person(desk, one) for one in held),
            *failed,
            *_single_mails(desk, sum(one.ledger.unknown for one in held), hide=hide),
            *_health(desk, hide=hide),
        ],
        others=other_troubles(desk),
        dead=[(row, json.dumps(row["payload"], ensure_ascii=False, indent=1)[:4000]) for row in dead],
        message_topic=dead_letters.SEND,
    )


@routes.post("/problems/close")
def close(act: AdminAct) -> Response:
    act.back_to("/problems")
    return act.done(CLOSED, act.form.get("key")[:200], "Closed. If it happens again, it comes back.")


@routes.post("/problems/requeue")
def requeue(act: AdminAct) -> Response:
    act.back_to("/problems")
    id = act.form.get("id")
    dead_letters.requeue(act.desk.store, id)
    return act.done("requeued a dead letter", id, f"It is tried again {act.desk.soon()}.")


@routes.post("/problems/drop")
def drop(act: AdminAct) -> Response:
    act.back_to("/problems")
    id = act.form.get("id")
    if not act.desk.store.drop_dead_letter(id):
        raise UsageError("It is no longer on the list.")
    return act.done("dropped a dead letter", id, "Removed from the list.")


def _single_mails(desk: Desk, doubts_of_letters: int, *, hide: bool) -> list[Trouble]:
    """Why they wait, and those in doubt."""
    waiting = desk.store.single_mails_waiting(rehearsal=desk.rehearses)
    said = single_mails_wait(waiting, desk.zone)
    found = []
    if said and waiting.hold:
        what = "Single mails wait" if waiting.due else "Notifications wait"
        found.append(Trouble(what, said, waiting.hold.since, link=_link("pending", hide)))
    doubts = feedback_rows.doubts_open(desk.store)
    if doubts.unknown > doubts_of_letters:
        n = doubts.unknown - doubts_of_letters
        text = (
            f"{count(n, 'single mail was', 'single mails were')} handed over, and no answer came back."
            " Nothing is ever sent twice on a guess: look whether they arrived."
        )
        since = doubts.oldest or desk.store.now()
        found.append(Trouble("Single mails in doubt", text, since, link=_link("unknown", hide)))
    return found


def _link(state: str, hide: bool) -> str:
    """Their page shows addresses: it is the administrator's."""
    return "" if hide else f"/single-mails?state={state}"


def _health(desk: Desk, *, hide: bool) -> list[Trouble]:
    red = reds(desk)
    if not red:
        return []
    title = "Health: one thing is wrong" if len(red) == 1 else f"Health: {len(red)} things are wrong"
    known = desk.checks.known()
    since = known.at if known else desk.store.now()
    said = "The administrator sees what." if hide else "; ".join(red[:3]) + "."
    return [Trouble(title, said, since, link="/system", link_label="Open Health")]
