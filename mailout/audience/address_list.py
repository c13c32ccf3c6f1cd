"""`TEST_EMAILS`: the few addresses that a test run goes to."""

from __future__ import annotations

import re
from typing import NamedTuple

from mailout.audience.addresses import TRIM, Dropped, normalise


class AddressList(NamedTuple):
    """Who receives a test run, sorted, and what was dropped, for the log."""

    addresses: tuple[str, ...]
    rejected: tuple[tuple[str, Dropped], ...]  # as written, and why


def parse_address_list(text: str) -> AddressList:
    """Split on comma, semicolon and white space; the valid ones once each, whatever their case."""
    kept: set[str] = set()
    rejected: list[tuple[str, Dropped]] = []
    for written in re.split(rf"[,;\s{TRIM}]+", text):
        match normalise(written):
            case Dropped.EMPTY:
                continue
            case Dropped() as reason:
                rejected.append((written, reason))
            case address:
                kept.add(address)
    return AddressList(tuple(sorted(kept)), tuple(rejected))
