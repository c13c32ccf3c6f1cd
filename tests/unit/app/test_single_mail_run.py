"""A run for single mails: sends as they come, hands over in time, and outlasts what passes."""

from __future__ import annotations

import email
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.app.single_mail_run import SingleMailRun, send_what_waits
from mailout.base.ids import transactional_id
from mailout.base.settings import load_settings
from mailout.letters.content.model import Content, mark
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.single_mails import Category, SingleMail
from mailout.outbox.delivery.states import State
from tests.clocks import FakeClock
from tests.contract.scenes import Sender


class Busy(FakeClock):
    """Somebody hands mails in while the run waits."""

    def __init__(self) -> None:
        super().__init__()
        self.later: list[tuple[float, Any]] = []

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        while self.later and self.later[0][0] <= self.steady:
            self.later.pop(0)[1]()


@pytest.fixture
def clock() -> Busy:
    return Busy()


@pytest.fixture
def engine(tmp_path: Path, clock: Busy) -> Iterator[Engine]:
    env = {
        "MAILOUT_HOME": str(tmp_path / "home"),
        "FROM_EMAIL": "shop@example.org",
        "FROM_NAME": "The Shop",
        "ORG_NAME": "The Harbour",
        "ORG_ADDRESS": "1 Quay",
        "UNSUBSCRIBE_BASE_URL": "https://mail.example.org/unsubscribe",
        "UNSUBSCRIBE_SECRET": "a secret of some length",
    }
    built = wiring.build(load_settings(env=env), clock, inline=True)
    yield built
    built.store.close()


def hand_in(engine: Engine, key: str, **changes: Any) -> str:
    fields: dict[str, Any] = {
        "id": transactional_id("shop", key, rehearsal=True),
        "company_id": "shop",
        "request_id": f"request {key}",
        "email": "ana@example.org",
        "content": Content("Your receipt", "<p>Thank you</p>", "Thank you"),
        "is_rehearsal": True,
    }
    (acceptance,) = engine.store.accept_single_mails([SingleMail(**fields | changes)])
    return acceptance.id


def mails(engine: Engine) -> list[Any]:
    folder = engine.settings.mailout_home / "outbox" / "single"
    return [email.message_from_bytes(path.read_bytes()) for path in sorted(folder.glob("*.eml"))]


def test_it_sends_what_is_there_and_what_comes(engine: Engine, clock: Busy) -> None:
    hand_in(engine, "first", headers={"X-Order": "7"}, reply_to="help@example.org", from_name="Ana's Shop")
    came: list[str] = []
    clock.later = [(clock.steady + 40, lambda: came.append(hand_in(engine, "later")))]
    run = SingleMailRun(engine.sending)
    assert run.take_over()
    assert run.run(120.0)
    assert run.ended == {State.SENT: 2}
    row = outbox_rows.message(engine.store, came[0])
    assert row["attempt_at"] - row["created_at"] <= 0.5
    (first,) = [mail for mail in mails(engine) if mail["X-Order"]]
    assert first["Reply-To"] == "<help@example.org>"
    assert "Ana's Shop" in first["From"]
    assert first["List-Unsubscribe"] is None
    assert not engine.store.single_mails_waiting(rehearsal=True).is_served


def test_one_whose_recipient_was_forgotten_while_it_was_in_doubt_holds_up_no_other(
    engine: Engine, clock: Busy
) -> None:
    forgotten = hand_in(engine, "forgotten")
    sender = Sender(engine.store, None)
    sender.begin_one()
    sender.step(close=True)
    engine.store.forget("ana@example.org", "forgotten@invalid")
    clock.sleep(1000)
    assert engine.store.settle(None, State.PENDING, wait=900, ids=[forgotten]) == 1
    other = hand_in(engine, "other", email="bo@example.org")
    send_what_waits(engine.sending)
    assert outbox_rows.message(engine.store, forgotten)["state"] == State.VALIDATION_FAILED
    assert outbox_rows.message(engine.store, other)["state"] == State.SENT


def test_one_whose_content_cannot_be_read_holds_up_no_other(engine: Engine) -> None:
    content = Content("Damaged", "<p>Damaged</p>", "Damaged")
    damaged, good = hand_in(engine, "damaged", content=content), hand_in(engine, "good")
    with closing(sqlite3.connect(engine.settings.mailout_home / "mailout.db")) as file, file:
        file.execute("DELETE FROM contents WHERE hash = ?", (content.hash,))
    send_what_waits(engine.sending)
    assert outbox_rows.message(engine.store, good)["state"] == State.SENT
    waits = outbox_rows.message(engine.store, damaged)
    assert (waits["state"], waits["error_code"]) == (State.RETRY_SCHEDULED, "CONTENT_UNREADABLE")


def test_the_next_run_is_asked_for_late_enough_to_see_this_one_end(engine: Engine, clock: Busy) -> None:
    """Asked for too early, it would take itself for unneeded and end, and mails would wait for the watch."""
    asked: list[float] = []
    SingleMailRun(engine.sending, lambda: asked.append(clock.steady)).run(120.0)
    ended = clock.steady
    Sender(engine.store, None, lease=10_000.0)
    assert not SingleMailRun(engine.sending).take_over()
    patience = clock.steady - ended
    assert 0 < ended - asked[0] < patience - 30


@pytest.mark.parametrize(("heard_after", "ends_after"), [(0, 120), (150, 150), (10_000, 240)])
def test_it_goes_on_while_nobody_can_start_the_next_one(
    engine: Engine, clock: Busy, heard_after: float, ends_after: float
) -> None:
    """Prefect hangs: mails would wait until it is back."""
    begun = clock.steady
    assert SingleMailRun(engine.sending, was_heard=lambda: clock.steady >= begun + heard_after).run(120.0)
    assert round(clock.steady - begun) == ends_after


def test_marketing_has_the_link_and_the_headers(engine: Engine) -> None:
    link = mark("unsubscribe_url")
    content = Content("News", f"<p>News</p><a href='{link}'>x</a>", f"News {link}")
    hand_in(engine, "news", category=Category.MARKETING, content=content)
    send_what_waits(engine.sending)
    (mail,) = mails(engine)
    assert mail["List-Unsubscribe"].startswith("<https://mail.example.org/unsubscribe?token=")
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


def test_it_goes_on_after_a_pause(engine: Engine, clock: Busy) -> None:
    hand_in(engine, "a")
    engine.store.pause_all(True)
    clock.later = [(clock.steady + 20, lambda: engine.store.pause_all(False))]
    run = SingleMailRun(engine.sending)
    assert run.run(60.0)
    assert run.ended == {State.SENT: 1}


def test_a_stop_through_the_store_ends_an_idle_run(engine: Engine, clock: Busy) -> None:
    machine = engine.sending.worker.rpartition("-")[0]
    clock.later = [(clock.steady + 10, lambda: engine.store.stop_machine(machine))]
    begun = clock.steady
    assert not SingleMailRun(engine.sending).run(3600.0)
    assert clock.steady - begun < 12


def test_a_second_run_waits_for_the_first_to_end_or_is_not_needed(engine: Engine, clock: Busy) -> None:
    other = Sender(engine.store, None, lease=40.0)
    assert SingleMailRun(engine.sending).take_over()
    assert clock.steady >= 1040
    del other
    Sender(engine.store, None, lease=10_000.0)
    assert not SingleMailRun(engine.sending).take_over()


def test_what_waits_leaves_with_the_queue_if_nobody_else_is_there(engine: Engine) -> None:
    id = hand_in(engine, "a")
    hand_in(engine, "later", send_at=engine.clock.now() + 3600)
    send_what_waits(engine.sending)
    assert outbox_rows.message(engine.store, id)["state"] == State.SENT
    assert len(mails(engine)) == 1
    Sender(engine.store, None, lease=1000.0)
    id = hand_in(engine, "b")
    send_what_waits(engine.sending)
    assert outbox_rows.message(engine.store, id)["state"] == State.PENDING  # somebody is there
