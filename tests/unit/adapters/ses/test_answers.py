"""What was answered before a mail could leave: nobody was written to, and nobody may be given up for it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from botocore.auth import _host_from_url  # type: ignore[attr-defined]
from botocore.exceptions import ClientError

from mailout.adapters.ses.answers import refused
from mailout.adapters.ses.connections import Call, Connections
from mailout.outbox.delivery.protocol import OutcomeKind


def from_sts(status: int, code: str) -> ClientError:
    about: Any = {"HTTPStatusCode": status, "RequestId": "1"}
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
    url = "https://email.us-east-1.amazonaws.com/v2/email/outbound-emails"

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}


def test_a_body_that_cannot_be_watched_counts_as_gone():
    """Else a lost answer would look like a mail that never left, and be sent again."""
    connections = Connections(Broken, call_limit=1.0, connect_limit=0.3, max_idle=1.0)  # type: ignore[arg-type]
    with connections.call(deadline=1e9) as call, pytest.raises(ConnectionError):
        connections.send(Request())
    assert call.left


class Noting:
    """An HTTP session that notes how long it may wait for the answer."""

    def __init__(self) -> None:
        self.limits: list[float] = []

    def send(self, request: Any) -> None:
        self.limits.append(request.context["read_timeout"])

    def close(self) -> None:
        return None


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://email.us-east-1.amazonaws.com/v2", "email.us-east-1.amazonaws.com"),
        ("https://email.us-east-1.amazonaws.com:443/v2", "email.us-east-1.amazonaws.com"),
        ("http://user:secret@LocalHost:4566/v2", "localhost:4566"),
        ("http://[::1]:80/v2", "[::1]"),
    ],
)
def test_the_host_is_the_one_that_was_signed(url, host):
    request = Request()
    request.url = url
    connections = Connections(Noting, call_limit=1.0, connect_limit=0.3, max_idle=1.0)  # type: ignore[arg-type]
    connections.send(request)
    assert request.headers["Host"] == host == _host_from_url(url)


def test_an_answer_may_come_until_the_whole_limit_is_over():
    """30 seconds in all: connecting took a moment, so its share is the answer's."""
    session = Noting()
    connections = Connections(lambda: session, call_limit=30.0, connect_limit=5.0, max_idle=1.0)  # type: ignore[arg-type, return-value]
    with connections.call(deadline=time.monotonic() + 30.0):
        connections.send(Request())
    assert session.limits[0] > 25.0
