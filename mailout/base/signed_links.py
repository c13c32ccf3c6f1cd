"""Every signed link: `base64url(payload).base64url(HMAC-SHA256(payload))`, both without padding.

`Tokens` are those to unsubscribe, signed with the secret itself. The payload is canonical JSON, so the same
address always has the same token. Beside it a link says which message it stands in, signed, so that an
unsubscribe counts for that mailout. `SignedLinks` are all others: each purpose has a key of its own.
"""

from __future__ import annotations

import binascii
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from mailout.base.errors import SettingsError

MAX_LENGTH = 2048
"""Of a whole token. An address has at most 320 characters; what is longer is not ours: no need to hash it."""

MAX_LINK_LENGTH = 8192
"""The same of a link that carries more than an address, e.g. what a sign-up said."""

SIGNATURE_BYTES = 16
"""Of the message's signature: as much as its id has."""

_quote = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True, slots=True)
class TokenData:
    """Who leaves, and which list; None: all of them."""

    email: str
    list_key: str | None = None


class SignedLinks:
    """Links for one purpose, e.g. `join`. A link that was made for another one is a forgery here.

    The first secret is the current one; the others are read only.
    """

    def __init__(self, secrets: Sequence[str], purpose: str) -> None:
        # Neither a token nor a message's mark is signed over such a text: this key is nobody else's.
        derived = (_sign(keyed, f"purpose\n{purpose}".encode()) for keyed in _keyed_by(secrets))
        self._keyed = [hmac.new(key, digestmod=sha256) for key in derived]

    def make(self, payload: Mapping[str, Any]) -> str:
        """Of canonical JSON: the same payload always has the same token."""
        written = json.dumps(payload, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
        return f"{_encode(written)}.{_encode(_sign(self._keyed[0], written))}"

    def read(self, token: str) -> Mapping[str, Any] | None:
        """What was signed; None: forged, damaged, or made for another purpose."""
        written = _signed(self._keyed, token, MAX_LINK_LENGTH)
        return None if written is None else json.loads(written)

    def read_fresh(self, token: str, now: float, valid_seconds: float) -> Mapping[str, Any] | None:
        """The same of a link whose payload says under `at` when it was made; None, too, if it is too old."""
        payload = self.read(token)
        return payload if payload is not None and 0 <= now - payload["at"] <= valid_seconds else None


class Tokens:
    """Makes and reads tokens. The first secret is the current one; the others are read only."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self._keyed = _keyed_by(secrets)

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
        payload = _signed(self._keyed, token, MAX_LENGTH)
        return None if payload is None else _data(payload)


def _keyed_by(secrets: Sequence[str]) -> list[hmac.HMAC]:
    if not secrets or not all(secrets):
        raise SettingsError("UNSUBSCRIBE_SECRET is empty.", remedy="Set it to a long random text.")
    return [hmac.new(secret.encode(), digestmod=sha256) for secret in secrets]


def _signed(keys: Sequence[hmac.HMAC], token: str, most: int) -> bytes | None:
    """The payload, if one of the keys signed it."""
    if len(token) > most or token.count(".") != 1:
        return None
    payload, signature = (_decode(part) for part in token.split("."))
    if payload is None or signature is None:
        return None
    # Every key is tried: the time taken must not tell which one, or whether any, fits.
    fits = [hmac.compare_digest(_sign(keyed, payload), signature) for keyed in keys]
    return payload if any(fits) else None


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
