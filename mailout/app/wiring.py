"""Chooses the parts: in the core only it, the other wiring modules and `examination` know the adapters."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from mailout.adapters.folder import FolderTransport, mails_to
from mailout.adapters.journals.files import FileJournals
from mailout.adapters.markdown_file import MarkdownFiles
from mailout.adapters.media_folder import MediaFolder
from mailout.adapters.sqlite import SqliteStore
from mailout.app.engine import Engine
from mailout.app.sending import Sending
from mailout.base.clock import Clock, SystemClock
from mailout.base.errors import SettingsError, StoreRolledBack, UsageError
from mailout.base.private_files import keep_private, make_home
from mailout.base.settings import Settings, load_settings
from mailout.insight.alerts.sender import AlertSender
from mailout.insight.history import history_rows
from mailout.insight.metrics.counted import counted
from mailout.insight.page_status import report_rows
from mailout.insight.page_status.updates import PageReports
from mailout.insight.reporting.reports import Reporting
from mailout.insight.retention.archiving import Archiving
from mailout.kinds.articles import article_rows
from mailout.kinds.mailouts.mailouts import MailoutIntake
from mailout.kinds.mailouts.readiness import EmailsForTests
from mailout.letters.content.notion.page import NotionPage
from mailout.letters.content.port import MediaStore, Source
from mailout.letters.content.refs import names_a_file, page_id_of
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.port import REHEARSING, Journals, Transport
from mailout.outbox.feedback.suppression import SuppressionList
from mailout.outbox.queue.deferrals import Deferrals
from mailout.outbox.queue.limits import Limits
from mailout.outbox.queue.snapshot import QueueForecast
from mailout.readers.welcomes import Welcomes
from mailout.store import Store

if TYPE_CHECKING:
    from mailout.adapters.notion import NotionDatabases, NotionPages
    from mailout.adapters.sns_certificates import SnsCertificates
    from mailout.adapters.sns_topics import SnsTopics
    from mailout.adapters.sqs import SqsQueue
    from mailout.insight.retention.archive_file import ArchiveFolder

SQLITE_JOURNALS = "sqlite"
"""The folder of the journals for the SQLite file; the others are named after Supabase's host."""


def build(
    settings: Settings,
    clock: Clock | None = None,
    *,
    store: Store | None = None,
    transport: Transport | None = None,
    journals: Journals | None = None,
    source_of: Callable[[str], Source] | None = None,
    worker: str | None = None,
    inline: bool = False,
) -> Engine:
    """Everything that sends, from the settings; a part that is handed in takes the place of its own."""
    clock = clock or SystemClock()
    home = make_home(settings.mailout_home)
    store = store or open_store(settings, clock)
    transport = transport or make_transport(settings, clock)
    notion = notion_pages(settings, clock, store=store)
    dashboard = settings.public_url if settings.admin_password else None
    limits, test_emails = limits_of(settings), EmailsForTests(settings)
    pages = PageReports(store, notion, clock, transport.name, dashboard, limits.timezone)
    rehearses = transport.name == REHEARSING
    forecast = queue_forecast(settings, store, transport)
    read_from = source_of or sources(notion, clock)
    intake = MailoutIntake(
        settings, store, pages, media_store(settings), read_from, test_emails, rehearses=rehearses
    )
    sending = Sending(
        settings=settings,
        store=store,
        transport=transport,
        journals=journals or journals_of(settings, store),
        clock=clock,
        limits=limits,
        worker=worker or f"{socket.gethostname()}-{os.getpid()}",
        pages=pages,
        queue_forecast=forecast,
        deferrals=Deferrals(store, limits, settings),
        test_emails=test_emails,
        render_again=intake.render_again,
        csv_folder=home / "reports",
        inline=inline,
    )
    reporting = Reporting(
        *(store, pages, forecast, home / "reports", limits.timezone, transport.name),
        census=lambda id: article_rows.article_batch(store, id).census,
    )
    alert_sender = AlertSender(store, transport, settings, limits.timezone)
    welcomes = Welcomes(store, intake.letters.single, rehearses)
    return Engine(
        *(settings, store, clock, limits, pages, forecast),
        *(intake, sending, reporting, alert_sender, welcomes),
    )


def open_store(settings: Settings, clock: Clock | None = None) -> Store:
    """Where everything is kept: Supabase if it is set, else the SQLite file in `MAILOUT_HOME`."""
    clock = clock or SystemClock()
    if settings.supabase_url and settings.supabase_service_role_key:
        from mailout.adapters.supabase import SupabaseStore  # a second to import: only for whoever uses it

        store = SupabaseStore.connect(
            settings.supabase_url, settings.supabase_service_role_key.get_secret_value()
        )
        store.check()
        return counted(store, clock)
    return counted(SqliteStore(make_home(settings.mailout_home) / "mailout.db", clock), clock)


def journals_of(settings: Settings, store: Store) -> FileJournals:
    """Those of this machine's senders, a folder for each store: another one would not know their sessions."""
    folder = make_home(settings.mailout_home) / "journal"
    if not settings.supabase_url:
        return FileJournals(folder / SQLITE_JOURNALS)
    return FileJournals(partial(_journal_folders, folder, urlsplit(settings.supabase_url).netloc, store))


def _journal_folders(folder: Path, host: str, store: Store) -> Sequence[Path]:
    """The store says which: a backup that is restored under another address is still compared with them."""
    if (name := history_rows.journal_folder(store)) is None:
        history_rows.keep_journal_folder(store, _first_folder(folder, host, store))
        name = history_rows.journal_folder(store) or host
    return list(dict.fromkeys([folder / Path(name).name, folder / host]))


def _first_folder(folder: Path, host: str, store: Store) -> str:
    """Of a store that does not say: its host's. If there is none, and the store was sent from, it may be an
    old backup of another's."""
    others = {one.name: FileJournals(one).look() for one in folder.glob("*") if one.name != SQLITE_JOURNALS}
    others = {name: journals for name, journals in others.items() if journals}
    if (folder / host).exists() or not others or not store.select(outbox_rows.SESSIONS, limit=1):
        return host
    for name, journals in others.items():
        if any(outbox_rows.sender_session(store, journal.session) for journal in journals):
            return name
    raise StoreRolledBack(
        f"{host} may be a backup of {' or '.join(others)}, for which this machine has sent.",
        remedy="Nothing is sent, so that nobody gets a letter twice. If it is a backup, docs/surviving.md"
        f" says what to do first. Then, or if it is another project: mkdir '{folder / host}'",
    )


def limits_of(settings: Settings) -> Limits:
    return Limits(
        timezone=ZoneInfo(settings.send_timezone),
        per_hour=settings.limit_per_hour,
        per_day=settings.limit_per_day,
        window=settings.send_window,
        days=settings.send_days,
        warmup=settings.warmup,
    )


def queue_forecast(settings: Settings, store: Store, transport: Transport | None = None) -> QueueForecast:
    """How the queue will go on, also for whoever does not send and has no transport."""
    rehearses = (transport.name if transport else settings.mailout_transport) == REHEARSING
    scope = transport.scope if transport else _scope(settings)
    rate = settings.send_rate(rehearses=rehearses)
    return QueueForecast(
        store,
        limits_of(settings),
        rate=rate,
        scope=scope,
        rehearses=rehearses,
        lease=settings.lock_seconds,
    )


def _scope(settings: Settings) -> str:
    """As the transport's own, without making one."""
    if settings.mailout_transport == "ses":
        from mailout.adapters.aws import AwsAccess
        from mailout.adapters.ses import scope_of

        return scope_of(AwsAccess.of(settings).region_name)
    return FolderTransport.scope


def make_transport(settings: Settings, clock: Clock) -> Transport:
    """Nothing leaves the machine unless `MAILOUT_TRANSPORT=ses`."""
    if settings.mailout_transport == "ses":
        # boto3 takes a quarter of a second to import: only for whoever uses it.
        from mailout.adapters.ses import SesConfig, SesTransport

        return SesTransport(SesConfig.of(settings))
    return FolderTransport(settings.mailout_home / "outbox", clock)


def store_copies(settings: Settings) -> list[Path]:
    """SQLite's file as it was before each upgrade."""
    return sorted(settings.mailout_home.absolute().glob("mailout.db.v*"))


def mail_files(settings: Settings, email: str) -> list[Path]:
    """What the folder transport has written to an address."""
    return mails_to(settings.mailout_home / "outbox", email)


def media_store(settings: Settings) -> MediaStore:
    """A bucket, or the folder that the gateway serves."""
    base = settings.media_base_url
    if settings.media_bucket:
        from mailout.adapters.aws import AwsAccess
        from mailout.adapters.media_s3 import MediaBucket

        aws, endpoint = AwsAccess.of(settings), settings.aws_endpoint_url_s3
        return MediaBucket(settings.media_bucket, aws, endpoint_url=endpoint, media_base_url=base)
    if settings.media_supabase_bucket:
        from mailout.adapters.media_supabase import MediaSupabase

        url, key = settings.supabase_url, settings.supabase_service_role_key
        if not (url and key):
            raise SettingsError(
                "MEDIA_SUPABASE_BUCKET: needs SUPABASE_URL and SUPABASE_SERVICE_ROLE_KEY.",
                remedy="Set both, or remove it.",
            )
        bucket = settings.media_supabase_bucket
        return MediaSupabase(url, key.get_secret_value(), bucket, media_base_url=base)
    return MediaFolder(
        make_home(settings.mailout_home) / "media", media_base_url=base, public_url=settings.public_url
    )


def sources(notion: NotionPages | None, clock: Clock) -> Callable[[str], Source]:
    """Where a ref is read: a Notion page, or a Markdown file."""

    def fetch(url: str) -> bytes:
        from mailout.adapters.notion.downloads import download

        return download(url, clock=clock)

    def source_of(ref: str) -> Source:
        if page_id_of(ref):
            if notion is None:
                raise SettingsError(
                    "NOTION_TOKEN: is missing, and this is a Notion page.",
                    remedy="Make an integration in Notion, share the page with it, and set its token.",
                )
            return notion
        if names_a_file(ref):
            return MarkdownFiles(fetch)
        raise UsageError(
            f"{ref} is neither a Notion page nor a Markdown file.",
            remedy="Give a page's id or address, or the path of a file that is there.",
        )

    return source_of


def notion_pages(
    settings: Settings, clock: Clock, *, seconds: float | None = None, store: Store | None = None
) -> NotionPages | None:
    """Where mailouts are written, and where it is shown what became of them; None: nobody gave us a token.
    `seconds`: for somebody who waits, one try of at most so long."""
    if settings.notion_token is None:
        return None
    from mailout.adapters.notion import NotionConfig, NotionPages

    config = NotionConfig.of(settings)
    return NotionPages(replace(config, timeout=seconds, attempts=1) if seconds else config, clock, store)


def notion_databases(settings: Settings) -> NotionDatabases:
    """Makes the databases to write in."""
    from mailout.adapters.notion import NotionConfig, NotionDatabases

    return NotionDatabases(NotionConfig.of(settings), SystemClock())


def page_lookup(settings: Settings, clock: Clock | None = None) -> Callable[[str], NotionPage] | None:
    """Reads one page, for somebody who waits: one try, a few seconds. SourceNotFound: it is not there."""
    if settings.notion_token is None:
        return None
    from mailout.adapters.notion import NotionConfig, NotionSource

    config = replace(NotionConfig.of(settings), timeout=5.0, attempts=1)
    return NotionSource(config, clock or SystemClock()).load_page


# ── Retention ────────────────────────────────────────────────────────────────────────────────────


def archive_folder(settings: Settings, out: Path | None = None) -> ArchiveFolder:
    """`MAILOUT_HOME/archive`, or another folder."""
    from mailout.insight.retention.archive_file import ArchiveFolder  # polars takes long to import

    return ArchiveFolder(out or make_home(settings.mailout_home) / "archive")


def archiving(engine: Engine, out: Path | None = None) -> Archiving:
    return Archiving(
        engine.store,
        archive_folder(engine.settings, out),
        report=engine.reporting.keep,
        # Without Notion there is nothing to update.
        waits_for_page=lambda: set(report_rows.due_reports(engine.store) if engine.pages.reporter else ()),
    )


# ── What comes back ──────────────────────────────────────────────────────────────────────────────


def sns_certificates(settings: Settings) -> SnsCertificates:
    from mailout.adapters.sns_certificates import SnsCertificates

    return SnsCertificates(make_home(settings.mailout_home) / "certs", SystemClock())


def sns_topics(settings: Settings) -> SnsTopics:
    """A topic is spoken to in its own region; the client is made when one has to be."""
    from mailout.adapters.aws import AwsAccess
    from mailout.adapters.sns_topics import SnsTopics

    access, endpoint = AwsAccess.of(settings), settings.aws_endpoint_url_sns
    return SnsTopics(lambda region: access.client("sns", region=region, endpoint_url=endpoint))


def event_queue(settings: Settings) -> SqsQueue | None:
    """The SQS queue, if there is one."""
    if settings.sqs_queue_url is None:
        return None
    from mailout.adapters.aws import AwsAccess
    from mailout.adapters.sqs import SqsQueue

    client = AwsAccess.of(settings).client("sqs", endpoint_url=settings.aws_endpoint_url_sqs)
    return SqsQueue(client, settings.sqs_queue_url)


def suppression_list(settings: Settings) -> SuppressionList:
    from mailout.adapters.aws import AwsAccess
    from mailout.adapters.ses.suppression import SesSuppression

    client = AwsAccess.of(settings).client("sesv2", endpoint_url=settings.aws_endpoint_url_sesv2)
    return SesSuppression(client, SystemClock())


# ── The engine of this process ───────────────────────────────────────────────────────────────────

_engine: Engine | None = None


def engine() -> Engine:
    """The process's own engine, built on first use from the environment: what Prefect's tasks work with."""
    global _engine
    if _engine is None:
        keep_private()  # a worker that Prefect itself has started does not
        _engine = build(load_settings())
    return _engine


def use(other: Engine | None) -> None:
    """Let this process work with another engine (the demo's, a test's)."""
    global _engine
    _engine = other
