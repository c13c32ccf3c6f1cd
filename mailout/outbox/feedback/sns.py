"""SNS over HTTPS: whether a message really is from a topic that we trust.

Any AWS account can make a valid signature, so the topic is checked first. The certificate has to come from
the SNS host of that topic's region: names that merely look like it (a bucket on S3, a port, a query) are
refused, because the address must be, letter for letter, the one that we would have written ourselves.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, HashAlgorithm


class SnsKind(StrEnum):
    NOTIFICATION = "Notification"
    SUBSCRIPTION = "SubscriptionConfirmation"
    UNSUBSCRIPTION = "UnsubscribeConfirmation"


_CONFIRMATION = ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
_SIGNED: Mapping[SnsKind, tuple[str, ...]] = {
    SnsKind.NOTIFICATION: ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    SnsKind.SUBSCRIPTION: _CONFIRMATION,
    SnsKind.UNSUBSCRIPTION: _CONFIRMATION,
}
_HASHES: Mapping[str, HashAlgorithm] = {"1": SHA1(), "2": SHA256()}  # noqa: S303 (version 1 is SNS's default)
_FILE = r"SimpleNotificationService-[0-9a-f]{32}\.pem"
_MESSAGE_ID = re.compile(r"[0-9a-fA-F-]{1,64}")


@dataclass(frozen=True, slots=True)
class SnsMessage:
    """What a topic says: to be believed once `check` has returned it."""

    kind: SnsKind
    id: str
    topic: str
    message: str
    token: str | None
    certificate_url: str
    signed: bytes
    signature: bytes
    version: str


@dataclass(frozen=True, slots=True)
class SnsRefused:
    """Why a message is not believed: for our log, never for its sender."""

    reason: str


def read(body: bytes, topics: Collection[str]) -> SnsMessage | SnsRefused:
    """Everything but the signature. Never raises, whatever the body holds."""
    try:
        message: Any = json.loads(body)
    except (ValueError, RecursionError):
        return SnsRefused("not JSON")
    if not isinstance(message, dict):
        return SnsRefused("not an object")
    topic, kind = message.get("TopicArn"), message.get("Type")
    if not isinstance(topic, str) or topic not in topics:
        return SnsRefused("a topic that is not in SNS_TOPIC_ARNS")
    if kind not in tuple(SnsKind):
        return SnsRefused("a type that SNS does not have")
    address = certificate_url(message.get("SigningCertURL") or message.get("SigningCertUrl"), topic)
    if address is None:
        return SnsRefused("a certificate that is not SNS's")
    if message.get("SignatureVersion") not in tuple(_HASHES):
        return SnsRefused("a signature version that we do not know")
    fields = {name: message[name] for name in _SIGNED[SnsKind(kind)] if message.get(name) is not None}
    missing = set(_SIGNED[SnsKind(kind)]) - fields.keys() - {"Subject"}
    if missing or not all(isinstance(value, str) for value in fields.values()):
        return SnsRefused("fields that are missing or no text")
    if not _MESSAGE_ID.fullmatch(fields["MessageId"]) or "\0" in fields["Message"]:
        return SnsRefused("an id or a message that SNS would not write")
    try:
        signature = b64decode(str(message.get("Signature")), validate=True)
        signed = "".join(f"{name}\n{fields[name]}\n" for name in sorted(fields)).encode()
    except (ValueError, TypeError):
        return SnsRefused("a signature or a text that cannot be decoded")
    return SnsMessage(
        kind=SnsKind(kind),
        id=fields["MessageId"],
        topic=topic,
        message=fields["Message"],
        token=fields.get("Token"),
        certificate_url=address,
        signed=signed,
        signature=signature,
        version=message["SignatureVersion"],
    )


def check(message: SnsMessage, key: RSAPublicKey) -> SnsMessage | SnsRefused:
    """The signature."""
    try:
        key.verify(message.signature, message.signed, PKCS1v15(), _HASHES[message.version])
    except InvalidSignature:
        return SnsRefused("a signature that does not fit")
    return message


def certificate_url(written: Any, topic: str) -> str | None:
    """The address to fetch, made again from its parts; None: it is not the topic's own SNS host."""
    _, partition, _, region, *_ = topic.split(":")
    domain = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    base = f"https://sns.{region}.{domain}/"
    if not isinstance(written, str) or not written.startswith(base):
        return None
    file = written[len(base) :]
    return base + file if re.fullmatch(_FILE, file) else None


def public_key(pem: bytes, now: float) -> RSAPublicKey | None:
    """The key of a certificate that is valid now; None: it is no such certificate."""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        key = certificate.public_key()
    except ValueError:
        return None
    valid = begins.timestamp() <= now <= ends.timestamp()
    return key if valid and isinstance(key, RSAPublicKey) else None
