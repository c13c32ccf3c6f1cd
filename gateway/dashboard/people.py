"""People: found by address, one person's standing and mail, and the few things that can be done for them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from gateway.dashboard.desk import Desk, page_route
from gateway.dashboard.people_counts import STATUSES, lists_now, people_chart, people_now
from gateway.dashboard.views import go_to
from mailout.base.addresses import TRIM, address_of
from mailout.base.errors import NotFound, UsageError
from mailout.insight.history import history_rows
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import Subscriber, SubscriberColumns, SubscriberDetails, SubscriberRow
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.feedback import feedback_rows

PEOPLE_PER_PAGE = 50
_NAMES = ("first_name", "last_name")


def router(desk: Desk) -> APIRouter:
    routes = APIRouter(include_in_schema=False, route_class=page_route(desk))

    @routes.get("/people")
    def people(
        request: Request, q: str = "", status: str = "", after: str = "", anywhere: bool = False
    ) -> Response:
        session = desk.visitor(request, admin=True)
        status = status if status in STATUSES else ""
        found = _find(desk, q.strip(), status or None, after, anywhere)
        more = ""
        if len(found) > PEOPLE_PER_PAGE:
            asked = {"q": q, "status": status, "after": found[PEOPLE_PER_PAGE - 1]["email_norm"]}
            more = "/people?" + urlencode(asked | ({"anywhere": "1"} if anywhere else {}))
        return desk.views.page(
            request,
            "people.html.j2",
            session,
            people=found[:PEOPLE_PER_PAGE],
            only_mail=_only_mail(desk, q) if q and not found else "",
            name_of=name_of,
            q=q,
            wanted=status,
            statuses=STATUSES,
            anywhere=anywhere,
            more=more,
            counts=people_now(desk),
            lists=lists_now(desk),
            chart=people_chart(desk, STATUSES),
        )

    @routes.get("/person")
    def person(request: Request, email: str = "", message: str = "") -> Response:
        session = desk.visitor(request, admin=True)
        norm = address_of(email) or ""
        messages, single = (
            history_rows.messages_to(desk.store, norm),
            history_rows.single_mails_to(desk.store, norm),
        )
        try:
            known: SubscriberDetails | None = subscriber_rows.subscriber(desk.store, norm)
        except NotFound:
            if not messages and not single:
                raise
            known = None  # mail was handed in for them: they are on no list
        theirs = {str(one["id"]) for one in (*messages, *single)}
        story = outbox_rows.message_events(desk.store, message) if message in theirs else ()
        return desk.views.page(
            request,
            "person.html.j2",
            session,
            email=known["email"] if known else norm,
            email_norm=norm,
            person=known,
            consents=subscriber_rows.consents(desk.store, norm) if known else (),
            name=name_of(known) if known else "",
            messages=messages,
            single=single,
            events=feedback_rows.delivery_events(desk.store, email=norm, limit=50),
            chosen=message,
            story=story,
        )

    @routes.post("/people/add")
    async def add(request: Request) -> Response:
        session, form = await desk.acting(request)
        written, name, listed = (form.get(field).strip(TRIM) for field in ("email", "name", "list"))
        norm = address_of(written)
        if norm is None:
            return go_to("/people", f"{written or 'An empty field'} is no address.")
        row = SubscriberRow(
            written,
            norm,
            attributes={"name": name} if name else {},
            lists=[listed] if listed else [],
        )

        def do() -> None:
            if desk.store.import_subscribers([row]).forgotten:
                raise UsageError(f"{norm} asked to be forgotten. They may sign up again themselves.")

        return await desk.do(
            request,
            session,
            do,
            what="added a person",
            about=hidden(norm),
            said=f"{norm} is on the list. People who unsubscribed or bounced stay that way.",
            back=_page_of(norm),
        )

    @routes.post("/person/unsubscribe")
    async def unsubscribe(request: Request) -> Response:
        session, form = await desk.acting(request)
        norm = address_of(form.get("email")) or ""
        listed = form.get("list") or None

        def do() -> None:
            subscriber_rows.subscriber(desk.store, norm)
            desk.store.unsubscribe(norm, listed)

        what = "unsubscribed a person" + (" from a list" if listed else "")
        said = f"{norm} gets no more mail{f' of the list {listed}' if listed else ''}."
        return await desk.do(
            request, session, do, what=what, about=hidden(norm), said=said, back=_page_of(norm)
        )

    @routes.post("/person/forget")
    async def forget(request: Request) -> Response:
        """With the address typed by hand: nothing brings a person back."""
        session, form = await desk.acting(request)
        norm = address_of(form.get("email")) or ""
        if address_of(form.get("again")) != norm or not norm:
            return go_to(_page_of(norm), "Nobody is forgotten: what you typed is another address.")
        said = "The person is forgotten. Imports leave the address out from now on."
        return await desk.do(
            request,
            session,
            lambda: desk.tools.forget(norm),
            what="forgot a person",
            about=hidden(norm),
            said=said,
            back="/people",
        )

    return routes


def _find(desk: Desk, q: str, status: str | None, after: str, anywhere: bool) -> Sequence[Subscriber]:
    """Addresses that begin so, by the key's index; anywhere in address or name only if asked for: that
    reads everybody."""
    store = desk.store
    if anywhere or not q:
        return subscriber_rows.subscribers(
            store, after=after, limit=PEOPLE_PER_PAGE + 1, status=status, search=q or None
        )
    begins = q.lower()
    found = list(
        subscriber_rows.subscribers(store, after=after or begins, limit=PEOPLE_PER_PAGE + 1, status=status)
    )
    if not after:
        try:
            exact = subscriber_rows.subscriber(store, address_of(q) or begins)
        except NotFound:
            pass
        else:
            if status in (None, exact["status"]):
                found = [
                    _as_listed(exact),
                    *(one for one in found if one["email_norm"] != exact["email_norm"]),
                ]
    return [
        one for one in found if one["email_norm"].startswith(begins) or one["email_norm"] == address_of(q)
    ]


def _only_mail(desk: Desk, q: str) -> str:
    """Of somebody who is on no list and got mail all the same, the address."""
    norm = address_of(q) or ""
    return norm if norm and history_rows.single_mails_to(desk.store, norm, limit=1) else ""


def _as_listed(person: SubscriberDetails) -> Subscriber:
    on = [one["list_key"] for one in person["lists"] if one["unsubscribed_at"] is None]
    return {**person, "lists": on}


def name_of(person: SubscriberColumns) -> str:
    """Attributes need not be text: others may write into the same table."""
    known = person["attributes"]
    return str(known.get("name") or " ".join(str(known[key]) for key in _NAMES if known.get(key)))


def hidden(email_norm: str) -> str:
    """For the log of acts, which outlives a person who asks to be forgotten."""
    return f"person {sha256(email_norm.encode()).hexdigest()[:12]}"


def _page_of(email_norm: str) -> str:
    return "/person?" + urlencode({"email": email_norm})
