"""Logging, set up once by each program: plain lines or JSON (`LOG_FORMAT`), addresses hidden or not."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any, Literal, TextIO

from mailout.reporting.moments import iso
from mailout.reporting.redact import RedactAddresses

FIELDS = ("outboxId", "requestId", "companyId", "attempt", "state", "durationMs")
"""seed 002: what a line about a message carries, handed in as `extra`."""

LogFormat = Literal["text", "json"]


class JsonFormatter(logging.Formatter):
    """One JSON object a line, whatever is in the message."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": iso(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["error"] = record.exc_text
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """For eyes: the time in UTC, the level, where it comes from, what it says."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return iso(record.created) or ""


class MailoutHandler(logging.StreamHandler[TextIO]):
    """Our own handler, known by its type: setting up again replaces it and leaves others alone."""


def configure_logging(
    format: LogFormat = "text",
    redact: bool = False,
    level: int | str = logging.INFO,
    *,
    stream: TextIO | None = None,
) -> None:
    """Once, at the start of a program; a second time changes the first. To stderr: stdout is for data."""
    root = logging.getLogger()
    for old in [handler for handler in root.handlers if isinstance(handler, MailoutHandler)]:
        root.removeHandler(old)
    handler = MailoutHandler(stream or sys.stderr)
    handler.setLevel(level)  # what other libraries' loggers hand up is measured here, not at the root
    handler.setFormatter(JsonFormatter() if format == "json" else TextFormatter())
    if redact:
        handler.addFilter(RedactAddresses())
    root.addHandler(handler)
    root.setLevel(level)
