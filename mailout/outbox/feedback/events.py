"""SES's events, parsed: those of configuration sets (`eventType`) and notifications (`notificationType`).

They are written by SES and still vary: parts are null, absent or new. So nothing here relies on more than the
type; what is missing is left out, and no JSON whatever makes the parser raise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mailout.base.addresses import address_of
from mailout.base.clock import timestamp_of
from mailout.base.redact import redact_tokens
from mailout.outbox.delivery.protocol import Attempt
from mailout.outbox.feedback.port import Event, EventType

UNKNOWN_EVENT_TYPE = "unknown_event_type"
GREETINGS = ("AmazonSnsSubscriptionSucceeded",)
"""What SES says once when a topic is connected. It also sends this line, which is not even JSON:"""
GREETING_LINE = "Successfully validated SNS topic for Amazon SES event publishing."


@dataclass(frozen=True, slots=True)
class NoEvent:
    """A message that changes nothing, and what should be noted of it, if anything."""

    code: str | None = None
    message: str = ""


class Unreadable(ValueError):
    """Not a message that SES would write."""


_DETAIL_LENGTH = 500
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class _Kind:
    """Where one kind of event keeps its parts."""

    type: EventType
    part: str
    recipients: str | None = None
    detail: tuple[str, ...] = ()


_KINDS: Mapping[str, _Kind] = {
    "Send": _Kind(EventType.SEND, "send"),
    "Delivery": _Kind(
        EventType.DELIVERED,
        "delivery",
        "recipients",
        ("smtpResponse", "processingTimeMillis", "reportingMTA"),
    ),
    "Bounce": _Kind(EventType.BOUNCE, "bounce", "bouncedRecipients", ("bounceType", "bounceSubType")),
    "Complaint": _Kind(
        EventType.SPAMREPORT,
        "complaint",
        "complainedRecipients",
        ("complaintFeedbackType", "complaintSubType", "userAgent"),
    ),
    "Open": _Kind(EventType.OPEN, "open", detail=("userAgent",)),
    "Click": _Kind(EventType.CLICK, "click", detail=("link", "userAgent")),
    "DeliveryDelay": _Kind(
        EventType.DELAYED, "deliveryDelay", "delayedRecipients", ("delayType", "expirationTime")
    ),
    "Reject": _Kind(EventType.REJECTED, "reject", detail=("reason",)),
    "RenderingFailure": _Kind(
        EventType.RENDERING_FAILURE, "failure", detail=("errorMessage", "templateName")
    ),
    "Subscription": _Kind(EventType.SUBSCRIPTION, "subscription", detail=("contactList", "source")),
}
"""By name, without the space that `Rendering Failure` has and others have not."""
_FAILED_RECIPIENT = ("diagnosticCode", "status", "action")


def parse_event(payload: str) -> Event | NoEvent:
    """An event; or nothing to apply. Raises `Unreadable` for what SES never wrote."""
    if payload.strip() == GREETING_LINE:
        return NoEvent()
    event = _object(_decoded(payload))
    name = event.get("eventType") or event.get("notificationType")
    if not isinstance(name, str):
        if "TopicArn" in event:
            raise Unreadable("It is from an SNS topic that is not in SNS_TOPIC_ARNS.")
        raise Unreadable("It has neither eventType nor notificationType.")
    kind = _KINDS.get(name.replace(" ", ""))
    if kind is None:
        return NoEvent() if name in GREETINGS else NoEvent(UNKNOWN_EVENT_TYPE, f"SES event {name[:80]!r}")
    mail, part = _object(event.get("mail")), _object(event.get(kind.part))
    tags = _object(mail.get("tags"))
    return Event(
        type=_type(kind, part),
        at=timestamp_of(part.get("timestamp")) or timestamp_of(mail.get("timestamp")),
        provider_message_id=_text(mail.get("messageId")),
        attempt=_attempt(tags),
        mailout_id=_uuid(_tag(tags, "mailout_campaign")),
        recipients=tuple(dict.fromkeys(_recipients(kind, part, mail))),
        destination=tuple(dict.fromkeys(_addresses(_list(mail.get("destination"))))),
        bounce_type=_text(part.get("bounceType")),
        bounce_subtype=_text(part.get("bounceSubType")),
        detail=dict(_detail(kind, part)),
    )


def _decoded(payload: str) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise Unreadable("It is not JSON.") from error


def _type(kind: _Kind, part: Mapping[str, Any]) -> EventType:
    """Two kinds can mean the opposite of their name."""
    if kind.type is EventType.SPAMREPORT and part.get("complaintFeedbackType") == "not-spam":
        return EventType.NOT_SPAM
    if (
        kind.type is EventType.SUBSCRIPTION
        and _object(part.get("newTopicPreferences")).get("unsubscribeAll") is True
    ):
        return EventType.UNSUBSCRIBE
    return kind.type


def _attempt(tags: Mapping[str, Any]) -> Attempt | None:
    """Which attempt of ours it was. Notifications carry no tags, other people's mail none of these."""
    id, epoch = _uuid(_tag(tags, "mailout_message")), _tag(tags, "mailout_epoch")
    if id is None or epoch is None or not re.fullmatch(r"[1-9][0-9]{0,8}", epoch):
        return None
    return Attempt(id, int(epoch))


def _tag(tags: Mapping[str, Any], name: str) -> str | None:
    values = tags.get(name)
    return _text(values[0]) if isinstance(values, list) and values else None


def _uuid(text: str | None) -> str | None:
    return text if text is not None and _UUID.fullmatch(text) else None


def _recipients(kind: _Kind, part: Mapping[str, Any], mail: Mapping[str, Any]) -> Iterator[str]:
    """Whom the event is about; if it does not say, whom the mail was for."""
    named = part.get(kind.recipients) if kind.recipients else None
    return _addresses(_list(named) or _list(mail.get("destination")))


def _addresses(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        written = _text(entry.get("emailAddress") if isinstance(entry, dict) else entry)
        address = written and address_of(written)
        if address:
            yield address


def _detail(kind: _Kind, part: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a person wants to read of it later. No IP address: it is nobody's business."""
    failed = _list(part.get(kind.recipients)) if kind.recipients else []
    entries = [(name, part.get(name)) for name in kind.detail]
    if failed:
        entries += [(name, _object(failed[0]).get(name)) for name in _FAILED_RECIPIENT]
    for name, value in entries:
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else _text(value)
        if text:
            yield name, redact_tokens(text)[:_DETAIL_LENGTH]  # a followed link may be a secret one


def _text(value: Any) -> str | None:
    """Text that every store can keep: no NUL, no half of a surrogate pair."""
    if not isinstance(value, str):
        return None
    if value.isascii() and "\0" not in value:  # nearly always, and ten times as quick
        return value or None
    return value.replace("\0", "").encode("utf-8", "replace").decode() or None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
