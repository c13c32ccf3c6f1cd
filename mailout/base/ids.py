"""Ids made by hashing, so that a replay meets itself (the same bytes as `mailout_uuid` in SQL)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence


def uuid_of(*parts: str) -> str:
    """A UUID version 8 from the first 16 bytes of the SHA-256 of the parts, one a line."""
    digest = bytearray(hashlib.sha256("\n".join(parts).encode()).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def keyed_hash(key: bytes, text: str) -> str:
    """HMAC-SHA256: who has not the key can neither read the text from it nor try texts out."""
    return hmac.digest(key, text.encode(), "sha256").hex()


def mailout_id(ref: str) -> str:
    """A real mailout: of its page id, or of the Markdown file's `id` (else its name)."""
    return uuid_of("mailout", ref)


def test_run_id(ref: str, run: int) -> str:
    """A test run of the same mailout: every run is a mailout of its own and blocks nothing."""
    return uuid_of("mailout", ref, f"test {run}")


def rehearsal_id(ref: str, content_hash: str, run: int = 1) -> str:
    """The same mailout written to a folder: it never uses the real one up, and edited it is another one."""
    again = () if run == 1 else (str(run),)
    return uuid_of("mailout", ref, "rehearsal", content_hash, *again)


def article_id(campaign_tag: str, send_batch_id: str, rehearsed: str | None = None) -> str:
    """`rehearsed`: the hash of what is written to a folder. That never uses the real batch up."""
    mark = () if rehearsed is None else ("rehearsal", rehearsed)
    return uuid_of("article", campaign_tag, send_batch_id, *mark)


def message_id(mailout: str, email: str) -> str:
    """One mailout for one (normalised) address."""
    return uuid_of(mailout, email)


def transactional_id(company: str, key: str, *, rehearsal: bool = False) -> str:
    """`key` is the caller's idempotency key; one that was used for the folder is free for people."""
    return uuid_of("transactional", company, key, *(("rehearsal",) if rehearsal else ()))


def notification_id(
    source: str, dedupe_key: str, subscription: str, requeues: int, rehearsed: str | None = None
) -> str:
    """The message of a row in a producer's queue; two rows may ask for one. `rehearsed`: the hash of a
    content that is written to a folder."""
    mark = () if rehearsed is None else ("rehearsal", rehearsed)
    return uuid_of("notification", source, dedupe_key, subscription, str(requeues), *mark)


def sign_up_key(email: str, lists: Sequence[str], at: float) -> str:
    """Of a confirmation: the same address and lists within ten minutes are one ask."""
    return uuid_of("sign-up", email, *sorted(lists), str(int(at // 600)))


def welcome_id(list_key: str, email: str, *, rehearsal: bool = False) -> str:
    """A list's welcome letter to one reader, however often they join. As `read_welcomes` computes it."""
    return uuid_of("welcome", list_key, email, *(("rehearsal",) if rehearsal else ()))
