"""Reading what is to be sent, and rendering it."""

from __future__ import annotations

from pathlib import PurePath

from prefect import get_run_logger, task
from prefect.runtime import task_run

from mailout.app.engine import Engine
from mailout.kinds.mailouts.reading import LoadedMailout
from mailout.letters.content import content_rows
from tasks.letter import REPEATABLE, LetterRef
from tasks.logs import hidden, with_engine

NAMED = {"test": "test of", "rehearsal": "rehearsal of", "real": "mailout"}


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


@task(name="render content", task_run_name=_by_its_subject, **REPEATABLE)
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
