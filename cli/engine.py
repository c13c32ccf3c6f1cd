"""What every command begins with: the settings, the log, and mostly the engine that they make."""

from __future__ import annotations

import logging

from cli.output import note
from cli.where import require_place, say_where
from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.logs import configure_logging
from mailout.base.settings import Settings, load_settings


def open_engine(*, verbose: bool = False) -> Engine:
    return wiring.build(read_settings(logging.INFO if verbose else logging.WARNING))


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
