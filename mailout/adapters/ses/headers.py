"""What stands in a mail's header: safe by construction, so that nothing a person typed can add a line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from mailout.base.addresses import MAX_LENGTH, MAX_LOCAL_LENGTH, punycode
from mailout.outbox.delivery.mime import display_name, unstructured, unsubscribe_by_mail
from mailout.outbox.delivery.port import Mail

MAX_HEADER_VALUE = 995  # SES refuses more
MAX_HEADERS = 15  # and more than so many
_CONTROL = dict.fromkeys((*range(32), *range(127, 160), 8232, 8233), " ")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})+")
_LINK = re.compile(r"[!-;=?-~]+")  # printable ASCII without blanks and angle brackets
_NOT_IN_TAGS = re.compile(r"[^A-Za-z0-9_-]")


def one_line(text: str) -> str:
    """Each control character and line break becomes a blank: one for one, so parts can be treated alone."""
    return text.translate(_CONTROL)


def address(email: str) -> str | None:
    """As SES takes it, the domain in punycode; None where SES cannot take it at all."""
    local, _, domain = email.rpartition("@")
    taken = email if domain.isascii() else f"{local}@{punycode(domain)}"
    fits = len(local) <= MAX_LOCAL_LENGTH and len(taken) <= MAX_LENGTH
    return taken if fits and _ADDRESS.fullmatch(taken) else None


@lru_cache(maxsize=1024)
def sender(name: str, email: str) -> str | None:
    """The From line: quoted where RFC 5322 asks for it, encoded (RFC 2047) where it is not ASCII."""
    mailbox = address(email)
    name = one_line(name).strip()
    if mailbox is None or not name:
        return mailbox
    shown = display_name(name.encode("utf-8", "replace").decode()).replace("\r\n", "")
    return f"{shown} <{mailbox}>"


def list_headers(mail: Mail) -> list[dict[str, str]] | None:
    """RFC 8058's pair and the list's id; empty for a single mail; None for what no header can carry."""
    if mail.unsubscribe_url is None:
        return []
    ways = [
        mail.unsubscribe_url,
        *([unsubscribe_by_mail(mail.unsubscribe_mailbox)] if mail.unsubscribe_mailbox else []),
    ]
    leave = ", ".join(f"<{way}>" for way in ways)
    if not all(_LINK.fullmatch(way) for way in ways) or len(leave) > MAX_HEADER_VALUE:
        return None
    pairs = [{"Name": "List-Unsubscribe", "Value": leave}]
    if mail.one_click:
        pairs.append({"Name": "List-Unsubscribe-Post", "Value": "List-Unsubscribe=One-Click"})
    if mail.list_id and _LINK.fullmatch(mail.list_id):
        pairs.append({"Name": "List-Id", "Value": _list_id(mail.list_name, mail.list_id)})
    return pairs


@lru_cache(maxsize=64)
def _list_id(name: str, id: str) -> str:
    shown = display_name(one_line(name).strip().encode("utf-8", "replace").decode()).replace("\r\n", "")
    named = f"{shown} <{id}>" if shown else f"<{id}>"
    return named if len(named) <= MAX_HEADER_VALUE else f"<{id}>"


def own_headers(given: Mapping[str, str]) -> list[dict[str, str]] | None:
    """Those that a single mail brings; None: one that no header of SES can carry."""
    made = []
    for name, value in given.items():
        written = one_line(value).strip()
        if not written.isascii():
            written = unstructured(written, len(name) + 2).replace("\r\n", "")  # SES folds it itself
        if not written or len(name) + len(written) > MAX_HEADER_VALUE:
            return None
        made.append({"Name": name, "Value": written})
    return made


def tags(mail: Mail) -> list[dict[str, str]]:
    """What SES repeats in every event, so that an event finds its attempt."""
    pairs = [
        {"Name": "mailout_message", "Value": _tag(mail.attempt.id)},
        {"Name": "mailout_epoch", "Value": str(mail.attempt.epoch)},
    ]
    if mail.mailout_id is not None:
        pairs.extend(_mailout_tags(mail.mailout_id, mail.list_id))
    pairs.extend({"Name": _tag(name), "Value": _tag(value)} for name, value in mail.tags.items())
    return pairs


@lru_cache(maxsize=64)
def _mailout_tags(mailout_id: str, list_id: str | None) -> Sequence[dict[str, str]]:
    """The same for all of its messages."""
    pairs = [{"Name": "mailout_campaign", "Value": _tag(mailout_id)}]
    if list_id:
        # SES puts these two into `Feedback-ID`, by which Gmail counts complaints: by list, by mailout.
        pairs.append({"Name": "ses:feedback-id-a", "Value": _tag(list_id.partition(".")[0])})
        pairs.append({"Name": "ses:feedback-id-b", "Value": _tag(mailout_id)})
    return pairs


def _tag(value: str) -> str:
    return _NOT_IN_TAGS.sub("-", value)[:256]
