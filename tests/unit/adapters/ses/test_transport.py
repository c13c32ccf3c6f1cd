"""What leaves without botocore having written it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from botocore.serialize import create_serializer

from mailout.adapters.aws import AwsAccess
from mailout.adapters.ses import SesConfig, SesMode, SesTransport
from mailout.adapters.ses.letters import SesLetter, letter_of
from mailout.letters.content.model import UNSUBSCRIBE_URL, Content, mark
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Attempt

LINK = "https://example.org/leave?token=ä{{v0}}"


@pytest.fixture
def transport() -> Iterator[SesTransport]:
    config = SesConfig(
        mode=SesMode.BULK,
        configuration_set="events",
        aws=AwsAccess(region="eu-west-1"),
    )
    made = SesTransport(config)
    yield made
    made.close()


def letter(index: int) -> SesLetter:
    mail = Mail(
        attempt=Attempt(f"00000000-0000-8000-8000-{index:012d}", 1),
        mailout_id="00000000-0000-8000-8000-000000000000",
        to=f"reader-{index}@example.org",
        from_email="news@example.org",
        from_name="Über {den} Hafen",
        reply_to="office@example.org",
        content=Content("Ein Brief", f"<p>Grüße 🌱 {mark(UNSUBSCRIBE_URL)}</p>", mark(UNSUBSCRIBE_URL)),
        values={UNSUBSCRIBE_URL: LINK},
        unsubscribe_url="https://example.org/leave?token=a",
    )
    made = letter_of(index, mail)
    assert isinstance(made, SesLetter)
    return made


def test_a_bulk_call_s_body_is_the_one_that_botocore_would_write(transport: SesTransport) -> None:
    """A name that SES does not know is to it as if it were not there: a mail would leave without its link."""
    asked = transport._bulk([letter(1), letter(2)])
    model = transport._client.boto.meta.service_model.operation_model("SendBulkEmail")
    theirs = create_serializer("rest-json").serialize_to_request(asked, model)
    assert json.loads(theirs["body"]) == asked
    assert len(asked["BulkEmailEntries"]) == 2
