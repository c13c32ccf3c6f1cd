"""Media kept in a public bucket of Supabase Storage: one object per content of bytes, named by its hash."""

from __future__ import annotations

import httpx

from mailout.letters.content.media import content_type, kept_name

DUPLICATE = (400, 409)
"""Storage's two ways to say that an object is there; the first one needs a look at its words."""


class MediaSupabase:
    """A `MediaStore`. Nothing is ever overwritten: a name that exists vouches for its bytes."""

    def __init__(self, url: str, key: str, bucket: str, *, media_base_url: str | None) -> None:
        self._bucket = bucket
        self._objects = f"{url.rstrip('/')}/storage/v1/object"
        self._base = (media_base_url or f"{self._objects}/public/{bucket}").rstrip("/")
        self._http = httpx.Client(headers={"apikey": key, "Authorization": f"Bearer {key}"}, timeout=30.0)

    def keep(self, data: bytes, name: str, made_of: bytes | None = None) -> str:
        kept = kept_name(made_of or data, name)
        address = f"{self._objects}/{self._bucket}/{kept}"
        try:
            if not self._http.head(address).is_success:
                self._put(address, data, kept)
        except httpx.HTTPError as error:
            raise OSError(f"Supabase Storage does not answer ({error})") from error
        return f"{self._base}/{kept}"

    def close(self) -> None:
        self._http.close()

    def _put(self, address: str, data: bytes, kept: str) -> None:
        answer = self._http.post(
            address,
            content=data,
            headers={
                "Content-Type": content_type(kept),
                "Cache-Control": "max-age=31536000",
                "x-upsert": "false",
            },
        )
        there = answer.status_code in DUPLICATE and "uplicate" in answer.text  # another sender was faster
        if not (answer.is_success or there):
            raise OSError(
                f"the bucket {self._bucket} does not take it ({answer.status_code}: {answer.text[:200]})"
            )
