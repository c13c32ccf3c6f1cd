"""The two calls that send mail, without botocore's two milliseconds for each.

boto3 finds the credentials (and renews them), the region and the address; botocore signs. The request is
written and its answer read here. boto3's own client stays for everything that is not sending.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config

from mailout.adapters.aws import AwsAccess
from mailout.adapters.ses.connections import PORTS, Answer, Call, Connections

SEND = "send_email"
SEND_BULK = "send_bulk_email"
_SMALLEST_REQUESTS: Mapping[str, Mapping[str, Any]] = {
    SEND: {"Content": {}},
    SEND_BULK: {"DefaultContent": {}, "BulkEmailEntries": []},
}


@dataclass(frozen=True, slots=True)
class Target:
    """Where botocore would send an operation's requests, and how it would sign them."""

    url: str
    headers: Mapping[str, str]  # the same in every request, and signed
    service: str
    region: str


@dataclass(frozen=True, slots=True)
class Head:
    """A request without its body, signed but for that."""

    request: AWSRequest
    signer: SigV4Auth
    canonical: str  # what is signed, up to the body's hash
    lines: str  # up to the signature

    def sign(self, body: bytes) -> bytes:
        told = self.signer.string_to_sign(self.request, self.canonical + hashlib.sha256(body).hexdigest())
        signature = self.signer.signature(told, self.request)
        return f"{self.lines}{signature}\r\nContent-Length: {len(body)}\r\n\r\n".encode("latin-1")


class SesClient:
    """Safe to use from several threads: each call has a connection of its own."""

    def __init__(
        self, aws: AwsAccess, endpoint_url: str | None, *, call_limit: float, max_idle: float
    ) -> None:
        """Raises what boto3 raises where a region, a profile or an address is wrong."""
        session, core = aws.session()
        connect_limit = min(5.0, call_limit / 3)
        self.boto: Any = session.client(
            "sesv2",
            endpoint_url=endpoint_url,
            config=Config(
                retries={"total_max_attempts": 1, "mode": "standard"},
                connect_timeout=connect_limit,
                read_timeout=call_limit,
                user_agent="mailout",
            ),
        )
        self._credentials = session.get_credentials()
        self._targets = {operation: _target(self.boto, operation) for operation in _SMALLEST_REQUESTS}
        self._head = lru_cache(maxsize=2 * len(self._targets))(self._head_of_a_second)
        self._connections = Connections(
            self._targets[SEND].url,
            ca_bundle=core.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE"),
            connect_limit=connect_limit,
            max_idle=max_idle,
        )

    def post(self, operation: str, body: bytes, call: Call) -> Answer:
        """One request. Whatever it raises, `call.written` says whether it may have been accepted."""
        return self._connections.exchange(self._request(operation, body), call)

    def close(self) -> None:
        self._connections.close()
        self.boto.close()

    def _request(self, operation: str, body: bytes) -> bytes:
        credentials: Any = self._credentials and self._credentials.get_frozen_credentials()
        return self._head(operation, credentials, int(time.time())).sign(body) + body

    def _head_of_a_second(self, operation: str, credentials: Any, second: int) -> Head:
        """The requests of one second differ in their bodies alone: botocore would need 70 µs for each."""
        target = self._targets[operation]
        request = AWSRequest("POST", target.url, target.headers, b"")
        signer = SigV4Auth(credentials, target.service, target.region)
        signer.add_auth(request)
        authorization = request.headers["Authorization"]
        del request.headers["Authorization"]  # which nobody signs
        lines = [
            *self._connections.request_lines(urlsplit(target.url).path),
            *(f"{name}: {value}" for name, value in request.headers.items()),
            "Accept-Encoding: identity",
            f"Authorization: {authorization.removesuffix(authorization.rpartition('=')[2])}",
        ]
        if any("\n" in line or "\r" in line for line in lines):
            raise ValueError("a header has more than one line")
        canonical = signer.canonical_request(request).removesuffix(hashlib.sha256().hexdigest())
        return Head(request, signer, canonical, "\r\n".join(lines))


def _target(client: Any, operation: str) -> Target:
    """By botocore's own rules (FIPS, dual-stack, your own endpoint): it is stopped before it signs."""
    seen: list[Target] = []

    def note(params: Mapping[str, Any], request_signer: Any, context: Mapping[str, Any], **_: Any) -> Any:
        signing = context.get("signing") or {}
        url = params["url"]
        seen.append(
            Target(
                url=url,
                headers={**params["headers"], "Host": _host(url)},
                service=signing.get("signing_name") or request_signer.signing_name,
                region=signing.get("region") or request_signer.region_name,
            )
        )
        return SimpleNamespace(status_code=200), {}

    client.meta.events.register_first("before-call.sesv2", note)
    getattr(client, operation)(**_SMALLEST_REQUESTS[operation])
    client.meta.events.unregister("before-call.sesv2", note)
    return seen[0]


def _host(url: str) -> str:
    """In small letters, without a user, without the port that goes without saying."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return host.removesuffix(f":{PORTS.get(parts.scheme)}")
