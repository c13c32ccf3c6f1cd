"""Everything that can go wrong, in one tree. A docstring is the default message.

MailoutError
├── SettingsError        a setting is missing or wrong          exit 2
├── UsageError           what was asked for cannot be           exit 2
├── Abort                a mailout stops before its first send  exit 1
├── CheckSkipped         `doctor` may not look, or cannot: it may be well
├── ProviderUnreachable  no connection to Amazon: the network, a proxy, a wrong region
├── SourceError          the place where mail is written could not do what was asked
│   ├── SourceUnavailable    worth waiting for
│   │   └── SourceBusy           locked, or it stumbled: it passes       exit 75
│   ├── SourceRefused        a wrong token, or not allowed          exit 2
│   └── SourceNotFound       no such page or database, or not shared  exit 2
└── StoreError
    ├── StoreUnavailable     worth waiting for
    │   └── HomeUnwritable       the disk is full, or the folder is gone: a run ends, and can be repeated
    ├── StoreMismatch        schema newer or older than this program, or a wrong key  exit 2
    ├── StoreRolledBack      the store forgot what this machine has sent
    ├── TransitionRefused    not in the table of states
    └── NotFound             no such mailout, message or subscriber  exit 2
"""

from __future__ import annotations

import errno
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class AbortCode(StrEnum):
    """Why a mailout stops before its first message leaves."""

    SUBJECT_REQUIRED = "subject_required"  # the page or file has no subject
    EMPTY_BODY = "empty_body"  # neither HTML nor text
    TEST_EMAILS_EMPTY = "test_emails_empty"  # a test run and nobody to send it to
    MAILOUT_ALREADY_SENT = "mailout_already_sent"  # a real mailout goes out once
    FOOTER_ENV_MISSING = "footer_env_missing"  # the footer's settings are not set
    MEDIA_UNAVAILABLE = "media_unavailable"  # a picture, a file or a synced block could not be had
    VARIABLE_MISSING = "variable_missing"  # a variable lacks a value for some recipients, or a brace
    INVALID_TEMPLATE = "INVALID_TEMPLATE"  # too large, or something in it that mail must not carry


class MailoutError(Exception):
    """Something went wrong."""

    exit_code: ClassVar[int] = 1
    code: str = "error"
    """For programs: what `--json` calls it."""

    def __init_subclass__(cls, code: str | None = None, exit_code: int | None = None) -> None:
        """Of a kind of error: what differs from the one it is a kind of."""
        cls.code = code or cls.code
        cls.exit_code = exit_code or cls.exit_code

    def __init__(
        self, message: str | None = None, *, remedy: str | None = None, for_writer: str | None = None
    ) -> None:
        """`for_writer`: all of it for a person who only writes, where that person can do something."""
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.remedy = remedy
        self.for_writer = for_writer
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}" if self.remedy else self.message


class SettingsError(MailoutError, code="settings_error", exit_code=2):
    """A setting is missing or wrong."""


class UsageError(MailoutError, code="usage_error", exit_code=2):
    """What was asked for cannot be done."""


class Abort(MailoutError):
    """The mailout was stopped before its first message."""

    def __init__(
        self, code: AbortCode, message: str, *, remedy: str | None = None, for_writer: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy, for_writer=for_writer)
        self.code: AbortCode = code

    def __str__(self) -> str:
        return f"{super().__str__()} ({self.code})"


class CheckSkipped(MailoutError, code="check_skipped"):
    """It may be well: we cannot look."""


class ProviderUnreachable(MailoutError, code="provider_unreachable"):
    """Amazon cannot be reached."""

    @classmethod
    def named(cls, service: str, why: str) -> ProviderUnreachable:
        remedy = "Check this machine's network and its proxy, then AWS_REGION."
        return cls(f"Amazon {service} cannot be reached: {why.rstrip('.')}.", remedy=remedy)


class SourceError(MailoutError, code="source_error"):
    """The place where mail is written could not do what was asked."""


class SourceUnavailable(SourceError, code="source_unavailable"):
    """The place where mail is written does not answer just now."""


class SourceBusy(SourceUnavailable, code="source_busy", exit_code=75):
    """The place where mail is written is locked, or does not answer for a moment."""


class SourceRefused(SourceError, code="source_refused", exit_code=2):
    """The place where mail is written does not let us in."""


class SourceNotFound(SourceError, code="source_not_found", exit_code=2):
    """There is no such page, or it is not shared with us."""


class StoreError(MailoutError, code="store_error"):
    """The store could not do what was asked."""


class StoreUnavailable(StoreError, code="store_unavailable"):
    """The store does not answer just now."""


class HomeUnwritable(StoreUnavailable, code="home_unwritable"):
    """MAILOUT_HOME cannot be written to."""

    @classmethod
    def because(cls, path: Path, error: OSError) -> HomeUnwritable:
        """In words, with what to do about it."""
        if error.errno in DISK_FULL:
            return cls.full(path)
        if isinstance(error, FileNotFoundError):
            return cls.gone(path)
        return cls(
            f"{path} cannot be written: {error.strerror or error}.",
            remedy="See that this user may write there.",
        )

    @classmethod
    def full(cls, path: Path) -> HomeUnwritable:
        return cls(
            f"The disk is full: {path} cannot be written.",
            remedy="Free some space, then do this again: it was not done. Letters go on by themselves.",
        )

    @classmethod
    def gone(cls, path: Path) -> HomeUnwritable:
        return cls(
            f"{path} was deleted or moved while mailout was at work: nothing more is sent.",
            remedy="Bring MAILOUT_HOME back as it was (an older copy does not know what was sent), then send"
            " again.",
        )


class StoreMismatch(StoreError, code="store_mismatch", exit_code=2):
    """The store's schema is not the one this program knows."""


class StoreDamaged(StoreError, code="store_damaged"):
    """What it holds cannot be read any more: writing into it makes it worse."""


class StoreRolledBack(StoreError, code="store_rolled_back"):
    """The store does not know attempts that this machine has made: it looks like a restored backup."""


class TransitionRefused(StoreError, code="transition_refused"):
    """A message cannot take that step."""


class NotFound(StoreError, code="not_found", exit_code=2):
    """There is no such thing in the store."""

    @classmethod
    def dead_letter(cls, id: str) -> NotFound:
        return cls(f"There is no dead letter {id}.", remedy="`mailout dead-letters list` shows them.")
