"""The `folder` transport, the default: a mail becomes an `.eml` file that any mail program opens."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from pathlib import Path

from mailout.base.clock import Clock
from mailout.outbox.delivery.mime import Envelope
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind

REMEDIES = {
    errno.ENOSPC: "Free some space: it goes on by itself, or send again.",
    errno.EDQUOT: "Free some space: it goes on by itself, or send again.",
    errno.EROFS: "Choose a MAILOUT_HOME that can be written to.",
    errno.EACCES: "Choose a MAILOUT_HOME that can be written to.",
    errno.EPERM: "Choose a MAILOUT_HOME on a disk that knows hard links.",
    errno.ENOTSUP: "Choose a MAILOUT_HOME on a disk that knows hard links.",
}
ENVELOPES_KEPT = 64
"""An article has a few dozen variants in turn; a mailout has one content."""


class FolderTransport:
    """Each accepted mail is a new file; none is ever overwritten, so a mail sent twice would show as two.

    Written to a temporary file and then linked to its name: a half-written mail never counts as sent. Not
    fsynced: the folder is for trying out, the store is the truth; a power cut may cost the last files.
    """

    name = "folder"
    scope = "folder"
    max_batch = 1

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._envelope = lru_cache(ENVELOPES_KEPT)(Envelope)
        self._made: set[Path] = set()

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        return [self._accept(mail) for mail in mails]

    def allowance(self) -> None:
        return None

    def close(self) -> None:
        self._envelope.cache_clear()

    def _accept(self, mail: Mail) -> Outcome:
        try:
            message = self._envelope(mail.content).splice(mail, self._clock.now())
        except KeyError as missing:
            return Outcome(
                OutcomeKind.INVALID,
                code="INVALID_TEMPLATE",
                category="VALIDATION_ERROR",
                message=f"The content asks for {missing}, and this message has no value for it.",
            )
        try:
            self._write(mail, message)
        except OSError as error:
            return self._stop(error)
        return Outcome(OutcomeKind.SENT, provider_message_id=f"folder-{mail.attempt.id}-{mail.attempt.epoch}")

    def _write(self, mail: Mail, message: bytes) -> None:
        folder = self._directory / safe_name(mail.mailout_id or "single")
        if folder not in self._made:
            folder.mkdir(parents=True, exist_ok=True)
            self._made.add(folder)
        stem = f"{safe_name(mail.to)}--{safe_name(mail.attempt.id[:8])}"
        descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(message)
            _link_to_new(Path(temporary), folder, stem)
        finally:
            # The mail is in, or surely is not; what becomes of the leftover changes neither.
            with contextlib.suppress(OSError):
                Path(temporary).unlink()

    def _stop(self, error: OSError) -> Outcome:
        self._made.clear()
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = REMEDIES.get(error.errno or 0, "Check the folder, then send again.")
        return Outcome(
            OutcomeKind.STOP,
            code="FOLDER_FULL" if full else "FOLDER_UNWRITABLE",
            category="CONFIGURATION_ERROR",
            message=f"{self._directory} took no mail: {error.strerror or error}. {remedy}",
            original_code=errno.errorcode.get(error.errno or 0),
        )


def _link_to_new(temporary: Path, folder: Path, stem: str) -> None:
    """The first free name: `stem.eml`, `stem.2.eml`, … A link fails where a rename would overwrite."""
    for number in count(1):
        name = f"{stem}.eml" if number == 1 else f"{stem}.{number}.eml"
        try:
            os.link(temporary, folder / name)
        except FileExistsError:
            continue
        return


def mails_to(directory: Path, email: str) -> list[Path]:
    """The files of the mails to an address: they are named after it."""
    return sorted(directory.glob(f"*/{safe_name(email)}--*.eml"))


def safe_name(text: str) -> str:
    """Legible and safe on every file system; the message's id beside it tells equal ones apart."""
    return re.sub(r"[^A-Za-z0-9@._+-]", "_", text)[:120].lstrip(".") or "_"
