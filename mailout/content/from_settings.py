"""What every mail takes from the settings: sender, look, footer, the signed links to unsubscribe."""

from __future__ import annotations

from mailout.content.brand import Brand
from mailout.content.footer import Footer
from mailout.content.tokens import Tokens
from mailout.errors import SettingsError
from mailout.settings import Settings


def from_email_of(settings: Settings) -> str:
    if not settings.from_email:
        raise SettingsError("FROM_EMAIL: is missing.", remedy="Set it to the address that letters come from.")
    return settings.from_email


def footer_of(settings: Settings) -> Footer:
    secret = settings.unsubscribe_secret
    return Footer.required(
        org_name=settings.org_name,
        org_address=settings.org_address,
        unsubscribe_base_url=settings.unsubscribe_base_url,
        unsubscribe_secret=secret.get_secret_value() if secret else None,
    )


def brand_of(settings: Settings) -> Brand:
    return Brand(settings.brand_logo, settings.brand_color, settings.brand_footer, settings.language)


def tokens_of(settings: Settings) -> Tokens:
    return Tokens(settings.unsubscribe_keys)
