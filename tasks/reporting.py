"""Telling people how it went."""

from __future__ import annotations

from uuid import UUID

from prefect import task
from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.cache_policies import NO_CACHE

from mailout import wiring
from mailout.reporting.markdown import ledger_table, markdown_report
from tasks.logs import hidden, redacted


@task(name="show progress", cache_policy=NO_CACHE)
@redacted
def show_progress(mailout_id: str) -> UUID:
    """The progress artifact that the sending moves."""
    mailout = wiring.engine().store.mailout(mailout_id)
    artifact = create_progress_artifact(
        progress=0.0, key=f"progress-{mailout_id}", description=hidden(f"Sending “{mailout.subject}”")
    )
    if not isinstance(artifact, UUID):
        raise TypeError(artifact)
    return artifact


@task(name="report", cache_policy=NO_CACHE, retries=3, retry_delay_seconds=5)
@redacted
def report(mailout_id: str, progress: UUID | None = None) -> str:
    """CSV, report page, and the run's artifacts. Safe to repeat: all of it is made from the store."""
    engine = wiring.engine()
    reports = engine.report(mailout_id)
    summary = reports.summary.redacted(hidden)  # more people see Prefect's pages than our files
    create_table_artifact(
        ledger_table(summary),
        key=f"ledger-{mailout_id}",
        description="The ledger: where every recipient stands",
    )
    create_markdown_artifact(
        markdown_report(summary, engine.limits.timezone),
        key=f"report-{mailout_id}",
        description=f"How “{summary.mailout.subject}” went",
    )
    ledger = summary.mailout.ledger
    if progress is not None and ledger.recipients:
        update_progress_artifact(progress, progress=100 * ledger.done / ledger.recipients)
    return str(reports.csv)
