"""Alerts through SES: a mail like any other, without a link to leave by, and honest about a spent quota."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

from mailout.adapters.ses import SesMode
from mailout.adapters.sqlite import SqliteStore
from mailout.alerts.conditions import EVENTS_UNHEARD
from mailout.alerts.model import Alert, AlertKind
from mailout.alerts.sender import AlertSender
from mailout.feedback.model import Received
from mailout.queue.mailout import DeferReason
from mailout.settings import Settings
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


@BOTH
def test_an_alert_leaves_in_both_modes(mode, stub, open_transport, store):
    id = enqueue(store)
    store.defer(id, DeferReason.DUPLICATE_CONTENT, None, "It went out as {{another}} page.")
    alert_sender = AlertSender(store, open_transport(mode, configuration_set="main"), SETTINGS, UTC)
    alert_sender.send_alerts(lambda alert: None)
    alert_sender.send_alerts(lambda alert: None)
    (message,) = stub.messages()
    assert (message["to"], message["from"]) == ("admin@example.org", "mailout <news@example.org>")
    assert message["subject"] == "Waits for you: “News”"
    assert f"\n  mailout queue resume {id}\n" in message["text"]
    assert "It went out as {{another}} page." in message["text"]
    assert "List-Unsubscribe" not in message["headers"]


def test_at_a_spent_quota_the_event_goes_out_and_the_mail_when_it_can(stub, open_transport, store, clock):
    stub.script(quota=0)
    transport = open_transport(configuration_set="main")
    allowance = transport.allowance()
    assert (allowance.available, allowance.most) == (0, 0)
    store.set_quota(transport.scope, allowance.available, store.now(), most=200)
    told: list[Alert] = []
    alert_sender = AlertSender(store, transport, SETTINGS, UTC)
    assert alert_sender.send_alerts(told.append) == ()
    assert [alert.subject for alert in told] == ["The provider's quota is spent"]
    assert stub.messages() == []
    stub.script(quota=200)
    assert transport.allowance().most == 200
    clock.sleep(60)
    alert_sender.send_alerts(told.append)
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
    clock.sleep(EVENTS_UNHEARD)
    alert_sender.send_alerts(told.append)
    assert [(alert.kind, alert.subject) for alert in told] == [(AlertKind.EVENTS, "No SES events come back")]
    store.receive_events([Received("1", "sns", "{}")])
    alert_sender.send_alerts(told.append)
    assert store.alert_signs("ses").holding == frozenset()
