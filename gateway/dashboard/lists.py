"""Lists: what people can subscribe to, how many are on each, and the form to join one; and sign-ups: how many
asked to join each list, day by day, and how many confirmed it. Counted, not named."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from fastapi import Response

from gateway.dashboard.desk import Admin, AdminAct, Desk, Visit, Visitor, page_routes
from gateway.dashboard.people import people_now
from mailout.base.errors import UsageError
from mailout.insight.history import history_rows
from mailout.insight.history.port import LISTED, days_ago
from mailout.insight.metrics import metric_rows
from mailout.insight.metrics.port import Counter
from mailout.letters.audience.list_changes import add_list, edit_list
from mailout.letters.audience.list_rows import GENERAL, List, by_key_or_name, lists
from mailout.letters.content.languages import FALLBACK, language, shipped
from mailout.letters.content.signup_form import signup_form
from mailout.readers import sign_up_rows
from mailout.readers.port import Asked

LABELS = {
    "name": "Name",
    "description": "A sentence about it",
    "welcome_ref": "Welcome letter",
    "from_name": "From name",
    "reply_to": "Reply-to",
    "footer": "Why people get it",
    "logo": "Logo",
    "logo_dark": "Logo for dark screens",
    "color": "Colour",
    "links": "Links",
    "language": "Language",
}
"""What a person writes; an empty field takes a value away."""
CHOICES = ("public", "archive")


COUNTED_LIVE = 500_000
"""People times lists; more take longer than a second to count."""
SIGN_UP_DAYS = 30
REFUSED = {
    Asked.ALL: "over the limit of all, 1,000 an hour",
    Asked.NETWORK: "over the limit of their network",
    Asked.ADDRESS: "over the limit of the address",
    Asked.BOT: "filled in by a program",
}

routes = page_routes()


@routes.get("/lists")
def all_lists(visit: Admin) -> Response:
    return _all(visit)


def _all(visit: Visit, typed: Mapping[str, str] | None = None, problem: str = "") -> Response:
    desk, known = visit.desk, lists(visit.desk.store)
    everybody = people_now(desk)
    is_live = sum(everybody.values()) * len(known) < COUNTED_LIVE
    if is_live:
        people = {one.key: desk.store.audience_size(one.key) for one in known}
    else:
        counted = _counted(desk)
        people = {one.key: counted.get(one.key, 0) for one in known} if counted else {}
        people[GENERAL] = everybody["active"]
    return visit.page(
        "lists.html.j2",
        400 if problem else 200,
        lists=known,
        people=people,
        is_live=is_live,
        typed=typed or {"key": "", "name": ""},
        problem=problem,
    )


@routes.get("/lists/one")
def one_list(visit: Admin, key: str = "") -> Response:
    return _one(visit, by_key_or_name(visit.desk.store, key))


def _one(visit: Visit, one: List, typed: dict[str, str] | None = None, problem: str = "") -> Response:
    store, was = visit.desk.store, _texts(one)
    return visit.page(
        "list.html.j2",
        400 if problem else 200,
        one=one,
        labels=LABELS,
        texts=was | (typed or {}),
        was={f"was:{name}": text for name, text in was.items()},
        problem=problem,
        people=store.audience_size(one.key),
        snoozed=store.audience_size(one.key, snoozed=True),
        languages=[(code, language(code).pages["language_name"]) for code in shipped()],
        form=_form(visit.desk, one),
    )


@routes.post("/lists/add")
def add(act: AdminAct) -> Response:
    key = act.form.get("key").strip()
    name = act.form.get("name").strip() or key
    try:
        add_list(act.desk.store, key, {"name": name})
    except UsageError as error:
        return _all(act, {"key": key, "name": act.form.get("name")}, _said(error))
    act.back_to(_page_of(key))
    said = f"The list {name} is there. Say here what its letters look like, and who may join."
    return act.done("added a list", key, said)


@routes.post("/lists/edit")
def edit(act: AdminAct) -> Response:
    """Only what was changed in the form: another tab may have saved the rest meanwhile."""
    key, was = act.form.get("key"), act.form.beginning("was:")
    act.back_to(_page_of(key))
    one = by_key_or_name(act.desk.store, key)
    given = {name: act.form.get(name).strip() for name in (*LABELS, *CHOICES)}
    typed = {name: text for name, text in given.items() if text != was.get(name)}
    try:
        edit_list(
            act.desk.store, key, typed | {name: typed[name] == "yes" for name in CHOICES if name in typed}
        )
    except UsageError as error:
        return _one(act, one, typed, _said(error))
    return act.done("changed a list", key, "Saved. Letters that wait in the queue stay as they are.")


@routes.get("/signups")
def sign_ups(visit: Visitor) -> Response:
    desk = visit.desk
    days = sign_up_rows.sign_up_days(desk.store, days_ago(desk.store.now(), desk.zone, SIGN_UP_DAYS))
    counts = metric_rows.counts(desk.store)
    refused = {words: int(counts.get((Counter.SIGN_UPS, why), 0.0)) for why, words in REFUSED.items()}
    return visit.page(
        "signups.html.j2",
        days=days,
        shown=SIGN_UP_DAYS,
        refused={words: n for words, n in refused.items() if n},
        bounced=metric_rows.confirmations(desk.store),
        names={one.key: one.name for one in lists(desk.store)},
        is_open=desk.settings.signup,
    )


def _counted(desk: Desk) -> Mapping[str, int]:
    """As the last reconcile counted them, whatever their status: more take too long for a page."""
    found = history_rows.people_over_time(desk.store, days_ago(desk.store.now(), desk.zone, 1))
    counts = found[-1][1] if found else {}
    return {name.removeprefix(LISTED): n for name, n in counts.items() if name.startswith(LISTED)}


def _texts(one: List) -> dict[str, str]:
    """As the form has them."""
    links = ", ".join(f"{label}={address}" for label, address in one.brand.get("links", ()))
    texts = {name: getattr(one, name, None) or one.brand.get(name) or "" for name in LABELS}
    return texts | {"links": links} | {name: "yes" if getattr(one, name) else "" for name in CHOICES}


def _said(error: UsageError) -> str:
    """With the form's word for a field, and without a command."""
    said = error.message if "mailout " in (error.remedy or "") else str(error)
    name, colon, rest = said.partition(": ")
    return f"{LABELS.get(name, name)}{colon}{rest}"


def _form(desk: Desk, one: List) -> str:
    """Empty: nobody can join it so."""
    address, spoken = desk.settings.public_url, one.brand.get("language") or desk.settings.language
    if not address or not one.public:
        return ""
    return str(signup_form(one.key, address, language(spoken or FALLBACK)))  # its code, not the form itself


def _page_of(key: str) -> str:
    return f"/lists/one?{urlencode({'key': key})}"
