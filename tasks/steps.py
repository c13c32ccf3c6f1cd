"""The steps of one mailout: load it, render it, resolve its recipients, send, report."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from prefect import State, Task, get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import TaskRun
from prefect.runtime import task_run

from mailout.app.engine import Engine
from mailout.app.sending import goes_on
from mailout.base.clock import Clock
from mailout.base.errors import SourceUnavailable, StoreUnavailable
from mailout.insight.reporting.details import census_lines, census_table
from mailout.insight.reporting.phrases import mode
from mailout.insight.reporting.rendering import ledger_table, markdown_report
from mailout.kinds.articles import article_rows
from mailout.kinds.articles.order import ArticleOrder
from mailout.kinds.mailouts.reading import LoadedMailout
from mailout.kinds.mailouts.requests import answer
from mailout.letters.content import content_rows
from mailout.outbox.delivery.protocol import Claimed, Ledger, Result
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import Request, RequestKind
from tasks.artifacts import RunArtifact, show_markdown, show_table
from tasks.logs import hidden, with_engine

NAMED = {"test": "test of", "rehearsal": "rehearsal of", "real": "mailout"}
TIME_SLICE_SECONDS = 45.0
"""How long a mailout sends before it is asked whose turn it is."""
PROGRESS_SECONDS = 3.0
SLUG_LENGTH = 40


class LetterRef:
    """A mailout's id, and its subject as Prefect's pages may show it.

    Every step returns the letter it was given: from that Prefect knows that the next one depends on it.
    Not a dataclass, so that Prefect takes it as one thing.
    """

    def __init__(self, mailout: Mailout) -> None:
        self.id = mailout.id
        self.subject = hidden(mailout.subject)
        self.mode = mode(mailout)
        self.more_to_send = False

    def __str__(self) -> str:
        return self.subject if self.mode == "real" else f"{self.subject} ({self.mode})"

    def artifact_key(self, kind: str) -> str:
        """`report-the-garden-opens-1f3a9c20`. Prefect allows small letters, digits and dashes."""
        words = re.sub(r"[^a-z0-9]+", "-", self.subject.lower()).strip("-")[:SLUG_LENGTH].strip("-")
        return "-".join(filter(None, (kind, words, self.id[:8])))


def if_transient(task: Task[..., Any], run: TaskRun, state: State[Any]) -> bool:
    """What is worth another try: somebody was away. A letter that must not be sent stays refused."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, (SourceUnavailable, StoreUnavailable, OSError))


def if_store_is_away(task: Task[..., Any], run: TaskRun, state: State[Any]) -> bool:
    """Not for a file of a page that does not answer: its address is as old as what was read."""
    return isinstance(state.result(raise_on_failure=False), (StoreUnavailable, OSError))


REPEATABLE: Mapping[str, Any] = {
    "cache_policy": NO_CACHE,
    "retries": 3,
    "retry_delay_seconds": 5,
    "retry_condition_fn": if_transient,
}
"""A task that may run again: what it does twice is done once."""
RENDERS: Mapping[str, Any] = {**REPEATABLE, "retry_condition_fn": if_store_is_away}


# ── From a page or file, or from the queue ──


def _by_its_ref() -> str:
    return f"load mailout: {hidden(PurePath(task_run.parameters['ref']).name)}"


def _by_its_subject() -> str:
    return f"render content: {hidden(task_run.parameters['loaded'].subject)}"


@task(name="load mailout", task_run_name=_by_its_ref, **REPEATABLE)
@with_engine
def load_mailout(engine: Engine, ref: str, test: bool | None, asked_at: float | None = None) -> LoadedMailout:
    """Read the Notion page or the file. Safe to repeat: it writes nothing to the queue."""
    loaded = engine.intake.load(ref, test, asked_at)
    get_run_logger().info("“%s”", loaded.subject)
    return loaded


@task(name="render content", task_run_name=_by_its_subject, **RENDERS)
@with_engine
def render_content(engine: Engine, loaded: LoadedMailout) -> LetterRef:
    """Render and check it, and write it into the queue. Safe to repeat: the same id is the same mailout."""
    mailout = engine.intake.enqueue_loaded(loaded)
    letter = LetterRef(mailout)
    get_run_logger().info("%s “%s” is mailout %s", NAMED[letter.mode], mailout.subject, mailout.id)
    return letter


@task(name="load mailout", task_run_name="load mailout: {mailout_id}", **REPEATABLE)
@with_engine
def load_queued(engine: Engine, mailout_id: str) -> LetterRef:
    """Read a mailout that waits in the queue: its page or file was read when it was asked for."""
    letter = LetterRef(engine.store.mailout(mailout_id))
    get_run_logger().info("“%s”, from the queue", letter.subject)
    return letter


@task(name="render content", task_run_name="render content: {letter}", **REPEATABLE)
@with_engine
def use_rendered(engine: Engine, letter: LetterRef) -> LetterRef:
    """What it was rendered to when it came into the queue; later edits change nothing."""
    store = engine.store
    content_hash = store.mailout(letter.id).content_hash
    if content_hash is not None:
        content = content_rows.content(store, content_hash)
        get_run_logger().info("rendered before: %d bytes of HTML", len(content.html.encode()))
    return letter


# ── An article: its slices, and the variants that they make for an audience ──


@task(name="load slices", task_run_name="load slices: {order.article_key}", **REPEATABLE)
@with_engine
def load_slices(engine: Engine, order: ArticleOrder) -> int:
    """How many slices would be sent now; an error if there is none. A known batch has kept its own."""
    known = engine.intake.articles.known(order)
    if known is not None:
        return len(article_rows.article_batch(engine.store, known.id).slices)
    found = engine.intake.articles.live_slices(order.article_key)
    get_run_logger().info("%d slices of %s are published", len(found), order.article_key)
    return len(found)


@task(name="assemble variants", task_run_name="assemble variants: {order.article_key}", **REPEATABLE)
@with_engine
def assemble_variants(engine: Engine, order: ArticleOrder) -> LetterRef | None:
    """Take the census, render each variant, enqueue the batch. None: there is nobody to send to.

    Safe to repeat: the same batch is the same mailout.
    """
    mailout = answer(engine.intake, Request(order.to_ref(), RequestKind.ARTICLE))
    if mailout is None:
        return None
    census = article_rows.article_batch(engine.store, mailout.id).census
    summary = " ".join(census_lines(census))
    get_run_logger().info("%s", summary)
    rows = [{name: hidden(str(value)) for name, value in row.items()} for row in census_table(census)]
    show_table(f"census-{mailout.id}", rows, f"Census: {summary}")
    return LetterRef(mailout)


# ── Every mailout ──


@task(name="resolve recipients", task_run_name="resolve recipients: {letter}", **REPEATABLE)
@with_engine
def resolve_recipients(engine: Engine, letter: LetterRef) -> LetterRef:
    """Write the audience into the outbox. Safe to repeat: it goes on where it was and adds nobody twice."""
    mailout = engine.sending.freeze(letter.id)
    get_run_logger().info("%d recipients", mailout.ledger.recipients)
    return letter


class Progress:
    """The progress of one letter, as it is recorded. It moves every few seconds at most."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bar: RunArtifact | None = None
        self._next = 0.0

    def begin(self, letter: LetterRef) -> None:
        if self._bar is None:
            description = f"“{letter}”: how much of it has been sent"
            self._bar = RunArtifact("progress", letter.artifact_key("progress"), description)
            self._bar.show(0.0)

    def recorded(self, results: Sequence[tuple[Claimed, Result]], ledger: Ledger | None) -> None:
        now = self._clock.monotonic()
        if ledger is not None and now >= self._next:
            self._next = now + PROGRESS_SECONDS
            self.show(ledger)

    def show(self, ledger: Ledger) -> None:
        if self._bar is not None and ledger.recipients:
            self._bar.show(100 * ledger.done / ledger.recipients)


@task(name="send", task_run_name="send: {letter}", cache_policy=NO_CACHE, retries=0)
@with_engine
def send(
    engine: Engine, letter: LetterRef, progress: Progress, still_its_turn: Callable[[], bool]
) -> LetterRef:
    """Send until it is done, has to wait, or another mailout has its turn.

    Never retried: its retries are the outbox's own.
    """
    progress.begin(letter)
    letter.more_to_send = _send_time_slice(engine, letter.id, progress)
    while letter.more_to_send and still_its_turn():
        letter.more_to_send = _send_time_slice(engine, letter.id, progress)
    return letter


def _send_time_slice(engine: Engine, mailout_id: str, progress: Progress) -> bool:
    """Whether there is more to do."""
    logger = get_run_logger()
    report = engine.sending.send_for(mailout_id, TIME_SLICE_SECONDS, progress)
    mailout = engine.sending.conclude(mailout_id, report)
    ledger = mailout.ledger
    logger.info("%s: %d of %d sent, %d pending", report.ended, ledger.sent, ledger.recipients, ledger.pending)
    if mailout.defer_reason is not None:
        logger.warning("deferred: %s. %s", mailout.defer_reason, mailout.defer_note or "")
    return goes_on(report, mailout)


@task(
    name="report", task_run_name="report: {letter}", cache_policy=NO_CACHE, retries=3, retry_delay_seconds=5
)
@with_engine
def report(engine: Engine, letter: LetterRef, progress: Progress) -> LetterRef:
    """CSV, report page, and the run's artifacts. Safe to repeat: all of it is made from the store."""
    reports = engine.report(letter.id)
    summary = reports.summary.redacted(hidden)  # more people see Prefect's pages than our files
    show_table(
        letter.artifact_key("ledger"),
        ledger_table(summary),
        f"“{letter}”: what became of every recipient",
    )
    show_markdown(
        letter.artifact_key("report"),
        markdown_report(summary, engine.limits.timezone),
        f"“{letter}”: the report",
    )
    progress.show(summary.mailout.ledger)
    return letter
