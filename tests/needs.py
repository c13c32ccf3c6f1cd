"""What some tests need beyond Python. Where it is missing they are skipped; in CI they fail."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; CI runs every test")
    pytest.skip(reason)
