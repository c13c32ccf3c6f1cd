"""What a run is called in Prefect's list: people look for a letter by its subject."""

from __future__ import annotations

from uuid import UUID

from prefect.runtime import flow_run

from tasks.display import DISPLAY

NAME_LENGTH = 200


def name_run(name: str, mailout_id: str | None = None) -> None:
    """After the mailout that it sends, whose id becomes a tag: by it a retry of the run finds the mailout."""
    id = flow_run.id
    if not id:
        return
    shown = name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"
    tags = sorted({*flow_run.tags, *([mailout_id] if mailout_id else [])})
    DISPLAY.show(("name", id), lambda client: client.update_flow_run(UUID(str(id)), name=shown, tags=tags))


def first_name() -> str:
    """Until the subject is known: what was asked for. A run that is retried keeps the name that it has.

    Before the run has begun: the settings have not been read, and must not be.
    """
    if flow_run.run_count:
        return str(flow_run.name)
    parameters = flow_run.parameters
    return str(parameters.get("ref") or parameters.get("article_key"))
