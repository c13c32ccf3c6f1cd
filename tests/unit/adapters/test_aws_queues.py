"""SQS, SNS and SES's suppression list, as boto3 speaks to them (its stubber checks every parameter)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from mailout.adapters.ses.suppression import SesSuppression
from mailout.adapters.sns_topics import SnsTopics
from mailout.adapters.sqs import QUEUE_FIELDS, SqsQueue
from mailout.base.errors import CheckSkipped, MailoutError, ProviderUnreachable
from mailout.insight.doctor.event_path import QueueLook, TopicSubscription
from mailout.outbox.feedback.ingest import QueueMessage
from mailout.outbox.feedback.port import StatusChange
from mailout.outbox.feedback.suppression import Reason
from tests.clocks import NOON, FakeClock
from tests.ports import free_port
from tests.sns_messages import TOPIC

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/events"


@pytest.fixture
def stubbed(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Stubber]]:
    client: Any = boto3.client(
        request.param, region_name="eu-west-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    with Stubber(client) as stubber:
        yield client, stubber
        stubber.assert_no_pending_responses()
    client.close()


@pytest.mark.parametrize("stubbed", ["sqs"], indirect=True)
def test_messages_are_waited_for_and_deleted_by_their_receipts(stubbed: tuple[Any, Stubber]) -> None:
    client, stubber = stubbed
    stubber.add_response(
        "receive_message",
        {"Messages": [{"MessageId": "m1", "Body": "{}", "ReceiptHandle": "r1"}]},
        {"QueueUrl": URL, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 20},
    )
    stubber.add_response(
        "delete_message_batch",
        {"Successful": [{"Id": "0"}], "Failed": []},
        {"QueueUrl": URL, "Entries": [{"Id": "0", "ReceiptHandle": "r1"}]},
    )
    stubber.add_response("receive_message", {}, None)
    queue = SqsQueue(client, URL)
    messages = queue.receive()
    assert messages == [QueueMessage("m1", "{}", "r1")]
    queue.delete(messages)
    assert queue.receive() == []


@pytest.mark.parametrize("stubbed", ["sqs"], indirect=True)
def test_a_queue_that_refuses_says_what_to_do(stubbed: tuple[Any, Stubber]) -> None:
    client, stubber = stubbed
    stubber.add_client_error("receive_message", "AccessDenied", "no")
    with pytest.raises(MailoutError, match="sqs:ReceiveMessage"):
        SqsQueue(client, URL).receive()


@pytest.mark.parametrize("stubbed", ["sns"], indirect=True)
def test_a_subscription_is_confirmed_in_the_topic_s_region(stubbed: tuple[Any, Stubber]) -> None:
    client, stubber = stubbed
    asked: list[str] = []
    stubber.add_response(
        "confirm_subscription", {"SubscriptionArn": f"{TOPIC}:1"}, {"TopicArn": TOPIC, "Token": "a-token"}
    )
    stubber.add_client_error("confirm_subscription", "AuthorizationError", "no")

    def client_of(region: str) -> Any:
        asked.append(region)
        return client

    topics = SnsTopics(client_of)
    topics.confirm(TOPIC, "a-token")
    assert asked == ["eu-west-1"]
    with pytest.raises(MailoutError, match="sns:ConfirmSubscription"):
        topics.confirm(TOPIC, "a-token")


@pytest.mark.parametrize("stubbed", ["sqs"], indirect=True)
def test_a_queue_tells_how_full_it_is_and_who_may_write(stubbed: tuple[Any, Stubber]) -> None:
    client, stubber = stubbed
    told = {
        "QueueArn": "arn:aws:sqs:eu-west-1:123456789012:events",
        "ApproximateNumberOfMessages": "12",
        "ApproximateNumberOfMessagesNotVisible": "3",
        "Policy": '{"Statement": []}',
    }
    asked = {"QueueUrl": URL, "AttributeNames": list(QUEUE_FIELDS)}
    stubber.add_response("get_queue_attributes", {"Attributes": told}, asked)
    stubber.add_response("get_queue_attributes", {"Attributes": {"QueueArn": told["QueueArn"]}}, asked)
    queue = SqsQueue(client, URL)
    assert queue.look() == QueueLook(told["QueueArn"], 12, 3, {"Statement": []})
    assert queue.look() == QueueLook(told["QueueArn"], 0, 0, {})  # a queue without a policy lets nobody in


@pytest.mark.parametrize("stubbed", ["sqs"], indirect=True)
def test_a_queue_we_may_not_look_at_may_be_well_one_that_is_not_there_is_not(
    stubbed: tuple[Any, Stubber],
) -> None:
    client, stubber = stubbed
    stubber.add_client_error("get_queue_attributes", "AccessDenied", "no")
    stubber.add_client_error(
        "get_queue_attributes", "AWS.SimpleQueueService.NonExistentQueue", "no such queue"
    )
    queue = SqsQueue(client, URL)
    with pytest.raises(CheckSkipped, match="sqs:GetQueueAttributes"):
        queue.look()
    with pytest.raises(MailoutError, match="SQS_QUEUE_URL") as raised:
        queue.look()
    assert not isinstance(raised.value, CheckSkipped)


@pytest.mark.parametrize("service", ["sqs", "sns"])
def test_without_a_network_nobody_is_told_to_correct_a_queue_or_a_topic(service: str) -> None:
    """It was right, and whoever corrects it makes it wrong."""
    nobody = f"http://127.0.0.1:{free_port()}"
    config = Config(retries={"total_max_attempts": 1})
    client: Any = boto3.client(
        service,  # type: ignore[call-overload]
        region_name="eu-west-1",
        endpoint_url=nobody,
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=config,
    )
    topics = SnsTopics(lambda region: client)
    looks: list[Callable[[], object]] = (
        [SqsQueue(client, URL).look]
        if service == "sqs"
        else [partial(topics.subscriptions, TOPIC), partial(topics.policy, TOPIC)]
    )
    for look in looks:
        with pytest.raises(ProviderUnreachable) as raised:
            look()
        assert "network" in (raised.value.remedy or "")
    client.close()


def subscription(arn: str, protocol: str, endpoint: str) -> dict[str, str]:
    return {
        "SubscriptionArn": arn,
        "Owner": "1",
        "Protocol": protocol,
        "Endpoint": endpoint,
        "TopicArn": TOPIC,
    }


@pytest.mark.parametrize("stubbed", ["sns"], indirect=True)
def test_all_subscriptions_of_a_topic_are_seen_page_by_page(stubbed: tuple[Any, Stubber]) -> None:
    """The hundred-and-first may be ours."""
    client, stubber = stubbed
    waiting = subscription("PendingConfirmation", "https", "https://mail.example.org/ses-events")
    queue = subscription(f"{TOPIC}:1", "sqs", "arn:aws:sqs:eu-west-1:123456789012:events")
    other = subscription(f"{TOPIC}:2", "https", "https://example.net/hook")
    mail = subscription(f"{TOPIC}:3", "email", "admin@example.org")
    stubber.add_response(
        "list_subscriptions_by_topic",
        {"Subscriptions": [waiting, mail], "NextToken": "2"},
        {"TopicArn": TOPIC},
    )
    stubber.add_response(
        "list_subscriptions_by_topic",
        {"Subscriptions": [queue, other]},
        {"TopicArn": TOPIC, "NextToken": "2"},
    )
    raw = {"Attributes": {"RawMessageDelivery": "true"}}
    stubber.add_response("get_subscription_attributes", raw, {"SubscriptionArn": f"{TOPIC}:1"})
    stubber.add_client_error("get_subscription_attributes", "AuthorizationError", "no")
    assert SnsTopics(lambda _: client).subscriptions(TOPIC) == [
        TopicSubscription("https", waiting["Endpoint"], confirmed=False, raw=None),
        TopicSubscription("sqs", queue["Endpoint"], raw=True),
        TopicSubscription("https", other["Endpoint"], raw=None),
    ]


@pytest.mark.parametrize("stubbed", ["sns"], indirect=True)
def test_a_topic_we_may_not_look_at_may_be_well_one_that_is_not_there_is_not(
    stubbed: tuple[Any, Stubber],
) -> None:
    client, stubber = stubbed
    stubber.add_client_error("list_subscriptions_by_topic", "AuthorizationError", "no")
    stubber.add_client_error("list_subscriptions_by_topic", "NotFound", "Topic does not exist")
    topics = SnsTopics(lambda _: client)
    with pytest.raises(CheckSkipped, match="sns:ListSubscriptionsByTopic"):
        topics.subscriptions(TOPIC)
    with pytest.raises(MailoutError, match="SNS_TOPIC_ARNS") as raised:
        topics.subscriptions(TOPIC)
    assert not isinstance(raised.value, CheckSkipped)


@pytest.mark.parametrize("stubbed", ["sns"], indirect=True)
def test_who_may_publish_to_a_topic_is_read_from_its_policy(stubbed: tuple[Any, Stubber]) -> None:
    client, stubber = stubbed
    asked = {"TopicArn": TOPIC}
    stubber.add_response("get_topic_attributes", {"Attributes": {"Policy": '{"Statement": []}'}}, asked)
    stubber.add_client_error("get_topic_attributes", "AuthorizationError", "no")
    topics = SnsTopics(lambda _: client)
    assert topics.policy(TOPIC) == {"Statement": []}
    with pytest.raises(CheckSkipped, match="sns:GetTopicAttributes"):
        topics.policy(TOPIC)


@pytest.mark.parametrize("stubbed", ["sesv2"], indirect=True)
def test_the_whole_suppression_list_is_read_page_by_page(stubbed: tuple[Any, Stubber]) -> None:
    client, stubber = stubbed
    when = datetime.fromtimestamp(NOON, UTC)

    def entry(email: str, reason: str) -> dict[str, Any]:
        return {"EmailAddress": email, "Reason": reason, "LastUpdateTime": when}

    stubber.add_response(
        "list_suppressed_destinations",
        {"SuppressedDestinationSummaries": [entry("ann@example.org", "BOUNCE")], "NextToken": "2"},
        {"PageSize": 1000},
    )
    stubber.add_response(
        "list_suppressed_destinations",
        {"SuppressedDestinationSummaries": [entry("bob@example.org", "COMPLAINT")]},
        {"PageSize": 1000, "NextToken": "2"},
    )
    clock = FakeClock()
    pages = list(SesSuppression(client, clock).pages())
    assert pages == [
        {"ann@example.org": StatusChange("bounced", NOON, "Permanent", "OnAccountSuppressionList")},
        {"bob@example.org": StatusChange("unsubscribed", NOON, complained=True)},
    ]
    assert clock.now() == NOON + 1.0  # SES allows one such call a second


@pytest.mark.parametrize("stubbed", ["sesv2"], indirect=True)
def test_an_address_is_put_on_the_list(stubbed: tuple[Any, Stubber]) -> None:
    client, stubber = stubbed
    expected = {"EmailAddress": "ann@example.org", "Reason": "COMPLAINT"}
    stubber.add_response("put_suppressed_destination", {}, expected)
    stubber.add_client_error("put_suppressed_destination", "AccessDenied", "no")
    there = SesSuppression(client, FakeClock())
    there.put("ann@example.org", Reason.COMPLAINT)
    with pytest.raises(MailoutError, match="ses:PutSuppressedDestination"):
        there.put("ann@example.org", Reason.COMPLAINT)


@pytest.mark.parametrize("stubbed", ["sesv2"], indirect=True)
def test_who_is_told_to_slow_down_waits_and_goes_on(stubbed: tuple[Any, Stubber]) -> None:
    """SES allows about one such call a second, to the whole account."""
    client, stubber = stubbed
    expected = {"EmailAddress": "ann@example.org", "Reason": "BOUNCE"}
    for code in ("TooManyRequestsException", "ThrottlingException"):
        stubber.add_client_error("put_suppressed_destination", code, "slow down", expected_params=expected)
    stubber.add_response("put_suppressed_destination", {}, expected)
    clock = FakeClock()
    SesSuppression(client, clock).put("ann@example.org", Reason.BOUNCE)
    assert clock.now() > NOON + 5.0


@pytest.mark.parametrize("stubbed", ["sesv2"], indirect=True)
@pytest.mark.parametrize(("code", "tries"), [("TooManyRequestsException", 4), ("InternalFailure", 1)])
def test_who_is_interrupted_is_told_how_far_it_came_and_not_to_change_rights(
    stubbed: tuple[Any, Stubber], code: str, tries: int
) -> None:
    client, stubber = stubbed
    stubber.add_response("put_suppressed_destination", {})
    for _ in range(tries):
        stubber.add_client_error("put_suppressed_destination", code, "not now")
    there = SesSuppression(client, FakeClock())
    there.put("ann@example.org", Reason.BOUNCE)
    with pytest.raises(MailoutError, match=r"After 1 address: .*not now") as raised:
        there.put("bob@example.org", Reason.BOUNCE)
    assert "again" in str(raised.value)
    assert "ses:PutSuppressedDestination" not in str(raised.value)
