"""SES's events as SES writes them, for tests: both shapes, with or without our tags."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from mailout.outbox.delivery.protocol import Attempt
from tests.clocks import NOON

SES_ID = "0102018f-aaaa-bbbb-cccc-000000000000-000000"


def written(moment: float) -> str:
    """As SES writes a time."""
    text = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def ses_event(
    name: str,
    email: str = "ann@example.org",
    *,
    at: float = NOON,
    attempt: Attempt | None = None,
    campaign: str | None = None,
    ses_id: str = SES_ID,
    shape: str = "eventType",
    **part: Any,
) -> str:
    mail: dict[str, Any] = {
        "timestamp": written(at - 5),
        "messageId": ses_id,
        "source": "news@example.org",
        "destination": [email],
    }
    if attempt is not None:
        mail["tags"] = {
            "ses:configuration-set": ["mailout"],
            "mailout_message": [attempt.id],
            "mailout_epoch": [str(attempt.epoch)],
        } | ({"mailout_campaign": [campaign]} if campaign else {})
    parts: dict[str, tuple[str, dict[str, Any]]] = {
        "Send": ("send", {}),
        "Delivery": ("delivery", {"recipients": [email], "smtpResponse": "250 2.6.0 Message received"}),
        "Bounce": (
            "bounce",
            {
                "bounceType": "Permanent",
                "bounceSubType": "General",
                "bouncedRecipients": [{"emailAddress": email, "status": "5.1.1", "action": "failed"}],
            },
        ),
        "Complaint": (
            "complaint",
            {"complainedRecipients": [{"emailAddress": email}], "complaintSubType": None},
        ),
        "Open": ("open", {"ipAddress": "192.0.2.1", "userAgent": "Mozilla/5.0"}),
        "Click": ("click", {"link": "https://example.org/news", "ipAddress": "192.0.2.1"}),
        "DeliveryDelay": (
            "deliveryDelay",
            {"delayType": "MailboxFull", "delayedRecipients": [{"emailAddress": email, "status": "4.2.2"}]},
        ),
        "Reject": ("reject", {"reason": "Bad content"}),
        "Rendering Failure": (
            "failure",
            {"errorMessage": "Attribute 'name' is not present", "templateName": "t"},
        ),
        "Subscription": (
            "subscription",
            {"contactList": "people", "newTopicPreferences": {"unsubscribeAll": True}},
        ),
    }
    key, told = parts.get(name, (name.lower(), {}))
    told = told | part
    if name not in ("Send", "Reject", "Rendering Failure"):
        told["timestamp"] = written(at)
    return json.dumps({shape: name, "mail": mail, key: told})
