"""`store`: every test of the contract, once for each store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailout.store import Store
from tests.clocks import FakeClock
from tests.contract.stores import FACTORIES, StoreFactory

MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where the machine has such a place: these tests are about meaning, and commit a lot."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as made:
        yield Path(made)


@pytest.fixture(params=list(FACTORIES))
def factory(request: pytest.FixtureRequest, folder: Path) -> Iterator[StoreFactory]:
    made = FACTORIES[request.param](folder)
    yield made
    made.close()


@pytest.fixture
def store(factory: StoreFactory) -> Store:
    return factory.make(FakeClock())
