"""What was answered before a mail could leave: nobody was written to, and nobody may be given up for it."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from mailout.adapters.ses.answers import refused
from mailout.adapters.ses.connections import Call, Connections
from mailout.delivery.protocol import OutcomeKind


def from_sts(status: int, code: str) -> ClientError:
    about = {"HTTPStatusCode": status, "RequestId": "1"}
    return ClientError({"Error": {"Code": code, "Message": "?"}, "ResponseMetadata": about}, "AssumeRole")


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "Throttling", OutcomeKind.TRANSIENT),
        (429, "TooManyRequestsException", OutcomeKind.TRANSIENT),
        (500, "InternalFailure", OutcomeKind.TRANSIENT),
        (503, "ServiceUnavailable", OutcomeKind.TRANSIENT),
        (403, "AccessDenied", OutcomeKind.STOP),
        (400, "ExpiredTokenException", OutcomeKind.STOP),
    ],
)
def test_a_role_that_is_slow_to_be_had_is_asked_again_and_a_refused_one_stops(status, code, kind):
    """Many senders that renew their role at once are throttled: that must not wait for a person."""
    assert refused(from_sts(status, code), Call(deadline=0.0)).kind is kind


class Broken:
    """A connection that dies, whatever it is handed."""

    def send(self, request: Any) -> Any:
        raise ConnectionError

    def close(self) -> None:
        return None


class Request:
    body: Any = "text, where bytes were expected"


def test_a_body_that_cannot_be_watched_counts_as_gone():
    """Else a lost answer would look like a mail that never left, and be sent again."""
    connections = Connections(Broken, call_limit=1.0, connect_limit=0.3, max_idle=1.0)  # type: ignore[arg-type]
    with connections.call(deadline=1e9) as call, pytest.raises(ConnectionError):
        connections.send(Request())
    assert call.left
