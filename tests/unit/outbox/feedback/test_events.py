"""SES's events: read in both shapes, whatever is missing from them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.outbox.delivery.protocol import Attempt
from mailout.outbox.feedback.events import GREETING_LINE, NoEvent, Unreadable, parse_event
from mailout.outbox.feedback.port import Event, EventType
from tests.clocks import NOON
from tests.ses_events import SES_ID, ses_event

ANN = "ann@example.org"
OURS = Attempt("3f2a0000-0000-8000-8000-000000000001", 3)


def event_of(payload: str) -> Event:
    event = parse_event(payload)
    assert isinstance(event, Event)
    return event


def changed(payload: str, **changes: Any) -> str:
    return json.dumps(json.loads(payload) | changes)


@pytest.mark.parametrize("shape", ["eventType", "notificationType"])
@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("Send", "send"),
        ("Delivery", "delivered"),
        ("Bounce", "bounce"),
        ("Complaint", "spamreport"),
        ("Open", "open"),
        ("Click", "click"),
        ("DeliveryDelay", "delayed"),
        ("Reject", "rejected"),
        ("Rendering Failure", "rendering_failure"),
        ("Subscription", "unsubscribe"),
    ],
)
def test_every_type_in_both_shapes_has_its_word(shape: str, name: str, word: str) -> None:
    event = event_of(ses_event(name, "Ann@Example.org", shape=shape))
    assert (event.type, event.recipients, event.provider_message_id) == (word, (ANN,), SES_ID)


def test_a_followed_secret_link_is_not_kept() -> None:
    """A click's event is shown on pages and kept for years: the link in it would still open."""
    said = changed(ses_event("Click"), click={"link": "https://mail.example.org/join/confirm?token=e30.c2ln"})
    assert event_of(said).detail == {"link": "https://mail.example.org/join/confirm?token=***"}


def test_our_tags_name_the_attempt_and_the_mailout() -> None:
    campaign = "3f2a0000-0000-8000-8000-00000000000c"
    event = event_of(ses_event("Delivery", attempt=OURS, campaign=campaign))
    assert (event.attempt, event.mailout_id, event.at) == (OURS, campaign, NOON)


@pytest.mark.parametrize(
    "tags",
    [
        None,
        {},
        {"mailout_message": [OURS.id]},
        {"mailout_message": [], "mailout_epoch": []},
        {"mailout_message": ["x'; --"], "mailout_epoch": ["1"]},
        {"mailout_message": [OURS.id], "mailout_epoch": ["0"]},
        {"mailout_message": [OURS.id], "mailout_epoch": ["-1"]},
        {"mailout_message": [OURS.id], "mailout_epoch": ["9" * 30]},
        {"mailout_message": OURS.id, "mailout_epoch": "1"},
        {"mailout_message": [{}], "mailout_epoch": [1]},
    ],
)
def test_tags_that_are_not_ours_name_no_attempt(tags: Any) -> None:
    """A foreign tag must not move one of our messages, nor break the store."""
    payload = json.loads(ses_event("Delivery"))
    payload["mail"]["tags"] = tags
    assert event_of(json.dumps(payload)).attempt is None


def test_a_bounce_brings_its_types_and_the_server_s_words() -> None:
    recipients = [{"emailAddress": "Ann <ANN@example.org>", "diagnosticCode": "smtp; 550 5.1.1 no such user"}]
    event = event_of(ses_event("Bounce", bouncedRecipients=recipients, bounceSubType="NeverHeardOf"))
    assert (event.bounce_type, event.bounce_subtype) == ("Permanent", "NeverHeardOf")
    assert event.recipients == (ANN,)
    assert event.detail["diagnosticCode"] == "smtp; 550 5.1.1 no such user"


def test_an_out_of_office_reply_has_no_status() -> None:
    recipients = [{"emailAddress": ANN}]
    event = event_of(ses_event("Bounce", bounceType="Transient", bouncedRecipients=recipients))
    assert (event.type, event.bounce_type, "status" in event.detail) == (EventType.BOUNCE, "Transient", False)


def test_a_complaint_that_says_not_spam_is_none() -> None:
    """Who rescues our mail from the spam folder must not be unsubscribed for it."""
    event = event_of(ses_event("Complaint", complaintFeedbackType="not-spam"))
    assert event.type is EventType.NOT_SPAM


def test_preferences_short_of_leaving_do_not_unsubscribe() -> None:
    event = event_of(ses_event("Subscription", newTopicPreferences={"unsubscribeAll": False}))
    assert event.type is EventType.SUBSCRIPTION


def test_an_event_without_its_mail_is_still_an_event() -> None:
    event = event_of(changed(ses_event("Bounce"), mail=None))
    assert (event.provider_message_id, event.attempt, event.recipients, event.at) == (
        None,
        None,
        (ANN,),
        NOON,
    )


def test_without_recipients_of_its_own_an_event_is_about_the_mail_s() -> None:
    assert event_of(ses_event("Bounce", bouncedRecipients=[])).recipients == (ANN,)
    assert event_of(changed(ses_event("Delivery"), delivery=None)).recipients == (ANN,)


def test_no_ip_address_is_kept() -> None:
    assert "192.0.2.1" not in str(event_of(ses_event("Open")).detail)


@pytest.mark.parametrize("name", ["Received", "Quantum Entanglement", "bounce"])
def test_an_unknown_type_is_noted_and_changes_nothing(name: str) -> None:
    assert parse_event(json.dumps({"eventType": name})) == NoEvent(
        "unknown_event_type", f"SES event {name!r}"
    )


@pytest.mark.parametrize(
    "payload",
    [
        GREETING_LINE,
        GREETING_LINE + "\n",
        '{"notificationType": "AmazonSnsSubscriptionSucceeded", "message": ""}',
    ],
)
def test_what_ses_says_when_a_topic_is_connected_is_no_error(payload: str) -> None:
    assert parse_event(payload) == NoEvent()


@pytest.mark.parametrize("payload", ["", "hello", "[]", "null", "{}", '{"eventType": 7}', "[" * 100_000])
def test_what_ses_never_wrote_is_unreadable(payload: str) -> None:
    with pytest.raises(Unreadable):
        parse_event(payload)


NAMES = st.sampled_from(
    ["Send", "Delivery", "Bounce", "Complaint", "Rendering Failure", "DeliveryDelay", "Click"]
)
PARTS = st.sampled_from(
    [
        "mail",
        "send",
        "delivery",
        "bounce",
        "complaint",
        "failure",
        "deliveryDelay",
        "click",
        "timestamp",
        "tags",
        "bouncedRecipients",
        "complainedRecipients",
        "recipients",
        "destination",
        "emailAddress",
        "messageId",
        "mailout_message",
        "mailout_epoch",
        "bounceType",
        "link",
    ]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PARTS, inner, max_size=4),
    max_leaves=12,
)


@given(NAMES, st.dictionaries(PARTS, ANYTHING, max_size=5))
def test_no_json_makes_the_parser_fall(name: str, rest: dict[str, Any]) -> None:
    """One strange event must not stop all that wait behind it."""
    event = event_of(json.dumps({"eventType": name, **rest}))
    kept = json.dumps([event.provider_message_id, event.bounce_type, dict(event.detail), event.recipients])
    assert "\\u0000" not in kept
    json.loads(kept)
    kept.encode()
