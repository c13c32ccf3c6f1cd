"""The account: what is left of its quota, and what `doctor` finds."""

from __future__ import annotations

import socket

import pytest

from mailout.adapters.ses import SesMode, SesTransport
from mailout.errors import MailoutError
from tests.contract.ses.letters import mail

BOTH = pytest.mark.parametrize("mode", list(SesMode))


def test_the_account_tells_what_is_left(stub, open_transport):
    stub.script(quota=200, rate=14)
    transport = open_transport()
    transport.send([mail()])
    account = transport.account()
    assert (account.max_24h, account.sent_24h, account.max_rate, account.available) == (200, 1, 14, 199)
    assert (account.sending_enabled, account.production, account.enforcement) == (True, True, "HEALTHY")
    stub.script(quota=-1)
    assert transport.account().available is None


def test_an_account_that_cannot_be_read_says_why(open_transport):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    with pytest.raises(MailoutError, match="Could not connect"):
        open_transport(endpoint_url=url).account()


def levels(transport: SesTransport) -> dict[str, str]:
    return {check.name: check.level for check in transport.check()}


def test_doctor_passes_an_account_in_order(stub, open_transport):
    assert set(levels(open_transport(configuration_set="main")).values()) == {"ok"}


COUNTED_ONLY = {"Name": "cw", "Enabled": True, "MatchingEventTypes": ["SEND"], "CloudWatchDestination": {}}
SOME = {
    "Name": "sns",
    "Enabled": True,
    "MatchingEventTypes": ["BOUNCE"],
    "SnsDestination": {"TopicArn": "arn"},
}


@pytest.mark.parametrize(
    ("world", "name", "level"),
    [
        ({"account": {"SendingEnabled": False}}, "ses account", "fail"),
        ({"account": {"EnforcementStatus": "PROBATION"}}, "ses account", "warn"),
        ({"account": {"ProductionAccessEnabled": False}}, "ses sandbox", "warn"),
        ({"quota": 0}, "ses quota", "warn"),
        ({"identities": {}}, "ses identity", "fail"),
        ({"identities": {"example.org": False}}, "ses identity", "fail"),
        ({"identities": {"news@example.org": True}}, "ses identity", "ok"),
        ({"configuration_sets": {}}, "ses events", "fail"),
        ({"configuration_sets": {"main": []}}, "ses events", "fail"),
        ({"configuration_sets": {"main": [COUNTED_ONLY]}}, "ses events", "fail"),
        ({"configuration_sets": {"main": [{**SOME, "Enabled": False}]}}, "ses events", "fail"),
        ({"configuration_sets": {"main": [SOME]}}, "ses events", "warn"),
    ],
)
def test_doctor_names_what_would_hold_up_a_mailout(world, name, level, stub, open_transport):
    stub.script(**world)
    transport = open_transport(configuration_set="main")
    (check,) = [check for check in transport.check() if check.name == name]
    assert check.level == level
    assert bool(check.remedy) == (level != "ok")


def test_doctor_fails_without_a_configuration_set_since_doubts_would_never_settle(stub, open_transport):
    assert levels(open_transport(configuration_set=None))["ses events"] == "fail"
