from __future__ import annotations

import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.reporting.redact import RedactLines, redact, redact_text

LOCAL = st.from_regex(r"[a-z0-9][a-z0-9.+_-]{5,15}", fullmatch=True)
AROUND = st.sampled_from(
    [" ", "<{}>", '"{}"', "({})", "to={}", "mailto:{}", "{},", "[{}]", "to: {}.", "/x/{}?y"]
)


def test_the_first_letter_and_the_domain_remain() -> None:
    assert redact("anna@example.org") == "a***@example.org"
    assert redact("@example.org") == "***@example.org"
    assert redact("no address") == "***"


@given(LOCAL, AROUND)
def test_no_address_survives_in_a_text(local: str, around: str) -> None:
    """Else LOG_REDACT promises what it does not hold."""
    text = redact_text(f"before {around.format(f'{local}@example.org')} after")
    assert local not in text
    assert text.startswith("before ")
    assert text.endswith(" after")


@pytest.mark.parametrize(
    "text",
    [
        "GET /unsubscribe?token=eyJlbWFpbCI6ImFubmEifQ.c2ln HTTP/1.1",
        "GET /x?email=eyJlbWFpbCI6%40example.org",
    ],
)
def test_addresses_in_links_are_hidden_too(text: str) -> None:
    """An unsubscribe token is the address in base64: whoever has the log could read or use it."""
    assert "eyJlbWFpbCI6" not in redact_text(text)


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("mailout", logging.INFO, __file__, 1, message, args, None)
    for name, value in extra.items():
        setattr(made, name, value)
    return made


def test_message_arguments_extras_and_tracebacks_are_all_hidden() -> None:
    try:
        raise ValueError("anna@example.org is wrong")
    except ValueError:
        made = record("to %s", "anna@example.org", to="anna@example.org")
        made.exc_info = sys.exc_info()
    assert RedactLines().filter(made)
    shown = logging.Formatter("%(message)s %(to)s").format(made)
    assert shown.startswith("to a***@example.org a***@example.org\nTraceback")
    assert "anna" not in shown


def test_a_line_whose_arguments_do_not_fit_does_not_stop_its_caller() -> None:
    made = record("%d of %d", "anna@example.org")
    assert RedactLines().filter(made)
    assert "a***@example.org" in made.getMessage()
