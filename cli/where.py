"""Where a command is at work: which store, which transport, and whether `mailout up` runs there."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from cli.output import aside
from flows.orphans import is_up
from mailout.base.dotenv_file import DOTENV
from mailout.base.errors import UsageError
from mailout.base.settings import Settings

NEUTRAL = ("aws_", "log_")
"""Set for other programs too: they do not say that mailout was set up here."""


def require_place(settings: Settings) -> None:
    """A folder in which nothing was set up gets no empty store: most likely it is the wrong folder."""
    chosen = [name for name in settings.model_fields_set if not name.startswith(NEUTRAL)]
    if chosen or DOTENV.exists() or settings.mailout_home.exists():
        return
    raise UsageError(
        f"There is no mailout in {Path.cwd()}: neither .env nor {settings.mailout_home}.",
        remedy="Go to the folder where they are, or begin here: mailout init",
    )


def say_where(settings: Settings) -> None:
    """One dim line on stderr, so that nobody sends from a place they did not mean."""
    if settings.log_format == "text":  # else every line there is JSON
        aside(" · ".join((_store(settings), _transport(settings), _up(settings.mailout_home))))


def _store(settings: Settings) -> str:
    if settings.supabase_url:
        return f"Supabase {urlsplit(settings.supabase_url).hostname}, home {_short(settings.mailout_home)}"
    return f"SQLite in {_short(settings.mailout_home)}"


def _transport(settings: Settings) -> str:
    return (
        "mail is sent through Amazon SES" if settings.mailout_transport == "ses" else "mail goes to a folder"
    )


def _up(home: Path) -> str:
    return "mailout up is running" if is_up(home / "up.lock") else "mailout up is not running"


def _short(path: Path) -> str:
    """As it would be typed from here, or from home."""
    path = Path(os.path.normpath(path.absolute()))
    for base, shown in ((Path.cwd(), ""), (Path.home(), "~/")):
        if path.is_relative_to(base) and path != base:
            return f"{shown}{path.relative_to(base)}"
    return str(path)
