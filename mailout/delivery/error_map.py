"""What an answer of Amazon SES means: one table, from its codes to our outcomes, codes and categories.

A code alone does not always decide. Two rules come before the table: the message's text tells apart what
shares a code; and an answered 5xx leaves a mail surely not accepted only if SES itself answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mailout.delivery.protocol import Outcome, OutcomeKind

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

TABLE: Mapping[str, Row] = {
    # SES v2, and the v1 names that still turn up
    "MessageRejected": REJECTED,
    "BadRequestException": BAD_REQUEST,
    "InvalidParameterValue": BAD_REQUEST,
    "ValidationException": BAD_REQUEST,
    "SerializationException": BAD_REQUEST,
    "TooManyRequestsException": THROTTLING,
    "Throttling": THROTTLING,
    "ThrottlingException": THROTTLING,
    "ThrottledException": THROTTLING,
    "RequestThrottled": THROTTLING,
    "RequestThrottledException": THROTTLING,
    "RequestLimitExceeded": THROTTLING,
    "SlowDown": THROTTLING,
    "MaxSendRateExceeded": MAX_SEND_RATE,
    "DailyQuotaExceeded": DAILY_QUOTA,
    "LimitExceededException": LIMIT,
    "AccountSuspendedException": ACCOUNT_SUSPENDED,
    "SendingPausedException": ACCOUNT_PAUSED,
    "AccountSendingPausedException": ACCOUNT_PAUSED,
    "ConfigurationSetSendingPausedException": SET_PAUSED,
    "ConfigurationSetDoesNotExist": SET_MISSING,
    "ConfigurationSetDoesNotExistException": SET_MISSING,
    "MailFromDomainNotVerified": MAIL_FROM,
    "MailFromDomainNotVerifiedException": MAIL_FROM,
    "FromEmailAddressNotVerifiedException": IDENTITY,
    "NotFoundException": NOT_FOUND,
    "TemplateDoesNotExist": TEMPLATE_MISSING,
    "TemplateDoesNotExistException": TEMPLATE_MISSING,
    "ServiceUnavailable": UNAVAILABLE,
    "ServiceUnavailableException": UNAVAILABLE,
    "InternalServiceErrorException": INTERNAL,
    "InternalServiceError": INTERNAL,
    "InternalServerError": INTERNAL,
    "InternalFailure": INTERNAL,
    "RequestTimeout": TIMEOUT,
    "RequestTimeoutException": TIMEOUT,
    # who we are
    "AccessDenied": ACCESS,
    "AccessDeniedException": ACCESS,
    "NotAuthorized": ACCESS,
    "OptInRequired": ACCESS,
    "UnrecognizedClientException": CREDENTIALS,
    "InvalidClientTokenId": CREDENTIALS,
    "InvalidAccessKeyId": CREDENTIALS,
    "InvalidToken": CREDENTIALS,
    "InvalidSignatureException": CREDENTIALS,
    "SignatureDoesNotMatch": CREDENTIALS,
    "IncompleteSignature": CREDENTIALS,
    "IncompleteSignatureException": CREDENTIALS,
    "MissingAuthenticationToken": CREDENTIALS,
    "MissingAuthenticationTokenException": CREDENTIALS,
    "ExpiredToken": CREDENTIALS,
    "ExpiredTokenException": CREDENTIALS,
    "RequestExpired": CLOCK,
    "RequestTimeTooSkewed": CLOCK,
    # entries of a bulk call
    "MESSAGE_REJECTED": REJECTED,
    "INVALID_PARAMETER": BAD_REQUEST,
    "FAILED": _permanent("SES_FAILED"),
    "ACCOUNT_THROTTLED": THROTTLING,
    "ACCOUNT_DAILY_QUOTA_EXCEEDED": DAILY_QUOTA,
    "TRANSIENT_FAILURE": UNAVAILABLE,
    "ACCOUNT_SUSPENDED": ACCOUNT_SUSPENDED,
    "ACCOUNT_SENDING_PAUSED": ACCOUNT_PAUSED,
    "CONFIGURATION_SET_SENDING_PAUSED": SET_PAUSED,
    "CONFIGURATION_SET_NOT_FOUND": SET_MISSING,
    "TEMPLATE_NOT_FOUND": TEMPLATE_MISSING,
    "MAIL_FROM_DOMAIN_NOT_VERIFIED": MAIL_FROM,
    "INVALID_SENDING_POOL_NAME": SENDING_POOL,
    # no answer at all: what the client met
    "NetworkingError": NETWORK,
    "NeverLeft": NETWORK,
    "ReadTimeoutError": TIMEOUT,
    "ConnectionClosedError": CONNECTION_LOST,
    "NoCredentialsError": NO_CREDENTIALS,
    "PartialCredentialsError": NO_CREDENTIALS,
    "CredentialRetrievalError": NO_CREDENTIALS,
    "TokenRetrievalError": NO_CREDENTIALS,
    "SSOTokenLoadError": NO_CREDENTIALS,
    "UnauthorizedSSOTokenError": NO_CREDENTIALS,
    "ProfileNotFound": NO_CREDENTIALS,
    "NoRegionError": NO_REGION,
    "BadFromAddress": FROM_ADDRESS,
    "ClientFault": CLIENT_FAULT,
}

Texts = tuple[tuple[str, Row], ...]

_TOO_MUCH: Texts = (
    ("maximum sending rate exceeded", MAX_SEND_RATE),
    ("daily message quota exceeded", DAILY_QUOTA),
)
_NOBODY_MAY: Texts = (
    ("sending suspended for this account", ACCOUNT_SUSPENDED),
    ("sending paused for this account", ACCOUNT_PAUSED),
    ("address is not verified", IDENTITY),
    ("addresses are not verified", IDENTITY),
    ("paused for configuration set", SET_PAUSED),
)
_WRONG_TIME: Texts = (("signature expired", CLOCK), ("signature not yet current", CLOCK))

TEXTS: Mapping[str, Texts] = {
    **{code: _TOO_MUCH for code, row in TABLE.items() if row in (THROTTLING, LIMIT)},
    "MessageRejected": (*_TOO_MUCH, *_NOBODY_MAY),
    "MESSAGE_REJECTED": (*_TOO_MUCH, *_NOBODY_MAY),
    "SendingPausedException": (("configuration set", SET_PAUSED), *_NOBODY_MAY),
    "NotFoundException": (("configuration set", SET_MISSING), ("template", TEMPLATE_MISSING)),
    "InvalidSignatureException": _WRONG_TIME,
    "SignatureDoesNotMatch": _WRONG_TIME,
}
"""Codes that mean several things: what SES then writes, in lower case. The others mean one thing, whatever
their text quotes."""

REFUSALS: Mapping[int, Row] = {401: ACCESS, 403: ACCESS, 404: NOT_SES, 405: NOT_SES, 429: THROTTLING}
"""What SES's refusal means by its status alone, under a code that nobody knows: not the mail's own fault."""

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


def classify(code: str, message: str, http_status: int | None, has_aws_body_and_request_id: bool) -> Outcome:
    """How a call ended that did not end well. `http_status` None: there was no answer."""
    row = _row(code, message, http_status, has_aws_body_and_request_id)
    return Outcome(
        row.kind, code=row.code, category=row.category, message=message or None, original_code=code or None
    )


def remedy_for(code: str) -> str:
    """One sentence a person can act on; empty where there is nothing for a person to do."""
    return REMEDIES.get(code, "")


def _row(code: str, message: str, status: int | None, from_ses: bool) -> Row:
    known = _read_text(code, message) or TABLE.get(code)
    if status is None:
        return known or UNEXPECTED
    if status >= 500:
        return _row_of_5xx(known, status, from_ses)
    if known is not None:
        return known if from_ses or known.kind is not OutcomeKind.TRANSIENT else INTERNAL
    if status == 408:
        return TIMEOUT
    if status < 300:
        return UNEXPECTED
    if from_ses and status >= 400:
        return REFUSALS.get(status, BAD_REQUEST)
    # A refusal that is not SES's own comes from a proxy or a wrong address, and would fail every message.
    return THROTTLING if status == 429 else NOT_SES


def _row_of_5xx(known: Row | None, status: int, from_ses: bool) -> Row:
    """Surely not accepted only as a 503 or a throttle, and only if SES itself says so."""
    if from_ses and known is not None and known.kind in (OutcomeKind.THROTTLED, OutcomeKind.QUOTA):
        return known
    if from_ses and status == 503:
        return UNAVAILABLE
    return known if known is not None and known.kind is OutcomeKind.UNKNOWN else INTERNAL


def _read_text(code: str, message: str) -> Row | None:
    text = message.lower()
    return next((row for fragment, row in TEXTS.get(code, ()) if fragment in text), None)
