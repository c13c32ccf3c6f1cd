"""SNS's signing certificates: fetched once, kept in a folder under their file names."""

from __future__ import annotations

import logging
import threading
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import httpx
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from mailout.base.clock import Clock
from mailout.outbox.feedback.sns import public_key

log = logging.getLogger("mailout.sns")

MAX_CERTIFICATE_BYTES = 64 * 1024
CERTIFICATE_TIMEOUT_SECONDS = 5.0
CERTIFICATE_RETRY_SECONDS = 5.0
"""After a failure, for that address alone. SNS tries again three times, 20 s apart: each has to count."""
FETCHES_A_MINUTE = 20
"""Of one host: who knows a topic's name could otherwise make us ask SNS for what is not there."""


class SnsCertificates:
    """Addresses come from `sns.certificate_url`, so host and path are right. No redirect is followed."""

    def __init__(self, folder: Path, clock: Clock, client: httpx.Client | None = None) -> None:
        self._folder = folder
        self._clock = clock
        self._client = client or httpx.Client(timeout=CERTIFICATE_TIMEOUT_SECONDS, follow_redirects=False)
        self._keys: dict[str, tuple[RSAPublicKey, float]] = {}
        self._failed: dict[str, float] = {}
        self._fetches: dict[str, list[float]] = {}  # by host: when, within the last minute
        self._lock = threading.Lock()

    def known(self, url: str) -> RSAPublicKey | None:
        """Without waiting for anything: what is in memory, and was looked at within the hour."""
        key, until = self._keys.get(url, (None, 0.0))
        return key if self._clock.monotonic() < until else None

    def key(self, url: str) -> RSAPublicKey | None:
        """From memory, the folder, or SNS; None: it cannot be had just now. Any thread may ask."""
        return self.known(url) or self._read(url) or self._fetch(url)

    def close(self) -> None:
        self._client.close()

    def _read(self, url: str) -> RSAPublicKey | None:
        try:
            pem = self._path(url).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:  # SNS has it, too
            log.warning("%s cannot be read: %s", self._path(url), error)
            return None
        return self._keep(url, pem)

    def _fetch(self, url: str) -> RSAPublicKey | None:
        if not self._may_fetch(url):
            return None
        pem = self._download(url)
        key = self._keep(url, pem) if pem is not None else None
        if key is None or pem is None:
            with self._lock:
                self._failed[url] = self._clock.monotonic() + CERTIFICATE_RETRY_SECONDS
            return None
        self._write(url, pem)
        return key

    def _may_fetch(self, url: str) -> bool:
        """One region's trouble is no other's, and an address that failed holds back no other address."""
        now, host = self._clock.monotonic(), urlsplit(url).netloc
        with self._lock:
            self._failed = {one: until for one, until in self._failed.items() if until > now}
            fetches = [at for at in self._fetches.get(host, ()) if at > now - 60.0]
            self._fetches[host] = fetches
            if url in self._failed or len(fetches) >= FETCHES_A_MINUTE:
                return False
            fetches.append(now)
            return True

    def _download(self, url: str) -> bytes | None:
        try:
            with self._client.stream("GET", url, follow_redirects=False) as response:
                if response.status_code != httpx.codes.OK:
                    log.warning("%s answered %d", url, response.status_code)
                    return None
                pem = b""
                for chunk in response.iter_bytes():
                    pem += chunk
                    if len(pem) > MAX_CERTIFICATE_BYTES:
                        log.warning("%s is too long for a certificate", url)
                        return None
                return pem
        except httpx.HTTPError as error:
            log.warning("%s could not be fetched: %s", url, error)
            return None

    def _keep(self, url: str, pem: bytes) -> RSAPublicKey | None:
        key = public_key(pem, self._clock.now())
        if key is not None:
            self._keys[url] = key, self._clock.monotonic() + 3600.0
        return key

    def _write(self, url: str, pem: bytes) -> None:
        """Whole or not at all: several processes share the folder."""
        path = self._path(url)
        part = path.with_suffix(f".{threading.get_native_id()}.part")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            part.write_bytes(pem)
            part.replace(path)
        except OSError as error:  # the next process fetches it again; this one has it in memory
            log.warning("%s cannot be kept: %s", path, error)

    def _path(self, url: str) -> Path:
        return self._folder / PurePosixPath(urlsplit(url).path).name
