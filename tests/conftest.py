"""What tests of several folders share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.prefect_server import PrefectServer, deploy, prefect_server


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """A Prefect server to which everything is deployed; started once, when the first test asks for it."""
    with prefect_server(tmp_path_factory.mktemp("prefect")) as server:
        deploy(server)
        yield server
