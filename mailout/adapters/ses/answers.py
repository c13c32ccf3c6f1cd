"""What came back from a call, or did not, as outcomes."""

from __future__ import annotations

from collections.abc import Mapping

from botocore.exceptions import ClientError

from mailout.adapters.ses.connections import FAILED_TO_REACH, Call
from mailout.delivery.error_map import TABLE, classify
from mailout.delivery.protocol import Outcome, OutcomeKind


def accepted(message_id: str | None) -> Outcome:
    if message_id:
        return Outcome(OutcomeKind.SENT, message_id=message_id)
    return classify("", "SES answered without a message id.", 200, True)


def bulk_entry(entry: Mapping[str, str]) -> Outcome:
    status = entry.get("Status", "")
    if status == "SUCCESS":
        return accepted(entry.get("MessageId"))
    return classify(status, entry.get("Error", ""), 200, True)


def refused(error: ClientError, call: Call) -> Outcome:
    """An error was answered: by SES, by something in between, or by whoever gives us credentials."""
    told = error.response.get("Error", {})
    about = error.response.get("ResponseMetadata", {})
    code, status = str(told.get("Code", "")), about.get("HTTPStatusCode")
    if not call.left:
        code = "NeverLeft" if status is not None and status >= 500 else "CredentialRetrievalError"
        return classify(code, str(error), None, False)
    from_ses = bool(code) and not code.isdigit() and bool(about.get("RequestId"))
    return classify(code, str(told.get("Message", "")), status, from_ses)


def unanswered(error: Exception, call: Call) -> Outcome:
    """No answer. Before the body left, nothing can have been accepted; after, nobody knows."""
    name = type(error).__name__
    if not call.left and isinstance(error, FAILED_TO_REACH):
        name = "NeverLeft"
    elif not call.left and name not in TABLE:
        name = "ClientFault"
    elif call.left and name not in ("ReadTimeoutError", "ConnectionClosedError"):
        name = "UnexpectedAnswer"
    return classify(name, f"{type(error).__name__}: {error}", None, False)
