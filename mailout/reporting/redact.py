"""Addresses hidden in what is logged: `a***@example.org`. For `LOG_REDACT`."""

from __future__ import annotations

import logging
import re

_ADDRESS = re.compile(
    r"""[^\s<>"'(),;:=\[\]{}|&?/@]+   # the local part, as it occurs in prose, JSON and URLs
        (?:@|%40)
        [^\s<>"'(),;:=\[\]{}|&?/@]+""",
    re.VERBOSE,
)
_TOKEN = re.compile(r"(?<=token=)[\w.%-]+")
"""An unsubscribe link's token is the address itself, in base64, and the right to unsubscribe it."""


def redact(email: str) -> str:
    """The first letter and the domain: enough to recognise one's own test, not enough to write to."""
    local, at, domain = email.rpartition("@")
    return f"{local[:1]}***@{domain}" if at else "***"


def redact_text(text: str) -> str:
    """Every address within a text, and every token that holds one."""
    hidden = _ADDRESS.sub(lambda found: redact(found[0].replace("%40", "@")), text)
    return _TOKEN.sub("***", hidden)


class RedactAddresses(logging.Filter):
    """Put it on a handler: it sees what every logger hands up. It changes the record for good, so that
    no later handler can show what an earlier one hid."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact_text(_message(record)), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = redact_text(record.exc_text)
        if record.stack_info:
            record.stack_info = redact_text(record.stack_info)
        for name, value in vars(record).items():
            if isinstance(value, str) and "@" in value and name not in ("msg", "exc_text", "stack_info"):
                setattr(record, name, redact_text(value))
        return True


def _message(record: logging.LogRecord) -> str:
    """A filter that raises would raise in the caller: a line whose arguments do not fit is shown as it is."""
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {record.args!r}"
