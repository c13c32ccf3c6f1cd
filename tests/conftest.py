"""What tests of several folders share, and what none of them may notice: whose machine it is, how fast."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from mailout.settings import Settings
from tests.prefect_server import PrefectServer, deploy, prefect_server

FOREIGN = ("AWS_", "PG", "PREFECT_")


def forget_the_machine() -> None:
    """A test hands in what it needs. Somebody's own profile, keys, server or proxy decides nothing here."""
    ours = {name.upper() for name in Settings.model_fields}
    for name in [name for name in os.environ if name in ours or name.startswith(FOREIGN)]:
        del os.environ[name]
    os.environ["AWS_CONFIG_FILE"] = os.environ["AWS_SHARED_CREDENTIALS_FILE"] = os.devnull
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    os.environ["PREFECT_HOME"] = tempfile.mkdtemp(prefix="mailout-prefect-")  # made as soon as it is imported
    atexit.register(shutil.rmtree, os.environ["PREFECT_HOME"], ignore_errors=True)
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"


forget_the_machine()

# The same examples on every run, so that a change that breaks nothing fails nothing; a busy machine is no
# failure either. To look for what nobody has thought of yet: `make test ARGS=--hypothesis-profile=search`.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("steady"), derandomize=False, max_examples=1000)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrefectServer]:
    """A Prefect server to which everything is deployed; started once, when the first test asks for it."""
    with prefect_server(tmp_path_factory.mktemp("prefect")) as server:
        deploy(server)
        yield server
