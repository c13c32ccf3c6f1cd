"""Chooses where pictures and files are kept."""

from __future__ import annotations

from mailout.adapters.media_folder import MediaFolder
from mailout.base.errors import SettingsError
from mailout.base.private_files import make_home
from mailout.base.settings import Settings
from mailout.letters.content.port import MediaStore


def media_store(settings: Settings) -> MediaStore:
    """A bucket, or the folder that the gateway serves."""
    base = settings.media_base_url
    if settings.media_bucket:
        from mailout.adapters.aws import AwsAccess
        from mailout.adapters.media_s3 import MediaBucket

        aws, endpoint = AwsAccess.of(settings), settings.aws_endpoint_url_s3
        return MediaBucket(settings.media_bucket, aws, endpoint_url=endpoint, media_base_url=base)
    if settings.media_supabase_bucket:
        from mailout.adapters.media_supabase import MediaSupabase

        url, key = settings.supabase_url, settings.supabase_service_role_key
        if not (url and key):
            raise SettingsError(
                "MEDIA_SUPABASE_BUCKET: needs SUPABASE_URL and SUPABASE_SERVICE_ROLE_KEY.",
                remedy="Set both, or remove it.",
            )
        bucket = settings.media_supabase_bucket
        return MediaSupabase(url, key.get_secret_value(), bucket, media_base_url=base)
    return MediaFolder(
        make_home(settings.mailout_home) / "media", media_base_url=base, public_url=settings.public_url
    )
