"""The same fears with Amazon SES: the stub counts what it has accepted, whatever the sender believes."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailout.delivery.states import State
from mailout.queue.mailout import DeferReason, Status
from tests.chaos.senders import PATIENCE, Home, end, make_home, nobody_twice_and_nobody_lost, wait_for
from tests.stubs.ses_control import SesStub, ses_stub

RATE = 100
KILLS = int(os.environ.get("CHAOS_KILLS", "5"))
"""`test_kill.py` has the long form; for one with SES: CHAOS_KILLS=30."""


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
            "LOCK_SECONDS": "60",  # a quarter of it is a call's limit
            **settings,
        },
    )


def accepted(stub: SesStub) -> dict[str, int]:
    counts: dict[str, int] = stub.accepted()["by_address"]
    return counts


@pytest.mark.parametrize("mode", ["single", "bulk"])
def test_killed_at_any_moment_nobody_gets_it_twice_and_nobody_is_lost(
    tmp_path: Path, stub: SesStub, mode: str
) -> None:
    """kill -9 between and within calls; then the same command until it completes."""
    chance = random.Random(20261116)
    kills = homes = 0
    while kills < KILLS:
        stub.reset()
        stub.script(latency_ms=5)
        home = ses_home(tmp_path / str(homes), stub, 300, SES_MODE=mode)
        homes += 1
        killed = 0
        while kills < KILLS:
            process = home.send()
            target = len(accepted(stub)) + chance.randint(1, 10)
            wait_for(lambda target=target: len(accepted(stub)) >= target, process)
            time.sleep(chance.uniform(0, 0.03))
            over = process.poll() is not None
            end(process, signal.SIGKILL)
            if over:
                break
            kills += 1
            killed += 1
        home.finish() if home.mailout().status is not Status.COMPLETED else None
        # A call in hand is in doubt, with as many messages as it carries: a second's worth each.
        nobody_twice_and_nobody_lost(
            home, accepted(stub), unknown=max(1, killed) * (50 if mode == "bulk" else 1)
        )


@pytest.mark.parametrize("mode", ["single", "bulk"])
def test_two_thousand_recipients_through_a_bad_day(tmp_path: Path, stub: SesStub, mode: str) -> None:
    """Throttling, resets before and after acceptance, 5xx with and without a body: all of it at once."""
    stub.script(
        {"do": "answer", "status": 429, "code": "TooManyRequestsException", "probability": 0.10},
        {"do": "drop", "probability": 0.025},
        {"do": "drop", "accept": True, "probability": 0.025},
        {"do": "answer", "status": 500, "accept": True, "aws": False, "probability": 0.01},
        {"do": "answer", "status": 503, "code": "ServiceUnavailable", "probability": 0.01},
        seed=7,
    )
    home = ses_home(
        tmp_path / "home",
        stub,
        2000,
        SES_MODE=mode,
        SEND_RATE_PER_SEC="0",
        SEND_CONCURRENCY="4",
        RETRY_DELAYS="0.05,0.05,0.1,0.1,0.2",
        LOCK_SECONDS="20",
        CIRCUIT_FAILURES="2000",  # one bulk call that is lost would open it: the day is to go on
    )
    home.finish()
    nobody_twice_and_nobody_lost(home, accepted(stub), unknown=2000)
    unknown = [email for email, state in home.states().items() if state == State.UNKNOWN]
    assert unknown  # the bad day was one


def test_a_connection_lost_after_acceptance_is_unknown_and_stays_so(tmp_path: Path, stub: SesStub) -> None:
    """The letter is out; sending it again would be the second one."""
    stub.script({"do": "drop", "accept": True, "skip": 3, "times": 2})
    home = ses_home(tmp_path / "home", stub, 10)
    assert home.finish() == 1
    assert home.finish() == 1  # asked again, it says that it was sent
    nobody_twice_and_nobody_lost(home, accepted(stub), unknown=2)
    assert home.mailout().ledger.unknown == 2
    assert len(accepted(stub)) == 10


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
