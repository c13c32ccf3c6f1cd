from __future__ import annotations

import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.base.errors import Abort, AbortCode
from mailout.base.redact import Hidden, RedactLines, Redactor, hidden_in_error, redact, redact_text
from mailout.base.settings import load_settings

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


@given(st.text(), st.lists(st.text(min_size=6, max_size=12), max_size=3), st.booleans())
def test_hiding_twice_is_hiding_once(text: str, secrets: list[str], addresses: bool) -> None:
    """A line passes several handlers, an error a task and its flow."""
    hide = Redactor(tuple(secrets), addresses)
    once = hide(f"{text} {' '.join(secrets)} anna@example.org")
    assert hide(once) == once or any(secret in "***@example.org" for secret in secrets)


def test_every_secret_of_the_settings_is_hidden_whatever_log_redact_says() -> None:
    env = {
        "UNSUBSCRIBE_SECRET": "the first secret",
        "UNSUBSCRIBE_SECRETS_OLD": "the first secret of old,another",
        "API_TOKEN": "a-token-of-24-characters-or-more",
        "NOTION_TOKEN": "ntn_123456",
        "NOTION_WEBHOOK_TOKEN": "hook_123456",
        "AWS_SECRET_ACCESS_KEY": "aws/secret",
        "SUPABASE_URL": "https://x.supabase.co",
        "SUPABASE_SERVICE_ROLE_KEY": "sb_secret_123456",
        "ADMIN_PASSWORD": "four words are enough",
        "LOG_REDACT": "false",
    }
    hide = Redactor.of(load_settings(env=env))
    kept = {"LOG_REDACT", "SUPABASE_URL"}
    told = hide(" ".join(value for name, value in env.items() if name not in kept) + " anna@example.org")
    assert told == "*** ***,*** *** *** *** *** *** *** anna@example.org"


def test_the_token_of_a_link_is_hidden_whatever_log_redact_says() -> None:
    """Whoever reads the log could sign in with it."""
    said = "GET /login/link?token=eyJhdCI6MX0.c2ln for anna@example.org"
    assert Redactor(addresses=False)(said) == "GET /login/link?token=*** for anna@example.org"


def test_an_error_says_less_and_stays_what_it_is() -> None:
    """Exit codes and remedies go by its type."""
    error = Abort(AbortCode.EMPTY_BODY, "to anna@example.org", remedy="Ask anna@example.org.")
    assert hidden_in_error(error, Redactor()) is error
    assert str(error) == "to a***@example.org Ask a***@example.org. (empty_body)"
    assert error.args == ("to a***@example.org",)


def test_an_error_that_makes_up_its_own_words_is_told_by_another() -> None:
    shown = hidden_in_error(FileNotFoundError(2, "No such file", "anna@example.org.eml"), Redactor())
    assert isinstance(shown, Hidden)
    assert str(shown) == "FileNotFoundError: [Errno 2] No such file: 'a***@example.org.eml'"


def test_an_error_with_nothing_to_hide_is_left_alone() -> None:
    error = KeyError("name")
    assert hidden_in_error(error, Redactor()) is error
    assert error.args == ("name",)
