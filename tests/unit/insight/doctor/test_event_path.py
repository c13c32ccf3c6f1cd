"""Events that do not come back: unknowns never settle, bounces are mailed again. `doctor` finds the break."""

from __future__ import annotations

from typing import Any

import pytest

from mailout.insight.doctor.event_path import (
    QUEUE_BACKLOG_EVENTS,
    EventPath,
    QueueLook,
    TopicSubscription,
    lets_write,
    listening_checks,
    policy_checks,
    queue_checks,
    topic_check,
)
from tests.sns_messages import TOPIC

GATEWAY = "https://mail.example.org/ses-events"
QUEUE_URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/events"
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:events"
WAYS = EventPath("https://mail.example.org/", QUEUE_URL)

BY_GATEWAY = TopicSubscription("https", GATEWAY)
BY_QUEUE = TopicSubscription("sqs", QUEUE)
UNCONFIRMED = TopicSubscription("https", GATEWAY, confirmed=False, raw=None)


@pytest.mark.parametrize(
    ("subscriptions", "level"),
    [
        ([BY_GATEWAY], "ok"),
        ([BY_QUEUE], "ok"),
        ([BY_GATEWAY, BY_QUEUE], "ok"),
        ([TopicSubscription("https", GATEWAY + "/", raw=None)], "ok"),
        (
            [TopicSubscription("https", "https://Mail.Example.org:443/ses-events")],
            "ok",
        ),  # as somebody typed it
        ([TopicSubscription("sqs", QUEUE, raw=True)], "ok"),  # we read both
        ([], "fail"),
        ([TopicSubscription("https", "https://elsewhere.example.org/ses-events")], "fail"),
        ([TopicSubscription("https", "https://mail.example.org/")], "fail"),
        ([TopicSubscription("sqs", QUEUE + "-old")], "fail"),
        ([TopicSubscription("email", "admin@example.org")], "fail"),
        ([UNCONFIRMED], "fail"),
        ([UNCONFIRMED, BY_QUEUE], "warn"),
        ([TopicSubscription("https", GATEWAY, raw=True)], "fail"),  # no signature to check
        ([BY_GATEWAY, TopicSubscription("sqs", QUEUE, raw=True)], "warn"),  # the same event under two ids
    ],
)
def test_a_topic_has_to_tell_us_in_a_form_that_we_read(
    subscriptions: list[TopicSubscription], level: str
) -> None:
    check = topic_check(TOPIC, subscriptions, WAYS)
    assert check.level == level
    assert bool(check.remedy) == (level != "ok")


def test_whom_to_subscribe_is_said() -> None:
    remedy = topic_check(TOPIC, [], WAYS).remedy
    assert GATEWAY in remedy
    assert QUEUE_URL in remedy


def test_without_a_public_url_any_gateway_may_be_ours() -> None:
    assert topic_check(TOPIC, [BY_GATEWAY], EventPath()).level == "ok"
    assert topic_check(TOPIC, [BY_QUEUE], EventPath()).level == "fail"


def test_somebody_has_to_listen() -> None:
    assert [one.level for one in listening_checks((), None)] == ["fail"]
    assert [one.level for one in listening_checks((), QUEUE_URL)] == ["warn"]
    assert [one.level for one in listening_checks((TOPIC,), None)] == []


def statement(**changes: Any) -> dict[str, Any]:
    """As AWS's console writes it."""
    return {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": QUEUE,
        "Condition": {"ArnEquals": {"aws:SourceArn": TOPIC}},
    } | changes


@pytest.mark.parametrize(
    ("changes", "lets"),
    [
        ({}, True),
        ({"Principal": "*"}, True),
        ({"Principal": {"AWS": "*"}}, True),
        ({"Principal": {"Service": ["events.amazonaws.com", "sns.amazonaws.com"]}}, True),
        ({"Action": ["SQS:SendMessage", "sqs:ReceiveMessage"]}, True),
        ({"Action": "sqs:*"}, True),
        ({"Action": "SQS:Send*"}, True),
        ({"Condition": {}}, True),
        ({"Condition": {"ArnLike": {"AWS:SourceArn": ["arn:aws:sns:*:*:*"]}}}, True),
        ({"Condition": {"StringEquals": {"aws:SourceAccount": "123456789012"}}}, True),
        ({"Effect": "Deny"}, False),
        ({"Principal": {"AWS": "arn:aws:iam::123456789012:root"}}, False),
        ({"Principal": {"Service": "events.amazonaws.com"}}, False),
        ({"Action": "sqs:ReceiveMessage"}, False),
        ({"Condition": {"ArnEquals": {"aws:SourceArn": TOPIC + "-other"}}}, False),
        ({"Condition": {"StringEquals": {"aws:SourceArn": "arn:aws:sns:*"}}}, False),
    ],
)
def test_a_queue_s_policy_is_read_as_aws_reads_it(changes: dict[str, Any], lets: bool) -> None:
    """A queue that nobody may write to stays empty, and nobody wonders why."""
    assert lets_write({"Statement": [statement(**changes)]}, TOPIC) is lets
    assert lets_write({"Statement": statement(**changes)}, TOPIC) is lets  # one alone need not be in a list


BY_SES = {"Effect": "Allow", "Principal": {"Service": "ses.amazonaws.com"}, "Action": "sns:Publish"}
AS_SNS_MAKES_IT = {
    "Effect": "Allow",
    "Principal": {"AWS": "*"},
    "Action": ["SNS:GetTopicAttributes", "SNS:Subscribe", "SNS:Publish"],
    "Condition": {"StringEquals": {"AWS:SourceOwner": "123456789012"}},
}


@pytest.mark.parametrize(
    ("policy", "levels"),
    [
        ({"Statement": [BY_SES]}, []),
        ({"Statement": [AS_SNS_MAKES_IT]}, []),
        ({"Statement": [BY_SES | {"Principal": {"Service": "s3.amazonaws.com"}}]}, ["fail"]),
        ({}, ["fail"]),
    ],
)
def test_a_topic_that_ses_may_not_publish_to_stays_silent_so_doctor_does_not(
    policy: dict[str, Any], levels: list[str]
) -> None:
    assert [check.level for check in policy_checks(TOPIC, policy)] == levels


def test_a_queue_that_nobody_empties_is_seen() -> None:
    policy = {"Statement": [statement()]}
    assert [one.level for one in queue_checks(QueueLook(QUEUE, 12, 3, policy), (TOPIC,))] == ["ok"]
    (full,) = queue_checks(QueueLook(QUEUE, QUEUE_BACKLOG_EVENTS + 1, 0, policy), (TOPIC,))
    assert (full.level, "mailout events" in full.remedy) == ("warn", True)


def test_a_topic_that_may_not_write_is_named() -> None:
    other = TOPIC + "-other"
    (shut_out,) = queue_checks(QueueLook(QUEUE, policy={"Statement": [statement()]}), (TOPIC, other))
    assert (shut_out.level, other in shut_out.message) == ("fail", True)
    assert [one.level for one in queue_checks(QueueLook(QUEUE), (TOPIC,))] == ["fail"]
