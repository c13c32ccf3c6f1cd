"""What a mailout needs before it may enter the queue: a sender, recipients, their variables, a way out."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from mailout.base.addresses import parse_address_list
from mailout.base.errors import Abort, AbortCode, NotFound, UsageError
from mailout.base.redact import redact
from mailout.base.settings import Settings
from mailout.kinds.articles.port import IntakeStore
from mailout.kinds.mailouts.reading import Reading
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.audience.port import Lacking, Subscribers
from mailout.letters.audience.segment_tree import Tree
from mailout.letters.content.document import UNFILLED, Problem, problem_line
from mailout.letters.content.from_settings import from_email_of, require_public_addresses
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.letters.content.variables import (
    FROM_THE_MESSAGE,
    attributes_of,
    meant_variable,
    required_of,
    variables_of,
)
from mailout.outbox.queue import segment_names
from mailout.outbox.queue.actions import others_than_reached
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import Recipient

log = logging.getLogger("mailout.intake")

PERSON_NAMES = (["name"], ["firstname"], ["first", "name"], ["given", "name"], ["nickname"], ["full", "name"])

INSTEAD_ON_THE_WEB = {"email": "your address", "from_name": "our team"}
"""Of what every message has: a page on the web is nobody's message."""


class EmailsForTests:
    """The recipients in TEST_EMAILS; what is no address there is logged once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._logged: set[str] = set()

    def recipients(self) -> Sequence[Recipient]:
        parsed = parse_address_list(self._settings.test_emails)
        for written, reason in parsed.rejected:
            if written not in self._logged:
                self._logged.add(written)
                log.warning("TEST_EMAILS: %s is left out (%s)", redact(written), reason)
        if not parsed.addresses:
            raise Abort(
                AbortCode.TEST_EMAILS_EMPTY,
                "A test run goes to TEST_EMAILS, and there is no valid address in it.",
                remedy="Set TEST_EMAILS to one or more addresses, separated by commas.",
            )
        return [Recipient(address) for address in parsed.addresses]


@dataclass(eq=False, repr=False)
class Readiness:
    """Each check raises what is missing, with its remedy."""

    _settings: Settings
    _store: IntakeStore
    _test_emails: EmailsForTests
    _rehearses: bool

    def check(self, reading: Reading, is_test: bool = False) -> None:
        self.check_setup(is_test, reading.source.list_key, reading.source.segment)
        self.check_content(reading, is_test)

    def check_setup(self, is_test: bool, list_key: str | None, segment: str | None = None) -> None:
        """A sender and somebody to send to: a real mailout to nobody would be done, and never be repeated."""
        from_email_of(self._settings)
        tree = self._tree(segment)
        if is_test:
            self._test_emails.recipients()
            return
        require_public_addresses(self._settings, rehearses=self._rehearses)
        self._store.normalise_addresses()
        people = subscriber_rows.subscriber_counts(self._store)
        if not people["active"]:
            told = "Import some first: mailout subscribers import FILE.csv"
            if subscriber_rows.unknown_statuses(people):
                told = "Some have a status that mailout does not know; see: mailout doctor"
            raise UsageError(
                "There is nobody to send it to: the store has no active subscriber.", remedy=told
            )
        if list_key is not None and not subscriber_rows.anybody_on(self._store, list_key):
            raise self._nobody_on(list_key)
        if tree is not None and not self._store.audience_sample(list_key, tree, 1):
            whom = f" on the list {list_key}" if list_key else ""
            raise UsageError(
                f"There is nobody to send it to: no active subscriber{whom} is in the segment “{segment}”.",
                remedy="See whom it means: mailout segments show NAME",
            )

    def _tree(self, segment: str | None) -> Tree | None:
        """An unknown segment is refused, also in a test."""
        return None if segment is None else segment_names.usable_segment(self._store, segment).tree

    def check_content(self, reading: Reading, is_test: bool = False) -> None:
        """Everybody has what its variables need, and no finding stops it. A test shows their
        names instead, and what to correct."""
        variables = variables_of(reading.content)
        required = () if is_test else required_of(variables)
        list_key, tree = reading.source.list_key, self._tree(reading.source.segment) if required else None
        found = [self._store.lacking(one, list_key, tree) for one in required]
        if missing := [one for one in found if one.people]:
            raise _variables_missing(
                [(one, meant(self._store, one.attribute, one.examples[0])) for one in missing]
            )
        found_in_it = () if is_test else reading.findings
        if stopping := [one for one in found_in_it if one.stops or self._is_meant(one, reading)]:
            raise _stopped(stopping)

    def _is_meant(self, problem: Problem, reading: Reading) -> bool:
        """Whether it is one of the variables that there are, but for its braces."""
        meant = meant_variable(problem.where or "") if problem.code == UNFILLED else None
        known = {*FROM_THE_MESSAGE, *(one.name for one in variables_of(reading.content))}
        return meant is not None and (
            meant.name in known
            or bool(self._store.audience_sample(reading.source.list_key, ["has", meant.name], 1))
        )

    def _nobody_on(self, list_key: str) -> UsageError:
        try:
            list_rows.by_key_or_name(self._store, list_key)
        except NotFound as mistyped:
            return UsageError(
                f"There is nobody to send it to: no list is called {list_key}.",
                remedy=mistyped.remedy,
                for_writer=f"No list is called {list_key}. Choose another, then set the page to Ready again.",
            )
        return UsageError(
            f"There is nobody to send it to: no active subscriber is on the list {list_key}.",
            remedy="Correct its name, or bring people onto it: subscribers import FILE.csv --list NAME",
            for_writer=f"Nobody is on the list {list_key}. Choose another and set the page to Ready again,"
            " or ask your administrator to add people.",
        )


def unknown_variables(store: Subscribers, content: Content, list_key: str | None) -> Iterator[Problem]:
    """Those that show everybody their fallback: a misspelt name would never be noticed. What has no fallback
    somewhere is refused by name."""
    variables = variables_of(content)
    names = sorted(set(attributes_of(variables)) - set(required_of(variables)))
    somebody = store.audience_sample(list_key, None, 1) if names else ()
    for name in names if somebody else ():
        if store.audience_sample(list_key, ["has", name], 1):
            continue
        instead = meant(store, name, somebody[0])
        advice = (
            f"Did you mean {_variable(instead)}?" if instead else "Correct its name, or import the values."
        )
        for one in dict.fromkeys(one.written for one in variables if one.name == name):
            said = f"Nobody has a value for this variable, so everybody reads its fallback. {advice}"
            yield Problem("variable_unknown", said, one)


def meant(store: Subscribers, attribute: str, email_norm: str) -> str | None:
    """What this person has instead, if it is spelt much the same."""
    known = subscriber_rows.subscriber(store, email_norm)["attributes"]
    return next(iter(get_close_matches(attribute, known, n=1, cutoff=0.7)), None)


# ── Why a mailout is not enqueued ──


SAME_ASK_SECONDS = 60.0
"""Whoever asks so soon after a mailout has ended asked while it was being sent: a webhook and the look for
`Ready` pages find the same page, and Notion shows for some seconds what a page was. A page that still asks
after that is asked again by the next look."""


class AlreadySent(Abort):
    """It went out before; `at`: when its last message did, where the store knows."""

    said = "“{}” has been sent; a real mailout goes out once."
    instead = (
        "For a trial: `--test`. Another letter needs a page or an `id:` of its own. If messages failed:"
        " `mailout queue list`, then `mailout queue retry ID`."
    )

    def __init__(self, subject: str, at: float | None = None) -> None:
        super().__init__(AbortCode.MAILOUT_ALREADY_SENT, self.said.format(subject), remedy=self.instead)
        self.subject = subject
        self.at = at

    def is_same_ask(self, asked_at: float | None) -> bool:
        """Asked for twice and sent once: nobody did anything wrong."""
        return asked_at is not None and self.at is not None and asked_at < self.at + SAME_ASK_SECONDS


class MarkedAsSent(AlreadySent):
    """Its page says so, and the store has no such letter: a copy of a page that was sent, or a letter of
    another store."""

    said = "“{}” says that it was sent, and the store has no such letter. Nobody got it now."
    instead = "If it is a new letter, clear its sent_at and set it to Ready again."

    def __init__(self, subject: str) -> None:
        super().__init__(subject)
        self.for_writer = (
            "This page already has a sent_at date, perhaps because it was duplicated. Nobody got it now."
            " If it is a new letter, clear sent_at, then set Ready again."
        )


class AlreadyRehearsed(AlreadySent):
    """The same content was written to the folder before."""

    said = "“{}” has been rehearsed and has not changed since."
    instead = "To rehearse it all the same: --again. To send it to people: MAILOUT_TRANSPORT=ses."


class TakenBack(UsageError):
    """Whoever asked for it has thought better of it while it was being read."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"“{subject}” is not sent: it was cancelled, put off or set to Draft meanwhile.")


def cancelled(mailout: Mailout) -> UsageError:
    return UsageError(
        f"This mailout was cancelled on its way ({mailout.id}): some people may have got it.",
        remedy=others_than_reached(mailout),
    )


def waits_with_another_text(mailout: Mailout, subject: str) -> UsageError:
    """What waits is sent as it was; whoever asks now means what the page, the file and the settings say."""
    is_another = mailout.kind is Kind.MARKDOWN and mailout.subject != subject
    another = " If this is another letter, give it an `id:` of its own." if is_another else ""
    return UsageError(
        f"{mailout.ref} waits in the queue as “{mailout.subject}”, with another text or look. Nothing was"
        " changed.",
        remedy=f"To send it as it is now: mailout queue cancel {mailout.ref}, then send again.{another}",
    )


def _stopped(problems: Sequence[Problem]) -> Abort:
    said = " ".join(map(problem_line, problems))
    return Abort(
        problems[0].stops or AbortCode.VARIABLE_MISSING,
        said,
        remedy="Then send again.",
        for_writer=f"{said} Then set the page to Ready again.",
    )


def _variables_missing(found: Sequence[tuple[Lacking, str | None]]) -> Abort:
    """All of them at once; of each, what it may have been meant to be."""
    said, counted = [], []
    for lacking, meant in found:
        people = "1 person has" if lacking.people == 1 else f"{lacking.people:,} people have"
        more = " and others" if lacking.people > len(lacking.examples) else ""
        hint = f" Did you mean {_variable(meant)}?" if meant else ""
        counted.append(f"{people} no value for {_variable(lacking.attribute)}")
        said.append(f"{counted[-1]}: {', '.join(lacking.examples)}{more}.{hint}")
    fallbacks = ", ".join(
        _variable(f"{one.attribute} | {sensible_fallback(one.attribute)}") for one, _ in found
    )
    hints = "".join(f" Did you mean {_variable(meant)}?" for _, meant in found if meant)
    return Abort(
        AbortCode.VARIABLE_MISSING,
        " ".join(said),
        remedy=f"Write what they read instead: {fallbacks}. Or import it for them.",
        for_writer=f"{'; '.join(counted)}.{hints} Write what they read instead: {fallbacks}."
        " Then set the page to Ready again.",
    )


def _variable(name: str) -> str:
    return f"{{{{ {name} }}}}"


def sensible_fallback(attribute: str) -> str:
    """What a sentence can say instead: `friend` for a person's name, else `your city` and the like."""
    words = attribute.replace("-", "_").lower().split("_")
    if words in PERSON_NAMES:
        return "friend"
    if attribute in INSTEAD_ON_THE_WEB:
        return INSTEAD_ON_THE_WEB[attribute]
    return " ".join(("your", *words[: -1 if len(words) > 1 and words[-1] == "name" else None]))
