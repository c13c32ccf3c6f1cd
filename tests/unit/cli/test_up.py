"""How `mailout up` ends when the disk is full, or its store has gone."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cli.commands import up
from cli.processes.supervisor import Supervisor
from mailout.base.errors import HomeUnwritable

PLAN = up.ProcessPlan(1, "127.0.0.1", 1, 1, own_server=False, only_workers=True)


def test_a_store_that_cannot_be_written_hides_nothing_and_the_parts_are_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What ended it is what a person has to know."""

    def full(machine: str) -> int:
        raise HomeUnwritable.full(tmp_path / "mailout.db")

    supervisor = Supervisor(tmp_path / "logs", os.environ, print)
    supervisor.start("part", ["sleep", "600"])

    def ends_by_itself() -> None:
        try:
            raise RuntimeError("the real one")
        finally:
            up._stop(supervisor, cast("Any", SimpleNamespace(stop_machine=full)), PLAN)

    with pytest.raises(RuntimeError, match="the real one"):
        ends_by_itself()
    assert supervisor.parts == []
    assert "mailout.db" in capsys.readouterr().err
