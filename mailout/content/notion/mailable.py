"""What Notion hands over, without what no mail can carry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mailout.content.model import clean

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def mailable(written: str) -> str:
    """Without our own marks, control characters and halves of letters."""
    return _CONTROL.sub("", clean(written)).encode("utf-8", "replace").decode()


def mailable_data(value: Any) -> Any:
    """The same JSON, every text in it mailable: whatever is marked later was marked by us."""
    if isinstance(value, str):
        return mailable(value)
    if isinstance(value, Mapping):
        return {key: mailable_data(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [mailable_data(one) for one in value]
    return value
