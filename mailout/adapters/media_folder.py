"""Media kept in a folder that the gateway serves: one file per content of bytes, named by its hash."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from mailout.letters.content.media import kept_name


class MediaFolder:
    """A `MediaStore`. Without an address to serve from, mails point to the files themselves (the demo)."""

    def __init__(self, directory: Path, *, media_base_url: str | None, public_url: str | None) -> None:
        self._directory = directory
        if media_base_url:
            self._base = media_base_url.rstrip("/")
        elif public_url:
            self._base = f"{public_url.rstrip('/')}/media"
        else:
            self._base = directory.resolve().as_uri()

    def keep(self, data: bytes, name: str, made_of: bytes | None = None) -> str:
        """The address of these bytes. Kept once, however often and under whatever name they come."""
        kept = kept_name(made_of or data, name)
        if not (self._directory / kept).exists():
            self._write(kept, data)
        return f"{self._base}/{kept}"

    def _write(self, kept: str, data: bytes) -> None:
        """Whole or not at all, also after a power cut: a name that exists vouches for its bytes."""
        self._directory.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=self._directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(0o644)
            Path(temporary).replace(self._directory / kept)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
