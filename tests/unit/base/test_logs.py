from __future__ import annotations

import io
import json
import logging
from typing import Literal

import pytest

from mailout.base.logs import configure_logging
from mailout.base.settings import Settings, load_settings

log = logging.getLogger("mailout.test_logs")


def test_a_json_line_carries_what_it_is_found_by() -> None:
    """Whoever follows one message through the logs searches for these fields."""
    stream = io.StringIO()
    configure_logging(Settings(log_format="json", log_redact=False), logging.INFO, stream=stream)
    extra = {
        "outboxId": "o",
        "requestId": "r",
        "companyId": "c",
        "attempt": 2,
        "state": "SENT",
        "durationMs": 0,
    }
    log.info("sent to %s\nand more", "anna@example.org", extra=extra | {"other": 1})
    told = json.loads(stream.getvalue())
    assert stream.getvalue().count("\n") == 1
    assert {name: told[name] for name in extra} == extra
    assert told["message"] == "sent to anna@example.org\nand more"
    assert (told["level"], told["logger"]) == ("info", "mailout.test_logs")
    assert "other" not in told


def test_a_json_line_leaves_out_what_was_not_given_and_keeps_the_error() -> None:
    stream = io.StringIO()
    configure_logging(Settings(log_format="json", log_redact=False), logging.INFO, stream=stream)
    try:
        raise ValueError("boom")
    except ValueError:
        log.exception("it broke")
    told = json.loads(stream.getvalue())
    assert "attempt" not in told
    assert "ValueError: boom" in told["error"]


@pytest.mark.parametrize("format", ["text", "json"])
def test_redacted_neither_form_shows_an_address(format: Literal["text", "json"]) -> None:
    stream = io.StringIO()
    configure_logging(Settings(log_format=format), logging.INFO, stream=stream)
    try:
        raise ValueError("anna@example.org")
    except ValueError:
        log.exception("to %s", "anna@example.org")
    assert "anna" not in stream.getvalue()
    assert "a***@example.org" in stream.getvalue()


def test_setting_up_twice_does_not_say_everything_twice() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logging(Settings(), logging.INFO, stream=first)
    configure_logging(Settings(), logging.WARNING, stream=second)
    log.info("quiet")
    log.warning("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1
    assert "quiet" not in second.getvalue()


def test_a_plain_line_carries_the_fields_too() -> None:
    """Text is what most people have switched on when they need to find a message."""
    stream = io.StringIO()
    configure_logging(Settings(), logging.INFO, stream=stream)
    log.info("FAILED", extra={"outboxId": "o", "attempt": 2, "flow_run_name": "wise-otter"})
    assert stream.getvalue().endswith("mailout.test_logs: FAILED outboxId=o attempt=2 flowRun=wise-otter\n")


def test_the_level_is_the_settings_or_the_program_s_usual_one() -> None:
    stream = io.StringIO()
    configure_logging(load_settings(env={}), logging.WARNING, stream=stream)
    log.info("not heard")
    configure_logging(load_settings(env={"LOG_LEVEL": "debug"}), logging.WARNING, stream=stream)
    log.debug("heard")
    logging.getLogger("botocore").debug("Authorization: what others say in detail")
    assert [line.split(": ", 1)[1] for line in stream.getvalue().splitlines()] == ["heard"]
