"""The account: what is left of its quota, and what `doctor` finds."""

from __future__ import annotations

import pytest

from mailout.base.errors import CheckSkipped, MailoutError, ProviderUnreachable
from mailout.outbox.delivery.protocol import OutcomeKind
from tests.contract.ses.letters import mail
from tests.ports import free_port


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
    with pytest.raises(ProviderUnreachable, match="SES cannot be reached: Could not connect"):
        open_transport(endpoint_url=nobody).account()


def test_who_may_send_need_not_be_allowed_to_ask(stub, open_transport):
    """A sending-only key is good practice; the right it lacks is named, and no mailout waits for it."""
    stub.script(denied=["account"])
    with pytest.raises(CheckSkipped) as raised:
        open_transport().account()
    assert "ses:GetAccount" in raised.value.remedy


NO_ACCOUNT = ["", "{}", "<html>Welcome</html>", "[]", "null", '{"SendQuota": {}}', '{"SendingEnabled": true}']


@pytest.mark.parametrize("body", NO_ACCOUNT)
def test_an_answer_that_is_no_account_pauses_nothing(body, stub, open_transport):
    """Read as one it would say "paused, and no quota left": the mailout would wait for a person."""
    stub.script({"do": "answer", "operation": "GetAccount", "status": 200, "body": body})
    with pytest.raises(MailoutError):
        open_transport().allowance()


def test_whoever_answers_instead_of_ses_is_not_taken_for_it(stub, open_transport):
    stub.script({"do": "answer", "operation": "GetAccount", "status": 403, "aws": False})
    with pytest.raises(MailoutError) as raised:
        open_transport().allowance()
    assert "AWS_ENDPOINT_URL_SESV2" in raised.value.remedy


@pytest.mark.parametrize("account_status", [{"SendingEnabled": False}, {"EnforcementStatus": "SHUTDOWN"}])
def test_a_paused_account_is_known_before_the_first_mail(account_status, stub, open_transport):
    stub.script(account=account_status)
    refused = open_transport().allowance().refused
    assert refused is not None
    assert (refused.kind, refused.code) == (OutcomeKind.STOP, "SES_ACCOUNT_SENDING_PAUSED")
