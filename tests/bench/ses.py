"""How fast mail leaves through SES: a bare boto3 loop, and our transport in both modes, side by side.

Absolute numbers belong to a machine; the ratios say what our own code costs. `python -m tests.bench.ses [n]`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import boto3
from botocore.config import Config

from mailout.adapters.ses import SesConfig, SesMode, SesTransport
from mailout.content.model import UNSUBSCRIBE_URL, Content, mark
from mailout.delivery.port import Mail
from mailout.delivery.protocol import Attempt, OutcomeKind
from tests.stubs.ses_control import ses_stub

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_DEFAULT_REGION": "us-east-1",
}
LINK = "https://example.org/unsubscribe?token="
CONTENT = Content(
    subject="A letter of the usual size",
    html="<p>" + "Ten thousand bytes of HTML. " * 360 + f'<a href="{mark(UNSUBSCRIBE_URL)}">Leave</a></p>',
    text="Three thousand bytes of text. " * 100 + mark(UNSUBSCRIBE_URL),
)


def mail(number: int) -> Mail:
    link = f"{LINK}{number:064d}"
    return Mail(
        attempt=Attempt(f"00000000-0000-8000-8000-{number:012d}", 1),
        mailout_id="00000000-0000-8000-8000-000000000000",
        to=f"reader-{number}@example.org",
        from_email="news@example.org",
        from_name="The Example",
        reply_to=None,
        content=CONTENT,
        values={UNSUBSCRIBE_URL: link},
        unsubscribe_url=link,
    )


def bare_loop(stub_url: str, n: int) -> float:
    """Messages a second of the shortest loop anybody would write, retries off, as ours are."""
    retries: Any = {"total_max_attempts": 1, "mode": "standard"}
    client = boto3.client("sesv2", endpoint_url=stub_url, config=Config(retries=retries))
    mails = [mail(number) for number in range(n)]
    started = time.perf_counter()
    for each in mails:
        link = each.unsubscribe_url or ""
        client.send_email(
            FromEmailAddress="The Example <news@example.org>",
            Destination={"ToAddresses": [each.to]},
            Content={
                "Simple": {
                    "Subject": {"Data": CONTENT.subject},
                    "Body": {
                        "Html": {"Data": CONTENT.html.replace(mark(UNSUBSCRIBE_URL), link)},
                        "Text": {"Data": CONTENT.text.replace(mark(UNSUBSCRIBE_URL), link)},
                    },
                    "Headers": [
                        {"Name": "List-Unsubscribe", "Value": f"<{link}>"},
                        {"Name": "List-Unsubscribe-Post", "Value": "List-Unsubscribe=One-Click"},
                    ],
                }
            },
            EmailTags=[{"Name": "mailout_message", "Value": each.attempt.id}],
        )
    took = time.perf_counter() - started
    client.close()
    return n / took


def transport_loop(stub_url: str, n: int, mode: SesMode) -> float:
    """Messages a second of `SesTransport` alone: no store, no pacing."""
    transport = SesTransport(SesConfig(from_email="news@example.org", mode=mode, endpoint_url=stub_url))
    mails = [mail(number) for number in range(n)]
    started = time.perf_counter()
    for start in range(0, n, transport.max_batch):
        outcomes = transport.send(mails[start : start + transport.max_batch])
        assert all(outcome.kind is OutcomeKind.SENT for outcome in outcomes)
    took = time.perf_counter() - started
    transport.close()
    return n / took


def run(n: int = 1_000, rounds: int = 3) -> dict[str, float]:
    """The best of some rounds each, taken in turns so that a busy moment hits all alike."""
    with patch.dict(os.environ, CREDENTIALS), ses_stub("--no-bodies") as stub:
        loops: dict[str, Callable[[], float]] = {
            "bare": lambda: bare_loop(stub.url, n),
            "single": lambda: transport_loop(stub.url, n, SesMode.SINGLE),
            "bulk": lambda: transport_loop(stub.url, n * 5, SesMode.BULK),
        }
        best = dict.fromkeys(loops, 0.0)
        for _ in range(rounds):
            for name, loop in loops.items():
                best[name] = max(best[name], loop())
                stub.reset()
    return {
        "ses_bare_loop_per_second": round(best["bare"]),
        "ses_single_per_second": round(best["single"]),
        "ses_bulk_per_second": round(best["bulk"]),
        "ses_single_to_bare": round(best["single"] / best["bare"], 2),
        "ses_bulk_to_bare": round(best["bulk"] / best["bare"], 1),
    }


if __name__ == "__main__":
    print(json.dumps(run(*(int(argument) for argument in sys.argv[1:2])), indent=2))
