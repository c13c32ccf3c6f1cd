"""What is kept of strangers, and until when."""

from __future__ import annotations

from mailout.kinds.sign_ups.port import CONFIRM_SECONDS, SignUps

ERASED_AT_ONCE = 1000
"""Rows in one transaction: others write meanwhile."""


def erase_unconfirmed(store: SignUps) -> int:
    """Sign-ups whose link works no more; how many. Repeatable."""
    before, erased = store.now() - CONFIRM_SECONDS, 0
    while part := store.erase_sign_ups(before, ERASED_AT_ONCE):
        erased += part
    return erased
