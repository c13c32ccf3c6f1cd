"""A stub of Amazon SES over HTTP: `python -m tests.stubs.ses [--latency-ms N] [--rate N] [--quota N]`.

It says where it listens in one line of JSON, keeps what SES would take, and misbehaves when told to:

  POST /_control   {"rules": [...], "seed": 1, "stale_after": s, "close_after": s, "account": {...},
                    "identities": {...}, "configuration_sets": {...}, "denied": [...], "busy": n,
                    "latency_ms": n, "rate": n, "quota": n, "same_id": true}
  GET  /_accepted  counts by address, and who was accepted twice; ?messages=1: the mails, rendered; ?to=
  GET  /_ids       how often each message was accepted
  GET  /_total     how many mails were accepted
  GET  /_times     every call as [when, operation, how many mails]
  GET  /_open      how many connections are open, this one among them
  POST /_reset     forget everything, scripts included
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.stubs.ses_http import Manners, Reply, serve
from tests.stubs.ses_mail import Accepted, fault_of_mail, fault_of_request
from tests.stubs.ses_script import Rule, Script

RATE_TEXT = "Maximum sending rate exceeded."
QUOTA_TEXT = "Daily message quota exceeded."
EVERY_EVENT = ["SEND", "DELIVERY", "BOUNCE", "COMPLAINT", "REJECT", "RENDERING_FAILURE"]
TOPIC = {"TopicArn": "arn:aws:sns:us-east-1:000000000000:mailout"}
DESTINATION = {
    "Name": "events",
    "Enabled": True,
    "MatchingEventTypes": EVERY_EVENT,
    "SnsDestination": TOPIC,
}


@dataclass
class World:
    """What SES knows besides the mails. None: whatever is asked for exists and is in order."""

    rate: float = 0.0  # 0: no limit
    quota: int = -1  # -1: no limit
    latency: float = 0.0
    keep_bodies: bool = True
    account: dict[str, Any] = field(default_factory=dict)
    identities: dict[str, bool | dict[str, Any]] | None = None  # verified or not, or the whole answer
    configuration_sets: dict[str, list[dict[str, Any]]] | None = None
    denied: list[str] = field(default_factory=list)  # kinds of questions: account, identities, …
    busy: int = 0  # so many questions are too many
    same_id: bool = False  # every mail is given the same id


class Ses:
    def __init__(self, world: World, manners: Manners) -> None:
        self._begin = world
        self._manners = manners
        self._serial = 0
        self.reset()

    def reset(self) -> Reply:
        self.world = World(**{**vars(self._begin), "account": dict(self._begin.account)})
        self._manners.stale_after = self._manners.close_after = None
        self.script = Script()
        self.accepted: list[Accepted] = []
        self.times: list[tuple[float, str, int]] = []
        self._lately: deque[float] = deque()
        return Reply()

    # ── HTTP ─────────────────────────────────────────────────────────────────────────────────────

    def handle(self, method: str, target: str, body: bytes) -> Reply:
        if target == "/v2/email/outbound-emails":
            return self._send("SendEmail", json.loads(body), len(body))
        if target == "/v2/email/outbound-bulk-emails":
            return self._send("SendBulkEmail", json.loads(body), len(body))
        url = urlsplit(target)
        if url.path.startswith("/_"):
            return self._steer(url.path, parse_qs(url.query), body)
        return self._asked(url.path)

    def _steer(self, path: str, query: dict[str, list[str]], body: bytes) -> Reply:
        if path == "/_reset":
            return self.reset()
        if path == "/_control":
            return self._control(json.loads(body))
        if path == "/_ids":
            return _json(self._by_message())
        if path == "/_total":
            return _json(len(self.accepted))
        if path == "/_times":
            return _json(self.times)
        if path == "/_open":
            return _json(self._manners.open)
        if path == "/_accepted":
            return _json(self._report("messages" in query, query.get("to", [None])[0]))
        return error(404, "NotFoundException", path)

    def _control(self, told: dict[str, Any]) -> Reply:
        if "rules" in told:
            self.script = Script(told.pop("rules"), told.pop("seed", 0))
        if "latency_ms" in told:
            self.world.latency = told.pop("latency_ms") / 1000
        for name in ("stale_after", "close_after"):
            if name in told:
                setattr(self._manners, name, told.pop(name))
        for name, value in told.items():
            if not hasattr(self.world, name):
                return error(400, "BadRequestException", f"no such thing to control: {name}")
            setattr(self.world, name, value)
        return Reply()

    def _report(self, with_messages: bool, to: str | None) -> dict[str, Any]:
        by_address = Counter(mail.to for mail in self.accepted)
        report: dict[str, Any] = {
            "accepted": len(self.accepted),
            "by_address": by_address,
            "twice": sorted(address for address, n in by_address.items() if n > 1),
            "messages_twice": sorted(message for message, n in self._by_message().items() if n > 1),
            "misbehaved": self.script.followed,
        }
        if with_messages or to:
            report["messages"] = [mail.show() for mail in self.accepted if to in (None, mail.to)]
        return report

    def _by_message(self) -> Counter[str]:
        return Counter(
            tag["Value"] for mail in self.accepted for tag in mail.tags if tag["Name"] == "mailout_message"
        )

    # ── Sending ──────────────────────────────────────────────────────────────────────────────────

    def _send(self, operation: str, request: dict[str, Any], size: int) -> Reply:
        bulk = operation == "SendBulkEmail"
        addresses = _addresses(request, bulk)
        self.times.append((time.time(), operation, len(addresses)))
        rule = self.script.for_call(operation, addresses)
        if rule and rule.do != "delay" and not rule.accept:
            return self._misbehave(rule)
        reply = self._take(operation, request, size, bulk)
        reply.delay = self.world.latency + (rule.seconds if rule and rule.do == "delay" else 0.0)
        return self._misbehave(rule) if rule and rule.do != "delay" else reply

    def _misbehave(self, rule: Rule) -> Reply:
        if rule.do == "answer":
            reply = error(rule.status, rule.code, rule.message, aws=rule.aws)
            if not rule.request_id:
                del reply.headers["x-amzn-RequestId"]
            reply.headers |= rule.headers
            if rule.body is not None:
                reply.body = rule.body.encode()
            reply.cut = rule.cut
        else:
            reply = Reply(drop=rule.do == "drop", hang=rule.do == "hang")
        reply.delay = rule.seconds
        return reply

    def _take(self, operation: str, request: dict[str, Any], size: int, bulk: bool) -> Reply:
        fault = fault_of_request(request, size, bulk=bulk)
        if fault:
            return error(400, "BadRequestException", fault)
        configuration_set, known = request.get("ConfigurationSetName"), self.world.configuration_sets
        if configuration_set and known is not None and configuration_set not in known:
            return error(404, "NotFoundException", f"Configuration set <{configuration_set}> does not exist.")
        if bulk:
            return _json(
                {"BulkEmailEntryResults": [self._entry(request, e) for e in request["BulkEmailEntries"]]}
            )
        refusal = self._full()
        if refusal:
            return error(429, "TooManyRequestsException", refusal)
        to = request["Destination"]["ToAddresses"][0]
        return _json({"MessageId": self._keep(operation, to, request, None, request.get("EmailTags") or [])})

    def _entry(self, request: dict[str, Any], entry: dict[str, Any]) -> dict[str, str]:
        to = entry["Destination"]["ToAddresses"]
        rule = self.script.for_entry(to[0])
        if rule:
            return {"Status": rule.code, "Error": rule.message}
        tags = entry.get("ReplacementTags") or request.get("DefaultEmailTags") or []
        fault = fault_of_mail(to, entry.get("ReplacementHeaders"), tags)
        if fault:
            return {"Status": "INVALID_PARAMETER", "Error": fault}
        refusal = self._full()
        if refusal:
            daily = refusal == QUOTA_TEXT
            status = "ACCOUNT_DAILY_QUOTA_EXCEEDED" if daily else "ACCOUNT_THROTTLED"
            return {"Status": status, "Error": refusal}
        return {"Status": "SUCCESS", "MessageId": self._keep("SendBulkEmail", to[0], request, entry, tags)}

    def _full(self) -> str | None:
        """Why there is no room for one more mail just now."""
        if 0 <= self.world.quota <= len(self.accepted):
            return QUOTA_TEXT
        if not self.world.rate:
            return None
        now, window = time.monotonic(), max(1.0, 1 / self.world.rate)
        while self._lately and now - self._lately[0] >= window:
            self._lately.popleft()
        if len(self._lately) >= self.world.rate * window:
            return RATE_TEXT
        self._lately.append(now)
        return None

    def _keep(
        self,
        operation: str,
        to: str,
        request: dict[str, Any],
        entry: dict[str, Any] | None,
        tags: list[dict[str, str]],
    ) -> str:
        self._serial += 1
        message_id = "stub-again" if self.world.same_id else f"stub-{self._serial:08d}"
        self.script.followed += self.world.same_id
        kept = (request, entry) if self.world.keep_bodies else (None, None)
        self.accepted.append(Accepted(message_id, time.time(), operation, to, *kept, tags))
        return message_id

    # ── The account ──────────────────────────────────────────────────────────────────────────────

    def _asked(self, path: str) -> Reply:
        parts = [unquote(part) for part in path.split("/")[3:]]
        if self.world.busy > 0:
            self.world.busy -= 1
            return error(429, "TooManyRequestsException", "Too many requests")
        if parts[:1] and parts[0] in self.world.denied:
            return error(403, "AccessDeniedException", "not authorized to perform this")
        if parts == ["account"]:
            rule = self.script.for_question("GetAccount")
            return self._misbehave(rule) if rule else _json(self._account())
        if parts[:1] == ["identities"]:
            return self._identity(parts[1])
        if parts[:1] == ["configuration-sets"]:
            sets = self.world.configuration_sets
            if sets is not None and parts[1] not in sets:
                return error(404, "NotFoundException", f"Configuration set <{parts[1]}> does not exist.")
            return _json({"EventDestinations": [DESTINATION] if sets is None else sets[parts[1]]})
        return error(404, "NotFoundException", path)

    def _account(self) -> dict[str, Any]:
        quota = {
            "Max24HourSend": float(self.world.quota),
            "MaxSendRate": float(self.world.rate),  # 0: this account has no limit
            "SentLast24Hours": float(len(self.accepted)),
        }
        account_status = {
            "SendingEnabled": True,
            "ProductionAccessEnabled": True,
            "EnforcementStatus": "HEALTHY",
        }
        return {"SendQuota": quota, **account_status, **self.world.account}

    def _identity(self, identity: str) -> Reply:
        known = self.world.identities
        if known is not None and identity not in known:
            return error(404, "NotFoundException", f"Email identity {identity} does not exist.")
        verified = known is None or known[identity]
        if isinstance(verified, dict):
            return _json({"VerifiedForSendingStatus": True, **verified})
        dkim = {"Status": "SUCCESS" if verified else "PENDING"}
        return _json({"VerifiedForSendingStatus": verified, "DkimAttributes": dkim})


def error(status: int, code: str, message: str, *, aws: bool = True) -> Reply:
    """AWS's error, or the kind of page that something in between would send."""
    if not aws:
        return Reply(status, b"<html><body>Bad Gateway</body></html>", {"Content-Type": "text/html"})
    body = json.dumps({"message": message}).encode()
    return Reply(status, body, {"x-amzn-RequestId": "00000000-stub", "x-amzn-ErrorType": code})


def _json(value: Any) -> Reply:
    return Reply(body=json.dumps(value).encode(), headers={"x-amzn-RequestId": "00000000-stub"})


def _addresses(request: dict[str, Any], bulk: bool) -> list[str]:
    mails = request["BulkEmailEntries"] if bulk else [request]
    return [address for mail in mails for address in mail["Destination"]["ToAddresses"]]


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m tests.stubs.ses")
    options.add_argument("--latency-ms", type=float, default=0.0)
    options.add_argument("--rate", type=float, default=0.0, help="mails a second; 0: no limit")
    options.add_argument("--quota", type=int, default=-1, help="mails a day; -1: no limit")
    options.add_argument("--no-bodies", action="store_true", help="keep addresses and tags only")
    told = options.parse_args()
    manners = Manners()
    world = World(told.rate, told.quota, told.latency_ms / 1000, keep_bodies=not told.no_bodies)
    asyncio.run(serve(Ses(world, manners).handle, manners))


if __name__ == "__main__":
    main()
