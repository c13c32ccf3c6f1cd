"""Letters on the web: for everybody, with nothing that is anybody's own, and gone once unpublished."""

from __future__ import annotations

import email
import email.policy
import re
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import feedparser
import pytest
from httpx import Client, Response

import gateway.readers.web_archive
from mailout.adapters.sqlite import SqliteStore
from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base import ids
from mailout.base.error_log import errors
from mailout.base.settings import Settings
from mailout.base.signed_links import SignedLinks, Tokens
from mailout.insight.retention.archive_file import ArchiveFolder
from mailout.insight.retention.archiving import Archiving
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content import content_rows
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.from_settings import view_url
from mailout.letters.content.model import VIEW_URL
from mailout.letters.content.port import Kind
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.compose import SingleComposer
from mailout.outbox.delivery.protocol import Attempt, Claimed
from mailout.outbox.queue.mailout import NewMailout
from mailout.outbox.queue.port import Recipient
from mailout.readers import web_archive
from tests.clocks import NOON, FakeClock
from tests.gateway.conftest import SECRET, Open
from tests.gateway.letters import FOOTER, HOST, content_of, letter
from tests.transports import delivering

SCRIPT = "<script>alert(1)</script>"
PERSONAL = ("token=", "unsubscribe", "preferences", "example.org/view", "ann@", "bob@")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of letters is read for every request."""
    monkeypatch.setattr(gateway.readers.web_archive, "LISTING_SECONDS", 0.0)


@pytest.fixture
def site(open_gateway: Open) -> Client:
    return open_gateway(public_url=HOST)


def token_of(mailout: str, variant: str | None = None, *, secret: str = SECRET, purpose: str = "view") -> str:
    return SignedLinks([secret], purpose).make(
        {"mailout": mailout} | ({"variant": variant} if variant else {})
    )


def slug(store: SqliteStore, id: str) -> str:
    return str(store.mailout(id).slug)


# ── view in browser ──


def engine_for(home: Path, store: SqliteStore, clock: FakeClock, **more: Any) -> Engine:
    settings = Settings(
        mailout_home=home,
        from_email="news@example.org",
        org_name="Harbour Association",
        org_address="1 Quay Street",
        unsubscribe_base_url=f"{HOST}/unsubscribe",
        unsubscribe_secret=SECRET,
        send_rate_per_sec=0,
        test_emails="editor@example.org",
        **{"public_url": HOST} | more,
    )
    store.import_subscribers(
        [
            SubscriberRow("ann@example.org", "ann@example.org", attributes={"first_name": "Ann"}),
            SubscriberRow("bob@example.org", "bob@example.org"),
        ]
    )
    return wiring.build(settings, clock, store=store, transport=delivering(settings, clock), inline=True)


def written(folder: Path, text: str, name: str = "letter.md") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def mails(home: Path) -> list[EmailMessage]:
    found = [
        email.message_from_bytes(file.read_bytes(), policy=email.policy.default)
        for file in sorted(home.glob("outbox/*/*.eml"))
    ]
    return [one for one in found if isinstance(one, EmailMessage)]


def part(mail: EmailMessage, kind: str) -> str:
    body = mail.get_body((kind,))
    assert body is not None
    return body.get_content()


def link_in(mail: EmailMessage) -> str:
    in_html = re.search(rf'href="{HOST}(/view/[^"]+)"', part(mail, "html"))
    in_text = re.search(rf"View in browser: {HOST}(/view/\S+)", part(mail, "plain"))
    assert in_html is not None
    assert in_text is not None
    assert in_html[1] == in_text[1]
    return in_html[1]


LETTER = """---
id: june
subject: "June for {{ first_name | you }}"
public: true
---

Dear {{ first_name | friend }}, the ferry runs again, every hour until ten at night.
"""


def test_every_reader_gets_the_same_page_and_nothing_of_anybody_is_in_it(
    tmp_path: Path, store: SqliteStore, clock: FakeClock, site: Client
) -> None:
    engine = engine_for(tmp_path, store, clock)
    mailout = engine.intake.enqueue(written(tmp_path, LETTER))
    engine.deliver(mailout.id)
    links = {link_in(mail) for mail in mails(tmp_path)}
    assert len(mails(tmp_path)) == 2
    (link,) = links
    ann = site.get(link, headers={"Cookie": "mailout=x", "Accept-Language": "de"})
    bob = site.get(link)
    assert ann.status_code == 200
    assert ann.content == bob.content
    assert dict(ann.headers) | {"date": ""} == dict(bob.headers) | {"date": ""}
    assert "Dear friend, the ferry runs again" in ann.text
    assert "<title>June for you</title>" in ann.text
    rows = store.select(content_rows.CONTENTS, {"hash": mailout.content_hash})
    assert "ferry" in rows[0].html
    messages = [ids.message_id(mailout.id, one) for one in ("ann@example.org", "bob@example.org")]
    for own in (*PERSONAL, *messages, mailout.id, "Ann"):
        assert own not in ann.text
    assert "noindex" in ann.headers["X-Robots-Tag"]
    assert "script-src" not in ann.headers["Content-Security-Policy"]
    assert "default-src 'none'" in ann.headers["Content-Security-Policy"]


def test_the_stored_content_knows_no_mailout_so_two_of_the_same_words_are_one(
    tmp_path: Path, store: SqliteStore, clock: FakeClock
) -> None:
    engine = engine_for(tmp_path, store, clock)
    real = engine.intake.enqueue(written(tmp_path, LETTER))
    test = engine.intake.enqueue(written(tmp_path, LETTER), test=True)
    other = engine.intake.enqueue(written(tmp_path, LETTER.replace("june", "july"), "july.md"))
    assert real.content_hash == test.content_hash == other.content_hash
    stored = content_rows.content(store, str(real.content_hash))
    assert "/view/" not in stored.html + stored.text


def test_a_variable_without_a_fallback_means_no_link_and_no_page_and_its_author_is_told(
    tmp_path: Path, store: SqliteStore, clock: FakeClock, site: Client
) -> None:
    engine = engine_for(tmp_path, store, clock)
    store.import_subscribers(
        [SubscriberRow("bob@example.org", "bob@example.org", attributes={"city": "Faro"})]
    )
    store.import_subscribers(
        [SubscriberRow("ann@example.org", "ann@example.org", attributes={"city": "Porto"})]
    )
    text = LETTER.replace("until ten", "to {{ city }} until ten")
    mailout = engine.intake.enqueue(written(tmp_path, text))
    assert [one.message for one in errors(store, mailout.id) if one.code == "no_web_page"]
    engine.deliver(mailout.id)
    for mail in mails(tmp_path):
        assert "/view/" not in part(mail, "html") + part(mail, "plain")
        assert "View in browser" not in part(mail, "html")
    assert not store.mailout(mailout.id).public
    assert site.get(f"/archive/{slug(store, mailout.id)}").status_code == 404


def test_a_letter_that_is_edited_before_its_test_is_not_public_if_nobody_could_read_it(
    tmp_path: Path, store: SqliteStore, clock: FakeClock
) -> None:
    engine = engine_for(tmp_path, store, clock, require_test=True)
    mailout = engine.intake.enqueue(written(tmp_path, LETTER))
    assert mailout.public
    engine.deliver(mailout.id)  # waits for its test
    again = engine.intake.enqueue(written(tmp_path, LETTER.replace("until ten", "{{ email }}")))
    assert again.id == mailout.id
    assert again.content_hash != mailout.content_hash
    assert not again.public


@pytest.mark.parametrize("off", [{"public_url": None}, {"view_in_browser": False}])
def test_without_an_address_or_when_it_is_switched_off_there_is_no_link(
    tmp_path: Path, store: SqliteStore, clock: FakeClock, off: dict[str, Any]
) -> None:
    engine = engine_for(tmp_path, store, clock, **off)
    mailout = engine.intake.enqueue(
        written(tmp_path, LETTER.replace("{{ first_name | friend }}", "{{ email }}"))
    )
    engine.deliver(mailout.id)
    for mail in mails(tmp_path):
        assert "View in browser" not in part(mail, "html") + part(mail, "plain")


def test_a_letter_that_has_lost_its_address_meanwhile_is_sent_all_the_same(
    tmp_path: Path, store: SqliteStore, clock: FakeClock
) -> None:
    mailout = engine_for(tmp_path, store, clock).intake.enqueue(written(tmp_path, LETTER))
    engine_for(tmp_path, store, clock, public_url=None).deliver(mailout.id)
    assert store.mailout(mailout.id).ledger.sent == 2


def test_it_can_be_seen_while_it_is_being_sent_and_after_it_was_cancelled(
    store: SqliteStore, site: Client
) -> None:
    id = letter(store, "On its way", sent=False)
    assert site.get(f"/view/{token_of(id)}").status_code == 200
    store.cancel(id)
    assert site.get(f"/view/{token_of(id)}").status_code == 200


def test_each_variant_of_an_article_has_its_own_page(store: SqliteStore, site: Client) -> None:
    contents = {place: content_of("Budget", f"What it means for {place}.") for place in ("Porto", "Faro")}
    id = ids.article_id("spring", "batch")
    store.enqueue(NewMailout(id=id, kind=Kind.ARTICLE, ref="budget", public=False))
    people = [
        Recipient(f"{place.lower()}@example.org", content_hash=keep_content(store, content))
        for place, content in contents.items()
    ]
    store.freeze_recipients(id, people)
    for place, content in contents.items():
        page = site.get(f"/view/{token_of(id, content.hash)}")
        assert f"What it means for {place}." in page.text
    assert site.get(f"/view/{token_of(id)}").status_code == 404  # it has no text of its own


@pytest.mark.parametrize("kind", ["is_test", "is_rehearsal"])
def test_a_test_or_rehearsal_can_be_seen_for_thirty_days(
    store: SqliteStore, site: Client, clock: FakeClock, kind: str
) -> None:
    is_test = kind == "is_test"
    id = letter(store, "Trial", slug=None, public=False, is_test=is_test, is_rehearsal=not is_test)
    link = f"/view/{token_of(id)}"
    assert site.get(link).status_code == 200
    clock.wall = NOON + 30 * 86_400 - 60
    assert site.get(link).status_code == 200
    clock.wall = NOON + 30 * 86_400 + 60
    assert site.get(link).status_code == 410


def test_forged_tokens_and_those_of_nothing_are_refused(store: SqliteStore, site: Client) -> None:
    id = letter(store, "News")
    good = token_of(id)
    payload, signature = good.split(".")
    other = token_of(letter(store, "Other"))
    for forged in (
        token_of(id, secret="another secret"),
        token_of(id, purpose="join"),
        f"{other.split('.')[0]}.{signature}",
        f"{payload}.{signature[:-2]}",
        f"{payload}.",
        payload,
        "x" * 20_000,
        token_of(ids.mailout_id("never")),
        "%00",
        "..%2f..%2fhealth",
    ):
        answer = site.get(f"/view/{forged}")
        assert answer.status_code in (400, 404), forged[:50]
        assert "ferry" not in answer.text
    assert site.get(f"/view/{good}").status_code == 200


def test_a_token_that_was_signed_with_an_older_secret_still_works(
    store: SqliteStore, open_gateway: Open
) -> None:
    gateway = open_gateway(
        public_url=HOST, unsubscribe_secret="the next secret", unsubscribe_secrets_old=(SECRET,)
    )
    assert gateway.get(f"/view/{token_of(letter(store, 'News'))}").status_code == 200


def test_a_letter_to_one_reader_at_a_time_can_be_seen_too(store: SqliteStore, site: Client) -> None:
    """A list's welcome belongs to no mailout."""
    compose = SingleComposer(
        lambda _: content_of("Welcome"),
        footer=lambda: FOOTER,
        tokens=Tokens([SECRET]),
        from_email="news@example.org",
        from_name="",
        reply_to=None,
        view_url=partial(view_url, Settings(public_url=HOST, unsubscribe_secret=SECRET), None),
    )
    hash = keep_content(store, content_of("Welcome"))
    attempt = Attempt(ids.message_id("welcome", "ann@example.org"), 1)
    claimed = Claimed(attempt, 1, 1, "ann@example.org", hash, None, "x", None, {}, 0.0, category="marketing")
    link = compose(claimed).values[VIEW_URL]
    assert "The ferry runs again" in site.get(link.removeprefix(HOST)).text


def test_letters_stay_on_the_web_with_their_pictures_when_retention_has_removed_their_messages(
    store: SqliteStore, site: Client, clock: FakeClock, tmp_path: Path
) -> None:
    media = tmp_path / "media"
    media.mkdir()
    name = f"{'0a' * 32}.png"
    (media / name).write_bytes(b"picture")
    body = f"Sail on, with a boat in the picture.\n\n![A boat]({HOST}/media/{name})"
    id = letter(store, "Boats", content=content_of("Boats", body))
    clock.wall += 100 * 86_400
    archiving = Archiving(store, ArchiveFolder(tmp_path / "archive"), lambda id: None, set)
    assert [type(one).__name__ for one in archiving.run(90)] == ["Archived"]
    assert outbox_rows.messages(store, id) == []
    for path in (f"/view/{token_of(id)}", f"/archive/{slug(store, id)}"):
        page = site.get(path)
        assert page.status_code == 200
        assert f"/media/{name}" in page.text
    assert "Boats" in site.get("/archive").text
    assert site.get(f"/media/{name}").content == b"picture"
    web_archive.unpublish(store, id)  # what was archived can still be taken off the web
    assert site.get(f"/archive/{slug(store, id)}").status_code == 410


# ── the archive ──


def titles(answer: Response) -> list[str]:
    return re.findall(r'<li><a href="/archive/[^"]+">([^<]+)</a>', answer.text)


def many(store: SqliteStore, clock: FakeClock, count: int, **fields: Any) -> list[str]:
    made = []
    for n in range(count):
        clock.wall += 60
        made.append(letter(store, f"Letter {n}", content=content_of(f"Letter {n}"), **fields))
    return made


def test_the_archive_shows_twenty_a_page_the_newest_first(
    store: SqliteStore, site: Client, clock: FakeClock
) -> None:
    assert site.get("/archive").status_code == 200  # nothing in it yet
    many(store, clock, 23)
    first, second = site.get("/archive"), site.get("/archive?page=2")
    assert titles(first) == [f"Letter {n}" for n in range(22, 2, -1)]
    assert titles(second) == ["Letter 2", "Letter 1", "Letter 0"]
    assert 'rel="next" href="/archive?page=2"' in first.text
    assert 'rel="prev" href="/archive"' in second.text
    assert site.get("/archive?page=3").status_code == 404
    for wrong in ("0", "-1", "abc", "", "٢", "9" * 5_000):
        none = site.get("/archive", params={"page": wrong})
        assert (none.status_code, "All letters" in none.text) == (404, True), wrong
    assert "Letters from Harbour Association" in first.text
    assert "noindex" not in first.text + first.headers.get("X-Robots-Tag", "")


def test_a_list_has_its_own_page_and_feed(store: SqliteStore, site: Client) -> None:
    store.put(LIST_TABLE, [List("weekly", "Weekly & co", archive=True)])
    some = letter(store, "For some", list_key="weekly")
    letter(store, "For all")
    assert titles(site.get("/archive?list=weekly")) == ["For some"]
    assert titles(site.get("/archive?list=general")) == ["For all"]
    assert "Weekly &amp; co" in site.get("/archive").text
    assert [one.title for one in feed(site, "?list=weekly").entries] == ["For some"]
    web_archive.unpublish(store, some)
    assert feed(site, "?list=weekly").entries == []  # whoever follows it goes on following it
    for nothing in ("/archive?list=nobody", "/archive/feed.xml?list=nobody", f"/archive?list={'x' * 300}"):
        assert site.get(nothing).status_code in (404, 422)


def test_a_letters_page_is_the_letter_with_its_neighbours_around_it(
    store: SqliteStore, site: Client, clock: FakeClock
) -> None:
    body = "Sail on.\n\n![A boat](https://media.example.org/boat.png)\n\nThe harbour is open again this week."
    first, second, third = many(store, clock, 3, list_key="weekly")
    clock.wall += 60
    shown = letter(store, "Boats", content=content_of("Boats", body))
    page = site.get(f"/archive/{slug(store, second)}")
    assert page.status_code == 200
    assert f"/archive/{slug(store, first)}" in page.text
    assert f"/archive/{slug(store, third)}" in page.text
    assert "Boats" not in page.text  # of another list
    text = site.get(f"/archive/{slug(store, shown)}").text
    address = f"{HOST}/archive/{slug(store, shown)}"
    for said in (
        f'<link rel="canonical" href="{address}">',
        f'<meta property="og:url" content="{address}">',
        '<meta property="og:title" content="Boats">',
        '<meta property="og:image" content="https://media.example.org/boat.png">',
        '<meta name="description" content="',
        "application/atom+xml",
        "Sail on.",
        "1 Quay Street",
    ):
        assert said in text
    for own in PERSONAL:
        assert own not in text


def test_a_public_letter_is_byte_equal_for_two_readers(store: SqliteStore, site: Client) -> None:
    store.put(LIST_TABLE, [List("weekly", "Weekly", archive=True)])
    id = letter(store, "News", list_key="weekly")
    letter(store, "More")
    paths = ("/archive/feed.xml", "/archive", "/archive/sitemap.xml", f"/archive/{slug(store, id)}")
    for path in (*paths, f"/view/{token_of(id)}"):
        ann = site.get(
            path, headers={"Cookie": "session=ann", "Authorization": "Bearer ann", "User-Agent": "a"}
        )
        bob = site.get(path, headers={"X-Forwarded-For": "10.0.0.1", "Referer": "https://bob.example.org"})
        assert ann.status_code == 200
        assert ann.content == bob.content
        assert "set-cookie" not in ann.headers
        assert ann.headers["Cache-Control"] == "public, max-age=30"
        assert "@example.org" not in ann.text


def test_unpublished_is_gone_from_the_page_the_list_the_feed_and_the_sitemap(
    store: SqliteStore, site: Client
) -> None:
    id = letter(store, "Secret after all")
    name = slug(store, id)
    places = ("/archive", "/archive/feed.xml", "/archive/sitemap.xml")
    assert all(name in site.get(place).text for place in places)
    web_archive.unpublish(store, id)
    assert site.get(f"/archive/{name}").status_code == 410
    for place in places:
        assert name not in site.get(place).text
        assert "Secret" not in site.get(place).text
    assert site.get(f"/view/{token_of(id)}").status_code == 200  # its readers have it anyway
    web_archive.publish(store, id)
    assert site.get(f"/archive/{name}").status_code == 200


def test_what_is_not_public_and_what_does_not_exist_look_the_same(store: SqliteStore, site: Client) -> None:
    private = letter(store, "Private", public=False)
    trial = letter(store, "Trial", is_test=True)
    rehearsal = letter(store, "Rehearsal", is_rehearsal=True)
    waits = letter(store, "Waits", sent=False)
    nothing = site.get("/archive/no-such-letter-000000")
    assert nothing.status_code == 404
    for id in (private, trial, rehearsal, waits):
        answer = site.get(f"/archive/{slug(store, id)}")
        assert (answer.status_code, answer.content) == (404, nothing.content)


@pytest.mark.parametrize(
    "path",
    [
        "/archive/..%2f..%2fetc%2fpasswd",
        "/archive/%2e%2e",
        "/archive/%00",
        "/archive/" + "a" * 150,
        "/archive/a' OR '1'='1",
        "/archive/feed.xml%00",
        "/archive/FEED.XML",
        "/archive/%F0%9F%9A%A2",
        "/archive//x",
    ],
)
def test_tricks_in_a_letters_name_lead_nowhere(store: SqliteStore, site: Client, path: str) -> None:
    letter(store, "News")
    assert site.get(path).status_code in (400, 404, 422)


def test_what_people_wrote_is_words_everywhere(store: SqliteStore, site: Client) -> None:
    store.put(LIST_TABLE, [List("x", f"List {SCRIPT}\"'&", archive=True)])
    letter(store, "Other")
    id = letter(
        store, f'{SCRIPT}"&', list_key="x", content=content_of(f'{SCRIPT}"&', f"{SCRIPT} ]]> &amp; <b>")
    )
    letter(store, "Next", list_key="x")
    for path in ("/archive", "/archive?list=x", "/archive/feed.xml", f"/archive/{slug(store, id)}"):
        answer = site.get(path)
        assert answer.status_code == 200
        assert "<script" not in answer.text
    entry = next(one for one in feed(site).entries if "alert" in one.title)
    assert "<script" not in entry.content[0].value.lower()


def test_without_an_address_there_is_no_archive(store: SqliteStore, gateway: Client) -> None:
    id = letter(store, "News")
    for path in ("/archive", "/archive/feed.xml", "/archive/sitemap.xml", f"/archive/{slug(store, id)}"):
        assert gateway.get(path).status_code == 404
    assert gateway.get(f"/view/{token_of(id)}").status_code == 404


def test_links_keep_the_path_that_the_gateway_is_reached_under(
    store: SqliteStore, open_gateway: Open
) -> None:
    gateway = open_gateway(public_url="https://example.org/mail/")
    id = letter(store, "News")
    assert f'href="/mail/archive/{slug(store, id)}"' in gateway.get("/archive").text
    assert feed(gateway).entries[0].link == f"https://example.org/mail/archive/{slug(store, id)}"


def test_the_pages_speak_the_letters_language(store: SqliteStore, open_gateway: Open) -> None:
    gateway = open_gateway(public_url=HOST, language="pt")
    id = letter(store, "Notícias")
    assert "Todas as cartas" in gateway.get(f"/archive/{slug(store, id)}").text
    assert "Cartas de Harbour Association" in gateway.get("/archive").text


def test_where_sign_up_is_on_the_form_stands_below_a_letter_of_a_list_that_anybody_may_join(
    store: SqliteStore, open_gateway: Open
) -> None:
    store.put(LIST_TABLE, [List("closed", "Closed", archive=True)])
    store.put(LIST_TABLE, [List("open", "Open", public=True, archive=True)])
    closed, opened = (letter(store, f"Of {key}", list_key=key) for key in ("closed", "open"))
    on = open_gateway(public_url=HOST, signup=True)
    form = on.get(f"/archive/{slug(store, opened)}").text
    assert f'<form action="{HOST}/join" method="post"' in form
    assert '<input type="hidden" name="list" value="open">' in form
    off = open_gateway(public_url=HOST)
    for page in (on.get(f"/archive/{slug(store, closed)}"), off.get(f"/archive/{slug(store, opened)}")):
        assert page.status_code == 200
        assert "<form" not in page.text


# ── the feed ──


def feed(site: Client, query: str = "") -> Any:
    answer = site.get(f"/archive/feed.xml{query}")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/atom+xml")
    read = feedparser.parse(answer.content)
    assert not read.bozo, read.get("bozo_exception")
    assert read.version == "atom10"
    return read


def test_the_feed_has_whole_letters_with_ids_that_stay(
    store: SqliteStore, site: Client, clock: FakeClock
) -> None:
    made = many(store, clock, 22)
    read = feed(site)
    assert read.feed.title == "Letters from Harbour Association"
    assert [one.title for one in read.entries] == [f"Letter {n}" for n in range(21, 1, -1)]
    newest = read.entries[0]
    assert newest.id == f"urn:uuid:{made[-1]}"
    assert newest.link == f"{HOST}/archive/{slug(store, made[-1])}"
    assert "every hour until ten at night" in newest.content[0].value
    for own in PERSONAL:
        assert own not in newest.content[0].value
    web_archive.unpublish(store, made[-1])
    clock.wall += 3600
    web_archive.publish(store, made[-1])
    again = feed(site).entries[0]
    assert (again.id, again.published) == (newest.id, newest.published)
    assert again.updated > newest.updated


def test_who_asks_for_the_head_alone_gets_what_get_would_say(
    store: SqliteStore, site: Client, clock: FakeClock
) -> None:
    """Link checkers and previews ask so: they would take the archive for broken."""
    (id,) = many(store, clock, 1)
    paths = ("/archive", "/archive/feed.xml", "/archive/sitemap.xml", f"/archive/{slug(store, id)}")
    for path in (*paths, f"/view/{token_of(id)}", "/archive/nothing"):
        whole, head = site.get(path), site.head(path)
        assert (head.status_code, head.content) == (whole.status_code, b"")
        for name in ("content-type", "content-length", "content-security-policy"):
            assert head.headers[name] == whole.headers[name]


def test_a_reader_who_has_it_is_told_so_and_learns_of_every_change(
    store: SqliteStore, site: Client, clock: FakeClock
) -> None:
    first, second = many(store, clock, 2)
    known = site.get("/archive/feed.xml")
    by_tag = {"If-None-Match": known.headers["ETag"]}
    by_time = {"If-Modified-Since": known.headers["Last-Modified"]}
    for asked in (by_tag, by_time, {"If-None-Match": f'"x", W/{known.headers["ETag"]}'}):
        answer = site.get("/archive/feed.xml", headers=asked)
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["ETag"] == known.headers["ETag"]
    clock.wall += 60
    web_archive.unpublish(store, second)
    for asked in (by_tag, by_time):
        assert site.get("/archive/feed.xml", headers=asked).status_code == 200
    assert [one.id for one in feed(site).entries] == [f"urn:uuid:{first}"]
    for path in ("/archive", f"/archive/{slug(store, first)}", "/archive/sitemap.xml"):
        tag = site.get(path).headers["ETag"]
        assert site.get(path, headers={"If-None-Match": tag}).status_code == 304
        assert (
            site.get(path, headers={"If-None-Match": '"x"', "If-Modified-Since": "rubbish"}).status_code
            == 200
        )
    assert site.get("/archive/feed.xml", headers={"If-Modified-Since": "rubbish"}).status_code == 200


def test_the_feed_is_xml_whatever_a_letter_holds(store: SqliteStore, site: Client) -> None:
    letter(store, "Odd", content=content_of("Odd", "A \x0b control, a ]]> and an &amp; and 🚢 and \ufffe."))
    assert "🚢" in feed(site).entries[0].content[0].value


def test_the_sitemap_names_every_public_letter(store: SqliteStore, site: Client) -> None:
    id = letter(store, "News")
    letter(store, "Private", public=False)
    tree = ElementTree.fromstring(site.get("/archive/sitemap.xml").content)  # noqa: S314 (our own)
    spaces = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
    named = [one.text for one in tree.findall("s:url/s:loc", spaces)]
    assert named == [f"{HOST}/archive", f"{HOST}/archive/{slug(store, id)}"]
