"""Processes that are to be killed, cheaply: one server imports everything once, and each process is its fork."""

from __future__ import annotations

import multiprocessing

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.chaos.freezing", "tests.producer.process"])
