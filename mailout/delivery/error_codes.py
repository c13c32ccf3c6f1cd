"""The codes a message can end with: outcome, category and remedy of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mailout.delivery.protocol import OutcomeKind

PERMANENT_ERROR = "PERMANENT_ERROR"  # this message, for good


CONFIGURATION_ERROR = "CONFIGURATION_ERROR"  # a setting of ours or of the account


QUOTA_ERROR = "QUOTA_ERROR"  # too fast, or too much for today


TRANSIENT_ERROR = "TRANSIENT_ERROR"  # surely not accepted; will pass


TIMEOUT_ERROR = "TIMEOUT_ERROR"  # asked, and no answer in time


UNKNOWN_ERROR = "UNKNOWN_ERROR"  # it may have been accepted


VALIDATION_ERROR = "VALIDATION_ERROR"  # never handed over: the message is wrong


@dataclass(frozen=True, slots=True)
class Row:
    """What one code means."""

    kind: OutcomeKind
    code: str
    category: str


def _permanent(code: str) -> Row:
    return Row(OutcomeKind.PERMANENT, code, PERMANENT_ERROR)


def _stop(code: str, category: str = CONFIGURATION_ERROR) -> Row:
    return Row(OutcomeKind.STOP, code, category)


REJECTED = _permanent("SES_MESSAGE_REJECTED")


FAILED = _permanent("SES_FAILED")


BAD_REQUEST = _permanent("SES_BAD_REQUEST")


THROTTLING = Row(OutcomeKind.THROTTLED, "SES_THROTTLING", QUOTA_ERROR)


MAX_SEND_RATE = Row(OutcomeKind.THROTTLED, "SES_MAX_SEND_RATE_EXCEEDED", QUOTA_ERROR)


DAILY_QUOTA = Row(OutcomeKind.QUOTA, "SES_DAILY_QUOTA_EXCEEDED", QUOTA_ERROR)


UNAVAILABLE = Row(OutcomeKind.TRANSIENT, "SES_SERVICE_UNAVAILABLE", TRANSIENT_ERROR)


NETWORK = Row(OutcomeKind.TRANSIENT, "NETWORK_ERROR", TRANSIENT_ERROR)


TIMEOUT = Row(OutcomeKind.UNKNOWN, "SES_TIMEOUT", TIMEOUT_ERROR)


CONNECTION_LOST = Row(OutcomeKind.UNKNOWN, "SES_CONNECTION_LOST", UNKNOWN_ERROR)


INTERNAL = Row(OutcomeKind.UNKNOWN, "SES_INTERNAL_ERROR", UNKNOWN_ERROR)


UNEXPECTED = Row(OutcomeKind.UNKNOWN, "SES_UNEXPECTED_ANSWER", UNKNOWN_ERROR)


NOT_SES = _stop("SES_NOT_REACHED")


ACCOUNT_SUSPENDED = _stop("SES_ACCOUNT_SUSPENDED", PERMANENT_ERROR)


ACCOUNT_PAUSED = _stop("SES_ACCOUNT_SENDING_PAUSED", PERMANENT_ERROR)


SET_PAUSED = _stop("SES_CONFIGURATION_SET_SENDING_PAUSED")


SET_MISSING = _stop("SES_CONFIGURATION_SET_DOES_NOT_EXIST")


MAIL_FROM = _stop("SES_MAIL_FROM_DOMAIN_NOT_VERIFIED")


IDENTITY = _stop("SES_IDENTITY_NOT_VERIFIED")


NOT_FOUND = _stop("SES_NOT_FOUND")


TEMPLATE_MISSING = _stop("SES_TEMPLATE_DOES_NOT_EXIST")


SENDING_POOL = _stop("SES_INVALID_SENDING_POOL")


LIMIT = _stop("SES_LIMIT_EXCEEDED")


ACCESS = _stop("SES_ACCESS_DENIED")


CREDENTIALS = _stop("SES_CREDENTIALS_INVALID")


NO_CREDENTIALS = _stop("SES_CREDENTIALS_MISSING")


FROM_ADDRESS = _stop("SES_FROM_ADDRESS_INVALID")


NO_REGION = _stop("SES_REGION_MISSING")


CLOCK = _stop("SES_CLOCK_SKEWED")


CLIENT_FAULT = _stop("SES_CLIENT_FAULT")


REMEDIES: Mapping[str, str] = {
    REJECTED.code: "Read what SES says of the content, and change it before you retry.",
    BAD_REQUEST.code: "Look at the address, the From name and the headers of this message, then retry it.",
    "SES_FAILED": "SES gave no reason: retry this message, and ask AWS support if it fails again.",
    "INVALID_EMAIL": "Correct the address in the subscribers list.",
    "INVALID_PAYLOAD": "Shorten or correct UNSUBSCRIBE_BASE_URL: its links must fit into a header.",
    "INVALID_TEMPLATE": "Give the recipient a value for every variable of the content.",
    DAILY_QUOTA.code: "Wait: sending goes on when the quota frees. If it is too low, ask AWS for more.",
    ACCOUNT_SUSPENDED.code: "Answer AWS's review of the account (SES console, Reputation), then resume.",
    ACCOUNT_PAUSED.code: "Find out in the SES console why sending is paused, enable it, then resume.",
    SET_PAUSED.code: "Enable sending for the configuration set named in SES_CONFIGURATION_SET, then resume.",
    SET_MISSING.code: "Create the configuration set, or correct SES_CONFIGURATION_SET, then resume.",
    MAIL_FROM.code: "Finish the DNS records of the custom MAIL FROM domain in SES, then resume.",
    IDENTITY.code: "Verify FROM_EMAIL's domain in this AWS region; in the sandbox, recipients too.",
    NOT_FOUND.code: "Check that SES_CONFIGURATION_SET exists in this AWS region, then resume.",
    TEMPLATE_MISSING.code: "Set SES_MODE=single, which needs no template, and report this.",
    SENDING_POOL.code: "Correct the sending pool of the configuration set, then resume.",
    LIMIT.code: "Read which SES limit was met, ask AWS to raise it, then resume.",
    ACCESS.code: "Allow ses:SendEmail and ses:SendBulkEmail to these AWS credentials, then resume.",
    CREDENTIALS.code: "Renew AWS_ACCESS_KEY_ID and its secret, or the role, then resume.",
    NO_CREDENTIALS.code: "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role.",
    FROM_ADDRESS.code: "Correct FROM_EMAIL and REPLY_TO: plain addresses, ASCII before the @; then resume.",
    NO_REGION.code: "Set AWS_DEFAULT_REGION to the region in which FROM_EMAIL's domain is verified.",
    CLOCK.code: "Set this machine's clock, then resume.",
    NOT_SES.code: "Somebody else answered: check AWS_ENDPOINT_URL_SESV2 and the proxy, then resume.",
    CLIENT_FAULT.code: "Nothing has left. Run `mailout doctor`, and report the message if it finds nothing.",
}
"""By our code: one sentence for whoever has to act."""


def remedy_for(code: str) -> str:
    """One sentence a person can act on; empty where there is nothing for a person to do."""
    return REMEDIES.get(code, "")


ANSWERS: Mapping[str, Row] = {
    row.code: row
    for row in (
        REJECTED,
        FAILED,
        BAD_REQUEST,
        THROTTLING,
        MAX_SEND_RATE,
        DAILY_QUOTA,
        UNAVAILABLE,
        NETWORK,
        TIMEOUT,
        CONNECTION_LOST,
        INTERNAL,
        UNEXPECTED,
        NOT_SES,
        ACCOUNT_SUSPENDED,
        ACCOUNT_PAUSED,
        SET_PAUSED,
        SET_MISSING,
        MAIL_FROM,
        IDENTITY,
        NOT_FOUND,
        TEMPLATE_MISSING,
        SENDING_POOL,
        LIMIT,
        ACCESS,
        CREDENTIALS,
        NO_CREDENTIALS,
        FROM_ADDRESS,
        NO_REGION,
        CLOCK,
        CLIENT_FAULT,
    )
}
"""Every answer of a provider that we know, by our code."""
