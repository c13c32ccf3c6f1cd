"""Bulk calls: up to fifty mails, each with an outcome of its own."""

from __future__ import annotations

import pytest

from mailout.adapters.ses import SesMode
from mailout.letters.content.model import UNSUBSCRIBE_URL, Content
from mailout.outbox.delivery.protocol import OutcomeKind
from tests.contract.ses.letters import mail

BOTH = pytest.mark.parametrize("mode", list(SesMode))


def test_fifty_mails_leave_in_one_call_and_each_knows_its_own_id(stub, open_transport):
    transport = open_transport(SesMode.BULK)
    outcomes = transport.send([mail(number) for number in range(transport.max_batch)])
    assert [(operation, n) for _, operation, n in stub.calls()] == [("SendBulkEmail", 50)]
    by_id = {message["id"]: message["to"] for message in stub.messages()}
    assert [by_id[outcome.provider_message_id or ""] for outcome in outcomes] == [
        mail(n).to for n in range(50)
    ]


def test_senders_and_contents_are_not_mixed_in_a_call(stub, open_transport):
    other = Content("Other", "<p>other</p>", "other")
    mails = [
        mail(0),
        mail(1, from_name="Ann"),
        mail(2, content=other),
        mail(3),
        mail(4, reply_to="a@example.org"),
    ]
    outcomes = open_transport(SesMode.BULK).send(mails)
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.SENT}
    assert sorted(n for _, _, n in stub.calls()) == [1, 1, 1, 2]
    seen = {message["to"]: message for message in stub.messages()}
    assert seen[mails[1].to]["from"] == "Ann <news@example.org>"
    assert seen[mails[2].to]["subject"] == "Other"
    assert seen[mails[3].to]["subject"] == "News for Reader 3"
    assert seen[mails[4].to]["reply_to"] == ["a@example.org"]


def test_one_recipient_that_spoils_the_call_does_not_fail_the_others(stub, open_transport):
    stub.script({"do": "answer", "status": 400, "code": "BadRequestException", "to": "reader-5@"})
    outcomes = open_transport(SesMode.BULK).send([mail(number) for number in range(12)])
    assert [n for n, outcome in enumerate(outcomes) if outcome.kind is not OutcomeKind.SENT] == [5]
    assert outcomes[5].code == "SES_BAD_REQUEST"
    assert stub.accepted()["accepted"] == 11
    assert stub.accepted()["twice"] == []


UNVERIFIED = "Email address is not verified. The following identities failed the check in region X: "


@BOTH
def test_a_recipient_refused_in_the_sandbox_does_not_hold_up_those_behind(mode, stub, open_transport):
    text = f"{UNVERIFIED}reader-1@example.org"
    stub.script(
        {"do": "answer", "status": 400, "code": "MessageRejected", "message": text, "to": "reader-1@"}
    )
    outcomes = open_transport(mode).send([mail(number) for number in range(4)])
    assert [outcome.code for outcome in outcomes] == [None, "RECIPIENT_NOT_VERIFIED", None, None]
    assert outcomes[1].kind is OutcomeKind.PERMANENT


def test_an_entry_refused_in_the_sandbox_fails_alone(stub, open_transport):
    text = f"{UNVERIFIED}reader-1@example.org"
    stub.script({"do": "entry", "code": "MESSAGE_REJECTED", "message": text, "to": "reader-1@"})
    outcomes = open_transport(SesMode.BULK).send([mail(number) for number in range(4)])
    assert [outcome.code for outcome in outcomes] == [None, "RECIPIENT_NOT_VERIFIED", None, None]


def test_after_a_throttle_the_rest_of_a_batch_is_not_even_tried(stub, open_transport):
    stub.script({"do": "answer", "status": 429, "code": "TooManyRequestsException"})
    outcomes = open_transport(SesMode.BULK).send([mail(0), mail(1, from_name="Ann"), mail(2, from_name="Bo")])
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.THROTTLED] * 3
    assert len(stub.calls()) == 1


def test_after_a_lost_call_the_rest_of_a_batch_is_surely_not_sent(stub, open_transport):
    """There is no time left for it within the sender's lease."""
    stub.script({"do": "hang", "accept": True, "times": 1})
    mails = [mail(0), mail(1, from_name="Ann")]
    outcomes = open_transport(SesMode.BULK, call_limit=1.5).send(mails)
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.UNKNOWN, OutcomeKind.TRANSIENT]
    assert set(stub.accepted()["by_address"]) == {mails[0].to}


def test_a_letter_too_long_for_a_template_still_leaves(stub, open_transport):
    """Bulk calls are limited to 1 MB as JSON, in which a Cyrillic letter counts six."""
    long = Content("Long", "<p>" + "ж" * 200_000 + "</p>", "short")
    outcomes = open_transport(SesMode.BULK).send([mail(number, content=long) for number in range(2)])
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.SENT}
    assert [message["html"] for message in stub.messages()] == [long.html] * 2


def test_one_recipient_with_very_long_values_does_not_hold_up_the_others(stub, open_transport):
    """An entry's values are limited to 262,144 bytes: that mail leaves alone, the others in one call."""
    values = {"name": "x" * 270_000, UNSUBSCRIBE_URL: "https://e.org/"}
    outcomes = open_transport(SesMode.BULK).send([mail(0), mail(1, values=values), mail(2)])
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.SENT}
    assert sorted((operation, n) for _, operation, n in stub.calls()) == [
        ("SendBulkEmail", 2),
        ("SendEmail", 1),
    ]


def test_long_values_are_spread_over_as_many_calls_as_they_need(stub, open_transport):
    values = {"name": "x" * 30_000, UNSUBSCRIBE_URL: "https://e.org/"}
    outcomes = open_transport(SesMode.BULK).send([mail(number, values=values) for number in range(50)])
    assert {outcome.kind for outcome in outcomes} == {OutcomeKind.SENT}
    assert sum(n for _, _, n in stub.calls()) == 50
    assert len(stub.calls()) > 1
