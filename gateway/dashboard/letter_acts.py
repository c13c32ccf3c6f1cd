"""What can be done with a letter. Sending and testing write a request, as `POST /send-mailout` does."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.letters import offer_for
from gateway.dashboard.views import go_to
from gateway.requests import write_request
from mailout.base.errors import UsageError
from mailout.insight import web_archive
from mailout.insight.history.port import Act
from mailout.letters.content.port import Kind
from mailout.letters.content.refs import page_id_of
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.queue import actions
from mailout.outbox.queue.actions import SettleVerdict
from mailout.outbox.queue.port import Request as Asked

ACTS: dict[str, tuple[str, str]] = {
    "pause": ("paused a letter", "It is paused. What is in hand is finished."),
    "resume": ("resumed a letter", "It goes on within a minute."),
    "cancel": ("cancelled a letter", "Cancelled. Mail already sent stays sent; nobody else gets it."),
    "publish": ("published a letter", "It is in the archive on the web, from its first message on."),
    "unpublish": ("unpublished a letter", "Within a minute it is gone from the archive on the web."),
    "retry": ("retried failures", "What failed is tried again, and nobody else gets it."),
}


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    def tell_page(id: str) -> None:
        if desk.store.mailout(id).kind is Kind.NOTION:
            desk.store.ask_report(id)  # its page is updated by the next run of the queue

    async def ask(request: Request, ref: str, *, test: bool, back: str, said: str, admin: bool) -> Response:
        session = desk.visitor(request, admin=admin)
        new = await write_request(desk.store, desk.emitter, Asked.of(ref, test))
        what = "asked for a test" if test else "asked to send a letter"
        await run_in_threadpool(desk.store.write_act, Act(desk.who(request, session), what, ref))
        return go_to(back, said if new else "It was asked for less than a minute ago.")

    @routes.post("/letters")
    async def new_letter(request: Request) -> Response:
        """A page that nobody has tried yet: its first test makes it a letter here."""
        _, form = await desk.acting(request, admin=False)
        ref = page_id_of(form.get("page").strip())
        if ref is None:
            return go_to(
                "/letters", "That is no address of a Notion page. Copy it from Notion: Share, Copy link."
            )
        said = "A test is on its way. Within a minute or two it stands under Tests and rehearsals."
        return await ask(request, ref, test=True, back="/letters?show=trials", said=said, admin=False)

    @routes.post("/letters/{id}/test")
    async def test(request: Request, id: str) -> Response:
        await desk.acting(request, admin=False)
        offer = await run_in_threadpool(lambda: offer_for(desk, desk.store.mailout(id)))
        if offer.ref is None:
            return go_to(f"/letters/{id}", NO_WAY_BACK)
        said = "A test to TEST_EMAILS is on its way, within a minute."
        return await ask(request, offer.ref, test=True, back=f"/letters/{id}", said=said, admin=False)

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
        if form.get("number").strip().replace(",", "").replace(" ", "") != str(offer.size):
            return go_to(
                back, f"Nothing is sent: it would go to {offer.size:,}, and that is not what you typed."
            )
        said = "It goes out within a minute or two, and then stands among the letters."
        return await ask(request, offer.ref, test=False, back="/letters", said=said, admin=True)

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
        if act not in ACTS:
            return desk.refuse(request, 404, "There is no such act.", session)
        acts: dict[str, Callable[[], object]] = {
            "pause": lambda: actions.pause(desk.store, id, form.get("note").strip()[:500] or None),
            "resume": lambda: actions.resume(desk.store, id),
            "cancel": lambda: actions.cancel(desk.store, id),
            "retry": lambda: actions.retry(desk.store, id),
            "publish": lambda: web_archive.publish(desk.store, id),
            "unpublish": lambda: web_archive.unpublish(desk.store, id),
        }

        def do() -> None:
            acts[act]()
            tell_page(id)

        what, said = ACTS[act]
        back = "/" if form.get("back") == "home" else f"/letters/{id}"
        return await desk.do(request, session, do, what=what, about=id, said=said, back=back)

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


NO_WAY_BACK = (
    "It was written in a file that this machine cannot find by its name: send it with `mailout send`."
)
