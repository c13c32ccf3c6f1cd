"""Chooses the parts: the only module of the core that knows the adapters."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from mailout.adapters.folder import FolderTransport
from mailout.adapters.journals import FileJournals
from mailout.adapters.markdown_file import MarkdownFiles
from mailout.adapters.media_folder import MediaFolder
from mailout.adapters.sqlite import SqliteStore
from mailout.clock import SystemClock
from mailout.delivery.protocol import Timing
from mailout.engine import Engine, Source
from mailout.errors import SettingsError
from mailout.ports import Clock, Store, Transport
from mailout.queue.limits import Limits
from mailout.settings import Settings, load_settings


def build(settings: Settings, clock: Clock | None = None) -> Engine:
    """Everything that sends, from the settings alone."""
    clock = clock or SystemClock()
    home = _home(settings)
    store = open_store(settings, clock)
    return Engine(
        settings=settings,
        store=store,
        transport=_transport(settings, clock),
        journals=FileJournals(home / "journal" / _place(settings)),
        media=MediaFolder(
            home / "media", media_base_url=settings.media_base_url, public_url=settings.public_url
        ),
        source_of=_source_of,
        clock=clock,
        limits=limits_of(settings),
        worker=f"{socket.gethostname()}-{os.getpid()}",
    )


def open_store(settings: Settings, clock: Clock | None = None) -> Store:
    """Where everything is kept: Supabase if it is set, else the SQLite file in `MAILOUT_HOME`."""
    if settings.supabase_url and settings.supabase_service_role_key:
        from mailout.adapters.supabase import SupabaseStore  # a second to import: only for whoever uses it

        store = SupabaseStore.connect(
            settings.supabase_url, settings.supabase_service_role_key.get_secret_value()
        )
        store.check()
        return store
    return SqliteStore(_home(settings) / "mailout.db", clock or SystemClock())


def _place(settings: Settings) -> str:
    """Which store the journals speak of: another one would not know their sessions."""
    return urlsplit(settings.supabase_url).netloc if settings.supabase_url else "sqlite"


def limits_of(settings: Settings) -> Limits:
    return Limits(
        timezone=ZoneInfo(settings.send_timezone),
        per_hour=settings.limit_per_hour,
        per_day=settings.limit_per_day,
        window=settings.send_window,
        days=settings.send_days,
        warmup=settings.warmup,
    )


def _transport(settings: Settings, clock: Clock) -> Transport:
    """Nothing leaves the machine unless `MAILOUT_TRANSPORT=ses`."""
    if settings.mailout_transport == "ses":
        # boto3 takes a quarter of a second to import: only for whoever uses it.
        from mailout.adapters.aws import AwsAccess
        from mailout.adapters.ses import SesConfig, SesMode, SesTransport

        return SesTransport(
            SesConfig(
                from_email=settings.from_email or "",
                mode=SesMode(settings.ses_mode),
                configuration_set=settings.ses_configuration_set,
                aws=AwsAccess.of(settings),
                endpoint_url=settings.aws_endpoint_url_sesv2,
                concurrency=settings.send_concurrency,
                call_limit=Timing.of(settings.lock_seconds).call_limit,
            )
        )
    return FolderTransport(settings.mailout_home / "outbox", clock)


def _source_of(ref: str) -> Source:
    return MarkdownFiles()


def _home(settings: Settings) -> Path:
    home = settings.mailout_home.absolute()
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"MAILOUT_HOME: {home} cannot be made: {error.strerror}.",
            remedy="Set it to a folder that you may write to.",
        ) from error
    return home


# ── The engine of this process ───────────────────────────────────────────────────────────────────

_engine: Engine | None = None


def engine() -> Engine:
    """The process's own engine, built on first use from the environment: what Prefect's tasks work with."""
    global _engine
    if _engine is None:
        _engine = build(load_settings())
    return _engine


def use(other: Engine | None) -> None:
    """Let this process work with another engine (the demo's, a test's)."""
    global _engine
    _engine = other
