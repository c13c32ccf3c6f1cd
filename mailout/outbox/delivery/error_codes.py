"""The codes a message can end with: outcome, category and remedy of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from mailout.outbox.delivery.protocol import OutcomeKind

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
    category: str
    code: str
    remedy: str = ""  # one sentence for the person who has to act


ANSWERS: dict[str, Row] = {}
"""Every answer of a provider that we know, by our code."""


def _answer(kind: OutcomeKind, category: str, code: str, remedy: str = "") -> Row:
    row = ANSWERS[code] = Row(kind, category, code, remedy)
    return row


_permanent = partial(_answer, OutcomeKind.PERMANENT, PERMANENT_ERROR)
_throttled = partial(_answer, OutcomeKind.THROTTLED, QUOTA_ERROR)
_transient = partial(_answer, OutcomeKind.TRANSIENT, TRANSIENT_ERROR)
_unknown = partial(_answer, OutcomeKind.UNKNOWN, UNKNOWN_ERROR)
_stop = partial(_answer, OutcomeKind.STOP, CONFIGURATION_ERROR)

REJECTED = _permanent(
    "SES_MESSAGE_REJECTED", "Read what SES says of the content, and change it before you retry."
)
FAILED = _permanent(
    "SES_FAILED", "SES gave no reason: retry this message, and ask AWS support if it fails again."
)
BAD_REQUEST = _permanent(
    "SES_BAD_REQUEST", "Look at the address, the From name and the headers of this message, then retry it."
)
RECIPIENT = _permanent(
    "RECIPIENT_NOT_VERIFIED",
    "The account is in SES's sandbox: ask AWS for production access, or verify this address; then retry it.",
)
THROTTLING = _throttled("SES_THROTTLING")
MAX_SEND_RATE = _throttled("SES_MAX_SEND_RATE_EXCEEDED")
DAILY_QUOTA = _answer(
    OutcomeKind.QUOTA,
    QUOTA_ERROR,
    "SES_DAILY_QUOTA_EXCEEDED",
    "Wait: sending goes on when the quota frees. If it is too low, ask AWS for more.",
)
UNAVAILABLE = _transient("SES_SERVICE_UNAVAILABLE")
NETWORK = _transient("NETWORK_ERROR")
TIMEOUT = _answer(OutcomeKind.UNKNOWN, TIMEOUT_ERROR, "SES_TIMEOUT")
CONNECTION_LOST = _unknown("SES_CONNECTION_LOST")
INTERNAL = _unknown("SES_INTERNAL_ERROR")
UNEXPECTED = _unknown("SES_UNEXPECTED_ANSWER")
NOT_SES = _stop(
    "SES_NOT_REACHED", "Somebody else answered: check AWS_ENDPOINT_URL_SESV2 and the proxy, then resume."
)
ACCOUNT_SUSPENDED = _answer(
    OutcomeKind.STOP,
    PERMANENT_ERROR,
    "SES_ACCOUNT_SUSPENDED",
    "Answer AWS's review of the account (SES console, Reputation), then resume.",
)
ACCOUNT_PAUSED = _answer(
    OutcomeKind.STOP,
    PERMANENT_ERROR,
    "SES_ACCOUNT_SENDING_PAUSED",
    "Find out in the SES console why sending is paused, enable it, then resume.",
)
SET_PAUSED = _stop(
    "SES_CONFIGURATION_SET_SENDING_PAUSED",
    "Enable sending for the configuration set named in SES_CONFIGURATION_SET, then resume.",
)
SET_MISSING = _stop(
    "SES_CONFIGURATION_SET_DOES_NOT_EXIST",
    "Create the configuration set, or correct SES_CONFIGURATION_SET, then resume.",
)
MAIL_FROM = _stop(
    "SES_MAIL_FROM_DOMAIN_NOT_VERIFIED",
    "Finish the DNS records of the custom MAIL FROM domain in SES, then resume.",
)
IDENTITY = _stop(
    "SES_IDENTITY_NOT_VERIFIED",
    "Verify FROM_EMAIL's domain in this AWS region, then resume.",
)
SANDBOX = _stop(
    "SES_ACCOUNT_IN_SANDBOX",
    "Ask AWS for production access (SES console, Account dashboard); then resume, and retry what failed.",
)
NOT_FOUND = _stop("SES_NOT_FOUND", "Check that SES_CONFIGURATION_SET exists in this AWS region, then resume.")
TEMPLATE_MISSING = _stop(
    "SES_TEMPLATE_DOES_NOT_EXIST", "Set SES_MODE=single, which needs no template, and report this."
)
SENDING_POOL = _stop(
    "SES_INVALID_SENDING_POOL", "Correct the sending pool of the configuration set, then resume."
)
LIMIT = _stop("SES_LIMIT_EXCEEDED", "Read which SES limit was met, ask AWS to raise it, then resume.")
ACCESS = _stop(
    "SES_ACCESS_DENIED", "Allow ses:SendEmail and ses:SendBulkEmail to these AWS credentials, then resume."
)
CREDENTIALS = _stop(
    "SES_CREDENTIALS_INVALID", "Renew AWS_ACCESS_KEY_ID and its secret, or the role, then resume."
)
NO_CREDENTIALS = _stop(
    "SES_CREDENTIALS_MISSING", "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role."
)
FROM_ADDRESS = _stop(
    "SES_FROM_ADDRESS_INVALID",
    "Correct FROM_EMAIL and REPLY_TO: plain addresses, ASCII before the @; then resume.",
)
NO_REGION = _stop(
    "SES_REGION_MISSING", "Set AWS_DEFAULT_REGION to the region in which FROM_EMAIL's domain is verified."
)
CLOCK = _stop("SES_CLOCK_SKEWED", "Set this machine's clock, then resume.")
CLIENT_FAULT = _stop(
    "SES_CLIENT_FAULT", "Nothing was sent. Run `mailout doctor`, and report the message if it finds nothing."
)


def remedy_for(code: str) -> str:
    """One sentence a person can act on; empty where there is nothing for a person to do."""
    return ANSWERS[code].remedy if code in ANSWERS else ""
