"""What a run is called in Prefect's list: people look for a letter by its subject."""

from __future__ import annotations

import logging
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectException
from prefect.runtime import flow_run

log = logging.getLogger("mailout.flows")

LONGEST = 200


def name_run(name: str) -> None:
    """After the mailout that it sends. Nothing depends on it."""
    if not flow_run.id:
        return
    try:
        with get_client(sync_client=True) as client:
            client.update_flow_run(
                UUID(str(flow_run.id)), name=name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
            )
    except (httpx.HTTPError, PrefectException) as error:
        log.info("the run keeps its name: %s", error)
