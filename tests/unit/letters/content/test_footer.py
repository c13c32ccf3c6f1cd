"""The footer: who writes, and the way out."""

import pytest

from mailout.base.errors import Abort, AbortCode
from mailout.base.settings import Settings
from mailout.base.signed_links import TokenData, Tokens
from mailout.letters.content.footer import Footer
from mailout.letters.content.from_settings import footer_of, require_public_addresses
from mailout.letters.content.model import UNSUBSCRIBE_URL, Segments, mark

SETTINGS = {
    "org_name": "Birch & Hill",
    "org_address": "7 <Hill> Road",
    "unsubscribe_base_url": "https://example.org/unsubscribe",
    "unsubscribe_secret": "a secret",
}
TOKENS = Tokens(["a secret"])


def test_the_link_leads_to_the_recipients_own_unsubscribe_page():
    footer = footer_of(Settings(**SETTINGS))
    url = footer.url(TOKENS.make("ann@example.org"))
    base, token = url.split("?token=")
    assert base == "https://example.org/unsubscribe"
    assert TOKENS.read(token) == TokenData("ann@example.org")
    assert url == footer.url(TOKENS.make("ann@example.org"))


def test_the_link_says_which_message_it_stands_in():
    message = TOKENS.make_message("0b1c2d3e-4f50-8123-9abc-def012345678")
    footer = footer_of(Settings(**SETTINGS))
    url = footer.url(TOKENS.make("ann@example.org"), message)
    assert url.startswith(f"{footer.url(TOKENS.make('ann@example.org'))}&m=")
    assert TOKENS.read_message(url.partition("&m=")[2]) == "0b1c2d3e-4f50-8123-9abc-def012345678"


def test_the_html_footer_is_as_given_and_escaped():
    assert footer_of(Settings(**SETTINGS)).html() == (
        "<hr><p>Birch &amp; Hill — 7 &lt;Hill&gt; Road</p>"
        f'<p><a href="{mark(UNSUBSCRIBE_URL)}">Unsubscribe</a></p>'
    )


def test_the_text_footer_is_as_given_to_the_byte():
    assert footer_of(Settings(**SETTINGS)).text() == (
        f"\n--\nBirch & Hill — 7 <Hill> Road\nUnsubscribe: {mark(UNSUBSCRIBE_URL)}"
    )


def test_in_content_the_link_is_a_mark():
    footer = footer_of(Settings(**SETTINGS))
    assert Segments.of(footer.html()).names == (UNSUBSCRIBE_URL,)
    assert Segments.of(footer.text()).names == (UNSUBSCRIBE_URL,)


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://x.org/u", "https://x.org/u?token=t"),
        ("https://x.org/u?lang=ru", "https://x.org/u?lang=ru&token=t"),
        ('https://x.org/"u>', "https://x.org/%22u%3E?token=t"),
        ("https://x.org/\n u", "https://x.org/%0A%20u?token=t"),
    ],
)
def test_the_link_is_whole_whatever_the_base_looks_like(base, url):
    assert Footer("Org", "Address", base).url("t") == url


@pytest.mark.parametrize(
    ("name", "empty"),
    [
        *((name, None) for name in SETTINGS),
        ("org_name", ""),
        ("org_address", "  "),
        ("unsubscribe_secret", ""),
    ],
)
def test_a_missing_setting_stops_the_mailout_and_is_named(name, empty):
    with pytest.raises(Abort, match=name.upper()) as caught:
        footer_of(Settings(**{**SETTINGS, name: empty}))
    assert caught.value.code is AbortCode.FOOTER_ENV_MISSING
    assert caught.value.remedy


def test_all_missing_settings_are_named_at_once():
    with pytest.raises(Abort) as caught:
        footer_of(Settings())
    assert all(name.upper() in str(caught.value) for name in SETTINGS)


@pytest.mark.parametrize("name", ["unsubscribe_base_url", "public_url", "media_base_url"])
def test_letters_that_lead_readers_to_their_own_machine_are_refused(name: str) -> None:
    settings = Settings(**{name: "http://127.0.0.1:8080"})
    require_public_addresses(settings, rehearses=True)
    with pytest.raises(Abort, match=f"^{name.upper()} is an address of this machine"):
        require_public_addresses(settings, rehearses=False)
