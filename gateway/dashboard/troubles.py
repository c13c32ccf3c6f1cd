"""What is not as it should be, one thing at a time: counted on Home, shown as cards under Problems, listed
under Letters. What is resolved is not in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from gateway.dashboard.desk import Desk
from mailout.base import error_log
from mailout.base.error_log import ErrorRecord
from mailout.base.errors import AbortCode
from mailout.base.select import among
from mailout.insight.history import history_rows, notion_troubles
from mailout.insight.history.port import WrittenPage
from mailout.insight.reporting.codes import NOTES, STOPPED, remedy_of
from mailout.insight.reporting.phrases import count, headline, left_alone, not_taken_up, waiting
from mailout.letters.content.refs import page_id_of
from mailout.letters.content.sample import plain_subject
from mailout.outbox.delivery.single_mails import UNSERVED_SECONDS
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import Mailout, MailoutOutcome, Status
from mailout.outbox.queue.queue_rows import MAILOUTS

TROUBLES_SHOWN_SECONDS = 14 * 86_400.0
"""How long what ended badly is shown, unless somebody closes it first."""
ERRORS_READ = 500
CLOSED = "closed a problem"
"""What the log of acts says of it; `about` is the problem's key."""
REFUSED_BEFORE = "cannot_be_sent"
ASK_WHY = "Your administrator can find out why: mailout status, mailout doctor."
NOT_STOPPED = frozenset({AbortCode.MAILOUT_ALREADY_SENT})
_SERVER_PATH = re.compile(r"""(?<![\w:/.])/(?:[^\s/:"'“”,]+/)+([^\s/:"'“”,]+)""")


@dataclass(frozen=True, slots=True)
class Trouble:
    title: str
    said: str
    since: float
    level: str = "fail"  # `warn`: worth a look, nobody waits for it
    remedy: str = ""
    link: str = ""
    link_label: str = "Open"
    key: str = ""  # by which it can be closed; empty: it goes when it is resolved
    details: Sequence[tuple[str, str]] = field(default=())  # (code, message), folded away


def held_and_failed(desk: Desk) -> tuple[Sequence[Mailout], Sequence[Trouble]]:
    """Letters that wait for a person; and the others that failed, stand still, or were stopped before they
    became letters."""
    held = queue_rows.needing_a_person(desk.store)
    links = {f"/letters/{one.id}" for one in held}
    since, errors = _recent(desk)
    found = [*_failed(desk, errors, since), *_stopped(desk, errors), *_silent(desk), *_unserved(desk)]
    found += [
        Trouble(one.what, one.why, one.since, link=f"/draft?ref={one.page}" if page_id_of(one.page) else "")
        for one in notion_troubles.lasting(desk.store)
    ]
    return held, _open(desk, since, [one for one in found if one.link not in links])


def other_troubles(desk: Desk) -> Sequence[Trouble]:
    """What is written down and is no letter's end: findings in what is written, and errors of no letter."""
    since, errors = _recent(desk)
    found = [*_findings(desk, errors), *_general(errors), *_refusals(desk, since)]
    return _open(desk, since, found)


def _recent(desk: Desk) -> tuple[float, Sequence[ErrorRecord]]:
    since = desk.store.now() - TROUBLES_SHOWN_SECONDS
    return since, [one for one in error_log.errors(desk.store, limit=ERRORS_READ) if one.at >= since]


def _open(desk: Desk, since: float, found: Sequence[Trouble]) -> Sequence[Trouble]:
    """What nobody has closed since it happened, the latest first."""
    acts = history_rows.acts_of(desk.store, CLOSED, since)
    closed = {act.about: act.at for act in sorted(acts, key=lambda act: act.at)}
    shown = (one for one in found if not one.key or one.since > closed.get(one.key, 0.0))
    return sorted((_plain(one) for one in shown), key=lambda one: -one.since)


def waits_for_a_person(desk: Desk, mailout: Mailout) -> Trouble:
    said = waiting(mailout, desk.zone) or headline(mailout)
    if mailout.ledger.unknown:
        said += f" Say what became of the {count(mailout.ledger.unknown, 'message')} in doubt."
    return Trouble(
        title(mailout), said, mailout.created_at, link=f"/letters/{mailout.id}", link_label="Decide"
    )


def _failed(desk: Desk, errors: Sequence[ErrorRecord], since: float) -> Iterable[Trouble]:
    for mailout in history_rows.failed_letters(desk.store, modes=desk.modes, since=since):
        if mailout.outcome is not MailoutOutcome.FAILED or mailout.ledger.unknown:
            continue  # messages in doubt wait for a person: that is another card
        codes = {one.code: one.message for one in errors if one.mailout == mailout.id}
        yield Trouble(
            title(mailout),
            headline(mailout),
            mailout.completed_at or mailout.created_at,
            remedy=next(filter(None, map(remedy, codes)), ""),
            link=f"/letters/{mailout.id}",
            key=f"letter {mailout.id}",
            details=list(codes.items()),
        )


def _silent(desk: Desk) -> Iterable[Trouble]:
    now = desk.store.now()
    for mailout in queue_rows.mailouts(desk.store, statuses=[Status.PROCESSING]):
        by = mailout.goes_on_by(now, desk.settings.lock_seconds)
        if by is not None:
            said = left_alone(mailout, by, desk.zone)
            yield Trouble(title(mailout), said, mailout.locked_at or now, link=f"/letters/{mailout.id}")


def overdue(desk: Desk) -> Sequence[Mailout]:
    """What is due while nobody sends anything."""
    return queue_rows.overdue(desk.store, desk.settings.lock_seconds, rehearses=desk.rehearses)


def _unserved(desk: Desk) -> Iterable[Trouble]:
    n = len(queue_rows.unserved(desk.store, UNSERVED_SECONDS))
    if n and not queue_rows.all_paused(desk.store):
        yield Trouble(
            "What was requested does not start",
            f"{count(n, 'request for a letter or an article', 'requests for letters or articles')} came more"
            f" than five minutes ago, and nothing has taken {'it' if n == 1 else 'them'} up.",
            desk.store.now() - UNSERVED_SECONDS,
            remedy=ASK_WHY,
        )
    for mailout in overdue(desk):
        said = f"It {not_taken_up(mailout, desk.zone)}."
        yield Trouble(title(mailout), said, mailout.due_since, remedy=ASK_WHY, link=f"/letters/{mailout.id}")


def _stopped(desk: Desk, errors: Sequence[ErrorRecord]) -> Iterable[Trouble]:
    """Refused before there was a letter, and neither asked for again nor edited since: the last refusal."""
    latest: dict[str, ErrorRecord] = {}
    for one in errors:
        if one.mailout and _stops(one.code):
            latest.setdefault(one.mailout, one)
    if not latest:
        return
    letters = history_rows.latest_of(desk.store, list(latest))
    read = history_rows.written_pages(desk.store)
    pages = {page.ref: page for page in (read.pages if read else ())}
    for ref, error in latest.items():
        page, letter = pages.get(ref), letters.get(ref)
        if is_past(error, page, letter):
            continue
        subject = page.subject if page else letter.subject if letter else ""
        file = "A letter" if page_id_of(ref) else PurePath(ref).name
        yield Trouble(
            f"“{plain_subject(subject)}”" if subject else file,
            f"It was not sent: {error.message}",
            error.at,
            remedy="" if error.message.endswith(remedy(error.code)) else remedy(error.code),
            link=f"/draft?ref={ref}" if page_id_of(ref) else "",
            key=f"page {ref}",
            details=[(error.code, error.message)],
        )


def is_past(error: ErrorRecord, page: WrittenPage | None, letter: Mailout | None) -> bool:
    """Whether the page was edited, or became a letter, after this refusal."""
    edited = page is not None and not page.is_failed and (page.edited_at or 0.0) > error.at
    return edited or (letter is not None and letter.created_at >= error.at)


def _stops(code: str) -> bool:
    return code == REFUSED_BEFORE or (code in tuple(AbortCode) and code not in NOT_STOPPED)


def _findings(desk: Desk, errors: Sequence[ErrorRecord]) -> Iterable[Trouble]:
    """What an author should look at in a letter that is not sent for real yet: a card a letter."""
    by_letter: dict[str, list[ErrorRecord]] = {}
    for one in errors:
        if one.mailout and one.stage == "content" and not _stops(one.code):
            by_letter.setdefault(one.mailout, []).append(one)
    letters = {one.id: one for one in among(desk.store, MAILOUTS, "id", list(by_letter))}
    latest = history_rows.latest_of(desk.store, sorted({one.ref for one in letters.values()}))
    for id, found in by_letter.items():
        letter = letters.get(id)
        if letter is None or latest[letter.ref].id != id:
            if letter is not None or not page_id_of(id):
                continue
        elif letter.status is Status.COMPLETED and not letter.is_test and not letter.is_rehearsal:
            continue  # it is sent
        yield Trouble(
            title(letter) if letter else "A page in Notion",
            f"{count(len(found), 'thing')} to look at before it is sent."
            if len(found) > 1
            else found[0].message,
            found[0].at,
            "warn",
            remedy=next(filter(None, (remedy(one.code) for one in found)), ""),
            link=f"/letters/{id}" if letter else f"/draft?ref={id}",
            key=f"findings {id}",
            details=[*dict.fromkeys((one.code, one.message) for one in found)],
        )


def _general(errors: Sequence[ErrorRecord]) -> Iterable[Trouble]:
    """Errors of no letter: one card a kind."""
    kinds: dict[str, list[ErrorRecord]] = {}
    for one in errors:
        if not one.mailout and not _stops(one.code):
            kinds.setdefault(one.code, []).append(one)
    for code, found in kinds.items():
        times = f"{count(len(found), 'time')}: " if len(found) > 1 else ""
        yield Trouble(
            WORDS.get(found[0].stage, "An error"),
            times + found[0].message,
            found[0].at,
            "warn",
            remedy=remedy(code),
            key=f"error {code}",
            details=[*dict.fromkeys((one.code, one.message) for one in found)][:10],
        )


def _refusals(desk: Desk, since: float) -> Iterable[Trouble]:
    for one in history_rows.refusals(desk.store, limit=20):
        if one.last_at < since:
            continue
        what, advice = REFUSED.get(one.path, (one.path, ""))
        yield Trouble(
            f"{what} refused",
            f"{one.why} ({count(one.n, 'time')}). Nothing was changed by it.",
            one.last_at,
            "warn",
            remedy=advice,
            key=f"refused {one.path} {one.why}"[:200],
        )


def remedy(code: str) -> str:
    """What a person can do about it; empty where nobody knows."""
    if code in REMEDIES:
        return REMEDIES[code]
    if code in NOTES:
        return NOTES[code].remedy
    return STOPPED[AbortCode(code)] if code in tuple(AbortCode) else remedy_of(code, failed=True)


def title(mailout: Mailout) -> str:
    return f"“{plain_subject(mailout.subject)}”" if mailout.subject else "A letter without a subject"


def _plain(one: Trouble) -> Trouble:
    """Without paths of the server, which help nobody here."""
    details = [(code, _SERVER_PATH.sub(r"\1", message)) for code, message in one.details]
    return replace(one, said=_SERVER_PATH.sub(r"\1", one.said), details=details)


REMEDIES = {
    "content_block_unsupported": "Open the letter to see what remains of it, or write it with another kind of"
    " block in Notion.",
    AbortCode.VARIABLE_MISSING: "Write what they read instead, as in `{{ first_name | friend }}`, or import"
    " the values under People.",
}
"""For somebody who has no terminal."""
WORDS = {
    "content": "Something in a letter",
    "audience": "Something in the list of people",
    "delivery": "Something in sending",
    "feedback": "Something in what came back",
    "report": "Something in the reports",
}
REFUSED: Mapping[str, tuple[str, str]] = {
    "/ses-events": (
        "Delivery report (SNS)",
        "Is it your own SNS topic? Add it to `SNS_TOPIC_ARNS`. If not, ignore it: somebody else sent it.",
    ),
    "/webhooks/notion": (
        "Notion webhook",
        "Did you set one up? Check `NOTION_WEBHOOK_TOKEN` or `NOTION_AUTOMATION_SECRET`. If not, ignore it.",
    ),
    "/send-mailout": (
        "Request to send a letter",
        "Is it your own program? Check its token against `API_TOKEN`. If not, ignore it.",
    ),
    "/articles/send": (
        "Request to send an article",
        "Is it your own program? Check its password against `ADMIN_PASSWORD`. If not, ignore it.",
    ),
}
