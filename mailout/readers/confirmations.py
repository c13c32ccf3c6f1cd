"""The mail that asks a stranger whether it was them, and the sign-up that its link carries.

What strangers type in (a name, where they came from) never stands in it: else anybody could have us send
their own words to whomever they like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from mailout.base.addresses import TRIM, Dropped, normalise
from mailout.base.ids import sign_up_key, transactional_id
from mailout.letters.audience.list_changes import own_look
from mailout.letters.audience.list_rows import List
from mailout.letters.content.brand import Brand
from mailout.letters.content.document import cut, one_line
from mailout.letters.content.languages import Language
from mailout.letters.content.model import Content, clean
from mailout.outbox.delivery.single_mails import OURS, Category, SignedLink, SingleMail
from mailout.readers.link_mail import link_mail
from mailout.readers.port import CONFIRM_SECONDS, Confirmation, SignUp, SignUps

PURPOSE = "join"
CONFIRM_PATH = "/join/confirm"
NAME_LENGTH = 100
PAGE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class ConfirmationMails:
    """`is_rehearsal`: they are written to a folder."""

    org_name: str
    org_address: str
    brand: Brand
    zone: tzinfo
    is_rehearsal: bool

    def sign_up(
        self,
        email: str,
        lists: Sequence[List],
        *,
        name: str,
        page: str,
        network: str,
        words: Language,
        now: float,
    ) -> SignUp | None:
        """What was posted, ready for the store; None: that is no address."""
        norm = normalise(email)
        if isinstance(norm, Dropped):
            return None
        keys = sorted(one.key for one in lists)
        key = sign_up_key(norm, keys, now)
        payload = {
            "at": now,
            "email": norm,
            "written": one_line(email).strip(TRIM),
            "lists": keys,
            "name": cut(one_line(clean(name)), NAME_LENGTH),
            "wording": self.wording(lists, words),
            "page": page[:PAGE_LENGTH],
        }
        only = lists[0] if len(lists) == 1 else None
        mail = SingleMail(
            id=transactional_id(OURS, key, rehearsal=self.is_rehearsal),
            company_id=OURS,
            request_id=key,
            email=norm,
            content=self.content(lists, words),
            category=Category.CONFIRMATION,
            from_name=only.from_name if only else None,
            reply_to=only.reply_to if only else None,
            idempotency_key=key,
            is_rehearsal=self.is_rehearsal,
            link=SignedLink(PURPOSE, CONFIRM_PATH, payload),
        )
        return SignUp(mail, network, keys, self._day(now))

    def confirmation(self, payload: Mapping[str, Any]) -> Confirmation:
        """What a link says."""
        return Confirmation(**payload, day=self._day(payload["at"]))

    def wording(self, lists: Sequence[List], words: Language) -> str:
        """What a reader agrees to, as it is kept."""
        key = "join_agree_of" if self.org_name else "join_agree"
        return words.pages[key].format(lists=named(lists), org=self.org_name)

    def content(self, lists: Sequence[List], words: Language) -> Content:
        """The same for everybody who asks for these lists in this language: only the link differs."""
        said, of = words.pages, named(lists)
        sender = " — ".join(part for part in (self.org_name, self.org_address) if part)
        return link_mail(
            said["confirm_mail_subject"].format(lists=of),
            [said["confirm_mail_asked"].format(lists=of), self.wording(lists, words)],
            said["confirm_button"],
            [said["confirm_mail_ignore"], *([sender] if sender else [])],
            sender=self.org_name,
            brand=self.brand.with_own(own_look(lists[0])) if len(lists) == 1 else self.brand,
            words=words,
        )

    def _day(self, at: float) -> str:
        return datetime.fromtimestamp(at, UTC).astimezone(self.zone).date().isoformat()


def named(lists: Sequence[List]) -> str:
    """As people read them, in the order in which a page shows them."""
    return ", ".join(clean(one.name) for one in lists)


ERASED_AT_ONCE = 1000
"""Rows in one transaction: others write meanwhile."""


def erase_unconfirmed(store: SignUps) -> int:
    """Sign-ups whose link works no more; how many. Repeatable."""
    before, erased = store.now() - CONFIRM_SECONDS, 0
    while part := store.erase_sign_ups(before, ERASED_AT_ONCE):
        erased += part
    return erased
