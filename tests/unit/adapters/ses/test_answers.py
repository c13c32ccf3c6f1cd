"""What was answered before a mail could leave: nobody was written to, and nobody may be given up for it."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from mailout.adapters.ses.answers import without_credentials
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
    assert without_credentials(from_sts(status, code)).kind is kind
