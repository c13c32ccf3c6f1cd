"""One address: trimmed, checked, and in the one form under which it is kept and compared.

The rules are email-validator's, without a look at DNS, and tightened where SES is stricter: before the @-sign
only ASCII, and no more than 64 characters. Special-use domains (`.invalid`, `.local`, `.localhost`, `.onion`,
`.arpa`) are refused. `.test` passes, because tests and demos need addresses that can never reach anybody;
`example.com`, `.org` and `.net` pass by email-validator's own rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parseaddr
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import idna

MAX_LENGTH, MAX_LOCAL_LENGTH = 254, 64


class Dropped(StrEnum):
    """Why a row of an audience or an import goes no further."""

    EMPTY = "empty"  # nothing there
    NO_AT = "no_at"  # no @-sign
    DISPLAY_NAME = "display_name"  # a name beside the address that cannot be told apart from it
    BAD_LOCAL = "bad_local"  # wrong before the @-sign
    NON_ASCII_LOCAL = "non_ascii_local"  # valid elsewhere, refused by SES
    BAD_DOMAIN = "bad_domain"  # invalid domain, or one that mail cannot reach
    TOO_LONG = "too_long"  # over 254 characters, or 64 before the @-sign
    DUPLICATE = "duplicate"  # the same address again; merged into the first
    UNCONFIRMED = "unconfirmed"  # never confirmed, never subscribed, or nobody answered for it
    BAD_ROW = "bad_row"  # more fields than the header has columns


IN_WORDS: Mapping[Dropped, str] = {
    Dropped.EMPTY: "no address",
    Dropped.NO_AT: "no @ in the address",
    Dropped.DISPLAY_NAME: "a name beside the address",
    Dropped.BAD_LOCAL: "invalid part before the @",
    Dropped.NON_ASCII_LOCAL: "a character before the @ that mail services refuse",
    Dropped.BAD_DOMAIN: "invalid domain",
    Dropped.TOO_LONG: "too long for an address",
    Dropped.DUPLICATE: "duplicate (merged into one)",
    Dropped.BAD_ROW: "more fields than the file has columns",
    Dropped.UNCONFIRMED: "never confirmed, never subscribed, or not answered for",
}

TRIM = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
    "\u200a\u2028\u2029\u202f\u205f\u3000\u200b\u2060\ufeff"
)
"""White space, and the invisible characters that come along when people copy an address."""

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL = rf"{_ATOM}(?:\.{_ATOM})*"
PLAIN = rf"{_LOCAL}@(?:[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*\.)+[A-Za-z]{{2,}}"
"""What email-validator surely accepts and leaves as it is, but for the case. Written for Python and for Rust,
which has no lookahead; so labels with `--` and every special-use domain are left to email-validator."""

PLAIN_MAX_LENGTH = 64  # short enough that no limit on a part can be broken
SPECIAL_USE = r"\.(?i:arpa|invalid|local|localhost|onion)"

_plain = re.compile(PLAIN)
_special_use = re.compile(SPECIAL_USE + r"\Z")
_local = re.compile(_LOCAL)


def normalise(written: str) -> str | Dropped:
    """The address in lower case with its domain in punycode, or the reason why it is none."""
    address = written.strip(TRIM)
    if len(address) <= PLAIN_MAX_LENGTH and _plain.fullmatch(address) and not _special_use.search(address):
        return address.lower()
    return checked(address)


def checked(address: str) -> str | Dropped:
    """The slow way, for an address that is trimmed already: each domain is put to email-validator, once."""
    local, at, domain = address.rpartition("@")
    if not at:
        return Dropped.NO_AT if address else Dropped.EMPTY
    if "<" in local:
        return Dropped.DISPLAY_NAME
    if not local.isascii():
        return Dropped.NON_ASCII_LOCAL
    if not _local.fullmatch(local):
        return Dropped.BAD_LOCAL
    # email-validator's time grows with the square of the length: it is not asked about the surely too long.
    if len(local) > MAX_LOCAL_LENGTH or len(address) > MAX_LENGTH:
        return Dropped.TOO_LONG
    known = _checked_domain(domain)
    if known is None:
        return Dropped.BAD_DOMAIN
    if len(local) + 1 + known.longest > MAX_LENGTH:
        return Dropped.TOO_LONG
    # Lower case comes last: before the checks it would turn a Kelvin sign into a plain "k".
    return f"{local.lower()}@{known.punycode}"


def address_of(written: str) -> str | None:
    """The normalised address, with or without a display name around it; None: there is none."""
    found = parseaddr(written)[1] if "<" in written else written
    norm = normalise(found)
    if not isinstance(norm, Dropped):
        return norm
    # Not one that we would send to, yet somebody's: kept as it is, if it is one word around an @-sign.
    kept = found.strip(TRIM).lower()
    sound = "@" in kept and len(kept) <= 320 and kept.isprintable() and not re.search(r"\s", kept)
    return kept if sound else None


def as_written(address: str) -> str:
    """As people write it: `bücher.example`, not `xn--bcher-kva.example`."""
    local, at, domain = address.rpartition("@")
    try:
        return f"{local}{at}{idna.decode(domain)}" if "xn--" in domain else address
    except idna.IDNAError:
        return address


@lru_cache(maxsize=1024)
def punycode(domain: str) -> str:
    """Of an international domain; empty: there is none."""
    try:
        return idna.encode(domain, uts46=True).decode("ascii")
    except idna.IDNAError:
        return ""


class AddressList(NamedTuple):
    """`TEST_EMAILS`: who receives a test run, sorted, and what was dropped, for the log."""

    addresses: tuple[str, ...]
    rejected: tuple[tuple[str, Dropped], ...]  # as written, and why


def parse_address_list(text: str) -> AddressList:
    """Split on comma, semicolon and white space; the valid ones once each, whatever their case."""
    kept: set[str] = set()
    rejected: list[tuple[str, Dropped]] = []
    for written in re.split(rf"[,;\s{TRIM}]+", text):
        match normalise(written):
            case Dropped.EMPTY:
                continue
            case Dropped() as reason:
                rejected.append((written, reason))
            case address:
                kept.add(address)
    return AddressList(tuple(sorted(kept)), tuple(rejected))


class _Domain(NamedTuple):
    punycode: str
    longest: int  # bytes of its longest form: as written, in Unicode, in punycode


@lru_cache(maxsize=8192)
def _checked_domain(domain: str) -> _Domain | None:
    """A valid domain, or None. Kept: people share domains, and IDNA costs a fifth of a millisecond."""
    from email_validator import EmailNotValidError, validate_email  # 25 ms that most processes never need

    try:
        valid = validate_email(f"x@{domain}", check_deliverability=False, test_environment=True)
    except (EmailNotValidError, UnicodeError):
        return None
    if valid.ascii_domain == "test":  # passes as a domain in a test environment, and only there
        return None
    forms = (domain, valid.domain, valid.ascii_domain)
    return _Domain(valid.ascii_domain.lower(), max(len(form.encode()) for form in forms))


LEFT_OUT: Mapping[str, str] = {
    "invalid": "what stands there is no address",
    "not_ascii": "the domain has letters that are not normalised yet (the next mailout does it)",
    "duplicate": "the address is there already, in another spelling",
}
"""Why a subscriber whom somebody wrote into the store gets no mail: `email_problem`."""


def without_address(text: str, address: str, instead: str) -> str:
    """Another word wherever an address stands by itself, in any case: a longer one that begins or ends so is
    another's. In JSON, a line break before it is written as a letter."""
    begins = r"(?:(?<![\w.+-])|(?<=\\[bfnrt])|(?<=\\u[0-9a-f]{4}))"
    alone = rf"{begins}(?i:{re.escape(address)})(?![\w-]|\.\w)"
    return re.sub(alone, instead, text) if address.lower() in text.lower() else text
