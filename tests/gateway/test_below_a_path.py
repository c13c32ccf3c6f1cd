"""`PUBLIC_URL=https://example.org/mail`: a proxy takes the path away, and every link of a reader's page stays
below it."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urljoin

import pytest
from httpx import Client

from mailout.adapters.sqlite import SqliteStore
from mailout.base.signed_links import SignedLinks, Tokens
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.letters.audience.port import SubscriberRow
from tests.clocks import FakeClock
from tests.gateway.conftest import SECRET, Open
from tests.gateway.letters import letter

ANN, GONE = "ann@example.org", "gone@example.org"
ROOT = "https://example.org/mail"


@pytest.fixture
def gateway(open_gateway: Open, store: SqliteStore) -> Client:
    store.put(LIST_TABLE, [List("news", "News", public=True), List("weekly", "Weekly", public=True)])
    store.import_subscribers([SubscriberRow(ANN, ANN, lists=["news"]), SubscriberRow(GONE, GONE)])
    store.unsubscribe(GONE, None)
    return open_gateway(signup=True, public_url=ROOT)


def own(what: str, clock: FakeClock) -> str:
    payload = {"email": ANN, "at": int(clock.now()), "language": "en"}
    return f"/preferences/{what}?token={SignedLinks([SECRET], f'own-{what}').make(payload)}"


def test_every_link_of_a_readers_page_stays_below_the_path(
    gateway: Client, store: SqliteStore, clock: FakeClock
) -> None:
    public = f"/archive/{store.mailout(letter(store, 'one', list_key='news')).slug}"
    token, gone = (Tokens([SECRET]).make(email) for email in (ANN, GONE))
    seen = set()
    for path in (
        "/join",
        "/join/confirm?token=x",
        f"/preferences?token={token}",
        f"/preferences?token={gone}",
        own("data", clock),
        own("delete", clock),
        "/preferences/data?token=x",
        "/archive",
        "/archive?page=7",
        "/archive/feed.xml",
        "/archive/sitemap.xml",
        "/archive/nope",
        public,
        "/view/x",
        "/nope",
        f"/unsubscribe?token={token}",
        "/unsubscribe?token=x",
    ):
        answer = gateway.get(path, headers={"accept": "text/html"})
        assert answer.status_code < 500, path
        for written in re.findall(r'(?:href|action)="([^"]*)"|<loc>([^<]*)', answer.text):
            link = urljoin(ROOT + path, unescape("".join(written)))
            assert link.startswith((f"{ROOT}/", "mailto:")), (path, written)
            seen.add(link)
    there = ("/join", "/archive", public, "/archive/feed.xml")
    assert {ROOT + path for path in there} <= seen
    refused = gateway.post("/join", data={"email": "a@b", "list": "news"})
    assert 'action="join"' in refused.text
