"""Every answer of SES leads to one outcome: a wrong one sends a mail twice, or loses it."""

from __future__ import annotations

from typing import Any

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.adapters.ses.error_map import TABLE, TEXTS, blame_recipient, classify
from mailout.outbox.delivery import error_codes
from mailout.outbox.delivery.error_codes import remedy_for
from mailout.outbox.delivery.protocol import OutcomeKind

SURELY_NOT_ACCEPTED = {OutcomeKind.TRANSIENT, OutcomeKind.THROTTLED, OutcomeKind.QUOTA}

SES_CODES = [
    ("MessageRejected", OutcomeKind.PERMANENT, "SES_MESSAGE_REJECTED", "PERMANENT_ERROR"),
    (
        "MailFromDomainNotVerified",
        OutcomeKind.STOP,
        "SES_MAIL_FROM_DOMAIN_NOT_VERIFIED",
        "CONFIGURATION_ERROR",
    ),
    (
        "ConfigurationSetDoesNotExist",
        OutcomeKind.STOP,
        "SES_CONFIGURATION_SET_DOES_NOT_EXIST",
        "CONFIGURATION_ERROR",
    ),
    ("AccountSendingPausedException", OutcomeKind.STOP, "SES_ACCOUNT_SENDING_PAUSED", "PERMANENT_ERROR"),
    ("Throttling", OutcomeKind.THROTTLED, "SES_THROTTLING", "QUOTA_ERROR"),
    ("MaxSendRateExceeded", OutcomeKind.THROTTLED, "SES_MAX_SEND_RATE_EXCEEDED", "QUOTA_ERROR"),
    ("DailyQuotaExceeded", OutcomeKind.QUOTA, "SES_DAILY_QUOTA_EXCEEDED", "QUOTA_ERROR"),
    ("ServiceUnavailable", OutcomeKind.TRANSIENT, "SES_SERVICE_UNAVAILABLE", "TRANSIENT_ERROR"),
    ("RequestTimeout", OutcomeKind.UNKNOWN, "SES_TIMEOUT", "TIMEOUT_ERROR"),
    ("NetworkingError", OutcomeKind.TRANSIENT, "NETWORK_ERROR", "TRANSIENT_ERROR"),
]


@pytest.mark.parametrize(("ses_code", "kind", "code", "category"), SES_CODES)
def test_the_codes_and_categories_people_already_search_their_logs_for(ses_code, kind, code, category):
    outcome = classify(ses_code, "why", 503 if code == "SES_SERVICE_UNAVAILABLE" else 400, True)
    assert (outcome.kind, outcome.code, outcome.category) == (kind, code, category)
    assert (outcome.original_code, outcome.message) == (ses_code, "why")


FACTS = {
    OutcomeKind.THROTTLED: ["TooManyRequestsException", "ThrottlingException", "ACCOUNT_THROTTLED"],
    OutcomeKind.TRANSIENT: ["TRANSIENT_FAILURE"],
    OutcomeKind.QUOTA: ["ACCOUNT_DAILY_QUOTA_EXCEEDED"],
    OutcomeKind.UNKNOWN: ["InternalServiceErrorException"],
    OutcomeKind.PERMANENT: [
        "MessageRejected",
        "BadRequestException",
        "MESSAGE_REJECTED",
        "INVALID_PARAMETER",
        "FAILED",
    ],
    OutcomeKind.STOP: [
        "LimitExceededException",
        "AccountSuspendedException",
        "SendingPausedException",
        "MailFromDomainNotVerifiedException",
        "NotFoundException",
        "ConfigurationSetSendingPausedException",
        "ACCOUNT_SUSPENDED",
        "ACCOUNT_SENDING_PAUSED",
        "CONFIGURATION_SET_SENDING_PAUSED",
        "CONFIGURATION_SET_NOT_FOUND",
        "TEMPLATE_NOT_FOUND",
        "MAIL_FROM_DOMAIN_NOT_VERIFIED",
        "INVALID_SENDING_POOL_NAME",
        "NoCredentialsError",
        "ExpiredTokenException",
    ],
}


@pytest.mark.parametrize(("code", "kind"), [(code, kind) for kind, codes in FACTS.items() for code in codes])
def test_an_account_error_stops_a_mailout_and_a_mail_error_does_not(code, kind):
    assert classify(code, "", 400, True).kind is kind


SESV2 = botocore.session.get_session().get_service_model("sesv2")


@pytest.mark.parametrize("operation", ["SendEmail", "SendBulkEmail", "GetAccount"])
def test_everything_that_amazon_says_can_be_raised_is_in_the_table(operation):
    """A new version of botocore may bring an error that nobody has thought about."""
    assert {shape.name for shape in SESV2.operation_model(operation).error_shapes} <= TABLE.keys()


def test_every_status_of_a_bulk_entry_is_in_the_table():
    statuses: Any = SESV2.shape_for("BulkEmailStatus")
    assert set(statuses.enum) - {"SUCCESS"} <= TABLE.keys()


TOO_MUCH = [code for code, row in TABLE.items() if row in (error_codes.THROTTLING, error_codes.LIMIT)]


@pytest.mark.parametrize("code", TOO_MUCH)
def test_a_spent_quota_waits_an_hour_and_a_fast_second_does_not(code):
    """Both come under one code: only the text tells whether to slow down or to stop for today."""
    assert classify(code, "Daily message quota exceeded.", 429, True).kind is OutcomeKind.QUOTA
    assert classify(code, "Maximum sending rate exceeded.", 429, True).kind is OutcomeKind.THROTTLED


def test_an_unverified_sender_stops_the_mailout_instead_of_failing_every_message():
    text = "Email address is not verified. The following identities failed the check: news@example.org"
    outcome = classify("MessageRejected", text, 400, True)
    assert (outcome.kind, outcome.code) == (OutcomeKind.STOP, "SES_IDENTITY_NOT_VERIFIED")


@pytest.mark.parametrize(
    ("named", "ours"),
    [
        (" in region EU-WEST-1: sb@x.org", "RECIPIENT_NOT_VERIFIED"),
        (" in region EU-WEST-1: a@x.org, b@x.org", "RECIPIENT_NOT_VERIFIED"),
        (": Ann <sb@x.org>", "RECIPIENT_NOT_VERIFIED"),
        (" in region EU-WEST-1: NEWS@example.org", "SES_IDENTITY_NOT_VERIFIED"),
        (" in region EU-WEST-1: News <news@example.org>, sb@x.org", "SES_IDENTITY_NOT_VERIFIED"),
        (" in region EU-WEST-1: example.org", "SES_IDENTITY_NOT_VERIFIED"),
        ("", "SES_IDENTITY_NOT_VERIFIED"),
    ],
)
def test_an_unverified_recipient_is_told_from_an_unverified_sender_by_the_address(named, ours):
    text = f"Email address is not verified. The following identities failed the check{named}"
    outcome = blame_recipient(classify("MessageRejected", text, 400, True), "news@example.org")
    assert (outcome.code, outcome.kind is OutcomeKind.STOP) == (ours, ours.startswith("SES_"))


@pytest.mark.parametrize(
    ("code", "text", "ours"),
    [
        (
            "NotFoundException",
            "Configuration set <x> does not exist.",
            "SES_CONFIGURATION_SET_DOES_NOT_EXIST",
        ),
        ("NotFoundException", "Template x does not exist.", "SES_TEMPLATE_DOES_NOT_EXIST"),
        ("NotFoundException", "", "SES_NOT_FOUND"),
        (
            "SendingPausedException",
            "Sending is paused for configuration set x",
            "SES_CONFIGURATION_SET_SENDING_PAUSED",
        ),
        (
            "SendingPausedException",
            "Sending paused for configuration set <x>.",
            "SES_CONFIGURATION_SET_SENDING_PAUSED",
        ),
        ("SendingPausedException", "Sending paused for this account.", "SES_ACCOUNT_SENDING_PAUSED"),
        ("MessageRejected", "Sending paused for this account. See …", "SES_ACCOUNT_SENDING_PAUSED"),
        ("MessageRejected", "Sending suspended for this account. See …", "SES_ACCOUNT_SUSPENDED"),
        ("InvalidSignatureException", "Signature expired: 1 is now earlier than 2", "SES_CLOCK_SKEWED"),
        ("SignatureDoesNotMatch", "Signature not yet current: 2 is still later", "SES_CLOCK_SKEWED"),
        ("SignatureDoesNotMatch", "The request signature we calculated", "SES_CREDENTIALS_INVALID"),
    ],
)
def test_the_remedy_is_for_what_is_wrong_and_not_for_what_shares_its_code(code, text, ours):
    outcome = classify(code, text, 400, True)
    assert (outcome.kind, outcome.code) == (OutcomeKind.STOP, ours)


SAID = sorted({text for texts in TEXTS.values() for text, _ in texts})


@given(code=st.sampled_from(sorted(TABLE.keys() - TEXTS.keys())), text=st.sampled_from(SAID))
def test_a_text_decides_only_where_a_code_is_shared(code, text):
    """A refused mail that merely quotes such a sentence must not stop everything."""
    assert classify(code, text, 400, True).code == classify(code, "", 400, True).code


statuses = st.one_of(st.none(), st.integers(min_value=100, max_value=599))
codes = st.one_of(st.sampled_from(sorted(TABLE)), st.text(max_size=30))


@given(code=codes, message=st.text(max_size=80), status=statuses, from_ses=st.booleans())
def test_every_answer_has_exactly_one_outcome(code, message, status, from_ses):
    outcome = classify(code, message, status, from_ses)
    assert outcome.kind not in (OutcomeKind.SENT, OutcomeKind.INVALID)
    assert outcome.code
    assert outcome.category
    assert outcome == classify(code, message, status, from_ses)


@given(code=codes, message=st.text(max_size=80), status=st.integers(500, 599), from_ses=st.booleans())
def test_a_5xx_is_sent_again_only_if_ses_itself_said_503_or_throttled(code, message, status, from_ses):
    """Anything else may have been accepted: sending it again could be the second mail."""
    outcome = classify(code, message, status, from_ses)
    if outcome.kind is not OutcomeKind.UNKNOWN:
        assert outcome.kind in SURELY_NOT_ACCEPTED
        assert from_ses
        assert status == 503 or outcome.kind is not OutcomeKind.TRANSIENT


unheard_of = st.text(min_size=1, max_size=30).filter(lambda code: code not in TABLE)


@given(code=unheard_of, status=st.sampled_from([400, 402, 409, 410, 413, 415, 422, 451]))
def test_a_code_nobody_knows_fails_its_message_if_ses_refused_it(code, status):
    assert classify(code, "", status, True).kind is OutcomeKind.PERMANENT


@given(code=unheard_of, status=st.sampled_from([401, 403, 404, 405]))
def test_a_refusal_of_who_we_are_or_where_we_knocked_fails_nobody(code, status):
    """Every message would meet the same: a whole audience would be failed for a wrong key."""
    assert classify(code, "", status, True).kind is OutcomeKind.STOP


@given(code=unheard_of, status=st.integers(400, 499).filter(lambda status: status not in (408, 429)))
def test_a_refusal_from_something_in_between_stops_instead_of_failing_every_message(code, status):
    assert classify(code, "", status, False).kind is OutcomeKind.STOP


@given(code=unheard_of, status=st.integers(500, 599).filter(lambda status: status != 503))
def test_a_code_nobody_knows_leaves_doubt_if_ses_broke_down(code, status):
    assert classify(code, "", status, True).kind is OutcomeKind.UNKNOWN


@pytest.mark.parametrize(
    "code",
    sorted(
        {
            row.code
            for row in (
                *TABLE.values(),
                *(row for texts in TEXTS.values() for _, row in texts),
                error_codes.NOT_SES,
            )
            if row.kind in (OutcomeKind.STOP, OutcomeKind.QUOTA, OutcomeKind.PERMANENT)
        }
    ),
)
def test_whoever_must_act_is_told_what_to_do(code):
    remedy = remedy_for(code)
    assert remedy.endswith(".")
    assert "\n" not in remedy


def test_there_is_no_remedy_for_what_passes_by_itself():
    assert remedy_for("SES_THROTTLING") == ""
