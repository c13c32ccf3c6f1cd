"""What can be done with a letter. Sending and testing write a request, as `POST /send-mailout` does."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.letters import offer_for
from gateway.dashboard.planned import draft_page
from gateway.dashboard.views import go_to
from gateway.requests import write_request
from mailout.base.errors import UsageError
from mailout.insight.history.port import Act
from mailout.insight.reporting.phrases import count, edited_meanwhile
from mailout.letters.content.port import Kind
from mailout.letters.content.refs import page_id_of
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.queue import actions
from mailout.outbox.queue.actions import SettleVerdict
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import Request as Asked
from mailout.readers import web_archive

DONE = {
    "pause": "paused a letter",
    "resume": "resumed a letter",
    "cancel": "cancelled a letter",
    "retry": "retried failures",
    "publish": "published a letter",
    "unpublish": "unpublished a letter",
}
"""What the log of acts says of each."""


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    def tell_page(id: str) -> None:
        if desk.store.mailout(id).kind is Kind.NOTION:
            desk.store.ask_report(id)  # its page is updated by the next run of the queue

    @routes.post("/letters")
    async def new_letter(request: Request) -> Response:
        """A page, by its address: it is looked at before anything is sent."""
        _, form = await desk.acting(request, admin=False)
        ref = page_id_of(form.get("page").strip())
        if ref is None:
            return go_to(
                "/letters", "That is no address of a Notion page. Copy it from Notion: Share, Copy link."
            )
        return go_to(draft_page(ref))

    @routes.post("/letters/{id}/test")
    async def test(request: Request, id: str) -> Response:
        await desk.acting(request, admin=False)
        offer = await run_in_threadpool(lambda: offer_for(desk, desk.store.mailout(id)))
        if offer.ref is None:
            return go_to(f"/letters/{id}", NO_WAY_BACK)
        return await ask(desk, request, offer.ref, test=True, back=f"/letters/{id}")

    @routes.post("/letters/{id}/send")
    async def send(request: Request, id: str) -> Response:
        """Only with the number of people typed by hand, as it is now."""
        _, form = await desk.acting(request)
        offer = await run_in_threadpool(lambda: offer_for(desk, desk.store.mailout(id)))
        back = f"/letters/{id}"
        if offer.ref is None:
            return go_to(back, NO_WAY_BACK)
        if offer.real is not None:
            return go_to(f"/letters/{offer.real.id}", "It has been asked for already: this is it.")
        if wrong := wrong_number(form.get("number"), offer.size):
            return go_to(back, wrong)
        return await ask(desk, request, offer.ref, test=False, back=draft_page(offer.ref))

    @routes.post("/letters/{id}/settle")
    async def settle(request: Request, id: str) -> Response:
        session, form = await desk.acting(request)
        try:
            verdict = SettleVerdict(form.get("as"))
        except ValueError:
            return go_to(f"/letters/{id}", "Choose what became of them.")
        timing = Timing.of(desk.settings.lock_seconds)

        def do() -> None:
            if not actions.settle(desk.store, id, verdict, timing):
                raise UsageError(
                    "Nothing is settled yet: a message may be settled a while after its attempt."
                )
            tell_page(id)

        said = f"They are settled as {verdict.value}."
        what = f"settled messages in doubt as {verdict.value}"
        return await desk.do(request, session, do, what=what, about=id, said=said, back=f"/letters/{id}")

    @routes.post("/letters/{id}/{act}")
    async def act(request: Request, id: str, act: str) -> Response:
        session, form = await desk.acting(request)
        if act not in DONE:
            return desk.refuse(request, 404, "There is no such act.", session)
        before = await run_in_threadpool(desk.store.mailout, id)
        if act == "resume" and not form.get("sure") and await run_in_threadpool(_was_edited, desk, before):
            said = edited_meanwhile(before)
            return desk.views.page(request, "resume.html.j2", session, mailout=before, edited=said)
        retried: list[int] = []
        acts: dict[str, Callable[[], object]] = {
            "pause": lambda: actions.pause(desk.store, id, form.get("note").strip()[:500] or None),
            "resume": lambda: actions.resume(desk.store, id),
            "cancel": lambda: actions.cancel(desk.store, id),
            "retry": lambda: retried.append(actions.retry(desk.store, id)),
            "publish": lambda: web_archive.publish(desk.store, id),
            "unpublish": lambda: web_archive.unpublish(desk.store, id),
        }

        def do() -> None:
            acts[act]()
            tell_page(id)

        def said_then() -> str:
            return what_happened(act, before, desk.store.mailout(id), *retried)

        back = "/" if form.get("back") == "home" else f"/letters/{id}"
        return await desk.do(request, session, do, what=DONE[act], about=id, said=said_then, back=back)

    @routes.post("/pause-all")
    async def pause_all(request: Request) -> Response:
        session, form = await desk.acting(request)
        paused = form.get("paused") == "yes"
        what = "paused everything" if paused else "resumed everything"
        said = "Everything is paused." if paused else "The queue goes on within a minute."
        return await desk.do(
            request, session, lambda: desk.store.pause_all(paused), what=what, said=said, back="/"
        )

    return routes


async def ask(
    desk: Desk, request: Request, ref: str, *, test: bool, back: str, at: float | None = None
) -> Response:
    """Write the request down; what is asked for real is for administrators alone."""
    session = desk.visitor(request, admin=not test)
    new = await write_request(desk.store, desk.emitter, Asked.of(ref, test, not_before=at))
    what = "asked for a test" if test else "asked to send a letter" if at is None else "scheduled a letter"
    await run_in_threadpool(desk.store.write_act, Act(desk.who(request, session), what, ref))
    if not new:
        return go_to(back, "It was asked for less than a minute ago.")
    if test:
        return go_to(back, "A test to TEST_EMAILS is on its way, within a minute.")
    if at is not None:
        return go_to(back, f"It goes out {desk.views.when(at)}, as it is written then.")
    return go_to(back, "It goes out within a minute or two.")


def wrong_number(typed: str, size: int) -> str:
    """Why nothing is sent; empty: the number is right."""
    if typed.strip().replace(",", "").replace(" ", "") == str(size):
        return ""
    return f"Nothing is sent: it would go to {size:,}, and that is not what you typed."


def what_happened(act: str, before: Mailout, after: Mailout, retried: int = 0) -> str:
    """In numbers, as the store has them afterwards."""
    ledger = after.ledger
    match act:
        case "pause":
            return "It is paused. What is in hand is finished."
        case "resume":
            return "It goes on within a minute."
        case "retry":
            stays = f" {count(ledger.failed, 'other stays', 'others stay')} failed." if ledger.failed else ""
            return f"{count(retried, 'message is', 'messages are')} tried again within a minute.{stays}"
        case "publish":
            return "It is in the archive on the web, from its first message on."
        case "unpublish":
            return "Within a minute it is gone from the archive on the web."
    unsure = ledger.in_flight + ledger.unknown
    if not ledger.sent + unsure:
        return "Cancelled. Nobody got it."
    got = [f"{count(ledger.sent, 'person', 'people')} got it before"]
    got += [f"{unsure:,} may have got it"] if unsure else []
    got += [f"the other {before.ledger.pending:,} get nothing"] if before.ledger.pending else []
    return f"Cancelled. {'; '.join(got)}."


def _was_edited(desk: Desk, mailout: Mailout) -> bool:
    reader = desk.tools.drafts
    return mailout.defer_reason is not None and reader is not None and reader.was_edited(mailout)


NO_WAY_BACK = (
    "It was written in a file that this machine cannot find by its name: send it with `mailout send`."
)
