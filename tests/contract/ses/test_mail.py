"""What arrives: the same mail in both modes, with its link, its tags and its sender."""

from __future__ import annotations

from typing import Any

import pytest

from mailout.adapters.ses import SesMode
from mailout.insight.reporting.codes import remedy_of
from mailout.letters.content.model import UNSUBSCRIBE_URL, Content, mark
from mailout.outbox.delivery.protocol import OutcomeKind
from tests.contract.ses.letters import mail, one

BOTH = pytest.mark.parametrize("mode", list(SesMode))


def as_read(message: dict[str, Any]) -> dict[str, Any]:
    """Everything a recipient and an event can see of a mail."""
    return {name: value for name, value in message.items() if name not in ("id", "at", "operation")}


@BOTH
def test_the_endpoint_of_the_environment_is_used(mode, stub, open_transport, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_SESV2", stub.url)
    outcome = one(open_transport(mode, endpoint_url=None).send([mail()]))
    assert outcome.kind is OutcomeKind.SENT
    assert [message["id"] for message in stub.messages()] == [outcome.provider_message_id]


@BOTH
def test_a_mail_carries_its_link_its_tags_and_its_sender(mode, stub, open_transport):
    transport = open_transport(mode, configuration_set="main")
    transport.send([mail(3, reply_to="answers@bücher.example")])
    (message,) = stub.messages()
    link = "https://example.org/unsubscribe?token=token-3"
    assert as_read(message) == {
        "to": "reader-3@example.org",
        "from": "The Example <news@example.org>",
        "reply_to": ["answers@xn--bcher-kva.example"],
        "configuration_set": "main",
        "subject": "News for Reader 3",
        "html": f'<p>Hello Reader 3</p><a href="{link}">Leave</a>',
        "text": f"Hello Reader 3\n{link}\n",
        "headers": {
            "List-Unsubscribe": f"<{link}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        },
        "tags": {
            "mailout_message": "00000000-0000-8000-8000-000000000003",
            "mailout_epoch": "7",
            "mailout_campaign": "11111111-1111-8111-8111-111111111111",
        },
    }


@BOTH
def test_a_transactional_mail_offers_no_unsubscribing(stub, transport):
    transport.send([mail(unsubscribe_url=None, mailout_id=None)])
    (message,) = stub.messages()
    assert message["headers"] == {}
    assert set(message["tags"]) == {"mailout_message", "mailout_epoch"}


NASTY = [
    Content("Плюс {{цена}}", "<p>{{{raw}}} {{#if x}} \\{{y}}</p>" + mark("name"), "{" + mark("name") + "}}"),
    Content("{{" + mark("name"), "<style>@media{a{b:c}}</style>\\" + mark(UNSUBSCRIBE_URL), "}}{{ \\\\"),
    Content("Only HTML", "<p>&amp; <b>ünï</b></p>", ""),
]


@pytest.mark.parametrize("content", NASTY)
def test_both_modes_deliver_the_same_bytes_braces_included(content, stub, open_transport):
    mails = [
        mail(
            number, content=content, values={"name": value, UNSUBSCRIBE_URL: f"https://e.org/?t={number}&x=1"}
        )
        for number, value in enumerate(["Ann", "{{name}}", "O'Neil \"&<b>", "Ольга", "back\\slash"])
    ]
    seen = {}
    for mode in SesMode:
        stub.reset()
        outcomes = open_transport(mode).send(mails)
        assert {outcome.kind for outcome in outcomes} == {OutcomeKind.SENT}
        seen[mode] = [as_read(message) for message in stub.messages()]
    assert seen[SesMode.SINGLE] == seen[SesMode.BULK]
    assert seen[SesMode.BULK][0]["html"] == content.html.replace(mark("name"), "Ann").replace(
        mark(UNSUBSCRIBE_URL), "https://e.org/?t=0&x=1"
    )


@BOTH
def test_typed_line_breaks_add_no_header_and_no_recipient(stub, transport):
    attack = "x\r\nBcc: victim@example.org"
    content = Content("Hi " + mark("name"), "<p>hi</p>", "hi")
    outcome = one(transport.send([mail(from_name=attack, content=content, values={"name": attack})]))
    assert outcome.kind is OutcomeKind.SENT
    (message,) = stub.messages()
    assert message["from"] == '"x  Bcc: victim@example.org" <news@example.org>'
    assert message["subject"] == "Hi x  Bcc: victim@example.org"
    assert set(message["headers"]) == {"List-Unsubscribe", "List-Unsubscribe-Post"}


@BOTH
def test_names_and_subjects_in_any_script_arrive(stub, transport):
    content = Content("Новости ✉", "<p>Ж</p>", "Ж")
    transport.send([mail(from_name="Пример, Ltd", content=content)])
    (message,) = stub.messages()
    assert message["subject"] == "Новости ✉"
    assert message["from"] == "=?utf-8?b?0J/RgNC40LzQtdGALCBMdGQ=?= <news@example.org>"


@BOTH
@pytest.mark.parametrize(
    ("changes", "kind", "code"),
    [
        ({"to": "почта@example.org"}, OutcomeKind.INVALID, "INVALID_EMAIL"),
        ({"to": "a@example.org,b@example.org"}, OutcomeKind.INVALID, "INVALID_EMAIL"),
        ({"to": "a..b@example.org"}, OutcomeKind.INVALID, "INVALID_EMAIL"),
        ({"to": ""}, OutcomeKind.INVALID, "INVALID_EMAIL"),
        ({"unsubscribe_url": "https://e.org/ " + "x"}, OutcomeKind.INVALID, "INVALID_PAYLOAD"),
        ({"values": {"name": "no link"}}, OutcomeKind.INVALID, "INVALID_TEMPLATE"),
        (
            {"values": {"name": None, UNSUBSCRIBE_URL: "https://e.org"}},
            OutcomeKind.INVALID,
            "INVALID_TEMPLATE",
        ),
        ({"values": {"name": 5, UNSUBSCRIBE_URL: "https://e.org"}}, OutcomeKind.INVALID, "INVALID_TEMPLATE"),
        ({"from_email": "news"}, OutcomeKind.STOP, "SES_FROM_ADDRESS_INVALID"),
    ],
)
def test_what_ses_cannot_take_is_said_without_a_call(changes, kind, code, stub, transport):
    outcome = one(transport.send([mail(**changes)]))
    assert (outcome.kind, outcome.code) == (kind, code)
    assert remedy_of(code)
    assert stub.calls() == []


@pytest.mark.parametrize("mode", [SesMode.SINGLE])
@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("", "no address"),
        ("nobody", "no @ in the address"),
        ("Ann <ann@example.org>", "a name beside the address"),
        ("a..b@example.org", "invalid part before the @"),
        ("почта@example.org", "a character before the @ that mail services refuse"),
        ("a@example..org", "invalid domain"),
        ("a" * 64 + "@" + ("b" * 63 + ".") * 3 + "c" * 63, "too long for an address"),
    ],
)
def test_an_address_that_ses_cannot_take_fails_with_its_reason(to, why, stub, transport):
    """Whoever keeps the list has to know what to correct."""
    outcome = one(transport.send([mail(to=to)]))
    assert outcome.message == f"SES cannot take this address: {why}."
    assert outcome.category == "VALIDATION_ERROR"


@BOTH
def test_half_a_character_costs_nobody_the_mail(stub, transport):
    """Cut in the middle of an emoji: UTF-8 has no way to write it, JSON's escapes do."""
    link = mail().values[UNSUBSCRIBE_URL]
    outcome = one(transport.send([mail(values={"name": "Ann \ud83d", UNSUBSCRIBE_URL: link})]))
    assert outcome.kind is OutcomeKind.SENT
