"""SNS for tests: a topic with a real key and certificate of its own, which signs as SNS does."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import uuid4

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.clocks import NOON

TOPIC = "arn:aws:sns:eu-west-1:123456789012:ses-events"
CERTIFICATE_URL = f"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-{'0a' * 16}.pem"


@dataclass(frozen=True)
class Signer:
    """A key and its certificate."""

    key: rsa.RSAPrivateKey
    pem: bytes

    @classmethod
    def make(cls, *, valid_from: float = NOON - 86_400, days: int = 365) -> Signer:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
        begins = datetime.fromtimestamp(valid_from, UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins)
            .not_valid_after(begins + timedelta(days=days))
            .sign(key, SHA256())
        )
        return cls(key, certificate.public_bytes(Encoding.PEM))

    def sign(self, fields: dict[str, Any]) -> dict[str, Any]:
        signed = "".join(
            f"{name}\n{fields[name]}\n"
            for name in sorted(fields)
            if name
            not in ("SignatureVersion", "SigningCertURL", "SigningCertUrl", "UnsubscribeURL", "Signature")
            and not (name == "SubscribeURL" and fields["Type"] == "Notification")
            and fields[name] is not None
        )
        algorithm = SHA1() if fields["SignatureVersion"] == "1" else SHA256()  # noqa: S303
        signature = self.key.sign(signed.encode(), PKCS1v15(), algorithm)
        return fields | {"Signature": b64encode(signature).decode()}


@cache
def signer() -> Signer:
    """Making a key takes a moment: one serves all tests that need no other."""
    return Signer.make()


@dataclass(frozen=True)
class Topic:
    arn: str = TOPIC
    certificate_url: str = CERTIFICATE_URL
    version: str = "1"
    signer: Signer = field(default_factory=signer)

    def notification(self, message: str, **changes: Any) -> bytes:
        fields = {
            "Type": "Notification",
            "MessageId": str(uuid4()),
            "TopicArn": self.arn,
            "Message": message,
            "Timestamp": "2026-11-16T12:00:00.000Z",
            "SignatureVersion": self.version,
            "SigningCertURL": self.certificate_url,
            "UnsubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=Unsubscribe",
        }
        return json.dumps(self.signer.sign(fields | changes)).encode()

    def confirmation(self, kind: str = "SubscriptionConfirmation", **changes: Any) -> bytes:
        fields = {
            "Type": kind,
            "MessageId": str(uuid4()),
            "Token": "a-token",
            "TopicArn": self.arn,
            "Message": "You have chosen to subscribe to the topic.",
            "SubscribeURL": "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription",
            "Timestamp": "2026-11-16T12:00:00.000Z",
            "SignatureVersion": self.version,
            "SigningCertURL": self.certificate_url,
        }
        return json.dumps(self.signer.sign(fields | changes)).encode()
