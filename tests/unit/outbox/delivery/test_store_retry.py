"""A store that is away: sending waits for it, wherever it is missed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from mailout.base.errors import StoreError, StoreUnavailable
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.options import Ended, SenderOptions
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Claimed, Timing
from mailout.outbox.delivery.sender import Sender
from mailout.outbox.delivery.states import State
from mailout.outbox.delivery.store_retry import wait_for_store
from tests.clocks import FakeClock
from tests.unit.outbox.delivery.sending import BUCKETS, MAILOUT, mail_of, scene


class Away:
    """A store that does not answer from one moment of the virtual clock to another."""

    def __init__(self, store: Any, clock: FakeClock, since: float, until: float) -> None:
        self._store, self._clock = store, clock
        self._since, self._until = clock.monotonic() + since, clock.monotonic() + until

    def __getattr__(self, name: str) -> Any:
        if self._since <= self._clock.monotonic() < self._until:
            return self._refuse
        return getattr(self._store, name)

    def _refuse(self, *arguments: Any, **rest: Any) -> Any:
        raise StoreUnavailable("away")


@pytest.mark.parametrize("since", [0.0, 4.0])
def test_an_outage_longer_than_a_time_slice_ends_nothing(tmp_path: Path, since: float) -> None:
    """Ten minutes away, from the start or in between: the run waits, then sends on by itself."""
    it = scene(tmp_path, 60)
    store = Away(it.store, it.clock, since, 600.0)
    report = it.sender(store, rate=10).run(MAILOUT, deadline=it.clock.monotonic() + 60)
    if report.ended is Ended.DEADLINE:
        report = it.sender(store, rate=10).run(MAILOUT)
    assert report.ended is Ended.DONE
    assert it.transport.accepted == dict.fromkeys(it.people, 1)
    assert it.states() == {State.SENT: 60}


def test_a_content_that_cannot_be_read_just_now_fails_nobody(tmp_path: Path) -> None:
    """Otherwise a moment's outage would tell a reader's message that it is invalid, for good."""
    it = scene(tmp_path, 12)
    refusals = iter(range(5))

    def compose(row: Claimed) -> Mail:
        if next(refusals, None) is not None:
            raise StoreUnavailable("away")
        return mail_of(row)

    options = SenderOptions(
        worker="test", rate=0.0, timing=Timing.of(120), buckets=lambda now: BUCKETS, inline=True
    )
    report = Sender(it.store, it.transport, compose, it.journals, it.clock, options).run(MAILOUT)
    assert report.ended is Ended.DONE
    assert it.states() == {State.SENT: 12}
    assert outbox_rows.usage(it.store, "all", "hour", "h") == 12


@pytest.mark.parametrize(("outages", "times"), [(7, 1), (60, 1), (61, 2)])
def test_it_says_what_it_waits_for_and_again_after_minutes(
    caplog: pytest.LogCaptureFixture, outages: int, times: int
) -> None:
    clock = FakeClock()
    failures = iter(range(outages))

    def ask() -> str:
        if next(failures, None) is not None:
            raise StoreUnavailable("Supabase does not answer.")
        return "here"

    with caplog.at_level(logging.WARNING):
        assert wait_for_store(ask, clock) == "here"
    assert [record.message for record in caplog.records] == [
        *["waiting for the store: Supabase does not answer."] * times,
        f"the store is back after {outages} tries",
    ]


def test_what_waiting_cannot_mend_is_raised_at_once() -> None:
    def ask() -> None:
        raise StoreError("refused")

    with pytest.raises(StoreError, match="refused"):
        wait_for_store(ask, FakeClock())
