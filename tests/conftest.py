"""How the tests are shared out, and what none of them may notice: whose machine it is, how fast."""

from __future__ import annotations

import atexit
import gc
import logging
import os
import shutil
import ssl
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from mailout.base.logs import MailoutHandler
from mailout.base.settings import Settings

TOGETHER = ("tests/browser/", "tests/e2e/deployed/", "tests/e2e/test_supabase_", "tests/flows/")
"""What shares one server or one browser: in two processes it would be started twice."""

LONGEST = ("tests/e2e/deployed/", "tests/flows/", "tests/browser/", "tests/e2e/test_up.py")
"""One for each process to begin with: begun late, they would keep one busy after the others have ended."""

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
    os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
    # Each client would first ask for a token that no server here gives, and each server would write down at
    # its start what blocks there are, which nobody uses.
    os.environ["PREFECT_CLIENT_CSRF_SUPPORT_ENABLED"] = "false"
    os.environ["PREFECT_SERVER_REGISTER_BLOCKS_ON_START"] = "false"
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"


def read_certificates_once() -> None:
    """httpx, Prefect and SES's transport read all of the world's certificates for each client that they make:
    it takes longer than most tests, thousands of times, and nobody here shows one of those."""
    create = ssl.create_default_context
    once = cache(create)
    clients = ("httpx.", "prefect.", "mailout.adapters.ses.")

    def created(*args: Any, **named: Any) -> ssl.SSLContext:
        asks = str(sys._getframe(1).f_globals["__name__"])
        return (once if asks.startswith(clients) else create)(*args, **named)

    ssl.create_default_context = created


def pytest_collection_finish() -> None:
    """What is imported stays: no garbage is ever found in it, however often it is looked through."""
    gc.collect()
    gc.freeze()
    gc.collect()  # what remains is little: from now on it is looked through often


forget_the_machine()
read_certificates_once()

# The same examples on every run, so that a change that breaks nothing fails nothing; a busy machine is no
# failure either. To look for what nobody has thought of yet: `make test ARGS=--hypothesis-profile=search`.
settings.register_profile(
    "steady", max_examples=50, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", settings.get_profile("steady"), derandomize=False, max_examples=1000)
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def restore_logging() -> Iterator[None]:
    """A command run inside a test sets up logging for its process: the next test starts without it."""
    loggers = [logging.getLogger(name) for name in (None, "mailout", "httpx")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    root = loggers[0]
    for handler in [handler for handler in root.handlers if isinstance(handler, MailoutHandler)]:
        root.removeHandler(handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest work first."""
    items.sort(key=lambda item: [item.nodeid.startswith(start) for start in LONGEST], reverse=True)


class ByFolder(LoadFileScheduling):  # type: ignore[misc]
    """A file's tests stay together, and those of files that share what is dear."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return next((start for start in TOGETHER if file.startswith(start)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder:
    return ByFolder(config, log)
