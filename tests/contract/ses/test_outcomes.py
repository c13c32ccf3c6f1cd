"""What comes back: each mail has one outcome, and no outcome invites a second mail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mailout.adapters.ses import SesMode
from mailout.adapters.ses.error_map import TABLE
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind
from tests.contract.ses.letters import mail, one

BOTH = pytest.mark.parametrize("mode", list(SesMode))


NO_ANSWER = ("NetworkingError", "NotWritten", "ReadTimeoutError", "ConnectionClosedError", "ClientFault")
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
    (
        {"do": "answer", "status": 403, "code": "Unheard", "message": "Who are you?"},
        OutcomeKind.STOP,
        "SES_ACCESS_DENIED",
    ),
    (
        {"do": "answer", "status": 404, "code": "UnknownOperationException"},
        OutcomeKind.STOP,
        "SES_NOT_REACHED",
    ),
    (
        {"do": "answer", "status": 200, "body": '{"MessageId": "half', "cut": True, "accept": True},
        OutcomeKind.UNKNOWN,
        "SES_UNEXPECTED_ANSWER",
    ),
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
@pytest.mark.parametrize(
    "body",
    [
        *("{}", "", "<html>Welcome to this network</html>", "[]", "null", "5", '"SUCCESS"'),
        *('{"MessageId": null}', '{"MessageId": ""}', '{"MessageId": 5}', '{"MessageId": {"a": 1}}'),
        *('{"BulkEmailEntryResults": null}', '{"BulkEmailEntryResults": {"Status": "SUCCESS"}}'),
    ],
)
def test_an_answer_without_a_message_id_proves_nothing(body, stub, transport):
    stub.script({"do": "answer", "status": 200, "body": body, "accept": True})
    assert one(transport.send([mail()])).kind is OutcomeKind.UNKNOWN


TAKEN = {"Status": "SUCCESS", "MessageId": "a"}
TOO_FAST = {"Status": "ACCOUNT_THROTTLED", "Error": "slower"}


def bulk_answer(*entries: Any) -> dict[str, Any]:
    return {"do": "answer", "status": 200, "body": json.dumps({"BulkEmailEntryResults": entries})}


@pytest.mark.parametrize("mode", [SesMode.BULK])
@pytest.mark.parametrize("entries", [(), (TAKEN,), (TAKEN, TOO_FAST), (TAKEN, TOO_FAST, TAKEN, TAKEN)])
def test_answers_that_are_not_one_for_each_recipient_say_nothing_of_any(entries, stub, transport):
    """Read by their place, they could call an accepted mail throttled: it would be sent again."""
    stub.script(bulk_answer(*entries))
    outcomes = transport.send([mail(number) for number in range(3)])
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.UNKNOWN] * 3
    assert outcomes[0].message == f"SES answered for {len(entries)} of 3 entries."
    assert len(stub.calls()) == 1


@pytest.mark.parametrize("mode", [SesMode.BULK])
@pytest.mark.parametrize(
    "entry",
    [
        None,
        {},
        {"Status": None},
        {"Status": 5, "Error": 7},
        {"Status": "SOMETHING_NEW", "Error": "?"},
        {"Status": "SUCCESS"},
        {"Status": "SUCCESS", "MessageId": 5},
    ],
)
def test_an_entry_that_cannot_be_read_is_in_doubt_alone(entry, stub, transport):
    """Raised instead, it would end the run and put the whole call in doubt."""
    stub.script(bulk_answer(TAKEN, entry, TAKEN))
    outcomes = transport.send([mail(number) for number in range(3)])
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.SENT, OutcomeKind.UNKNOWN, OutcomeKind.SENT]


@BOTH
def test_a_refusal_without_words_is_still_understood(stub, transport):
    stub.script(
        {"do": "answer", "status": 400, "code": "SendingPausedException", "body": '{"message": null}'}
    )
    outcome = one(transport.send([mail()]))
    assert (outcome.kind, outcome.code) == (OutcomeKind.STOP, "SES_ACCOUNT_SENDING_PAUSED")
    assert outcome.message is None


@BOTH
@pytest.mark.parametrize(
    "body",
    ["<html>" + "x" * 100_000, '{"message": "' + "x" * 100_000 + '"}', '{"message": "a\\u0000\\ud800"}'],
)
def test_what_was_said_is_kept_as_every_store_can_keep_it(body, stub, transport):
    """Postgres takes no NUL and no half character: the outcome could never be recorded."""
    stub.script({"do": "answer", "status": 400, "code": "BadRequestException", "body": body})
    message = one(transport.send([mail()])).message
    assert message is not None
    assert len(message) <= 500
    assert message.isprintable()
    assert message.encode().decode() == message


@BOTH
def test_the_daily_quota_and_the_sending_rate_are_told_apart(stub, transport):
    stub.script(quota=1)
    assert [one(transport.send([mail(n)])).kind for n in range(2)] == [OutcomeKind.SENT, OutcomeKind.QUOTA]
    stub.script(quota=-1, rate=0.001)  # one in a quarter of an hour: the second is never late enough
    kinds = [one(transport.send([mail(n)])).kind for n in range(2)]
    assert kinds == [OutcomeKind.SENT, OutcomeKind.THROTTLED]
