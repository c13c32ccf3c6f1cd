"""Clients of AWS's services, from the settings; what is unset boto3 finds in its own places."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ProfileNotFound

from mailout.errors import SettingsError
from mailout.settings import Settings


def client(settings: Settings, service: str, region: str | None = None) -> Any:
    """boto3's own retries are on: nothing that is asked through these clients sends mail."""
    secret, token = settings.aws_secret_access_key, settings.aws_session_token
    try:
        session = boto3.Session(
            profile_name=settings.aws_profile,
            region_name=region or settings.region,
            aws_access_key_id=settings.aws_access_key_id,
            aws_secret_access_key=secret.get_secret_value() if secret else None,
            aws_session_token=token.get_secret_value() if token else None,
        )
        endpoint = getattr(settings, f"aws_endpoint_url_{service}", None)
        return session.client(service, endpoint_url=endpoint)  # type: ignore[call-overload]
    except ProfileNotFound as error:
        raise SettingsError(f"AWS_PROFILE: {error}.") from error
    except (BotoCoreError, ValueError) as error:
        raise SettingsError(f"AWS: {error}", remedy="Set AWS_REGION, or what the message names.") from error
