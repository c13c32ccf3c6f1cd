"""Reports: files, artifacts, Notion."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from mailout.app.engine import Engine
from mailout.insight.reporting.rendering import ledger_table, markdown_report
from tasks.artifacts import show_markdown, show_table
from tasks.delivery import Progress
from tasks.letter import LetterRef
from tasks.logs import hidden, with_engine


@task(
    name="report",
    task_run_name="report: {letter}",
    cache_policy=NO_CACHE,
    retries=3,
    retry_delay_seconds=5,
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
