"""`.env`, read letter by letter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dotenv.parser import parse_stream

from mailout.base.errors import SettingsError

DOTENV = Path(".env")


def dotenv() -> Mapping[str, str]:
    """All that `.env` says, for what is not a setting of ours."""
    return read_file(DOTENV)[0]


def read_file(path: Path) -> tuple[dict[str, str], list[str]]:
    """What a `.env` file says, letter by letter: `${…}` is not filled in, since a password may contain it."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            bindings = list(parse_stream(file))
    except FileNotFoundError:
        if path == DOTENV:
            return {}, []
        raise SettingsError(f"There is no file {path}.", remedy="Check the name and the folder.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}.", remedy="It has to be a UTF-8 file.") from None
    unread = [
        f"{path}, line {b.original.line}: is not NAME=value and was not read." for b in bindings if b.error
    ]
    return {b.key: b.value for b in bindings if b.key and b.value is not None}, unread
