"""SNS and SQS over HTTP, as far as `doctor` looks: one topic with its subscriptions, one queue."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

TOPIC = "arn:aws:sns:us-east-1:000000000000:mailout"
QUEUE = "arn:aws:sqs:us-east-1:000000000000:events"
QUEUE_URL = "https://sqs.us-east-1.amazonaws.com/000000000000/events"
POLICY = {
    "Statement": {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Condition": {"ArnEquals": {"aws:SourceArn": TOPIC}},
    }
}
TOPIC_POLICY = {
    "Statement": {"Effect": "Allow", "Principal": {"Service": "ses.amazonaws.com"}, "Action": "sns:Publish"}
}
ATTRIBUTES = {"QueueArn": QUEUE, "ApproximateNumberOfMessages": "7", "Policy": json.dumps(POLICY)}


class _Handler(BaseHTTPRequestHandler):
    subscriptions: Mapping[str, str]  # endpoints by protocol
    attributes: Mapping[str, str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.headers.get("X-Amz-Target") == "AmazonSQS.GetQueueAttributes":
            self._answer(json.dumps({"Attributes": self.attributes}), "application/x-amz-json-1.0")
            return
        action = parse_qs(body)["Action"][0]
        inside = {
            "ListSubscriptionsByTopic": self._subscriptions(),
            "GetSubscriptionAttributes": _attribute("RawMessageDelivery", "false"),
            "GetTopicAttributes": _attribute("Policy", json.dumps(TOPIC_POLICY)),
        }[action]
        xml = f"<{action}Response><{action}Result>{inside}</{action}Result></{action}Response>"
        self._answer(xml, "text/xml")

    def _subscriptions(self) -> str:
        members = "".join(
            f"<member><SubscriptionArn>{TOPIC}:{n}</SubscriptionArn><Protocol>{protocol}</Protocol>"
            f"<Endpoint>{escape(endpoint)}</Endpoint><TopicArn>{TOPIC}</TopicArn></member>"
            for n, (protocol, endpoint) in enumerate(self.subscriptions.items())
        )
        return f"<Subscriptions>{members}</Subscriptions>"

    def _answer(self, body: str, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def _attribute(key: str, value: str) -> str:
    return f"<Attributes><entry><key>{key}</key><value>{escape(value)}</value></entry></Attributes>"


@contextmanager
def sns_and_sqs(
    subscriptions: Mapping[str, str], attributes: Mapping[str, str] | None = None
) -> Iterator[str]:
    told = {"subscriptions": subscriptions, "attributes": attributes or ATTRIBUTES}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), told))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
