"""The account: what is left of its quota, and what `doctor` finds."""

from __future__ import annotations

import pytest

from mailout.adapters.ses import SesMode
from mailout.errors import MailoutError, Unseen
from tests.contract.ses.letters import mail
from tests.ports import free_port

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
    nobody = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(MailoutError, match="Could not connect"):
        open_transport(endpoint_url=nobody).account()


def test_who_may_send_need_not_be_allowed_to_ask(stub, open_transport):
    """A sending-only key is good practice; the right it lacks is named, and no mailout waits for it."""
    stub.script(denied=["account"])
    with pytest.raises(Unseen) as raised:
        open_transport().account()
    assert "ses:GetAccount" in raised.value.remedy
