"""Access to Amazon Web Services by our settings: they may stand in `.env`, which boto3 never reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, NoRegionError

from mailout.base.errors import SettingsError
from mailout.base.settings import Settings

CONNECT_SECONDS = 5.0  # boto3 would wait a minute for a host that is not there, and try again


@dataclass(frozen=True, slots=True)
class AwsAccess:
    """What is None is left to boto3 and its own places (environment, files, the machine's role)."""

    region: str | None = None
    profile: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, settings: Settings) -> AwsAccess:
        secret, token = settings.aws_secret_access_key, settings.aws_session_token
        return cls(
            region=settings.region,
            profile=settings.aws_profile,
            access_key_id=settings.aws_access_key_id,
            secret_access_key=secret.get_secret_value() if secret else None,
            session_token=token.get_secret_value() if token else None,
        )

    def session(self) -> tuple[boto3.session.Session, Any]:
        """A session of its own, and botocore's below it."""
        core = botocore.session.Session(profile=self.profile)
        session = boto3.session.Session(
            aws_access_key_id=self.access_key_id,
            aws_secret_access_key=self.secret_access_key,
            aws_session_token=self.session_token,
            region_name=self.region,
            botocore_session=core,
        )
        return session, core

    @property
    def region_name(self) -> str | None:
        """By our settings, else as boto3 finds it: what every client would be made for."""
        return self.region or self.session()[0].region_name

    def client(self, service: str, *, region: str | None = None, endpoint_url: str | None = None) -> Any:
        """For everything but sending mail: boto3's own retries are on."""
        try:
            session, _ = self.session()
            make: Any = session.client
            config = Config(connect_timeout=CONNECT_SECONDS)
            return make(service, region_name=region, endpoint_url=endpoint_url, config=config)
        except NoRegionError as error:
            remedy = "Set it to the region in which SES is set up."
            raise SettingsError("AWS_REGION: is missing.", remedy=remedy) from error
        except (BotoCoreError, ValueError) as error:
            raise SettingsError(f"AWS: {error}", remedy="Correct what this names.") from error
