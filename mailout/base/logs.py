"""Logging, set up once by each program: plain lines or JSON (`LOG_FORMAT`); addresses and secrets hidden."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from mailout.base.redact import RedactLines, Redactor
from mailout.base.settings import Settings
from mailout.base.time_format import iso

FIELDS: Sequence[str] = ("outboxId", "requestId", "companyId", "attempt", "state", "durationMs")
"""What a line about a message carries, handed in as `extra`."""
NOTIFICATION_FIELDS: Sequence[str] = ("traceId", "subscriptionId", "openEventId", "term", "campus")
"""And a line about a notification: what its producer calls it."""
RUN_FIELDS = {"flow_run_name": "flowRun", "task_run_name": "taskRun"}
"""What Prefect adds to a run's own lines, and what we call it: a worker's log holds many runs."""


class JsonFormatter(logging.Formatter):
    """One JSON object a line, whatever is in the message."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": iso(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= _fields(record, (*FIELDS, *NOTIFICATION_FIELDS, *RUN_FIELDS))
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["error"] = record.exc_text
        return json.dumps(line, ensure_ascii=False, default=str)


class LineFormatter(logging.Formatter):
    """What it says, and after it the fields that a line about a message carries."""

    fields: Sequence[str] = (*FIELDS, *NOTIFICATION_FIELDS)

    def formatMessage(self, record: logging.LogRecord) -> str:
        shown = _fields(record, self.fields).items()
        return super().formatMessage(record) + "".join(f" {name}={value}" for name, value in shown)


class TextFormatter(LineFormatter):
    """For eyes: the time in UTC, the level, where it comes from, what it says."""

    fields = (*FIELDS, *NOTIFICATION_FIELDS, *RUN_FIELDS)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return iso(record.created) or ""


def _fields(record: logging.LogRecord, names: Sequence[str]) -> dict[str, Any]:
    found = ((name, getattr(record, name, None)) for name in names)
    return {RUN_FIELDS.get(name, name): value for name, value in found if value is not None}


class MailoutHandler(logging.StreamHandler[TextIO]):
    """Our own handler, known by its type: setting up again replaces it and leaves others alone."""


def configure_logging(settings: Settings, usual: int, *, stream: TextIO | None = None) -> None:
    """As a program's settings want it; without `LOG_LEVEL`, from its usual level on. To stderr: stdout is for
    data. A second time changes the first."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()] if settings.log_level else usual
    root = logging.getLogger()
    for old in [handler for handler in root.handlers if isinstance(handler, MailoutHandler)]:
        root.removeHandler(old)
    handler = MailoutHandler(stream or sys.stderr)
    handler.setLevel(level)  # what other libraries' loggers hand up is measured here, not at the root
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter())
    handler.addFilter(RedactLines(Redactor.of(settings)))
    root.addHandler(handler)
    root.setLevel(max(level, logging.INFO))  # what others say at DEBUG (headers, signatures) is not for a log
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line for every request
    logging.getLogger("mailout").setLevel(level)
