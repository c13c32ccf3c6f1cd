"""Media kept in an S3 bucket that the world may read: one object per content of bytes, named by its hash."""

from __future__ import annotations

from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from mailout.adapters.aws import AwsAccess
from mailout.base.errors import SettingsError
from mailout.letters.content.media import content_type, kept_name

FOREVER = "public, max-age=31536000, immutable"
"""A name is a hash: what it stands for never changes."""


class MediaBucket:
    """A `MediaStore`. Keeping the same bytes again changes nothing, so boto3 may try again by itself."""

    def __init__(
        self, bucket: str, aws: AwsAccess, *, endpoint_url: str | None, media_base_url: str | None
    ) -> None:
        self._bucket = bucket
        self._client = _client(aws, endpoint_url)
        if media_base_url:
            self._base = media_base_url.rstrip("/")
        elif endpoint_url:
            self._base = f"{endpoint_url.rstrip('/')}/{bucket}"
        else:
            region = self._client.meta.region_name
            host = "s3" if region in (None, "aws-global") else f"s3.{region}"
            self._base = f"https://{bucket}.{host}.amazonaws.com"

    def keep(self, data: bytes, name: str, made_of: bytes | None = None) -> str:
        kept = kept_name(made_of or data, name)
        try:
            if not self._is_there(kept):
                self._client.put_object(
                    Bucket=self._bucket,
                    Key=kept,
                    Body=data,
                    ContentType=content_type(kept),
                    CacheControl=FOREVER,
                )
        except (ClientError, BotoCoreError) as error:
            raise OSError(f"the bucket {self._bucket} does not take it ({error})") from error
        return self.address(kept)

    def address(self, kept: str) -> str:
        return f"{self._base}/{kept}"

    def close(self) -> None:
        self._client.close()

    def _is_there(self, kept: str) -> bool:
        """Who may write but not list is told 403 where nothing is: then it is written once more."""
        try:
            self._client.head_object(Bucket=self._bucket, Key=kept)
        except ClientError as error:
            if error.response["ResponseMetadata"].get("HTTPStatusCode") in (403, 404):
                return False
            raise
        return True


def _client(aws: AwsAccess, endpoint_url: str | None) -> Any:
    try:
        session, _ = aws.session()
        return session.client(
            "s3",
            endpoint_url=endpoint_url,
            config=Config(
                connect_timeout=5,
                read_timeout=30,
                retries={"total_max_attempts": 3, "mode": "standard"},
                # Other services that speak S3 know buckets by their path, and not every checksum.
                s3={"addressing_style": "path" if endpoint_url else "auto"},
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )
    except (BotoCoreError, ValueError) as error:
        raise SettingsError(
            f"MEDIA_BUCKET: S3 cannot be used: {error}", remedy="Set AWS_REGION and the AWS keys."
        ) from error
