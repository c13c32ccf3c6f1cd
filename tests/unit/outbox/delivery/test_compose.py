"""What differs between two mails of a mailout: the address, and the link to leave by."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from mailout.base import ids
from mailout.base.signed_links import TokenData, Tokens
from mailout.letters.content.footer import Footer
from mailout.letters.content.model import UNSUBSCRIBE_URL, Content
from mailout.outbox.delivery.compose import Composer
from mailout.outbox.delivery.protocol import Attempt, Claimed

TOKENS = Tokens(["a secret"])


def link_of(mailout: str, email: str) -> dict[str, list[str]]:
    compose = Composer(
        lambda _: Content("Hello", "<p>Hello</p>", "Hello"),
        footer=Footer("Org", "Street", "https://example.org/unsubscribe"),
        tokens=TOKENS,
        from_email="news@example.org",
        from_name="News",
        reply_to=None,
        list_key="weekly",
        view_url=lambda content: f"https://example.org/view/{content}",
    )
    claimed = Claimed(
        attempt=Attempt(ids.message_id(mailout, email), 1),
        seq=1,
        number=1,
        email=email,
        mailout_id=mailout,
        company_id="",
        content_hash="c",
        from_name=None,
        variables={},
        slot=0.0,
    )
    mail = compose(claimed)
    assert mail.values[UNSUBSCRIBE_URL] == mail.unsubscribe_url
    return parse_qs(urlsplit(mail.unsubscribe_url or "").query)


def test_the_token_is_the_addresss_and_beside_it_stands_the_message() -> None:
    may, june = (link_of(mailout, "ann@example.org") for mailout in ("may", "june"))
    assert may["token"] == june["token"]
    assert TOKENS.read(may["token"][0]) == TokenData("ann@example.org", "weekly")
    assert TOKENS.read_message(may["m"][0]) == ids.message_id("may", "ann@example.org")
    assert TOKENS.read_message(june["m"][0]) == ids.message_id("june", "ann@example.org")
