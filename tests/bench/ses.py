"""A bare boto3 loop: what our own sender is held against."""

from __future__ import annotations

import time
from typing import Any

import boto3
from botocore.config import Config

from mailout.letters.content.model import UNSUBSCRIBE_URL, Content, mark
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Attempt

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
