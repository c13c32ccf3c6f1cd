"""A producer's database that is away, locked or read-only for a while: one line says so, nothing is lost."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mailout.base.errors import SourceUnavailable
from mailout.kinds.notifications.watch import dispatch
from tests.clocks import NOON
from tests.contract.stores import StoreFactory
from tests.producer.scene import Scene

NOBODY = 65_534
AN_OUTAGE = 60.0
LONG_ENOUGH = 400.0


@pytest.fixture
def scene(factory: StoreFactory, folder: Path) -> Iterator[Scene]:
    with closing(Scene(factory, folder)) as made:
        yield made


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING, logger="mailout.notifications")
    return lambda: [record.getMessage() for record in caplog.records]


def worked(scene: Scene, then: Callable[[], None], **changes: Any) -> None:
    """The worker goes on for some minutes; the outage is over after one."""
    sleep = scene.clock.sleep

    def sleep_and_look(seconds: float) -> None:
        sleep(seconds)
        if scene.clock.now() > NOON + AN_OUTAGE:
            then()

    scene.clock.sleep = sleep_and_look  # type: ignore[method-assign]
    dispatch(lambda: scene.worker(**changes), scene.clock, threading.Event(), LONG_ENOUGH)


def told_once(scene: Scene, id: int) -> None:
    row = scene.producer.row(id)
    assert (row["fanout_status"], row["fanout_attempts"]) == ("sent", 1)
    assert scene.accepted == {"ana@example.org": 1}
    assert len(scene.producer.events()) == 1


@pytest.mark.parametrize("begins", ["before it is picked", "after it was sent"])
def test_locked_for_a_minute(scene: Scene, warnings: Callable[[], list[str]], begins: str) -> None:
    id = scene.producer.one()
    with closing(sqlite3.connect(scene.producer.path, isolation_level=None)) as other:

        def send(seconds: float) -> Any:
            report = scene.send(seconds)
            other.execute("BEGIN IMMEDIATE")
            return report

        def unlock() -> None:
            if other.in_transaction:
                other.execute("ROLLBACK")

        if begins == "before it is picked":
            other.execute("BEGIN IMMEDIATE")
            worked(scene, unlock)
        else:
            worked(scene, unlock, send=send)
            unlock()
    told_once(scene, id)
    assert set(warnings()) == {f"{scene.producer.path} is locked by another program. It is tried again."}
    assert len(warnings()) <= 2  # while the result waited, and when it was given up for the time being


@contextmanager
def read_only(path: Path, folder: int = 0o755) -> Iterator[Callable[[], None]]:
    """As somebody who may read the file, and nothing else; root may write to everything."""
    path.parent.chmod(folder)
    path.chmod(0o444)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)

    def writable() -> None:
        if os.geteuid() != user:
            os.seteuid(user)
        path.parent.chmod(0o700)
        path.chmod(0o644)

    try:
        yield writable
    finally:
        writable()


def test_read_only_for_a_minute(scene: Scene, warnings: Callable[[], list[str]]) -> None:
    id = scene.producer.one()
    with read_only(scene.producer.path) as writable:
        worked(scene, writable)
    told_once(scene, id)
    assert warnings() == [
        f"{scene.producer.path} cannot be written to. Give the user that runs mailout the right to write it."
    ]


def test_in_a_folder_that_we_may_not_look_into(scene: Scene) -> None:
    scene.producer.one()
    with read_only(scene.producer.path, folder=0o000), pytest.raises(SourceUnavailable, match="cannot be"):
        scene.worker()


def test_missing_for_a_minute(scene: Scene, warnings: Callable[[], list[str]]) -> None:
    id = scene.producer.one()
    path, away = scene.producer.path, scene.producer.path.with_name("away.db")
    scene.producer.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    path.rename(away)

    def back() -> None:
        if away.exists():
            away.rename(path)

    worked(scene, back)
    told_once(scene, id)
    assert warnings() == [f"There is no file {path}. Check --db or NOTIFY_DB."]


def test_replaced_while_it_is_open(scene: Scene, warnings: Callable[[], list[str]]) -> None:
    """As a producer compacts its file, or restores it: the old one is still there for whoever has it open."""
    told, path, new = list[int](), scene.producer.path, scene.producer.path.with_name("new.db")

    def replaced() -> None:
        if not told:
            scene.producer.sql("VACUUM INTO ?", str(new))
            new.replace(path)
            told.append(scene.producer.one())

    worked(scene, replaced)
    told_once(scene, told[0])
    assert warnings() == [f"{path} was moved or replaced. It is opened again."]


def test_of_a_foreign_schema_until_somebody_sets_it_right(
    scene: Scene, warnings: Callable[[], list[str]]
) -> None:
    id = scene.producer.one()
    scene.producer.sql("ALTER TABLE subscription_events RENAME COLUMN payload TO details")
    before = scene.producer.sql("SELECT sql FROM sqlite_master ORDER BY name")
    with pytest.raises(SourceUnavailable, match="subscription_events has no payload"):
        scene.worker()
    assert scene.producer.sql("SELECT sql FROM sqlite_master ORDER BY name") == before

    def corrected() -> None:
        if before:
            before.clear()
            scene.producer.sql("ALTER TABLE subscription_events RENAME COLUMN details TO payload")

    worked(scene, corrected)
    told_once(scene, id)
    assert len(warnings()) == 1
    assert "Nothing was changed." in warnings()[0]
