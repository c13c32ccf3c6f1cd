"""What came back from a call, or did not, as outcomes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError
from botocore.parsers import create_parser

from mailout.adapters.ses.connections import Answer, Call, NotConnectedError
from mailout.adapters.ses.error_map import TABLE, classify
from mailout.adapters.ses.headers import one_line
from mailout.base.retries import retry_after_seconds
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind

MOST = 500  # characters of what was said: a proxy may answer with a whole page
PASSING = (OutcomeKind.THROTTLED, OutcomeKind.TRANSIENT)
NOT_REACHED = (NotConnectedError, HTTPClientError, BotoConnectionError)
"""SES, or whoever gives us credentials."""
_PARSER: Any = create_parser("rest-json")


def accepted(provider_message_id: Any) -> Outcome:
    if provider_message_id and isinstance(provider_message_id, str):
        return Outcome(OutcomeKind.SENT, provider_message_id=provider_message_id)
    return classify("", "SES answered without a message id.", 200, True)


def bulk_entries(entries: Any, asked: int) -> Sequence[Outcome] | Outcome:
    """One outcome for each entry of the call. More or fewer answers than entries belong to nobody."""
    count = len(entries) if isinstance(entries, list) else 0
    if count != asked:
        return classify("", f"SES answered for {count} of {asked} entries.", 200, True)
    return [_bulk_entry(entry) for entry in entries]


def _bulk_entry(entry: Any) -> Outcome:
    status = _text(entry, "Status")
    if status == "SUCCESS":
        return accepted(_text(entry, "MessageId"))
    return classify(status, _text(entry, "Error"), 200, True)


def refused(answer: Answer) -> Outcome:
    """An error was answered: by SES, or by something in between."""
    response = {"status_code": answer.status, "headers": answer.headers, "body": answer.body}
    return answered(_PARSER.parse(response, None))


def answered(response: Mapping[str, Any]) -> Outcome:
    """What botocore reads in an error. Without a code and a request id it is not SES's."""
    told = response.get("Error")
    about = response.get("ResponseMetadata", {})
    code = _text(told, "Code")
    from_ses = bool(code) and not code.isdigit() and bool(about.get("RequestId"))
    outcome = classify(code, _text(told, "Message"), about.get("HTTPStatusCode"), from_ses)
    asked = retry_after_seconds(about.get("HTTPHeaders", {}).get("retry-after"), time.time())
    return replace(outcome, retry_after=asked) if asked else outcome


def without_credentials(error: ClientError) -> Outcome:
    """Whoever gives us credentials answered with an error: nothing was written to SES."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    passing = (status or 0) >= 500 or answered(error.response).kind in PASSING
    return classify("NotWritten" if passing else "CredentialRetrievalError", plain(str(error)), None, False)


def unanswered(error: Exception, call: Call) -> Outcome:
    """No answer. Before the request was written, nothing can have been accepted; after, nobody knows."""
    name = type(error).__name__
    if call.written and isinstance(error, TimeoutError):
        name = "ReadTimeoutError"
    elif call.written:
        name = "ConnectionClosedError" if isinstance(error, OSError) else "UnexpectedAnswer"
    elif isinstance(error, NOT_REACHED):
        name = "NotWritten"
    elif name not in TABLE:
        name = "ClientFault"
    return classify(name, plain(f"{type(error).__name__}: {error}"), None, False)


def _text(told: Any, name: str) -> str:
    """What stands there, if it is text: an answer may hold anything."""
    value = told.get(name) if isinstance(told, Mapping) else None
    return plain(value) if isinstance(value, str) else ""


def plain(said: str) -> str:
    """As every store can keep it: short, on one line, and nothing that is no character."""
    if len(said) <= MOST and said.isascii() and said.isprintable():
        return said
    return one_line(said[:MOST]).encode("utf-8", "replace").decode()
