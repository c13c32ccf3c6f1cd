"""`.env`: read letter by letter, and written so that everything else in it stays as it is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from dotenv.parser import parse_stream

from mailout.base.errors import DISK_FULL, SettingsError

DOTENV = Path(".env")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


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


def write_settings(path: Path, values: Mapping[str, str], *, heading: str = "") -> None:
    """A name that is there gets the new value in its place; the others are added at the end, under `heading`.

    Nobody else may read the file: it holds secrets. It is whole at any time, whatever is killed when.
    """
    try:
        if not values:
            return
        before = path.read_text(encoding="utf-8-sig") if path.exists() else ""
        text = _with(before, values, heading)
        draft = path.with_name(f"{path.name}.new")
        draft.unlink(missing_ok=True)
        try:
            with os.fdopen(
                os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
            ) as file:
                file.write(text)
            draft.replace(path.resolve())
        except (OSError, UnicodeEncodeError):
            draft.unlink(missing_ok=True)
            raise
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        full = getattr(error, "errno", None) in DISK_FULL
        raise SettingsError(
            f"{path} cannot be written: {reason}.",
            remedy="Free some space." if full else "Choose a folder that you may write to.",
        ) from error


def _with(text: str, values: Mapping[str, str], heading: str) -> str:
    added = []
    for name, value in values.items():
        line = f"{name}={quoted(value)}"
        there = re.compile(rf"^[ \t]*(?:export[ \t]+)?{name}[ \t]*=.*$", re.MULTILINE)
        if there.search(text):
            text = there.sub(line.replace("\\", "\\\\"), text)
        else:
            added.append(line)
    if not added:
        return text
    if text and not text.endswith("\n"):
        text += "\n"
    lines = [*([heading] if heading else []), *added]
    return text + ("\n" if text and heading else "") + "\n".join(lines) + "\n"


def quoted(value: str) -> str:
    """As `.env` is read again, letter by letter; line breaks become spaces."""
    value = " ".join(value.splitlines())
    if _PLAIN.fullmatch(value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
