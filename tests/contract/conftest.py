"""`store`: every test of the contract, once for each store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mailout.ports import Store
from tests.clocks import FakeClock
from tests.contract.stores import FACTORIES, StoreFactory


@pytest.fixture(params=list(FACTORIES))
def factory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoreFactory]:
    made = FACTORIES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def store(factory: StoreFactory) -> Store:
    return factory.make(FakeClock())
