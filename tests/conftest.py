"""How the tests are shared out between processes."""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

TOGETHER = ("tests/flows/", "tests/e2e/deployed/")
"""Folders with one Prefect server for all their tests: in two processes it would be started twice."""


class ByFolder(LoadFileScheduling):
    """A file's tests stay together, and those of a folder that shares what is dear."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return next((folder for folder in TOGETHER if file.startswith(folder)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder:
    return ByFolder(config, log)
