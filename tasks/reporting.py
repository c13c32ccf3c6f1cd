"""Reports: files, artifacts, Notion."""

from __future__ import annotations

from prefect import task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE

from mailout.app import wiring
from mailout.insight.reporting.rendering import ledger_table, markdown_report
from tasks.delivery import Progress
from tasks.letter import Letter
from tasks.logs import hidden, redacted


@task(
    name="report",
    task_run_name="report: {letter}",
    cache_policy=NO_CACHE,
    retries=3,
    retry_delay_seconds=5,
)
@redacted
def report(letter: Letter, progress: Progress) -> Letter:
    """CSV, report page, and the run's artifacts. Safe to repeat: all of it is made from the store."""
    engine = wiring.engine()
    reports = engine.report(letter.id)
    summary = reports.summary.redacted(hidden)  # more people see Prefect's pages than our files
    create_table_artifact(
        ledger_table(summary),
        key=letter.artifact_key("ledger"),
        description=f"“{letter}”: what became of every recipient",
    )
    create_markdown_artifact(
        markdown_report(summary, engine.limits.timezone),
        key=letter.artifact_key("report"),
        description=f"“{letter}”: the report",
    )
    progress.show(summary.mailout.ledger)
    return letter
