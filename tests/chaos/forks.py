"""Processes that are to be killed, cheaply: forks of one server that has imported everything once."""

from __future__ import annotations

import multiprocessing

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["tests.chaos.jobs", "tests.chaos.freezing", "mailout.letters.audience.frame", "tests.warm"]
)
