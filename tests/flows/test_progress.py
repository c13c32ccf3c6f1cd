"""The progress artifact is a picture of the sending: it never holds it up."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from mailout.app import wiring
from mailout.outbox.delivery.protocol import Ledger
from tasks import delivery


def test_mail_goes_on_while_prefect_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, answered = threading.Semaphore(0), threading.Event()

    def update(artifact: Any, progress: float) -> None:
        asked.release()
        answered.wait(300)
        raise ConnectionError

    moments = iter((0.0, 10.0, 20.0))
    clock = SimpleNamespace(monotonic=lambda: next(moments))
    monkeypatch.setattr(delivery, "update_progress_artifact", update)
    monkeypatch.setattr(wiring, "engine", lambda: SimpleNamespace(clock=clock))
    progress = delivery.Progress()
    progress._artifact = uuid4()
    for sent in (1, 2, 3):
        progress.recorded([], Ledger(recipients=10, pending=10 - sent, sent=sent))
    assert asked.acquire(timeout=300)
    assert not asked.acquire(blocking=False), "one at a time"
    answered.set()
    assert progress._update is not None
    progress._update.join(300)
