"""When Amazon SES wants no more: the mailout waits, says why, and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mailout.outbox.queue.mailout import DeferReason
from tests.chaos.senders import PATIENCE, Home, make_home, nobody_twice_and_nobody_lost
from tests.stubs.ses_control import SesStub, ses_stub

RATE = 100


@pytest.fixture
def stub() -> Iterator[SesStub]:
    with ses_stub("--no-bodies") as running:
        yield running


def ses_home(path: Path, stub: SesStub, recipients: int, **settings: str) -> Home:
    return make_home(
        path,
        recipients,
        **{
            "MAILOUT_TRANSPORT": "ses",
            "AWS_ENDPOINT_URL_SESV2": stub.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "eu-west-1",
            "SEND_RATE_PER_SEC": str(RATE),
            "SES_MODE": "single",  # what the stub is told to do with the nth call is about one message
            "LOCK_SECONDS": "60",  # a quarter of it is a call's limit
            **settings,
        },
    )


def accepted(stub: SesStub) -> dict[str, int]:
    counts: dict[str, int] = stub.accepted()["by_address"]
    return counts


def test_a_paused_account_stops_the_mailout_with_its_reason(tmp_path: Path, stub: SesStub) -> None:
    """Nobody is burnt: the rest waits until a person has looked."""
    stub.script({"do": "answer", "status": 400, "code": "SendingPausedException", "skip": 5})
    home = ses_home(tmp_path / "home", stub, 30)
    process = home.send()
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 75
    mailout = home.mailout()
    assert mailout.defer_reason is DeferReason.CONFIGURATION_ERROR
    assert mailout.defer_note is not None
    assert "SES_ACCOUNT_SENDING_PAUSED" in mailout.defer_note
    assert (mailout.ledger.sent, mailout.ledger.pending, mailout.ledger.failed) == (5, 25, 0)
    assert "resume" in output  # and what to do


def test_a_spent_quota_defers_and_the_rest_goes_later(tmp_path: Path, stub: SesStub) -> None:
    stub.script(
        {
            "do": "answer",
            "status": 400,
            "code": "LimitExceededException",
            "message": "Daily message quota exceeded",
            "skip": 7,
            "times": 1,
        }
    )
    home = ses_home(tmp_path / "home", stub, 20)
    process = home.send()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 75
    assert home.mailout().defer_reason is DeferReason.QUOTA_EXHAUSTED
    store = home.store()
    store.resume(home.mailout().id)
    store.close()
    assert home.finish() == 0
    nobody_twice_and_nobody_lost(home, accepted(stub), unknown=0)
