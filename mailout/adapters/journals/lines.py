"""The lines of a journal: a checksum before each, so that a line which was cut or damaged is known to be.

<crc32> journal 2 <boot id> <device>:<inode>      the header
<crc32> call <id> <epoch> [<id> <epoch> …]        before a transport call: all of its messages
<crc32> done <id> <epoch> <provider's id>         after it: accepted (the id percent-encoded)
<crc32> void <id> <epoch>                         after it: surely not accepted
<crc32> closed <step> answered                    all of it is in the store, which had answered that step
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from os import stat_result
from urllib.parse import quote, unquote

from mailout.outbox.delivery.port import DeadJournal
from mailout.outbox.delivery.protocol import Attempt

GROWTH_BYTES = 64 * 1024
"""A journal grows by so much at a time: a full disk is met there, and not in the middle of a line."""
VERSION = "2"
_LINE = re.compile(
    r"journal \S+ \S+ \S+|call( \S+ \d{1,9})+|done \S+ \d{1,9} \S*|void \S+ \d{1,9}"
    r"|closed \d{1,9}( answered)?",
    re.ASCII,
)


def header(boot_id: str, file: stat_result) -> bytes:
    """Which start of the machine it was written in, and which file it is: a copy may lack what came later."""
    return _line("journal", VERSION, boot_id or "-", f"{file.st_dev}:{file.st_ino}")


def call(attempts: Sequence[Attempt]) -> bytes:
    """One line for one call, however many messages it carries: it is there, or nothing of it is."""
    return _line("call", *(f"{attempt.id} {attempt.epoch}" for attempt in attempts))


def answered(accepted: Mapping[Attempt, str], void: Sequence[Attempt]) -> bytes:
    done = (
        _line("done", a.id, str(a.epoch), quote(message_id, safe="", errors="replace"))
        for a, message_id in accepted.items()
    )
    return b"".join([*done, *(_line("void", a.id, str(a.epoch)) for a in void)])


def closed(answered_step: int) -> bytes:
    return _line("closed", str(answered_step), "answered")


def _line(*words: str) -> bytes:
    text = " ".join(words).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read(session: str, data: bytes, boot_id: str, file: stat_result) -> DeadJournal:
    """What a dead session's journal tells, and whether that is all there was."""
    called: set[Attempt] = set()
    accepted: dict[Attempt, str] = {}
    void: set[Attempt] = set()
    end = None
    written = data.rstrip(b"\0")  # what was only set aside
    *lines, cut = written.split(b"\n")
    incomplete = _why_incomplete(lines[0] if lines else b"", data, boot_id, file)
    if cut:
        incomplete = incomplete or "its last line is cut"
    for number, line in enumerate(lines, start=1):
        words = _words(line)
        if words is None:
            incomplete = incomplete or f"its line {number} is damaged"
        elif words[0] == "closed":
            end = int(words[1]) if words[2:] else 0  # older ones name a step that the store may not have had
            break  # what lies behind is left over from before
        elif words[0] == "call":
            called.update(_attempts(words[1:]))
        elif words[0] == "done":
            accepted[Attempt(words[1], int(words[2]))] = unquote(words[3])
        elif words[0] == "void":
            void.update(_attempts(words[1:]))
    return DeadJournal(session, frozenset(called), accepted, frozenset(void), end, incomplete)


def _why_incomplete(first: bytes, data: bytes, boot_id: str, file: stat_result) -> str | None:
    """Lines are not synced: they outlive their process, and neither the power nor being copied."""
    words = _words(first) or [""]
    if words[:2] != ["journal", VERSION]:
        return "its first line is not one of this version's, or damaged"
    if words[2] != boot_id or not boot_id:
        return "the machine was restarted since it was written"
    if words[3] != f"{file.st_dev}:{file.st_ino}":
        return "it is a copy"
    if len(data) % GROWTH_BYTES:
        return "its end was cut off"
    return None


def _words(line: bytes) -> list[str] | None:
    """None: nothing that a journal says, or not as it was written. Version 1 had no checksums (nor a header:
    it is never complete)."""
    checksum, _, rest = line.partition(b" ")
    text = (rest if checksum == b"%08x" % zlib.crc32(rest) else line).decode("utf-8", "replace")
    return text.split(" ") if _LINE.fullmatch(text) else None


def _attempts(words: Sequence[str]) -> Iterator[Attempt]:
    for id, epoch in zip(words[::2], words[1::2], strict=True):
        yield Attempt(id, int(epoch))
