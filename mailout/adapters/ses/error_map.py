"""What an answer of Amazon SES means: one table, from its codes to our outcomes, codes and categories.

A code alone does not always decide. Two rules come before the table: the message's text tells apart what
shares a code; and an answered 5xx leaves a mail surely not accepted only if SES itself answered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from mailout.outbox.delivery import error_codes as codes
from mailout.outbox.delivery.error_codes import Row
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind

TABLE: Mapping[str, Row] = {
    # SES v2, and the v1 names that still turn up
    "MessageRejected": codes.REJECTED,
    "BadRequestException": codes.BAD_REQUEST,
    "InvalidParameterValue": codes.BAD_REQUEST,
    "ValidationException": codes.BAD_REQUEST,
    "SerializationException": codes.BAD_REQUEST,
    "TooManyRequestsException": codes.THROTTLING,
    "Throttling": codes.THROTTLING,
    "ThrottlingException": codes.THROTTLING,
    "ThrottledException": codes.THROTTLING,
    "RequestThrottled": codes.THROTTLING,
    "RequestThrottledException": codes.THROTTLING,
    "RequestLimitExceeded": codes.THROTTLING,
    "SlowDown": codes.THROTTLING,
    "MaxSendRateExceeded": codes.MAX_SEND_RATE,
    "DailyQuotaExceeded": codes.DAILY_QUOTA,
    "LimitExceededException": codes.LIMIT,
    "AccountSuspendedException": codes.ACCOUNT_SUSPENDED,
    "SendingPausedException": codes.ACCOUNT_PAUSED,
    "AccountSendingPausedException": codes.ACCOUNT_PAUSED,
    "ConfigurationSetSendingPausedException": codes.SET_PAUSED,
    "ConfigurationSetDoesNotExist": codes.SET_MISSING,
    "ConfigurationSetDoesNotExistException": codes.SET_MISSING,
    "MailFromDomainNotVerified": codes.MAIL_FROM,
    "MailFromDomainNotVerifiedException": codes.MAIL_FROM,
    "FromEmailAddressNotVerifiedException": codes.IDENTITY,
    "NotFoundException": codes.NOT_FOUND,
    "TemplateDoesNotExist": codes.TEMPLATE_MISSING,
    "TemplateDoesNotExistException": codes.TEMPLATE_MISSING,
    "ServiceUnavailable": codes.UNAVAILABLE,
    "ServiceUnavailableException": codes.UNAVAILABLE,
    "InternalServiceErrorException": codes.INTERNAL,
    "InternalServiceError": codes.INTERNAL,
    "InternalServerError": codes.INTERNAL,
    "InternalFailure": codes.INTERNAL,
    "RequestTimeout": codes.TIMEOUT,
    "RequestTimeoutException": codes.TIMEOUT,
    # who we are
    "AccessDenied": codes.ACCESS,
    "AccessDeniedException": codes.ACCESS,
    "NotAuthorized": codes.ACCESS,
    "OptInRequired": codes.ACCESS,
    "UnrecognizedClientException": codes.CREDENTIALS,
    "InvalidClientTokenId": codes.CREDENTIALS,
    "InvalidAccessKeyId": codes.CREDENTIALS,
    "InvalidToken": codes.CREDENTIALS,
    "InvalidSignatureException": codes.CREDENTIALS,
    "SignatureDoesNotMatch": codes.CREDENTIALS,
    "IncompleteSignature": codes.CREDENTIALS,
    "IncompleteSignatureException": codes.CREDENTIALS,
    "MissingAuthenticationToken": codes.CREDENTIALS,
    "MissingAuthenticationTokenException": codes.CREDENTIALS,
    "ExpiredToken": codes.CREDENTIALS,
    "ExpiredTokenException": codes.CREDENTIALS,
    "RequestExpired": codes.CLOCK,
    "RequestTimeTooSkewed": codes.CLOCK,
    # entries of a bulk call
    "MESSAGE_REJECTED": codes.REJECTED,
    "INVALID_PARAMETER": codes.BAD_REQUEST,
    "FAILED": codes.FAILED,
    "ACCOUNT_THROTTLED": codes.THROTTLING,
    "ACCOUNT_DAILY_QUOTA_EXCEEDED": codes.DAILY_QUOTA,
    "TRANSIENT_FAILURE": codes.UNAVAILABLE,
    "ACCOUNT_SUSPENDED": codes.ACCOUNT_SUSPENDED,
    "ACCOUNT_SENDING_PAUSED": codes.ACCOUNT_PAUSED,
    "CONFIGURATION_SET_SENDING_PAUSED": codes.SET_PAUSED,
    "CONFIGURATION_SET_NOT_FOUND": codes.SET_MISSING,
    "TEMPLATE_NOT_FOUND": codes.TEMPLATE_MISSING,
    "MAIL_FROM_DOMAIN_NOT_VERIFIED": codes.MAIL_FROM,
    "INVALID_SENDING_POOL_NAME": codes.SENDING_POOL,
    # no answer at all: what the client met
    "NetworkingError": codes.NETWORK,
    "NotWritten": codes.NETWORK,
    "ReadTimeoutError": codes.TIMEOUT,
    "ConnectionClosedError": codes.CONNECTION_LOST,
    "NoCredentialsError": codes.NO_CREDENTIALS,
    "PartialCredentialsError": codes.NO_CREDENTIALS,
    "CredentialRetrievalError": codes.NO_CREDENTIALS,
    "TokenRetrievalError": codes.NO_CREDENTIALS,
    "SSOTokenLoadError": codes.NO_CREDENTIALS,
    "UnauthorizedSSOTokenError": codes.NO_CREDENTIALS,
    "ProfileNotFound": codes.NO_CREDENTIALS,
    "NoRegionError": codes.NO_REGION,
    "BadFromAddress": codes.FROM_ADDRESS,
    "ClientFault": codes.CLIENT_FAULT,
}

Texts = tuple[tuple[str, Row], ...]

_TOO_MUCH: Texts = (
    ("maximum sending rate exceeded", codes.MAX_SEND_RATE),
    ("daily message quota exceeded", codes.DAILY_QUOTA),
)
_NOBODY_MAY: Texts = (
    ("sending suspended for this account", codes.ACCOUNT_SUSPENDED),
    ("sending paused for this account", codes.ACCOUNT_PAUSED),
    ("address is not verified", codes.IDENTITY),
    ("addresses are not verified", codes.IDENTITY),
    ("paused for configuration set", codes.SET_PAUSED),
)
_WRONG_TIME: Texts = (("signature expired", codes.CLOCK), ("signature not yet current", codes.CLOCK))

TEXTS: Mapping[str, Texts] = {
    **{code: _TOO_MUCH for code, row in TABLE.items() if row in (codes.THROTTLING, codes.LIMIT)},
    "MessageRejected": (*_TOO_MUCH, *_NOBODY_MAY),
    "MESSAGE_REJECTED": (*_TOO_MUCH, *_NOBODY_MAY),
    "SendingPausedException": (("configuration set", codes.SET_PAUSED), *_NOBODY_MAY),
    "NotFoundException": (("configuration set", codes.SET_MISSING), ("template", codes.TEMPLATE_MISSING)),
    "InvalidSignatureException": _WRONG_TIME,
    "SignatureDoesNotMatch": _WRONG_TIME,
}
"""Codes that mean several things: what SES then writes, in lower case. The others mean one thing, whatever
their text quotes."""

REFUSALS: Mapping[int, Row] = {
    401: codes.ACCESS,
    403: codes.ACCESS,
    404: codes.NOT_SES,
    405: codes.NOT_SES,
    429: codes.THROTTLING,
}
"""What SES's refusal means by its status alone, under a code that nobody knows: not the mail's own fault."""


def classify(code: str, message: str, http_status: int | None, has_aws_body_and_request_id: bool) -> Outcome:
    """How a call ended that did not end well. `http_status` None: there was no answer."""
    row = _row(code, message, http_status, has_aws_body_and_request_id)
    return Outcome(
        row.kind, code=row.code, category=row.category, message=message or None, original_code=code or None
    )


def blame_recipient(outcome: Outcome, from_email: str) -> Outcome:
    """In the sandbox SES refuses recipients with the words it has for senders: only the address it names
    tells them apart. If ours is among them, or none is named, it is the account's matter."""
    if outcome.code != codes.IDENTITY.code:
        return outcome
    named = _NAMED.search(outcome.message or "")
    addresses = _ADDRESS.findall(named[1].lower()) if named else []
    if not addresses or from_email.lower() in addresses:
        return outcome
    row = codes.RECIPIENT
    return replace(outcome, kind=row.kind, code=row.code, category=row.category)


_NAMED = re.compile(r"identities failed the check[^:]*:(.*)", re.IGNORECASE | re.DOTALL)
_ADDRESS = re.compile(r"[^\s,;<>\"]+@[^\s,;<>\"]+")


def _row(code: str, message: str, status: int | None, from_ses: bool) -> Row:
    known = _read_text(code, message) or TABLE.get(code)
    if status is None:
        return known or codes.UNEXPECTED
    if status >= 500:
        return _row_of_5xx(known, status, from_ses)
    if known is not None:
        return known if from_ses or known.kind is not OutcomeKind.TRANSIENT else codes.INTERNAL
    if status == 408:
        return codes.TIMEOUT
    if status < 300:
        return codes.UNEXPECTED
    if from_ses and status >= 400:
        return REFUSALS.get(status, codes.BAD_REQUEST)
    # A refusal that is not SES's own comes from a proxy or a wrong address, and would fail every message.
    return codes.THROTTLING if status == 429 else codes.NOT_SES


def _row_of_5xx(known: Row | None, status: int, from_ses: bool) -> Row:
    """Surely not accepted only as a 503 or a throttle, and only if SES itself says so."""
    if from_ses and known is not None and known.kind in (OutcomeKind.THROTTLED, OutcomeKind.QUOTA):
        return known
    if from_ses and status == 503:
        return codes.UNAVAILABLE
    return known if known is not None and known.kind is OutcomeKind.UNKNOWN else codes.INTERNAL


def _read_text(code: str, message: str) -> Row | None:
    text = message.lower()
    return next((row for fragment, row in TEXTS.get(code, ()) if fragment in text), None)
