"""The page that has everything, to the byte: a change in how mail looks is seen before readers see it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mailout.letters.content.notion import render
from tests.stubs.notion_letter import every_block
from tests.stubs.notion_pages import blocks

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("form", ["html", "txt"])
def test_every_block_looks_as_it_was_approved(form: str) -> None:
    """Look at the difference; if it is meant, UPDATE_GOLDEN=1 writes it down."""
    rendered = render(_page())
    written = (rendered.html_body if form == "html" else rendered.text_body) + "\n"
    approved = GOLDEN / f"every_block.{form}"
    if os.environ.get("UPDATE_GOLDEN"):
        approved.write_text(written, encoding="utf-8")
    assert written == approved.read_text(encoding="utf-8")


def test_two_renders_are_the_same_bytes() -> None:
    """Content is kept by its hash: a render that varies would look like a new mailout."""
    assert render(_page()) == render(_page())


def _page() -> list[Any]:
    return blocks(every_block(files="https://files.example.org"))
