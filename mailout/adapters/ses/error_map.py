"""What an answer of Amazon SES means: one table, from its codes to our outcomes, codes and categories.

A code alone does not always decide. Two rules come before the table: the message's text tells apart what
shares a code; and an answered 5xx leaves a mail surely not accepted only if SES itself answered.
"""

from __future__ import annotations

from collections.abc import Mapping

from mailout.delivery.error_codes import (
    ACCESS,
    ACCOUNT_PAUSED,
    ACCOUNT_SUSPENDED,
    BAD_REQUEST,
    CLIENT_FAULT,
    CLOCK,
    CONNECTION_LOST,
    CREDENTIALS,
    DAILY_QUOTA,
    FAILED,
    FROM_ADDRESS,
    IDENTITY,
    INTERNAL,
    LIMIT,
    MAIL_FROM,
    MAX_SEND_RATE,
    NETWORK,
    NO_CREDENTIALS,
    NO_REGION,
    NOT_FOUND,
    NOT_SES,
    REJECTED,
    SENDING_POOL,
    SET_MISSING,
    SET_PAUSED,
    TEMPLATE_MISSING,
    THROTTLING,
    TIMEOUT,
    UNAVAILABLE,
    UNEXPECTED,
    Row,
)
from mailout.delivery.protocol import Outcome, OutcomeKind

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
    "FAILED": FAILED,
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


def classify(code: str, message: str, http_status: int | None, has_aws_body_and_request_id: bool) -> Outcome:
    """How a call ended that did not end well. `http_status` None: there was no answer."""
    row = _row(code, message, http_status, has_aws_body_and_request_id)
    return Outcome(
        row.kind, code=row.code, category=row.category, message=message or None, original_code=code or None
    )


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
