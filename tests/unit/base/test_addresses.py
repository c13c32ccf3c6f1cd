"""Addresses: who is kept, who is dropped and why. A mistake loses a subscriber or the sender's good name."""

from __future__ import annotations

import string

import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import example, given
from hypothesis import strategies as st

from mailout.base.addresses import PLAIN, PLAIN_MAX_LENGTH, SPECIAL_USE, TRIM, Dropped, checked, normalise

ATEXT = string.ascii_letters + string.digits + "!#$%&'*+/=?^_`{|}~-"
LABEL = string.ascii_letters + string.digits + "-"


def verdict(address: str) -> str | None:
    """email-validator's own answer under our options; the law that the module is held against."""
    try:
        valid = validate_email(
            address, allow_smtputf8=False, check_deliverability=False, test_environment=True, strict=True
        )
    except EmailNotValidError:
        return None
    return None if valid.ascii_domain == "test" else (valid.ascii_email or "").lower()


locals_ = st.text(ATEXT + ".", min_size=1, max_size=70)
labels = st.text(LABEL, min_size=1, max_size=66) | st.text("aäßя字éİ-ー", min_size=1, max_size=12)
domains = st.lists(labels, min_size=1, max_size=4).map(".".join)
endings = st.sampled_from(["", ".org", ".COM", ".Test", ".local", ".arpa", ".invalid", ".рф", ".c0", "."])
addresses = st.builds("{}@{}{}".format, locals_, domains, endings)


@given(addresses)
@example("a@ab--cd.org")
@example("a@xn--a.org")
@example("user@localhost.org")
@example("user@sub.localhost")
@example("x@test")
def test_agrees_with_email_validator_on_validity_and_form(address: str) -> None:
    ours = normalise(address)
    assert (None if isinstance(ours, Dropped) else ours) == verdict(address)


@given(st.from_regex(rf"\A{PLAIN}\Z", alphabet=st.characters(max_codepoint=127)))
def test_the_fast_path_accepts_nothing_that_email_validator_refuses(address: str) -> None:
    ours = normalise(address)
    theirs = verdict(address)
    if isinstance(ours, Dropped):
        assert theirs is None
    else:
        assert ours == theirs == address.lower()


@given(st.text())
def test_any_text_at_all_gets_an_answer(text: str) -> None:
    """One odd cell must not end an import of a million rows."""
    ours = normalise(text)
    assert isinstance(ours, Dropped) or (ours.isascii() and ours == ours.lower() and verdict(ours) == ours)


@given(addresses, st.text(TRIM, max_size=3), st.text(TRIM, max_size=3))
def test_normalising_is_idempotent_and_blind_to_case_and_margins(address: str, left: str, right: str) -> None:
    """Else the same person would be two subscribers."""
    once = normalise(left + address + right)
    assert once == normalise(address)
    if not isinstance(once, Dropped):
        assert normalise(once) == once
        local, _, domain = address.rpartition("@")
        assert normalise(f"{local.upper()}@{domain}") == once


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("Ana.Souza@Example.ORG", "ana.souza@example.org"),
        ("\ufeff ana@example.org\u200b\n", "ana@example.org"),
        ("o'neil+news@example.com", "o'neil+news@example.com"),
        ("u@Bücher.example", "u@xn--bcher-kva.example"),
        ("u@bu\u0308cher.example", "u@xn--bcher-kva.example"),
        ("u@XN--BCHER-KVA.example", "u@xn--bcher-kva.example"),
        ("u@почта.рф", "u@xn--80a1acny.xn--p1ai"),
        ("nobody@example.test", "nobody@example.test"),
        ("a" * 64 + "@example.org", "a" * 64 + "@example.org"),
    ],
)
def test_good_addresses_have_one_form(written: str, kept: str) -> None:
    assert normalise(written) == kept


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", Dropped.EMPTY),
        (" \t\u200b", Dropped.EMPTY),
        ("ana.example.org", Dropped.NO_AT),
        ("ana＠example.org", Dropped.NO_AT),
        ("Ana <ana@example.org>", Dropped.DISPLAY_NAME),
        ("@example.org", Dropped.BAD_LOCAL),
        ("a..b@example.org", Dropped.BAD_LOCAL),
        ("a b@example.org", Dropped.BAD_LOCAL),
        ("a@b@example.org", Dropped.BAD_LOCAL),
        ('"a b"@example.org', Dropped.BAD_LOCAL),
        ("a\x00b@example.org", Dropped.BAD_LOCAL),
        ("josé@example.org", Dropped.NON_ASCII_LOCAL),
        ("\u212aate@example.org", Dropped.NON_ASCII_LOCAL),  # a Kelvin sign, whose lower case is "k"
        ("a@", Dropped.BAD_DOMAIN),
        ("a@example", Dropped.BAD_DOMAIN),
        ("a@test", Dropped.BAD_DOMAIN),
        ("a@example..org", Dropped.BAD_DOMAIN),
        ("a@-example.org", Dropped.BAD_DOMAIN),
        ("a@[127.0.0.1]", Dropped.BAD_DOMAIN),
        ("a@127.0.0.1", Dropped.BAD_DOMAIN),
        ("a@printer.local", Dropped.BAD_DOMAIN),
        ("a@example.INVALID", Dropped.BAD_DOMAIN),
        ("a@\ud800.org", Dropped.BAD_DOMAIN),  # half a character, as broken JSON can carry it
        ("a" * 65 + "@example.org", Dropped.TOO_LONG),
        ("a@" + "b." * 130 + "org", Dropped.TOO_LONG),
        ("a" * 60 + "@" + ".".join(["字" * 18] * 4) + ".org", Dropped.TOO_LONG),  # 136 characters, 284 bytes
    ],
)
def test_a_dropped_address_carries_the_reason_people_can_act_on(written: str, reason: Dropped) -> None:
    assert normalise(written) is reason


@given(addresses)
def test_the_slow_way_alone_gives_the_same_answer(address: str) -> None:
    """So it does not matter which rows polars hands to Python."""
    trimmed = address.strip(TRIM)
    assert checked(trimmed) == normalise(address)


def test_special_use_domains_are_those_of_email_validator() -> None:
    """A new one in a later email-validator must not slip through the fast path."""
    import email_validator

    ours = set(SPECIAL_USE.removeprefix(r"\.(?i:").removesuffix(")").split("|"))
    assert ours == set(email_validator.SPECIAL_USE_DOMAIN_NAMES) - {"test"}
    assert PLAIN_MAX_LENGTH <= 64
