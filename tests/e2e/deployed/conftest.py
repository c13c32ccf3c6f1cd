"""One Prefect server for all tests that need ours deployed: it takes half a minute."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cli.deploy import deploy
from tests.prefect_server import PrefectServer, prefect_server


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """Everything is deployed to it; started once, when the first test asks for it."""
    with prefect_server(tmp_path_factory.mktemp("prefect")) as server:
        deploy(server.env)
        yield server
