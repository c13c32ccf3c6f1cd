"""What the stub accepted, and how SES would read it: strict where SES is strict."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from email import policy
from email.parser import BytesParser
from typing import Any

ADDRESS = re.compile(r"[\x21-\x7e]+@[A-Za-z0-9.-]+")
HEADER_NAME = re.compile(r"[!-9;-@A-~]{1,126}")
HEADER_VALUE = re.compile(r"[ -~]{1,995}")
TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")
OWN_TAGS = frozenset({"ses:feedback-id-a", "ses:feedback-id-b"})  # SES's own, which it puts into Feedback-ID
MAX_BULK_BYTES = 1_000_000
MAX_DATA_BYTES = 262_144
# Handlebars reads backslashes, three braces and helpers in ways of its own: here only a plain name passes.
TOKEN = re.compile(r"(\\*)(\{\{+)([^{}]*)(\}\}+)?")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class RenderingFailure(Exception):
    """SES would accept the mail, and report this later in an event."""


def render(template: str, data: dict[str, str]) -> str:
    """Plain substitution, once; values are not read again."""

    def value(match: re.Match[str]) -> str:
        backslashes, opening, name, closing = match.groups()
        if backslashes or opening != "{{" or closing != "}}" or not NAME.fullmatch(name):
            raise RenderingFailure(f"not a plain variable: {match.group()!r}")
        if name not in data:
            raise RenderingFailure(f"attribute {name!r} is not present in the rendering data")
        return data[name]

    return TOKEN.sub(value, template)


@dataclass(frozen=True, slots=True)
class Accepted:
    """One mail that the stub took, kept as it came; `show` renders it."""

    id: str
    at: float
    operation: str
    to: str
    request: dict[str, Any] | None  # None: bodies are not kept
    entry: dict[str, Any] | None
    tags: list[dict[str, str]]

    def show(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": self.id,
            "at": self.at,
            "operation": self.operation,
            "to": self.to,
            "tags": {tag["Name"]: tag["Value"] for tag in self.tags},
        }
        if self.request is None:
            return shown
        shown["from"] = self.request.get("FromEmailAddress")
        shown["reply_to"] = self.request.get("ReplyToAddresses", [])
        shown["configuration_set"] = self.request.get("ConfigurationSetName")
        return shown | (self._simple() if self.entry is None else self._rendered())

    def _simple(self) -> dict[str, Any]:
        assert self.request is not None
        if "Raw" in self.request["Content"]:
            return _read(base64.b64decode(self.request["Content"]["Raw"]["Data"]))
        simple = self.request["Content"]["Simple"]
        body = simple.get("Body", {})
        return {
            "subject": simple["Subject"]["Data"],
            "html": body.get("Html", {}).get("Data"),
            "text": body.get("Text", {}).get("Data"),
            "headers": _pairs(simple.get("Headers")),
        }

    def _rendered(self) -> dict[str, Any]:
        assert self.request is not None
        assert self.entry is not None
        template = self.request["DefaultContent"]["Template"]
        data = json.loads(template.get("TemplateData") or "{}")
        data |= json.loads(_replacement(self.entry) or "{}")
        content = template["TemplateContent"]
        headers = _pairs(template.get("Headers")) | _pairs(self.entry.get("ReplacementHeaders"))
        try:
            parts = {
                name.lower(): render(content[name], data) if name in content else None
                for name in ("Subject", "Html", "Text")
            }
        except RenderingFailure as failure:
            return {"headers": headers, "rendering_failure": str(failure)}
        return {**parts, "headers": headers}


def _replacement(entry: dict[str, Any]) -> str:
    template = entry.get("ReplacementEmailContent", {}).get("ReplacementTemplate", {})
    return str(template.get("ReplacementTemplateData", ""))


def _pairs(headers: list[dict[str, str]] | None) -> dict[str, str]:
    return {header["Name"]: header["Value"] for header in headers or []}


def fault_of_request(request: dict[str, Any], size: int, *, bulk: bool) -> str | None:
    """Why SES would refuse the whole call."""
    sender = request.get("FromEmailAddress", "")
    if not sender.isascii() or re.search(r"[\x00-\x1f\x7f]", sender):
        return "Illegal From address"
    if not ADDRESS.fullmatch(sender.rpartition("<")[2].rstrip(">")):
        return "Missing or malformed From address"
    if bulk:
        if size > MAX_BULK_BYTES:
            return "Request is too large"
        entries = request.get("BulkEmailEntries") or []
        if any(len(_replacement(entry)) > MAX_DATA_BYTES for entry in entries):
            return "ReplacementTemplateData is too long"
        return None if 0 < len(entries) <= 50 else "Between 1 and 50 entries are allowed"
    if "Raw" in request.get("Content", {}):
        return fault_of_mail(request["Destination"]["ToAddresses"], None, request.get("EmailTags"))
    simple = request.get("Content", {}).get("Simple", {})
    if re.search(r"[\r\n]", simple.get("Subject", {}).get("Data", "")):
        return "Illegal subject"
    if not simple.get("Body"):
        return "Missing body"
    return fault_of_mail(
        request["Destination"]["ToAddresses"], simple.get("Headers"), request.get("EmailTags")
    )


def _read(raw: bytes) -> dict[str, Any]:
    """A whole message, as its sender wrote it."""
    message = BytesParser(policy=policy.default).parsebytes(raw)
    parts = {kind: message.get_body((kind,)) for kind in ("html", "plain")}
    shown = {kind: part.get_content() if part is not None else None for kind, part in parts.items()}
    return {
        "subject": str(message["Subject"]),
        "html": shown["html"],
        "text": shown["plain"],
        "headers": {name: str(value) for name, value in message.items()},
    }


def fault_of_mail(
    to: list[str], headers: list[dict[str, str]] | None, tags: list[dict[str, str]] | None
) -> str | None:
    """Why SES would refuse this one mail."""
    if len(to) != 1 or not ADDRESS.fullmatch(to[0]) or re.search(r"[,;<>]", to[0]):
        return "Illegal address"
    if len(headers or []) > 15:
        return "Too many headers"
    for header in headers or []:
        if not (HEADER_NAME.fullmatch(header["Name"]) and HEADER_VALUE.fullmatch(header["Value"])):
            return f"Illegal header {header['Name']}"
    for tag in tags or []:
        known = tag["Name"] in OWN_TAGS or TAG.fullmatch(tag["Name"])
        if not (known and TAG.fullmatch(tag["Value"])):
            return f"Illegal tag {tag['Name']}"
    return None
