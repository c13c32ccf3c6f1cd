"""The account's word in the engine: how fast, how much, and that it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mailout.adapters.ses import account
from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.clock import Clock, SystemClock
from mailout.base.errors import MailoutError
from mailout.base.settings import load_settings
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.options import Ended
from mailout.outbox.delivery.provider_limits import ASK_PROVIDER_SECONDS
from tests.clocks import FakeClock
from tests.contract.scenes import mailout
from tests.stubs.ses_control import SesStub


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def engine_with(stub: SesStub, clock: FakeClock, tmp_path: Path) -> Iterator[Callable[..., Engine]]:
    engines: list[Engine] = []

    def build(clock: Clock = clock, **settings: Any) -> Engine:
        env = {
            "MAILOUT_HOME": str(tmp_path / "home"),
            "MAILOUT_TRANSPORT": "ses",
            "AWS_ENDPOINT_URL_SESV2": stub.url,
            "FROM_EMAIL": "news@example.org",
            "ORG_NAME": "The Harbour",
            "ORG_ADDRESS": "1 Quay",
            "UNSUBSCRIBE_BASE_URL": "https://mail.example.org/unsubscribe",
            "UNSUBSCRIBE_SECRET": "a secret of some length",
        }
        told = {name: str(value) for name, value in settings.items()}
        engines.append(wiring.build(load_settings(env=env | told), clock))
        return engines[-1]

    yield build
    for engine in engines:
        engine.sending.transport.close()
        engine.store.close()


@pytest.mark.parametrize(("setting", "rate"), [(1000, 14), (5, 5), (0, 14)])
def test_the_accounts_rate_holds_even_if_the_setting_is_higher(setting, rate, stub, engine_with):
    stub.script(rate=14)
    assert engine_with(SEND_RATE_PER_SEC=setting).sending.rate() == rate


def test_letters_do_not_come_from_the_address_of_receipts(stub, engine_with):
    engine = engine_with(TRANSACTIONAL_FROM_EMAIL="receipts@example.org", FROM_NAME="The Harbour")
    engine.deliver(mailout(engine.store, "ann@example.org"))
    assert [message["from"] for message in stub.messages()] == ["The Harbour <news@example.org>"]


def test_the_account_is_asked_again_after_some_minutes(stub, engine_with, clock):
    """AWS raises a quota, or lowers a rate, while a long mailout is under way."""
    stub.script(rate=14, quota=200)
    engine = engine_with(SEND_RATE_PER_SEC=1000)
    assert engine.sending.rate() == 14
    stub.script(rate=7, quota=100)
    assert engine.sending.rate() == 14
    clock.sleep(ASK_PROVIDER_SECONDS)
    assert engine.sending.rate() == 7
    assert outbox_rows.quota(engine.store, "ses us-east-1") == 100


def test_an_account_that_does_not_answer_keeps_its_last_word(stub, engine_with, clock):
    stub.script(rate=14, quota=200)
    engine = engine_with(SEND_RATE_PER_SEC=1000)
    assert engine.sending.rate() == 14
    stub.script({"do": "answer", "operation": "GetAccount", "status": 200, "body": "<html>"})
    clock.sleep(ASK_PROVIDER_SECONDS)
    assert engine.sending.rate() == 14
    assert outbox_rows.quota(engine.store, "ses us-east-1") == 200


@pytest.mark.parametrize("busy", [1, 2])
def test_senders_that_ask_at_once_all_learn_the_rate(busy, stub, engine_with, monkeypatch):
    """SES answers one such question a second: the others would send at whatever the setting says."""
    monkeypatch.setattr(account, "ASK_AGAIN", (0.0, 0.0))
    stub.script(rate=14, busy=busy)
    assert engine_with(SEND_RATE_PER_SEC=1000).sending.rate() == 14


def test_whoever_never_answers_is_not_asked_for_ever(stub, open_transport, monkeypatch):
    monkeypatch.setattr(account, "ASK_AGAIN", (0.0, 0.0))
    stub.script(busy=3)
    with pytest.raises(MailoutError):
        open_transport().account()
    assert open_transport().account().sending_enabled


def test_a_paused_account_ends_the_run_before_the_first_call(stub, engine_with):
    stub.script(account={"SendingEnabled": False})
    engine = engine_with()
    report = engine.sending.send_for(mailout(engine.store, "ann@example.org"), 1.0)
    assert report.ended is Ended.REFUSED
    assert stub.calls() == []


@pytest.mark.parametrize(
    ("rate", "mode", "calls"),
    [
        (50, "auto", {("SendEmail", 1): 12}),
        (60, "auto", {("SendBulkEmail", 12): 1}),
        (60, "single", {("SendEmail", 1): 12}),
        (12, "bulk", {("SendBulkEmail", 12): 1}),
    ],
)
def test_mail_goes_in_bulk_where_one_by_one_would_be_too_slow(rate, mode, calls, stub, engine_with):
    """Below, a lost answer should put one message in doubt and not fifty."""
    engine = engine_with(SystemClock(), SEND_RATE_PER_SEC=rate, SES_MODE=mode)
    id = mailout(engine.store, *(f"reader-{n}@example.org" for n in range(12)))
    assert engine.sending.send_for(id).ended is Ended.DONE
    assert Counter((operation, mails) for _, operation, mails in stub.calls()) == calls
