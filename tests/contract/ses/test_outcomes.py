"""What comes back: each mail has one outcome, and no outcome invites a second mail."""

from __future__ import annotations

import pytest

from mailout.adapters.ses import SesMode
from mailout.delivery.error_map import TABLE
from mailout.delivery.protocol import Outcome, OutcomeKind
from tests.contract.ses.letters import mail, one

BOTH = pytest.mark.parametrize("mode", list(SesMode))


NO_ANSWER = ("NetworkingError", "NeverLeft", "ReadTimeoutError", "ConnectionClosedError", "ClientFault")
ANSWERED = [code for code in TABLE if not code.isupper() and code not in NO_ANSWER]
STATUS = {OutcomeKind.THROTTLED: 429, OutcomeKind.TRANSIENT: 503, OutcomeKind.UNKNOWN: 500}


@BOTH
@pytest.mark.parametrize("code", ANSWERED)
def test_each_code_of_the_map_through_the_real_client(code, stub, transport):
    row = TABLE[code]
    stub.script({"do": "answer", "status": STATUS.get(row.kind, 400), "code": code, "message": "because"})
    outcome = one(transport.send([mail()]))
    assert outcome == Outcome(row.kind, None, row.code, row.category, "because", code)
    assert len(stub.calls()) == 1


@pytest.mark.parametrize("mode", [SesMode.BULK])
@pytest.mark.parametrize("code", [code for code in TABLE if code.isupper()])
def test_each_status_of_a_bulk_entry_concerns_that_recipient_alone(code, stub, transport):
    stub.script({"do": "entry", "code": code, "message": "because", "to": "reader-1@"})
    outcomes = transport.send([mail(number) for number in range(3)])
    row = TABLE[code]
    assert outcomes[1] == Outcome(row.kind, None, row.code, row.category, "because", code)
    assert [outcomes[n].kind for n in (0, 2)] == [OutcomeKind.SENT] * 2
    assert set(stub.accepted()["by_address"]) == {"reader-0@example.org", "reader-2@example.org"}


WIRE = [
    ({"do": "answer", "status": 500}, OutcomeKind.UNKNOWN, "SES_INTERNAL_ERROR"),
    ({"do": "answer", "status": 500, "accept": True}, OutcomeKind.UNKNOWN, "SES_INTERNAL_ERROR"),
    ({"do": "answer", "status": 502, "aws": False}, OutcomeKind.UNKNOWN, "SES_INTERNAL_ERROR"),
    ({"do": "answer", "status": 503, "aws": False}, OutcomeKind.UNKNOWN, "SES_INTERNAL_ERROR"),
    ({"do": "answer", "status": 503, "request_id": False}, OutcomeKind.UNKNOWN, "SES_INTERNAL_ERROR"),
    ({"do": "answer", "status": 503, "code": "Whatever"}, OutcomeKind.TRANSIENT, "SES_SERVICE_UNAVAILABLE"),
    ({"do": "answer", "status": 503, "code": "Throttling"}, OutcomeKind.THROTTLED, "SES_THROTTLING"),
    ({"do": "answer", "status": 403, "aws": False}, OutcomeKind.STOP, "SES_NOT_REACHED"),
    ({"do": "answer", "status": 429, "aws": False}, OutcomeKind.THROTTLED, "SES_THROTTLING"),
    ({"do": "drop"}, OutcomeKind.UNKNOWN, "SES_CONNECTION_LOST"),
    ({"do": "drop", "accept": True}, OutcomeKind.UNKNOWN, "SES_CONNECTION_LOST"),
    ({"do": "hang"}, OutcomeKind.UNKNOWN, "SES_TIMEOUT"),
    ({"do": "hang", "accept": True}, OutcomeKind.UNKNOWN, "SES_TIMEOUT"),
]


@BOTH
@pytest.mark.parametrize(("rule", "kind", "code"), WIRE)
def test_one_request_leaves_for_one_attempt_whatever_the_wire_does(
    rule, kind, code, mode, stub, transport, open_transport
):
    """A hidden retry after a lost answer is a second mail that no ledger shows."""
    stub.script(rule)
    if rule["do"] == "hang":
        transport = open_transport(mode, call_limit=1.5)
    outcome = one(transport.send([mail()]))
    assert (outcome.kind, outcome.code) == (kind, code)
    assert len(stub.calls()) == 1
    assert stub.accepted()["accepted"] == int(rule.get("accept", False))


@BOTH
def test_a_slow_answer_is_waited_for(stub, transport):
    stub.script({"do": "delay", "seconds": 0.3})
    assert one(transport.send([mail()])).kind is OutcomeKind.SENT


@BOTH
def test_an_answer_without_a_message_id_proves_nothing(stub, transport):
    stub.script({"do": "answer", "status": 200, "code": "x"})
    assert one(transport.send([mail()])).kind is OutcomeKind.UNKNOWN


@BOTH
def test_the_daily_quota_and_the_sending_rate_are_told_apart(stub, transport):
    stub.script(quota=1)
    assert [one(transport.send([mail(n)])).kind for n in range(2)] == [OutcomeKind.SENT, OutcomeKind.QUOTA]
    stub.script(quota=-1, rate=0.001)  # one in a quarter of an hour: the second is never late enough
    kinds = [one(transport.send([mail(n)])).kind for n in range(2)]
    assert kinds == [OutcomeKind.SENT, OutcomeKind.THROTTLED]
