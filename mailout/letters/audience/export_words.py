"""The words of other products' exports, read from `export_words.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

Words = tuple[str, ...]

_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _table(name: str) -> Mapping[str, Words]:
    return {key: tuple(" ".join(joined.split()).split(", ")) for key, joined in _DATA[name].items()}


HEADERS = _table("headers")
HEADERS_IF_CELLS_AGREE = _table("headers_if_cells_agree")
PARTS_OF_HEADERS = _table("parts_of_headers")
STATUS_WORDS = _table("status_words")
ANSWERS = _table("answers")
FILE_NAMES = _table("file_names")
