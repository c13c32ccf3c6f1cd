"""SNS's signature: what is believed, and everything that only looks like it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from hypothesis import given
from hypothesis import strategies as st

from mailout.outbox.feedback.sns import (
    SnsKind,
    SnsMessage,
    SnsRefused,
    certificate_url,
    check,
    public_key,
    read,
)
from tests.clocks import NOON
from tests.sns_messages import CERTIFICATE_URL, TOPIC, Signer, Topic, signer

FILE = f"SimpleNotificationService-{'0a' * 16}.pem"


def key_of(url: str) -> RSAPublicKey | None:
    return public_key(signer().pem, NOON) if url == CERTIFICATE_URL else None


def verdict(body: bytes, topics: tuple[str, ...] = (TOPIC,)) -> SnsMessage | SnsRefused:
    message = read(body, topics)
    return message if isinstance(message, SnsRefused) else check(message, key_of(message.certificate_url))


def believed(body: bytes) -> SnsMessage:
    found = verdict(body)
    assert isinstance(found, SnsMessage), found
    return found


@pytest.mark.parametrize("version", ["1", "2"])
def test_all_three_types_are_believed_in_both_versions(version: str) -> None:
    topic = Topic(version=version)
    assert believed(topic.notification("hello")).kind is SnsKind.NOTIFICATION
    assert believed(topic.confirmation()).token == "a-token"
    assert believed(topic.confirmation("UnsubscribeConfirmation")).kind is SnsKind.UNSUBSCRIPTION


@pytest.mark.parametrize("subject", ["News", None])
def test_a_subject_is_signed_if_there_is_one(subject: str | None) -> None:
    assert believed(Topic().notification("hello", Subject=subject)).message == "hello"


def test_a_line_break_at_the_end_belongs_to_the_message() -> None:
    """SES ends its messages with one; stripped, no signature would fit."""
    assert believed(Topic().notification('{"eventType": "Send"}\n')).message.endswith("\n")


def test_the_other_spelling_of_the_certificate_s_field() -> None:
    fields = json.loads(Topic().notification("hello"))
    fields["SigningCertUrl"] = fields.pop("SigningCertURL")
    assert believed(json.dumps(fields).encode()).message == "hello"


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_any_text_survives(text: str) -> None:
    assert believed(Topic().notification(text)).message == text


@pytest.mark.parametrize("field", ["Message", "MessageId", "Timestamp", "TopicArn", "Type", "Subject"])
def test_a_change_to_any_signed_field_is_noticed(field: str) -> None:
    body = json.loads(Topic().notification("hello", Subject="News"))
    body[field] = "SubscriptionConfirmation" if field == "Type" else body[field] + "0"
    assert isinstance(verdict(json.dumps(body).encode(), (TOPIC, TOPIC + "0")), SnsRefused)


def test_another_key_s_signature_is_refused() -> None:
    forged = Topic(signer=Signer.make()).notification("hello")
    assert verdict(forged) == SnsRefused("a signature that does not fit")


def test_a_topic_that_is_not_ours_is_refused_though_its_signature_is_good() -> None:
    """Any AWS account can have SNS sign whatever it likes."""
    foreign = Topic(arn="arn:aws:sns:eu-west-1:999999999999:ses-events").notification("hello")
    assert verdict(foreign) == SnsRefused("a topic that is not in SNS_TOPIC_ARNS")
    assert isinstance(verdict(Topic().notification("hello"), ()), SnsRefused)


@pytest.mark.parametrize(
    "url",
    [
        f"http://sns.eu-west-1.amazonaws.com/{FILE}",
        f"https://sns.us-east-1.amazonaws.com/{FILE}",
        f"https://sns.s3.amazonaws.com/{FILE}",
        f"https://s3.eu-west-1.amazonaws.com/sns.eu-west-1.amazonaws.com/{FILE}",
        f"https://sns.eu-west-1.amazonaws.com.evil.example/{FILE}",
        f"https://sns.eu-west-1.amazonaws.com.cn/{FILE}",
        f"https://evil.example/sns.eu-west-1.amazonaws.com/{FILE}",
        f"https://sns-eu-west-1.amazonaws.com/{FILE}",
        f"https://sns.eu-west-1.amazonaws.com:443/{FILE}",
        f"https://sns.eu-west-1.amazonaws.com:8443/{FILE}",
        f"https://sns.eu-west-1.amazonaws.com@evil.example/{FILE}",
        f"https://user:pass@sns.eu-west-1.amazonaws.com/{FILE}",
        f"https://sns.eu-west-1.amazonaws.com/{FILE}?x=1",
        f"https://sns.eu-west-1.amazonaws.com/{FILE}#x",
        f"https://sns.eu-west-1.amazonaws.com/{FILE}\n",
        f"https://sns.eu-west-1.amazonaws.com//{FILE}",
        f"https://sns.eu-west-1.amazonaws.com/../{FILE}",
        f"https://sns.eu-west-1.amazonaws.com/x/{FILE}",
        f"https://SNS.eu-west-1.amazonaws.com/{FILE}",
        f"https://sns.eu-west-1.amazonaws.com/{FILE.upper()}",
        "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0a.pem",
        "https://sns.eu-west-1.amazonaws.com/",
        "",
        None,
        7,
        ["https://sns.eu-west-1.amazonaws.com/"],
    ],
)
def test_a_certificate_from_anywhere_else_is_not_even_asked_for(url: Any) -> None:
    body = json.loads(Topic().notification("hello"))
    body["SigningCertURL"] = url
    assert read(json.dumps(body).encode(), [TOPIC]) == SnsRefused("a certificate that is not SNS's")


def test_china_has_a_domain_of_its_own() -> None:
    topic = "arn:aws-cn:sns:cn-north-1:123456789012:ses-events"
    url = f"https://sns.cn-north-1.amazonaws.com.cn/{FILE}"
    assert certificate_url(url, topic) == url
    assert certificate_url(f"https://sns.cn-north-1.amazonaws.com/{FILE}", topic) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{}",
        b"[" * 200_000,
        b'{"a":' * 50_000,
        json.dumps({"TopicArn": TOPIC}).encode(),
        json.dumps({"TopicArn": [TOPIC], "Type": {}}).encode(),
        json.dumps({"TopicArn": TOPIC, "Type": ["Notification"]}).encode(),
    ],
)
def test_what_is_no_sns_message_is_refused_without_falling(body: bytes) -> None:
    assert isinstance(verdict(body), SnsRefused)


@pytest.mark.parametrize(
    "changes",
    [
        {"SignatureVersion": "3"},
        {"SignatureVersion": None},
        {"SignatureVersion": 1},
        {"SignatureVersion": ["1"]},
        {"Signature": ""},
        {"Signature": None},
        {"Signature": "ü"},
        {"Signature": "####"},
        {"Signature": ["x"]},
        {"Message": None},
        {"Message": {"eventType": "Send"}},
        {"Message": "\ud800"},
        {"MessageId": "../../etc"},
        {"Message": "a NUL, which no Postgres can keep: \0"},
        {"MessageId": "0" * 100},
    ],
)
def test_fields_of_the_wrong_kind_are_refused(changes: dict[str, Any]) -> None:
    body = json.loads(Topic().notification("hello")) | changes
    assert isinstance(verdict(json.dumps(body).encode()), SnsRefused)


@pytest.mark.parametrize("now", [NOON - 10 * 86_400, NOON + 400 * 86_400])
def test_a_certificate_that_is_not_valid_now_vouches_for_nothing(now: float) -> None:
    assert public_key(signer().pem, now) is None


def test_what_is_no_certificate_has_no_key() -> None:
    assert public_key(b"<html>", NOON) is None
