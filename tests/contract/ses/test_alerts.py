"""Alerts through SES: a mail like any other, without a link to leave by, and honest about a spent quota."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from mailout.adapters.ses import SesMode
from mailout.adapters.sqlite import SqliteStore
from mailout.app import wiring
from mailout.app.single_mail_run import send_what_waits
from mailout.base.settings import Settings, load_settings
from mailout.insight.alerts import alert_rows
from mailout.insight.alerts.conditions import EVENTS_UNHEARD_SECONDS
from mailout.insight.alerts.port import Alert, AlertKind
from mailout.insight.alerts.sender import AlertSender
from mailout.outbox.delivery.provider_limits import ASK_PROVIDER_SECONDS
from mailout.outbox.feedback.port import Received
from mailout.outbox.queue.mailout import DeferReason
from tests.clocks import FakeClock
from tests.contract.scenes import Sender, enqueue, mailout, result

BOTH = pytest.mark.parametrize("mode", list(SesMode))
SETTINGS = Settings(
    from_email="news@example.org", admin_email="admin@example.org", ses_configuration_set="main"
)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(tmp_path: Path, clock: FakeClock) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "mailout.db", clock)
    yield made
    made.close()


def engine_with(store, transport, clock, folder, **more):
    settings = load_settings(
        env={
            "MAILOUT_HOME": str(folder),
            "FROM_EMAIL": "news@example.org",
            "ADMIN_EMAIL": "admin@example.org",
            "SES_CONFIGURATION_SET": "main",
            **more,
        }
    )
    return wiring.build(settings, clock, store=store, transport=transport, inline=True)


@BOTH
def test_an_alert_leaves_in_both_modes(mode, stub, open_transport, store, clock, tmp_path):
    id = enqueue(store)
    store.defer(id, DeferReason.DUPLICATE_CONTENT, None, "It went out as {{another}} page.")
    engine = engine_with(store, open_transport(mode, configuration_set="main"), clock, tmp_path)
    for _ in range(2):
        engine.alert_sender.send_alerts(lambda alert: None)
        send_what_waits(engine.sending)
    (message,) = stub.messages()
    assert (message["to"], message["from"]) == ("admin@example.org", "mailout <news@example.org>")
    assert message["subject"] == "Waits for you: “News”"
    assert f"\n  mailout queue resume {id}\n" in message["text"]
    assert "It went out as {{another}} page." in message["text"]
    assert "List-Unsubscribe" not in message["headers"]


def test_an_alert_comes_from_the_address_of_receipts(stub, open_transport, store, clock, tmp_path):
    """A spoilt name of the newsletter must not keep the alert about it from arriving."""
    store.defer(enqueue(store), DeferReason.DUPLICATE_CONTENT, None, "It went out before.")
    own = {"TRANSACTIONAL_FROM_EMAIL": "receipts@example.org"}
    engine = engine_with(store, open_transport(configuration_set="main"), clock, tmp_path, **own)
    engine.alert_sender.send_alerts(lambda alert: None)
    send_what_waits(engine.sending)
    assert [message["from"] for message in stub.messages()] == ["mailout <receipts@example.org>"]


def test_at_a_spent_quota_the_event_goes_out_and_the_mail_when_it_can(
    stub, open_transport, store, clock, tmp_path
):
    stub.script(quota=0)
    transport = open_transport(configuration_set="main")
    allowance = transport.allowance()
    assert (allowance.available, allowance.most) == (0, 0)
    store.set_quota(transport.scope, allowance.available, store.now(), most=200)
    told: list[Alert] = []
    engine = engine_with(store, transport, clock, tmp_path)
    engine.alert_sender.send_alerts(told.append)
    send_what_waits(engine.sending)
    assert [alert.subject for alert in told] == ["The provider's quota is spent"]
    assert stub.messages() == []
    stub.script(quota=200)
    assert transport.allowance().most == 200
    clock.sleep(ASK_PROVIDER_SECONDS)
    engine.alert_sender.send_alerts(told.append)
    send_what_waits(engine.sending)
    assert len(told) == len(stub.messages()) == 1


def test_an_account_without_a_limit_has_nothing_to_spend(stub, open_transport):
    stub.script(quota=-1)
    assert open_transport().allowance().most is None


def test_silence_after_mail_is_told_and_an_event_ends_it(stub, open_transport, store, clock):
    """Bounces would go unnoticed until AWS pauses the account."""
    told: list[Alert] = []
    id = mailout(store, "ann@example.org")
    sender = Sender(store, id)
    sender.session = store.open_session(id, worker="worker", transport="ses", lease=60.0)
    sender.step(results=[result(sender.begin_one())], close=True)
    alert_sender = AlertSender(store, open_transport(configuration_set="main"), SETTINGS, UTC)
    clock.sleep(EVENTS_UNHEARD_SECONDS)
    alert_sender.send_alerts(told.append)
    assert [(alert.kind, alert.subject) for alert in told] == [(AlertKind.EVENTS, "No SES events come back")]
    store.receive_events([Received("1", "sns", "{}")])
    alert_sender.send_alerts(told.append)
    assert alert_rows.alert_signs(store, "ses").holding == frozenset()
