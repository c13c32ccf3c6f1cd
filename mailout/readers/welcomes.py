"""A list's welcome letter: one to each who joins it by a sign-up.

Confirming writes down who joined; who is owed a letter follows from that. So whatever is killed when, the
next look finds it, and a letter's id, made of list and address, meets itself in the outbox.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from mailout.base.error_log import ErrorLog, ErrorRecord, record_once
from mailout.base.errors import MailoutError
from mailout.base.ids import welcome_id
from mailout.letters.content.model import Content
from mailout.letters.content.port import SourceMailout
from mailout.letters.content.variables import filled, variables_of
from mailout.outbox.delivery.single_mails import DEFAULT_COMPANY, Category, SingleMail, SingleMails
from mailout.readers import sign_up_rows
from mailout.readers.port import DAY_SECONDS, WELCOME_SECONDS, OwedWelcome, SignUps

log = logging.getLogger("mailout.sign_ups")

UNAVAILABLE = "welcome_unavailable"

Letter = tuple[SourceMailout, Content]


class WelcomeStore(SignUps, SingleMails, ErrorLog, Protocol):
    """What welcome letters are read from and written to."""


@dataclass(frozen=True, slots=True, repr=False)
class Welcomes:
    """`letter(ref, list_key)`: a letter of this list, rendered as a mailout's is."""

    store: WelcomeStore
    letter: Callable[[str, str], Letter]
    rehearses: bool

    def owed(self) -> Sequence[OwedWelcome]:
        since = self.store.now() - WELCOME_SECONDS
        return list(sign_up_rows.owed_welcomes(self.store, since, rehearsal=self.rehearses))

    def write(self) -> int:
        """Into the outbox; how many. Repeatable. A letter that cannot be read holds up its own list alone."""
        written = 0
        for (list_key, ref), people in groupby(self.owed(), lambda one: (one.list_key, one.welcome_ref)):
            try:
                source, content = self.letter(ref, list_key)
            except MailoutError as error:
                self._say(list_key, str(error))
                continue
            mails = [self._mail(one, source, content) for one in people]
            whole = [mail for mail in mails if mail is not None]
            if len(whole) < len(mails):
                self._say(list_key, "Somebody has no value for one of its variables, and it has no fallback.")
            self.store.accept_single_mails(whole)
            written += len(whole)
        return written

    def _mail(self, one: OwedWelcome, source: SourceMailout, content: Content) -> SingleMail | None:
        """None: the letter needs something that nobody knows of them."""
        id = welcome_id(one.list_key, one.email, rehearsal=self.rehearses)
        from_name = one.own_from_name or source.from_name or one.from_name
        variables = variables_of(content)
        own = {**one.attributes, "email": one.email, "from_name": from_name or ""}
        values = filled(variables, own)
        if len(values) < len({variable.key for variable in variables}):
            return None
        return SingleMail(
            id=id,
            company_id=DEFAULT_COMPANY,
            request_id=id,
            email=one.email,
            content=content,
            category=Category.MARKETING,
            from_name=from_name,
            reply_to=source.reply_to or one.reply_to,
            list_key=one.list_key,
            values=values,
            is_rehearsal=self.rehearses,
        )

    def _say(self, list_key: str, why: str) -> None:
        """Once a day: it is looked at every few minutes."""
        message = f"The welcome letter of the list {list_key} cannot be sent. {why}"
        error = ErrorRecord(UNAVAILABLE, message, stage="content", mailout=f"list {list_key}")
        if record_once(self.store, error, self.store.now() - DAY_SECONDS):
            log.warning("%s", message)
