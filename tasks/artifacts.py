"""Prefect's artifacts, shown by the display: an error in one is no error of the mailout."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, ArtifactFilterKey
from prefect.runtime import flow_run, task_run

from tasks.display import DISPLAY


def show_table(key: str, rows: Sequence[dict[str, Any]], description: str) -> None:
    RunArtifact("table", key, description).show(json.dumps(rows, default=str))


def show_markdown(key: str, text: str, description: str) -> None:
    RunArtifact("markdown", key, description).show(text)


class RunArtifact:
    """One artifact of the current run. It is made by the first call that the server answers."""

    def __init__(self, type: str, key: str, description: str) -> None:
        self._key = key
        self._run = UUID(str(flow_run.id)) if flow_run.id else None
        self._new = ArtifactCreate(
            type=type,
            key=key,
            description=description,
            flow_run_id=self._run,
            task_run_id=UUID(str(task_run.id)) if task_run.id else None,
        )
        self._made: UUID | None = None
        self._was_tried = False

    def show(self, data: Any) -> None:
        DISPLAY.show(("artifact", self._key), lambda client: self._tell(client, data))

    def _tell(self, client: SyncPrefectClient, data: Any) -> None:
        if self._made is None and self._was_tried:
            self._made = self._find(client)
        self._was_tried = True
        if self._made is None:
            self._made = client.create_artifact(self._new.model_copy(update={"data": data})).id
        else:
            client.update_artifact(self._made, ArtifactUpdate(data=data))

    def _find(self, client: SyncPrefectClient) -> UUID | None:
        """A server that answered too late may have made it all the same."""
        there = ArtifactFilter(
            key=ArtifactFilterKey(any_=[self._key]),
            flow_run_id=ArtifactFilterFlowRunId(any_=[self._run] if self._run else []),
        )
        found = client.read_artifacts(artifact_filter=there, limit=1)
        return found[0].id if found else None
