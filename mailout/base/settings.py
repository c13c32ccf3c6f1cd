"""Every setting, read in one place: the environment, then `.env`. `.env.example` explains each of them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr, ValidationError, model_validator

from mailout.base.dotenv_file import DOTENV, read_file
from mailout.base.errors import SettingsError
from mailout.base.setting_values import (
    MAKE_ONE,
    SHORTEST_TOKEN,
    Address,
    Addresses,
    ApiToken,
    BareUrl,
    Ceilings,
    Color,
    Concurrency,
    Confirm,
    Days,
    Delays,
    Links,
    Locale,
    Password,
    Proxies,
    PublicUrl,
    Secrets,
    ServiceKey,
    SesName,
    Timezone,
    Topics,
    Url,
    Window,
    too_short,
)


class Settings(BaseModel):
    """What a person can set; a field's name is the setting's in lower case.

    Made directly it reads nothing but its arguments, so a test is the same on every machine; `load_settings`
    reads the environment.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    # The sender, as recipients see it
    from_email: Address | None = Field(None, examples=["news@example.org"])
    from_name: str | None = None
    transactional_from_email: Address | None = Field(None, examples=["receipts@example.org"])
    reply_to: Address | None = Field(None, examples=["office@example.org"])
    org_name: str | None = None
    org_address: str | None = None
    test_emails: str = ""
    require_test: bool = False

    # Unsubscribing
    unsubscribe_base_url: BareUrl | None = Field(None, examples=["https://mail.example.org/unsubscribe"])
    unsubscribe_secret: SecretStr | None = None
    unsubscribe_secrets_old: Secrets = ()
    unsubscribe_confirm: Confirm = "auto"

    unsubscribe_mailbox: Address | None = Field(None, examples=["unsubscribe@example.org"])

    # Joining
    signup: bool = False

    # How letters look
    brand_logo: Url | None = Field(None, examples=["https://example.org/logo.png"])
    brand_logo_dark: Url | None = Field(None, examples=["https://example.org/logo-light.png"])
    brand_links: Links = Field(
        (), examples=["Website=https://example.org,Mastodon=https://hill.example/@dome"]
    )
    brand_color: Color | None = Field(None, examples=["#0b5c8a"])
    brand_footer: str | None = None
    language: Locale | None = Field(None, examples=["en"])

    # Readers
    view_in_browser: bool = True

    # Where things are kept
    mailout_home: Path = Path(".mailout")
    supabase_url: Url | None = Field(None, examples=["https://abcdefgh.supabase.co"])
    supabase_service_role_key: ServiceKey | None = None

    # Sending
    mailout_transport: Literal["folder", "ses"] = "folder"
    send_rate_per_sec: float = Field(5, ge=0, allow_inf_nan=False)  # 0: no limit
    batch_size: int = Field(50, ge=1, le=1000)
    send_concurrency: Concurrency = "auto"
    max_attempts: int = Field(5, ge=1, le=20)
    retry_delays: Delays = Field((1.0, 5.0, 30.0, 120.0, 600.0), examples=["1,5,30,120,600"])
    lock_seconds: float = Field(120, gt=0, allow_inf_nan=False)
    ses_mode: Literal["auto", "single", "bulk"] = "auto"
    ses_configuration_set: SesName | None = Field(None, examples=["mailout"])

    # Amazon Web Services: None leaves it to boto3 and its own places
    aws_region: str | None = None
    aws_default_region: str | None = None
    aws_profile: str | None = None
    aws_access_key_id: str | None = None
    aws_secret_access_key: SecretStr | None = None
    aws_session_token: SecretStr | None = None
    aws_endpoint_url_sesv2: Url | None = None
    aws_endpoint_url_sns: Url | None = None
    aws_endpoint_url_sqs: Url | None = None
    aws_endpoint_url_s3: Url | None = None

    # Limits
    limit_per_hour: int | None = Field(None, ge=1, examples=["1000"])
    limit_per_day: int | None = Field(None, ge=1, examples=["10000"])
    send_window: Window | None = Field(None, examples=["09:00-18:00"])
    send_days: Days = Field(frozenset(range(7)), examples=["mon-fri"])
    send_timezone: Timezone = Field("UTC", examples=["Europe/Lisbon"])
    send_delay: float = Field(0, ge=0, allow_inf_nan=False)
    warmup: Ceilings = Field((), examples=["50,100,200,400,800"])
    circuit_failures: int = Field(20, ge=1)
    max_bounce_rate: float = Field(0.05, ge=0, le=1)
    max_complaint_rate: float = Field(0.003, ge=0, le=1)

    # Notion
    notion_token: SecretStr | None = None
    notion_db_mailouts: str | None = None
    notion_db_errors: str | None = None
    notion_webhook_token: SecretStr | None = None
    notion_automation_secret: SecretStr | None = None
    notion_base_url: Url | None = Field(None, examples=["https://api.notion.com"])
    notion_prop_subject: str = "subject"
    notion_prop_status: str = "status"
    notion_prop_is_test: str = "is_test"
    notion_prop_sent_at: str = "sent_at"
    notion_prop_send_at: str = "send_at"
    notion_prop_list: str = "list"
    notion_prop_segment: str = "segment"
    notion_prop_public: str = "public"
    notion_prop_preheader: str = "preheader"
    notion_prop_from_name: str = "from_name"
    notion_prop_reply_to: str = "reply_to"
    notion_prop_language: str = "language"
    notion_prop_headline: str = "headline"
    notion_prop_excerpt: str = "excerpt"
    notion_prop_byline: str = "byline"
    notion_prop_date: str = "date"
    notion_prop_sent_count: str = "sent_count"
    notion_prop_failed_count: str = "failed_count"
    notion_prop_delivered_count: str = "delivered_count"
    notion_prop_bounce_rate: str = "bounce_rate"
    notion_prop_unsub_rate: str = "unsub_rate"
    notion_status_draft: str = "Draft"
    notion_status_ready: str = "Ready"
    notion_status_sending: str = "Sending"
    notion_status_send: str = "Send"
    notion_status_failed: str = "Failed"

    # Pictures and files
    media_bucket: str | None = None
    media_supabase_bucket: str | None = None
    media_base_url: Url | None = Field(None, examples=["https://media.example.org"])

    # What comes back
    sns_topic_arns: Topics = Field((), examples=["arn:aws:sns:eu-west-1:123456789012:ses-events"])
    sqs_queue_url: Url | None = Field(
        None, examples=["https://sqs.eu-west-1.amazonaws.com/123456789012/events"]
    )
    bounce_policy: Literal["smart", "any", "permanent"] = "smart"

    # Access and logs
    api_token: ApiToken | None = None
    trusted_proxies: Proxies = Field((), examples=["127.0.0.1,10.0.0.0/8"])
    admin_password: Password | None = None
    editor_password: Password | None = None
    sign_in_admins: Addresses = Field((), examples=["ana@example.org"])
    sign_in_editors: Addresses = Field((), examples=["ben@example.org, cleo@example.org"])
    admin_email: Address | None = Field(None, examples=["admin@example.org"])
    public_url: PublicUrl | None = Field(None, examples=["https://mail.example.org"])
    log_redact: bool = True
    log_format: Literal["text", "json"] = "text"
    log_level: Literal["debug", "info", "warning", "error"] | None = None  # None: as each program does it

    # Notifications
    notify_db: Path | None = None
    notify_source: str | None = Field(None, examples=["course-watch"])
    notify_base_url: Url | None = Field(None, examples=["https://app.example.org"])
    notify_locale: Locale = "en-US"
    notify_other_channels: Literal["skip", "leave"] = "skip"
    notify_template_version: str = "v1"
    notify_update_subscriptions: bool = True

    _warnings: tuple[str, ...] = PrivateAttr(())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What looks like a mistake in the environment or `.env`, for the log."""
        return self._warnings

    @property
    def secrets(self) -> tuple[str, ...]:
        """Their values, for whoever has to keep them out of something."""
        values = (getattr(self, name) for name in type(self).model_fields)
        single = (one for value in values for one in (value if isinstance(value, tuple) else (value,)))
        return tuple(one.get_secret_value() for one in single if isinstance(one, SecretStr))

    @property
    def unsubscribe_keys(self) -> tuple[str, ...]:
        """What links are signed with, the current one first; none without a current one."""
        if self.unsubscribe_secret is None:
            return ()
        keys = (self.unsubscribe_secret, *self.unsubscribe_secrets_old)
        return tuple(key.get_secret_value() for key in keys)

    @property
    def has_dashboard(self) -> bool:
        """Whether anybody can sign in there."""
        return bool(self.admin_password or self.sign_in_admins or self.sign_in_editors)

    @property
    def calls_in_flight(self) -> int | None:
        """None: as many as the rate and the latency need."""
        return None if self.send_concurrency == "auto" else self.send_concurrency

    @property
    def rehearses(self) -> bool:
        """Letters become files in a folder, and nobody gets them."""
        return self.mailout_transport == "folder"

    def send_rate(self, *, rehearses: bool) -> float:
        """Messages a second; 0: no limit. A rehearsal is held to a rate only if one was set."""
        unheld = rehearses and "send_rate_per_sec" not in self.model_fields_set
        return 0.0 if unheld else self.send_rate_per_sec

    @property
    def region(self) -> str | None:
        """Both names are in use; boto3 itself reads only the second."""
        return self.aws_region or self.aws_default_region

    @model_validator(mode="after")
    def _agree(self) -> Self:
        """Settings that are right alone and wrong together."""
        if problems := list(self._conflicts()):
            raise ValueError("\n".join(problems))
        return self

    def _conflicts(self) -> Iterator[str]:
        if len(self.retry_delays) < self.max_attempts - 1:
            yield (
                f"RETRY_DELAYS: has {len(self.retry_delays)} delays for {self.max_attempts} attempts."
                f" Give at least {self.max_attempts - 1}, or lower MAX_ATTEMPTS."
            )
        if self.supabase_url and not self.supabase_service_role_key:
            yield "SUPABASE_SERVICE_ROLE_KEY: is missing. SUPABASE_URL needs it: Supabase, API keys."
        if self.supabase_service_role_key and not self.supabase_url:
            yield "SUPABASE_URL: is missing. SUPABASE_SERVICE_ROLE_KEY is of no use without it."
        if self.mailout_transport == "ses" and not self.from_email:
            yield "FROM_EMAIL: is missing. MAILOUT_TRANSPORT=ses needs an address that SES has verified."
        yield from self._missing_for_mailed_links()
        if self.editor_password is not None and self.editor_password == self.admin_password:
            yield "EDITOR_PASSWORD: is the same as ADMIN_PASSWORD. Choose another one, or remove it."
        if self.media_bucket and self.media_supabase_bucket:
            yield "MEDIA_BUCKET: is set and so is MEDIA_SUPABASE_BUCKET. Keep one of the two."

    def _missing_for_mailed_links(self) -> Iterator[str]:
        asked = {
            "SIGNUP": self.signup,
            "SIGN_IN_ADMINS": self.sign_in_admins,
            "SIGN_IN_EDITORS": self.sign_in_editors,
        }
        who = " and ".join(name for name, value in asked.items() if value)
        needed = {
            "PUBLIC_URL": (self.public_url, "the mailed link leads there"),
            "UNSUBSCRIBE_SECRET": (self.unsubscribe_secret, "it signs the mailed link"),
            "FROM_EMAIL": (self.from_email, "the mail with the link comes from there"),
        }
        for name, (value, why) in needed.items():
            if who and not value:
                yield f"{name}: is missing. {who} needs it: {why}."
        signs_in = bool(self.sign_in_admins or self.sign_in_editors)
        # Every reader has a link to test guesses against. Older secrets sign nobody in.
        if signs_in and 0 < len(self.unsubscribe_secret or "") < SHORTEST_TOKEN:
            yield (
                f"UNSUBSCRIBE_SECRET: {too_short(SHORTEST_TOKEN, MAKE_ONE)}. With SIGN_IN_ADMINS or"
                " SIGN_IN_EDITORS it also signs people in. Move the one you have to UNSUBSCRIBE_SECRETS_OLD:"
                " links in letters go on working."
            )


def load_settings(env: Mapping[str, str] | None = None, env_file: Path | None = DOTENV) -> Settings:
    """The environment before the file; what is empty counts as unset.

    Given `env`, nothing hidden is read: neither the process's environment nor `.env`; another file may be.
    """
    if env is not None and env_file == DOTENV:
        env_file = None
    in_file, warnings = read_file(env_file) if env_file else ({}, [])
    in_env = dict(os.environ if env is None else env)
    known = {name.upper(): name for name in Settings.model_fields}
    values: dict[str, Any] = {
        known[name]: value.strip()
        for source in (in_file, in_env)
        for name, value in source.items()
        if name in known and value.strip()
    }
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise SettingsError("\n".join(_problems(error, values))) from None
    warnings += _misspelt(in_file, f"in {env_file}", known)
    warnings += _misspelt(
        [name for name in in_env if name.startswith(OWN_PREFIXES)], "in the environment", known
    )
    settings._warnings = tuple(warnings)
    return settings


OWN_PREFIXES = ("MAILOUT_", "NOTION_", "NOTIFY_", "SEND_", "SES_", "SUPABASE_", "UNSUBSCRIBE_")
"""Names that begin so are looked at in the environment too, where most names are no business of ours."""


def _misspelt(
    names: Sequence[str] | Mapping[str, str], where: str, known: Mapping[str, str]
) -> Iterator[str]:
    """Names that are not ours and look as if they were meant to be."""
    for name in names:
        if name in known or name.startswith("AWS_"):  # boto3 knows more of those than we do
            continue
        meant = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.8)
        if meant:
            yield f"{name} {where} is not a setting. Did you mean {meant[0]}?"
        elif name.startswith("MAILOUT_"):
            yield f"{name} {where} is not a setting and has no effect."


IN_PLAIN_WORDS = {
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number",
    "bool_parsing": "must be true or false",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be {ge:g} or more",
    "greater_than": "must be more than {gt:g}",
    "less_than_equal": "must be {le:g} or less",
    "value_error": "{error}",
}
"""pydantic's kinds of error, in ours; the braces are filled from the error's context."""


def _problems(error: ValidationError, values: Mapping[str, str]) -> Iterator[str]:
    """One line each: the name, what is wrong, the remedy."""
    for problem in error.errors(include_url=False, include_input=False):
        words = IN_PLAIN_WORDS.get(problem["type"], "is wrong").format(**problem.get("ctx", {}))
        if not problem["loc"]:
            yield from words.splitlines()
            continue
        name = str(problem["loc"][0])
        field = Settings.model_fields[name]
        given = "" if _may_hold_a_secret(name) else f", not {values[name]!r}"
        example = (field.examples or [field.default])[0]
        remedy = "Correct it" if example in (None, ()) else f"Set it like {name.upper()}={example}"
        yield f"{name.upper()}: {words}{given}. {remedy}, or remove it."


def _may_hold_a_secret(name: str) -> bool:
    """A URL may, too: https://user:password@host."""
    return "Secret" in repr(Settings.model_fields[name].annotation) or "url" in name.split("_")
