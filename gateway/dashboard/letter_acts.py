"""What can be done with a letter. Sending and testing write a request, as `POST /send-mailout` does."""

from __future__ import annotations

from anyio import from_thread
from fastapi import Response

from gateway.dashboard.desk import Action, AdminAct, AnyAct, Desk, EarlyResponse, page_routes
from gateway.dashboard.letter import Offer, offer_for
from gateway.dashboard.letters import draft_page
from gateway.dashboard.views import go_to
from gateway.requests import REPEAT_SECONDS, tell_prefect
from mailout.base.errors import NotFound, UsageError
from mailout.insight.reporting.phrases import count, edited_meanwhile
from mailout.kinds.mailouts.readiness import EmailsForTests
from mailout.letters.content.port import Kind
from mailout.letters.content.refs import page_id_of
from mailout.outbox.delivery.protocol import Timing
from mailout.outbox.queue import actions, queue_rows
from mailout.outbox.queue.actions import SettleVerdict
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import Request as Asked
from mailout.outbox.queue.snapshot import OPEN
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


routes = page_routes()


@routes.post("/letters")
def new_letter(act: AnyAct) -> Response:
    """A page, by its address: it is looked at before anything is sent."""
    act.back_to("/letters")
    ref = page_id_of(act.form.get("page").strip())
    if ref is None:
        raise UsageError("That is no address of a Notion page. Copy it from Notion: Share, Copy link.")
    return go_to(draft_page(ref))


@routes.post("/letters/{id}/test")
def test(act: AnyAct, id: str) -> Response:
    offer = offer_for(act.desk, act.desk.store.mailout(id))
    act.back_to(f"/letters/{id}")
    return ask(act, _ref(offer), test=True)


@routes.post("/letters/{id}/send")
def send(act: AdminAct, id: str) -> Response:
    """Only with the number of people typed by hand, as it is now."""
    offer = offer_for(act.desk, act.desk.store.mailout(id))
    act.back_to(f"/letters/{id}")
    ref = _ref(offer)
    check_new(offer.real)
    check_number(act, offer.size)
    act.back_to(draft_page(ref))
    return ask(act, ref)


@routes.post("/letters/{id}/settle")
def settle(act: AdminAct, id: str) -> Response:
    act.back_to(f"/letters/{id}")
    desk = act.desk
    if act.form.get("as") not in tuple(SettleVerdict):
        raise UsageError("Choose what became of them.")
    verdict = SettleVerdict(act.form.get("as"))
    if not actions.settle(desk.store, id, verdict, Timing.of(desk.settings.lock_seconds)):
        raise UsageError("Nothing is settled yet: a message may be settled a while after its attempt.")
    _tell_page(desk, id)
    what = f"settled messages in doubt as {verdict.value}"
    again = verdict is SettleVerdict.PENDING
    return act.done(
        what, id, f"They are sent again {desk.soon()}." if again else f"They are settled as {verdict.value}."
    )


@routes.post("/letters/{id}/{name}")
def act_on_letter(act: AdminAct, id: str, name: str) -> Response:
    desk, form = act.desk, act.form
    if name not in DONE:
        raise NotFound("There is no such act.")
    before = desk.store.mailout(id)
    act.back_to("/" if form.get("back") == "home" else f"/letters/{id}")
    if name == "resume" and before.defer_reason is None and before.status in OPEN:
        return go_to(act.request.state.back, "It is not held: it goes on by itself.")  # a second click
    if name == "resume" and not form.get("sure") and _was_edited(desk, before):
        return act.page("resume.html.j2", mailout=before, edited=edited_meanwhile(before))
    match name:
        case "pause":
            actions.pause(desk.store, id, form.get("note").strip()[:500] or None)
            said = "It is paused. Messages that are being sent are finished."
        case "resume":
            actions.resume(desk.store, id)
            said = f"It goes on {desk.soon()}."
        case "cancel":
            said = _cancelled(before, actions.cancel(desk.store, id))
        case "retry":
            tried = count(actions.retry(desk.store, id), "message is", "messages are")
            failed = desk.store.mailout(id).ledger.failed
            stays = f" {count(failed, 'other stays', 'others stay')} failed." if failed else ""
            said = f"{tried} tried again {desk.soon()}.{stays}"
        case "publish":
            web_archive.publish(desk.store, id)
            said = "It is in the archive on the web, from its first message on."
        case "unpublish":
            web_archive.unpublish(desk.store, id)
            said = "Within a minute it is gone from the archive on the web."
    _tell_page(desk, id)
    return act.done(DONE[name], id, said)


@routes.post("/pause-all")
def pause_all(act: AdminAct) -> Response:
    act.back_to("/")
    paused = act.form.get("paused") == "yes"
    act.desk.store.pause_all(paused)
    if paused:
        return act.done("paused everything", "", "Everything is paused.")
    return act.done("resumed everything", "", "The queue goes on within a minute.")


def _tell_page(desk: Desk, id: str) -> None:
    if desk.store.mailout(id).kind is Kind.NOTION:
        desk.store.ask_report(id)  # its page is updated by the next run of the queue


def _ref(offer: Offer) -> str:
    if offer.ref is None:
        raise UsageError(
            "It was written in a file that this machine cannot find by its name: send it with `mailout send`."
        )
    return offer.ref


def ask(act: Action, ref: str, *, test: bool = False, at: float | None = None) -> Response:
    """Write the request down."""
    desk, asked = act.desk, Asked.of(ref, test, not_before=at)
    readers = EmailsForTests(desk.settings).recipients() if test else ()
    is_open = asked in queue_rows.requests(desk.store)
    new = desk.store.ask(asked, repeat=REPEAT_SECONDS if is_open else 0.0)
    if new:
        from_thread.run_sync(tell_prefect, desk.emitter, asked)
    what = "asked for a test" if test else "asked to send a letter" if at is None else "scheduled a letter"
    said = "It goes out within a minute or two."
    if not new:
        said = "It is asked for already."
    elif queue_rows.all_paused(desk.store):
        said = "It is asked for. Everything is paused: it starts when you resume."
    elif test:
        said = f"A test to {count(len(readers), 'address', 'addresses')} is on its way, within a minute."
    elif at is not None:
        said = f"It goes out {desk.views.when(at)}, as it is written then."
    return act.done(what, ref, said)


def check_new(real: Mailout | None) -> None:
    if real is not None:
        raise EarlyResponse(go_to(f"/letters/{real.id}", "It has been asked for already: this is it."))


def check_number(act: Action, size: int) -> None:
    """The number of people that was typed by hand."""
    if act.form.get("number").strip().replace(",", "").replace(" ", "") != str(size):
        raise UsageError(f"Nothing is sent: it would go to {size:,}, and that is not what you typed.")


def _cancelled(before: Mailout, after: Mailout) -> str:
    ledger = after.ledger
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
