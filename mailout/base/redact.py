"""What must not be shown, hidden in whatever leaves for others to read: logs, Prefect's pages, its states.

Secrets and the tokens of links always; addresses (`a***@example.org`) with `LOG_REDACT`.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from mailout.base.settings import Settings

SHORTEST_SECRET = 6
"""A shorter one would be found within ordinary words, and is none."""

_ADDRESS = re.compile(
    r"""[^\s<>"'(),;:=\[\]{}|&?/@]+   # the local part, as it occurs in prose, JSON and URLs
        (?:@|%40)
        [^\s<>"'(),;:=\[\]{}|&?/@]+""",
    re.VERBOSE,
)
_TOKEN = re.compile(r"(?<=token=)[\w.%-]+")
"""A link's token is somebody's right to sign in, to join or to unsubscribe, and often holds the address."""


def redact(email: str) -> str:
    """The first letter and the domain: enough to recognise one's own test, not enough to write to."""
    local, at, domain = email.rpartition("@")
    return f"{local[:1]}***@{domain}" if at else "***"


def redact_tokens(text: str) -> str:
    """The tokens of the links within a text."""
    return _TOKEN.sub("***", text) if "token=" in text else text


def redact_text(text: str) -> str:
    """Every address within a text, and every token that holds one."""
    return redact_tokens(_ADDRESS.sub(lambda found: redact(found[0].replace("%40", "@")), text))


@dataclass(frozen=True, slots=True)
class Redactor:
    """What to hide: every text goes through it on its way out. Twice is once."""

    secrets: tuple[str, ...] = ()
    addresses: bool = True

    @classmethod
    def of(cls, settings: Settings) -> Redactor:
        long_enough = (secret for secret in settings.secrets if len(secret) >= SHORTEST_SECRET)
        # The longest first: one may be a part of another.
        return cls(tuple(sorted(long_enough, key=len, reverse=True)), settings.log_redact)

    def __call__(self, text: str) -> str:
        for secret in self.secrets:
            if secret in text:
                text = text.replace(secret, "***")
        if self.addresses and ("@" in text or "%40" in text):
            return redact_text(text)
        return redact_tokens(text)


class Hidden(Exception):
    """An error that could not be made to say less: its type and its words, without what they showed."""


def hidden_in_error(error: Exception, hide: Redactor) -> Exception:
    """The same error, saying nothing that is to be hidden: Prefect shows it as the state of a run."""
    if hide(str(error)) == str(error):
        return error
    error.args = tuple(hide(one) if isinstance(one, str) else one for one in error.args)
    for name in ("message", "remedy"):  # a MailoutError's own
        if isinstance(said := getattr(error, name, None), str):
            setattr(error, name, hide(said))
    if hide(str(error)) == str(error):
        return error
    return Hidden(f"{type(error).__name__}: {hide(str(error))}")


class RedactLines(logging.Filter):
    """Put it on a handler: it sees what every logger hands up. It changes the record for good, so that
    no later handler can show what an earlier one hid."""

    def __init__(self, hide: Redactor | None = None) -> None:
        super().__init__()
        self._hide = hide or Redactor()

    def filter(self, record: logging.LogRecord) -> bool:
        hide = self._hide
        record.msg, record.args = hide(_message(record)), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        for name, value in list(vars(record).items()):
            if name != "msg" and isinstance(value, str) and (shown := hide(value)) != value:
                setattr(record, name, shown)
        return True


def _message(record: logging.LogRecord) -> str:
    """A filter that raises would raise in the caller: a line whose arguments do not fit is shown as it is."""
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {record.args!r}"
