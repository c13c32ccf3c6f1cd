"""What every mail takes from the settings: sender, look, footer, its signed links."""

from __future__ import annotations

from collections.abc import Iterator

from mailout.base.errors import Abort, AbortCode, SettingsError
from mailout.base.setting_values import is_of_this_machine
from mailout.base.settings import Settings
from mailout.base.signed_links import SignedLinks, Tokens
from mailout.letters.content.brand import Brand
from mailout.letters.content.footer import Footer


def from_email_of(settings: Settings) -> str:
    if not settings.from_email:
        raise SettingsError("FROM_EMAIL: is missing.", remedy="Set it to the address that letters come from.")
    return settings.from_email


def footer_of(settings: Settings) -> Footer:
    """The footer, or an abort that names every setting it lacks. The secret signs its links."""
    secret = settings.unsubscribe_secret
    given = {
        "ORG_NAME": settings.org_name,
        "ORG_ADDRESS": settings.org_address,
        "UNSUBSCRIBE_BASE_URL": settings.unsubscribe_base_url,
        "UNSUBSCRIBE_SECRET": secret.get_secret_value() if secret else None,
    }
    values = {name: (value or "").strip() for name, value in given.items()}
    missing = [name for name, value in values.items() if not value]
    if missing:
        raise Abort(
            AbortCode.FOOTER_ENV_MISSING,
            f"The footer needs {', '.join(missing)}, and {'it is' if len(missing) == 1 else 'they are'}"
            " not set.",
            remedy="Set what is missing in the environment or in .env, then send again.",
        )
    return Footer(
        values["ORG_NAME"],
        values["ORG_ADDRESS"],
        values["UNSUBSCRIBE_BASE_URL"],
        settings.public_url,
        settings.view_in_browser,
    )


def require_public_addresses(settings: Settings, *, rehearses: bool) -> None:
    """People must be able to leave and to see the pictures: an address of this machine is for trying things
    out."""
    for name, harm, remedy in () if rehearses else unreachable(settings):
        said = f"{name} is an address of this machine: {harm}."
        raise Abort(AbortCode.FOOTER_ENV_MISSING, said, remedy=remedy)


def unreachable(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """The settings that lead readers to their own machines, what that would do to them, and the remedy."""
    if is_of_this_machine(settings.unsubscribe_base_url or ""):
        remedy = "Set it to the gateway's /unsubscribe, as people reach it (docs/feedback.md)."
        yield "UNSUBSCRIBE_BASE_URL", "no reader could unsubscribe", remedy
    for name in ("PUBLIC_URL", "MEDIA_BASE_URL"):
        if is_of_this_machine(getattr(settings, name.lower()) or ""):
            remedy = "Set it to the gateway's address, as people reach it (docs/feedback.md)."
            yield name, "readers would see no pictures and could open no links to it", remedy


def brand_of(settings: Settings) -> Brand:
    return Brand(
        settings.brand_logo,
        settings.brand_color,
        settings.brand_footer,
        settings.language,
        settings.brand_logo_dark,
        settings.brand_links,
    )


def tokens_of(settings: Settings) -> Tokens:
    return Tokens(settings.unsubscribe_keys)


def view_links_of(settings: Settings) -> SignedLinks:
    return SignedLinks(settings.unsubscribe_keys, "view")


def view_url(settings: Settings, mailout_id: str | None, variant: str | None) -> str:
    """Where a mailout is seen in a browser: the same for all its readers. `variant`: a content of its own; a
    letter that belongs to no mailout (a list's welcome) has nothing else.

    A letter that was rendered while PUBLIC_URL was set is sent without it, too: its link leads nowhere then.
    """
    if not settings.public_url:
        return "#"
    named = {"mailout": mailout_id, "variant": variant}
    payload = {key: value for key, value in named.items() if value is not None}
    return f"{settings.public_url.rstrip('/')}/view/{view_links_of(settings).make(payload)}"
