"""People: how many there are; found by name, address, status or attribute, as a file to take along; one
person's standing and mail; and the few things that can be done for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from gateway.dashboard.desk import Action, Admin, AdminAct, Desk, page_routes
from mailout.base.addresses import IN_WORDS, TRIM, Dropped, address_of, normalise
from mailout.base.errors import NotFound, UsageError
from mailout.base.ids import keyed_hash
from mailout.base.time_format import short_day
from mailout.insight.history import history_rows
from mailout.insight.history.port import LISTED, MailoutMessage, days_ago
from mailout.insight.reporting.plot import Chart, Line, chart
from mailout.insight.reporting.rows import people_lines
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.audience.list_rows import GENERAL, List
from mailout.letters.audience.port import Subscriber, SubscriberDetails, SubscriberRow
from mailout.letters.audience.subscriber_rows import Wanted
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.port import UNDO_SECONDS

PEOPLE_PER_PAGE = 50
CHART_DAYS = 90
COUNTED_LIVE_PEOPLE = 100_000
"""More take a moment to count."""
STATUSES = ("active", "unsubscribed", "bounced")
SEARCHED_AT_ONCE_PEOPLE = 20_000
"""Reading the names of more takes a moment."""
PEOPLE_LOOKED_AT = 200
"""Of whom the names of attributes are offered."""
MOST_ATTRIBUTES, MOST_VALUE_CHARACTERS = 100, 1000
FILTERS = ("status", "q", "attribute", "value", "list")
"""The form's fields, in the order of `Wanted`."""


routes = page_routes()


@routes.get("/people")
def people(visit: Admin, after: str = "", anywhere: bool = False) -> Response:
    desk = visit.desk
    asked = _asked(visit.request)
    counts = people_now(desk)
    everywhere = anywhere or sum(counts.values()) < SEARCHED_AT_ONCE_PEOPLE or not _begins(asked)
    found = _find(desk, asked, after, anywhere=everywhere)
    if not found and asked["q"] and not everywhere and not after:
        anywhere = everywhere = True  # no address begins so: it may be a name
        found = _find(desk, asked, after, anywhere=True)
    more = ""
    if len(found) > PEOPLE_PER_PAGE:
        last = {"after": found[PEOPLE_PER_PAGE - 1]["email_norm"]}
        more = "/people?" + urlencode(asked | last | ({"anywhere": "1"} if anywhere else {}))
    return visit.page(
        "people.html.j2",
        people=found[:PEOPLE_PER_PAGE],
        only_mail=_only_mail(desk, asked["q"]) if asked["q"] and not found else "",
        name_of=subscriber_rows.name_of,
        asked=asked,
        query=urlencode({name: value for name, value in asked.items() if value}),
        statuses=STATUSES,
        attributes=_attributes(desk),
        by_address_alone=bool(asked["q"]) and not everywhere,
        more=more,
        counts=counts,
        known_lists=list_rows.lists(desk.store),
        chart=people_chart(desk, STATUSES),
    )


@routes.get("/people.csv")
def export(visit: Admin) -> Response:
    """Whoever is filtered, all of them."""
    lines = people_lines(visit.desk.store, _wanted(_asked(visit.request)))
    headers = {"Content-Disposition": 'attachment; filename="people.csv"', "Cache-Control": "no-store"}
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


@routes.get("/person")
def person(visit: Admin, email: str = "", message: str = "") -> Response:
    store, norm = visit.desk.store, address_of(email) or ""
    messages, single = history_rows.messages_to(store, norm), history_rows.single_mails_to(store, norm)
    try:
        known: SubscriberDetails | None = subscriber_rows.subscriber(store, norm)
    except NotFound:
        if not messages and not single:
            raise
        known = None  # mail was handed in for them: they are on no list
    theirs = {str(one["id"]) for one in (*messages, *single)}
    return visit.page(
        "person.html.j2",
        email=known["email"] if known else norm,
        email_norm=norm,
        person=known,
        consents=subscriber_rows.consents(store, norm) if known else (),
        name=subscriber_rows.name_of(known) if known else "",
        texts={"name": ""} | _texts(known["attributes"]) if known else {},
        messages=[one for one in messages if not _is_trial(one)],
        tried=[one for one in messages if _is_trial(one)],
        single=single,
        on_lists=_on_lists(known) if known else (),
        undo=_undoable(visit.desk, known) if known else {},
        events=feedback_rows.delivery_events(store, email=norm, limit=50),
        chosen=message,
        story=[
            (event, datetime.fromisoformat(event["created_at"]).timestamp())
            for event in (outbox_rows.message_events(store, message) if message in theirs else ())
        ],
    )


@routes.post("/people/add")
def add(act: AdminAct) -> Response:
    act.back_to("/people")
    written, name, listed = (act.form.get(field).strip(TRIM) for field in ("email", "name", "list"))
    norm = normalise(written)
    if isinstance(norm, Dropped):
        raise UsageError(f"{written or 'An empty field'} is not an address: {IN_WORDS[norm]}.")
    on = list_rows.by_key_or_name(act.desk.store, listed) if listed else None
    act.back_to(_page_of(norm))
    attributes, lists = {"name": name} if name else {}, [on.key] if on else []
    row = SubscriberRow(written, norm, attributes=attributes, lists=lists)
    if act.desk.store.import_subscribers([row]).forgotten:
        raise UsageError(f"{norm} asked to be forgotten. They may sign up again themselves.")
    return act.done("added a person", _hidden(act, norm), _how_it_stands(act.desk, norm, on))


@routes.post("/person/edit")
def edit(act: AdminAct) -> Response:
    """Name and attributes; an empty field takes an attribute away. What the form did not show stays: the
    person or an import may have added it meanwhile."""
    norm = _named(act)
    known = subscriber_rows.subscriber(act.desk.store, norm)["attributes"]
    texts = act.form.beginning("attribute:") | {act.form.get("new").strip(): act.form.get("value")}
    given = {name.strip(): value.strip() for name, value in texts.items()}
    kept = {name: value for name, value in known.items() if name not in given}
    if len(given) > MOST_ATTRIBUTES or any(len(v) > MOST_VALUE_CHARACTERS for v in given.values()):
        raise UsageError("Nothing is changed: that is more than an attribute can hold.")
    changed = {name: value for name, value in given.items() if name and value}
    if not act.desk.store.edit_subscriber(norm, kept | changed):
        raise NotFound(f"There is no subscriber {norm}.")
    nameless = f" “{given['']}” was left out: it has no attribute's name." if given.get("") else ""
    return act.done("edited a person", _hidden(act, norm), f"Saved.{nameless}")


@routes.post("/person/unsubscribe")
def unsubscribe(act: AdminAct) -> Response:
    norm, listed = _named(act), act.form.get("list") or None
    subscriber_rows.subscriber(act.desk.store, norm)
    if not act.desk.store.unsubscribe_by_hand(norm, listed):
        raise UsageError(f"{norm} was not subscribed: nothing has changed.")
    what = "unsubscribed a person" + (" from a list" if listed else "")
    said = f"{norm} gets no more mail{f' of the list {listed}' if listed else ''}."
    return act.done(what, _hidden(act, norm), f"{said} For a day you can undo it here.")


@routes.post("/person/undo")
def undo(act: AdminAct) -> Response:
    """Of an unsubscribe that was made here; a reader's own never."""
    norm, listed = _named(act), act.form.get("list") or None
    if not act.desk.store.undo_unsubscribe(norm, listed):
        raise UsageError("It cannot be undone here: a day has passed, or something else ended it.")
    said = f"{norm} gets mail again{f' of the list {listed}' if listed else ''}."
    return act.done("undid an unsubscribe", _hidden(act, norm), said)


@routes.post("/person/forget")
def forget(act: AdminAct) -> Response:
    """With the address typed by hand: nothing brings a person back."""
    norm = _named(act)
    if address_of(act.form.get("again")) != norm or not norm:
        raise UsageError("Nobody is forgotten: what you typed is another address.")
    act.back_to("/people")
    act.desk.tools.forget(norm)
    said = "The person is forgotten. Imports leave the address out from now on."
    return act.done("forgot a person", _hidden(act, norm), said)


def _named(act: Action) -> str:
    """Whom a form is about; their page follows."""
    norm = address_of(act.form.get("email")) or ""
    act.back_to(_page_of(norm))
    return norm


def _asked(request: Request) -> dict[str, str]:
    """What the form filters by."""
    given = {name: request.query_params.get(name, "").strip() for name in FILTERS}
    return given | {"status": given["status"] if given["status"] in STATUSES else ""}


def _wanted(asked: Mapping[str, str]) -> Wanted:
    return Wanted(*(asked[name] or None for name in FILTERS))


def _find(desk: Desk, asked: Mapping[str, str], after: str, *, anywhere: bool) -> Sequence[Subscriber]:
    """One more than a page. Where so many are known that reading everybody takes a moment, addresses that
    begin so are found by the key's index."""
    wanted, most, begins = _wanted(asked), PEOPLE_PER_PAGE + 1, _begins(asked)
    if anywhere:
        return list(subscriber_rows.matching(desk.store, wanted, after=after, limit=most))
    just_before = f"{begins[:-1]}{chr(ord(begins[-1]) - 1)}\U0010ffff"
    found = subscriber_rows.subscribers(
        desk.store, after=after or just_before, limit=most, status=wanted.status
    )
    return [one for one in found if one["email_norm"].startswith(begins)][:most]


def _begins(asked: Mapping[str, str]) -> str:
    """How an address begins that the index can find; '': what is asked for is found by reading everybody."""
    begins = asked["q"].lower()
    return begins if begins.isascii() and not (asked["attribute"] or asked["list"]) else ""


def _attributes(desk: Desk) -> Sequence[str]:
    """Names that some have, to choose from."""
    some = subscriber_rows.subscribers(desk.store, limit=PEOPLE_LOOKED_AT)
    return sorted({name for one in some for name in one["attributes"]})


def _only_mail(desk: Desk, q: str) -> str:
    """Of somebody who is on no list and got mail all the same, the address."""
    norm = address_of(q) or ""
    return norm if norm and history_rows.single_mails_to(desk.store, norm, limit=1) else ""


def _is_trial(message: MailoutMessage) -> bool:
    return message["is_test"] or message["is_rehearsal"]


def _on_lists(person: SubscriberDetails) -> Sequence[str]:
    """`general` is everybody's, also without a row."""
    rows = {GENERAL: True} | {one["list_key"]: not one["unsubscribed_at"] for one in person["lists"]}
    return [key for key, is_on in rows.items() if is_on]


def _undoable(desk: Desk, person: SubscriberDetails) -> Mapping[str, float]:
    """Until when an unsubscribe that was made here can be undone, by list; '' is everything."""
    made = subscriber_rows.unsubscribed_by_hand(desk.store, person["email_norm"])
    now = desk.store.now()
    ended = {one["list_key"] for one in person["lists"] if one["unsubscribed_at"]}
    return {
        listed: at + UNDO_SECONDS
        for listed, at in made.items()
        if at + UNDO_SECONDS > now
        and not person["complained_at"]
        and (
            person["status"] == "active" and listed in ended if listed else person["status"] == "unsubscribed"
        )
    }


def _how_it_stands(desk: Desk, norm: str, on: List | None) -> str:
    """After adding somebody who may have been known."""
    person = subscriber_rows.subscriber(desk.store, norm)
    back = "Only they themselves can come back, by signing up again."
    if person["complained_at"]:
        return f"{norm} complained about a mail: no letter goes there, and nothing brings them back."
    if person["status"] == "unsubscribed":
        return f"{norm} had unsubscribed and stays so: no letter goes there. {back}"
    if person["status"] == "bounced":
        return f"{norm} bounced before and stays so: no letter goes there. Is the address right?"
    if person["status"] != "active":
        return f"{norm} has the status “{person['status']}”, which nobody here knows: no letter goes there."
    gone = {one["list_key"] for one in person["lists"] if one["unsubscribed_at"]}
    if (on.key if on else GENERAL) in gone:
        return f"{norm} is off the list {on.name if on else GENERAL} and stays off it. {back}"
    return f"{norm} gets the next letter to {f'the list {on.name}' if on else 'everybody'}."


def _texts(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Those that a form can hold; others may write more into the same table."""
    return {
        name: str(value)
        for name, value in attributes.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }


def _hidden(act: Action, email_norm: str) -> str:
    """For the log of acts, which outlives a person who asks to be forgotten: keyed, so that nobody can try
    addresses out."""
    settings = act.desk.settings
    password = settings.admin_password.get_secret_value() if settings.admin_password else ""
    key = "".join((*settings.unsubscribe_keys[:1], password))
    return f"person {keyed_hash(key.encode(), email_norm)[:12]}"


def _page_of(email_norm: str) -> str:
    return "/person?" + urlencode({"email": email_norm})


def people_now(desk: Desk) -> Mapping[str, int]:
    """Counted now; of very many, as the last reconcile counted them. `unknown`: who has another status."""
    found = history_rows.people_over_time(desk.store, days_ago(desk.store.now(), desk.zone, 1))
    counts = {name: n for name, n in found[-1][1].items() if not name.startswith(LISTED)} if found else {}
    if sum(counts.values()) < COUNTED_LIVE_PEOPLE:
        counts = dict(subscriber_rows.subscriber_counts(desk.store))
    known = {status: counts.get(status, 0) for status in STATUSES}
    return known | {"unknown": sum(subscriber_rows.unknown_statuses(counts).values())}


def people_chart(desk: Desk, statuses: tuple[str, ...] = ("active",)) -> Chart | None:
    """None: fewer than two days are known. The last point is today's, as it is now."""
    now = desk.store.now()
    known = history_rows.people_over_time(desk.store, days_ago(now, desk.zone, CHART_DAYS))
    today = days_ago(now, desk.zone, 0)
    days = [*((day, counts) for day, counts in known if day != today), (today, people_now(desk))]
    if len(days) < 2:
        return None
    counted = [(date.fromisoformat(day).toordinal(), counts) for day, counts in days]
    lines = [Line(status, [(day, counts.get(status, 0)) for day, counts in counted]) for status in statuses]
    title = "People over the last 90 days"
    return chart("people", title, lines, label=lambda day: short_day(date.fromordinal(round(day))))
