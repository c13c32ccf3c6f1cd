"""Unsubscribe tokens: `base64url(payload).base64url(HMAC-SHA256(payload))`, both without padding.

The payload is canonical JSON, so the same address always has the same token.
Beside it a link says which message it stands in, signed, so that an unsubscribe counts for that mailout.
"""

from __future__ import annotations

import binascii
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from mailout.base.errors import SettingsError

MAX_LENGTH = 2048
"""Of a whole token. An address has at most 320 characters; what is longer is not ours: no need to hash it."""

SIGNATURE_BYTES = 16
"""Of the message's signature: as much as its id has."""

_quote = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class TokenData:
    """Who leaves, and which list; None: all of them."""

    email: str
    list_key: str | None = None


class Tokens:
    """Makes and reads tokens. The first secret is the current one; the others are read only."""

    def __init__(self, secrets: Sequence[str]) -> None:
        if not secrets or not all(secrets):
            raise SettingsError("UNSUBSCRIBE_SECRET is empty.", remedy="Set it to a long random text.")
        self._keyed = [hmac.new(secret.encode(), digestmod=sha256) for secret in secrets]

    def make(self, email: str, list_key: str | None = None) -> str:
        payload = _payload(email, list_key)
        return f"{_encode(payload)}.{_encode(_sign(self._keyed[0], payload))}"

    def make_message(self, id: str) -> str:
        """`base64url(id + HMAC-SHA256(id), cut)`, of a message's id."""
        raw = bytes.fromhex(id.replace("-", ""))
        return _encode(raw + _sign_message(self._keyed[0], raw))

    def read_message(self, written: str) -> str | None:
        """The message that a link stands in; None: it does not say, or was changed."""
        data = _decode(written) if len(written) <= MAX_LENGTH else None
        if data is None or len(data) != 16 + SIGNATURE_BYTES:
            return None
        raw, signature = data[:16], data[16:]
        fits = [hmac.compare_digest(_sign_message(keyed, raw), signature) for keyed in self._keyed]
        return str(UUID(bytes=raw)) if any(fits) else None

    def read(self, token: str) -> TokenData | None:
        """Who the token speaks for, or None: forged or damaged."""
        if len(token) > MAX_LENGTH or token.count(".") != 1:
            return None
        payload, signature = (_decode(part) for part in token.split("."))
        if payload is None or signature is None:
            return None
        # Every secret is tried: the time taken must not tell which one, or whether any, fits.
        fits = [hmac.compare_digest(_sign(keyed, payload), signature) for keyed in self._keyed]
        return _data(payload) if any(fits) else None


def _payload(email: str, list_key: str | None) -> bytes:
    """Written by hand, keys in order: a third of the time of `json.dumps`."""
    rest = "" if list_key is None else f',"list_key":{_quote(list_key)}'
    return f'{{"email":{_quote(email.strip().lower())}{rest}}}'.encode()


def _data(payload: bytes) -> TokenData | None:
    """Any spelling of the JSON: older senders with the same secret wrote spaces, or keys in another order."""
    try:
        found = json.loads(payload)
        email, list_key = found["email"], found.get("list_key")
        _payload(email, list_key)  # text that can be written again: no half of a surrogate pair
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):  # not JSON, not ours, not text
        return None
    return TokenData(email.strip().lower(), list_key) if isinstance(list_key, str | None) else None


def _sign(keyed: hmac.HMAC, payload: bytes) -> bytes:
    signer = keyed.copy()
    signer.update(payload)
    return signer.digest()


def _sign_message(keyed: hmac.HMAC, id: bytes) -> bytes:
    """No token's payload begins like this."""
    return _sign(keyed, b"message\n" + id)[:SIGNATURE_BYTES]


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(part: str) -> bytes | None:
    """Strict: what `_encode` would not have written is refused."""
    try:
        data = urlsafe_b64decode(part.encode("ascii") + b"=" * (-len(part) % 4))
    except (ValueError, binascii.Error):
        return None
    return data if _encode(data) == part else None
