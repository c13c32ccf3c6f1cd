"""How SES's events come back: configuration set → topic → subscription → the gateway, or a queue.

Where the way is broken, unknown messages never settle and nobody learns of bounces: `doctor` walks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from mailout.base.setting_values import as_browsers_write
from mailout.insight.doctor.checks import Check, Level

EVENTS_PATH = "/ses-events"
QUEUE_BACKLOG_EVENTS = (
    10_000  # five runs of `ingest_ses_events`: nobody empties the queue, or not fast enough
)

Policy = Mapping[str, Any]
"""As AWS writes them; empty: there is none, and nobody is let in."""


@dataclass(frozen=True, slots=True)
class TopicSubscription:
    """Whom a topic tells."""

    protocol: str  # http, https, sqs
    endpoint: str  # an address, or a queue's ARN
    confirmed: bool = True
    raw: bool | None = False  # without SNS's envelope; None: we may not know


@dataclass(frozen=True, slots=True)
class QueueLook:
    """A queue as it stands."""

    arn: str
    waiting: int = 0
    taken: int = 0  # received, not yet deleted
    policy: Policy = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventPath:
    """Where we listen."""

    public_url: str | None = None
    queue_url: str | None = None

    def is_gateway(self, one: TopicSubscription) -> bool:
        if one.protocol not in ("http", "https"):
            return False
        endpoint = one.endpoint.rstrip("/")
        if self.public_url is None:
            return endpoint.endswith(EVENTS_PATH)
        return as_browsers_write(endpoint) == self.public_url.rstrip("/") + EVENTS_PATH

    def is_queue(self, one: TopicSubscription) -> bool:
        """A queue's address ends with …/account/name, its ARN with …:account:name."""
        if one.protocol != "sqs" or self.queue_url is None:
            return False
        return one.endpoint.split(":")[-2:] == urlsplit(self.queue_url).path.strip("/").split("/")[-2:]

    def __str__(self) -> str:
        gateway = f"{(self.public_url or 'https://…').rstrip('/')}{EVENTS_PATH} (HTTPS)"
        return f"{gateway} or the queue {self.queue_url} (SQS)" if self.queue_url else gateway


def listening_checks(topics: Sequence[str], queue_url: str | None) -> Iterator[Check]:
    """Is anybody here to be told?"""
    if not topics and queue_url is None:
        remedy = "Set SNS_TOPIC_ARNS to the topic that SES publishes to, and better still SQS_QUEUE_URL too."
        yield Check("SNS_TOPIC_ARNS", "fail", "is not set, so every event is refused", remedy)
    elif not topics:
        remedy = "Set SNS_TOPIC_ARNS to the topic that feeds the queue."
        yield Check("SNS_TOPIC_ARNS", "warn", "is not set: whatever the queue holds is believed", remedy)


def topic_check(topic: str, subscriptions: Sequence[TopicSubscription], event_path: EventPath) -> Check:
    """Does what SES tells this topic reach us, and as something we can read?"""
    name = f"topic {topic.rpartition(':')[2]}"
    gateway = [one for one in subscriptions if event_path.is_gateway(one)]
    queue = [one for one in subscriptions if event_path.is_queue(one)]
    ours = [*gateway, *queue]
    confirmed = [one for one in ours if one.confirmed]
    waiting = ", ".join(one.endpoint for one in ours if not one.confirmed)
    if not ours:
        return Check(name, "fail", "it does not tell us anything", f"Subscribe {event_path} to it.")
    if waiting:
        remedy = "Start the gateway where SNS reaches it, then request confirmation in the SNS console."
        level: Level = "warn" if confirmed else "fail"
        return Check(name, level, f"the subscription of {waiting} is not confirmed", remedy)
    if any(one.raw for one in gateway):
        remedy = "Switch raw message delivery off for this subscription."
        return Check(name, "fail", "raw messages have no signature, so the gateway refuses them", remedy)
    if gateway and any(one.raw for one in queue):
        remedy = "Switch raw message delivery off for the queue's subscription."
        message = "an event that comes both ways is counted twice: the queue's is raw"
        return Check(name, "warn", message, remedy)
    return Check(name, "ok", f"it tells {' and '.join(one.endpoint for one in ours)}")


def policy_checks(topic: str, policy: Policy) -> Iterator[Check]:
    """May SES tell the topic anything? Silent if it may: the topic's own line has said that all is well."""
    if not _lets(policy, "ses.amazonaws.com", "sns:Publish", None):
        remedy = "Allow sns:Publish to ses.amazonaws.com in the topic's policy; docs/aws.md has it."
        yield Check(
            f"topic {topic.rpartition(':')[2]}", "fail", "its policy does not let SES publish to it", remedy
        )


def queue_checks(queue: QueueLook, topics: Sequence[str]) -> Iterator[Check]:
    """May the topics write to it, and does anybody empty it?"""
    name = "SQS_QUEUE_URL"
    shut_out = [topic for topic in topics if not lets_write(queue.policy, topic)]
    for topic in shut_out:
        remedy = "Allow sqs:SendMessage to sns.amazonaws.com in the queue's policy, for this topic's ARN."
        yield Check(name, "fail", f"its policy does not let {topic} write", remedy)
    depth = f"{queue.waiting:,} waiting, {queue.taken:,} taken"
    if queue.waiting > QUEUE_BACKLOG_EVENTS:
        remedy = "See that the flow ingest_ses_events runs, or empty it by hand: mailout events"
        yield Check(name, "warn", f"nobody empties it: {depth}", remedy)
    elif not shut_out:
        yield Check(name, "ok", depth)


def lets_write(policy: Policy, topic: str) -> bool:
    """Does a queue's policy let SNS put in what this topic says?"""
    return _lets(policy, "sns.amazonaws.com", "sqs:SendMessage", topic)


def _lets(policy: Policy, service: str, action: str, source: str | None) -> bool:
    return any(
        statement.get("Effect") == "Allow"
        and _for_service(statement.get("Principal"), service)
        and any(fnmatchcase(action.lower(), one.lower()) for one in _list(statement.get("Action")))
        and (source is None or _for_topic(statement.get("Condition") or {}, source))
        for statement in _list(policy.get("Statement"))
    )


def _for_service(principal: Any, service: str) -> bool:
    if not isinstance(principal, Mapping):
        return bool(principal == "*")
    return service in _list(principal.get("Service")) or "*" in _list(principal.get("AWS"))


def _for_topic(condition: Mapping[str, Any], topic: str) -> bool:
    """Every test on the source's ARN holds; the others (its account) are not ours to check."""
    for kind, tests in condition.items():
        for key, wanted in tests.items():
            if key.lower() != "aws:sourcearn":
                continue
            like = kind.lower().startswith("arn") or "like" in kind.lower()
            if not any(fnmatchcase(topic, one) if like else topic == one for one in _list(wanted)):
                return False
    return True


def _list(value: Any) -> list[Any]:
    """Policies write one thing as itself and several as a list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
