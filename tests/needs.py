"""What some tests need beyond Python. Where it is missing they are skipped; in CI they fail."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first opens a page with a quarter of the work: it draws no window around it."""


def missing(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; CI runs every test")
    pytest.skip(reason)


def chromium() -> str:
    """Its command."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    return found or missing(f"no Chromium is here (Debian: apt-get install {CHROMIUM[0]})")
