"""How long a server asks others to wait."""

from __future__ import annotations

import pytest

from mailout.base.retries import A_DAY, retry_after_seconds


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("nan", 0.0),
        ("inf", A_DAY),
        ("1e300", A_DAY),
        ("Sun, 15 Nov 2026 00:00:09 GMT", 9.0),
        ("Sun, 15 Nov 2025 00:00:09 GMT", 0.0),
        ("Sun, 99 Nov 2026 00:00:09 GMT", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, now=1_794_700_800.0) == seconds
