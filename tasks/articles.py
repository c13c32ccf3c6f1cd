"""An article's first steps: its slices, and the variants that they make for an audience."""

from __future__ import annotations

from prefect import get_run_logger, task

from mailout.app.engine import Engine
from mailout.insight.reporting.details import census_lines, census_table
from mailout.kinds.articles import article_rows
from mailout.kinds.articles.order import ArticleOrder
from mailout.kinds.mailouts.requests import answer
from mailout.outbox.queue.port import Request, RequestKind
from tasks.artifacts import show_table
from tasks.letter import REPEATABLE, LetterRef
from tasks.logs import hidden, with_engine


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
