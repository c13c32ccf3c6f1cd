"""What every command begins with: the settings, the log, and the engine or the store that they make."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import typer

from cli.output import aside, note
from flows.orphans import is_up
from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.dotenv_file import DOTENV
from mailout.base.errors import UsageError
from mailout.base.logs import configure_logging
from mailout.base.settings import Settings, load_settings
from mailout.store import Store

NEUTRAL = ("aws_", "log_")
"""Set for other programs too: they do not say that mailout was set up here."""


def command_group(help: str) -> typer.Typer:
    """A command that has commands of its own."""
    return typer.Typer(
        help=help,
        callback=lambda: None,  # or typer would take a group of one for the command itself
        no_args_is_help=True,
        rich_markup_mode=None,
        add_completion=False,
    )


def open_engine(*, verbose: bool = False) -> Engine:
    return wiring.build(read_settings(logging.INFO if verbose else logging.WARNING))


@contextmanager
def open_store(settings: Settings | None = None) -> Iterator[Store]:
    """For a command that needs no engine."""
    store = wiring.open_store(settings or read_settings())
    try:
        yield store
    finally:
        store.close()


def read_settings(level: int = logging.WARNING, *, says_where: bool = True) -> Settings:
    """From the environment and `.env`. What looks like a mistake there is said, and stops nothing."""
    settings = load_settings()
    require_place(settings)
    configure_logging(settings, level)
    for warning in settings.warnings:
        note(f"mailout: {warning}")
    if says_where:
        say_where(settings)
    return settings


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
    if settings.log_format != "text":  # every line there is JSON
        return
    home = _short(settings.mailout_home)
    store = f"SQLite in {home}"
    if settings.supabase_url:
        store = f"Supabase {urlsplit(settings.supabase_url).hostname}, home {home}"
    by_ses = settings.mailout_transport == "ses"
    transport = "mail is sent through Amazon SES" if by_ses else "mail goes to a folder"
    up = "is" if is_up(settings.mailout_home / "up.lock") else "is not"
    aside(f"{store} · {transport} · mailout up {up} running")


def _short(path: Path) -> str:
    """As it would be typed from here, or from home."""
    path = Path(os.path.normpath(path.absolute()))
    for base, shown in ((Path.cwd(), ""), (Path.home(), "~/")):
        if path.is_relative_to(base) and path != base:
            return f"{shown}{path.relative_to(base)}"
    return str(path)
