"""The pages of articles: there where articles are used, each variant shown in the sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailout.base.errors import StoreError
from mailout.base.settings import Settings
from mailout.kinds.articles.articles import ArticleIntake
from tests.contract.articles import BATCH, SLICES, US, order, part, settle_in
from tests.dashboard.conftest import EDITOR, Site, site
from tests.dashboard.scene import SCRIPT

ODD = [*SLICES, part(1, US, "Text.", article_key="odd", is_headline=True, title=SCRIPT)]


@pytest.fixture
def batch(dashboard: Site) -> str:
    settle_in(dashboard.store, ODD)
    return asked_for(dashboard)


def asked_for(dashboard: Site, **fields: str) -> str:
    settings = Settings(
        mailout_home=dashboard.home,
        from_email="news@example.org",
        org_name="The Ledger",
        org_address="1 Main Street",
        unsubscribe_base_url="https://mail.example.org/unsubscribe",
        unsubscribe_secret="a secret of some length",
    )
    intake = ArticleIntake(settings, dashboard.store, rehearses=False)
    mailout = intake.enqueue(order(**fields))
    assert mailout is not None
    intake.freeze(mailout)
    return mailout.id


def variants(page: str) -> Iterator[str]:
    yield from re.findall(r'\?variant=([0-9a-f]+)#mail"', page)


def test_the_menu_has_no_page_that_nobody_uses(dashboard: Site) -> None:
    dashboard.sign_in()
    page = dashboard.client.get("/").text
    assert 'href="/articles"' not in page
    assert 'href="/notifications"' not in page


def test_batches_are_listed_with_what_names_them(dashboard: Site, batch: str) -> None:
    dashboard.sign_in()
    assert 'href="/articles"' in dashboard.client.get("/").text
    page = dashboard.client.get("/articles").text
    for shown in ("budget", "spring", BATCH, f'href="/articles/{batch}"'):
        assert shown in page
    assert "Autumn at the harbour" not in page  # a letter
    assert re.search(r'data-label="Recipients" class="number">2<', page)


def test_each_variant_has_its_count_and_its_own_mail(dashboard: Site, batch: str) -> None:
    dashboard.sign_in()
    page = dashboard.client.get(f"/articles/{batch}").text
    assert re.search(r"1 person\s+skipped: no slice", page) or "people skipped: no slice" in page
    hashes = list(variants(page))
    assert len(hashes) == 2
    mails = [dashboard.client.get(f"/articles/{batch}/mail", params={"variant": one}) for one in hashes]
    assert sorted("The town." in mail.text for mail in mails) == [False, True]
    for mail in mails:
        assert mail.headers["content-security-policy"].startswith("sandbox;")
    assert "<iframe" in page
    assert " sandbox " in page
    text = dashboard.client.get(f"/articles/{batch}", params={"variant": hashes[0], "view": "text"}).text
    assert "The nation." in text
    assert f'href="/articles/{batch}"' in dashboard.client.get(f"/letters/{batch}").text


def test_what_is_no_variant_of_the_batch_is_not_shown(dashboard: Site, batch: str) -> None:
    dashboard.sign_in()
    sent = dashboard.store.mailout(dashboard.ids["sent"])
    answer = dashboard.client.get(f"/articles/{batch}/mail", params={"variant": sent.content_hash or ""})
    assert answer.status_code == 404
    assert dashboard.client.get(f"/articles/{sent.id}").status_code == 404
    assert dashboard.client.get("/articles/nothing").status_code == 404


def test_an_article_cannot_put_anything_into_the_page(dashboard: Site, batch: str) -> None:
    odd = asked_for(dashboard, article_key="odd", send_batch_id="7c2cd1a2-5d0b-4b43-9a4e-2f7c53b0f1ab")
    dashboard.sign_in()
    for page in ("/articles", f"/articles/{batch}", f"/articles/{odd}"):
        answer = dashboard.client.get(page)
        assert "<script>window" not in answer.text
        assert "<img src=x" not in answer.text
        assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "&lt;script&gt;" in dashboard.client.get("/articles").text


def test_articles_need_a_session_and_show_an_editor_nobody(dashboard: Site, batch: str) -> None:
    for page in ("/articles", f"/articles/{batch}", f"/articles/{batch}/mail"):
        assert dashboard.client.get(page).headers["location"].startswith("/login")
    dashboard.sign_in(EDITOR)
    for page in ("/articles", f"/articles/{batch}"):
        answer = dashboard.client.get(page)
        assert answer.status_code == 200
        assert "una@example.org" not in answer.text


def test_a_silent_store_is_a_page_with_a_menu(dashboard: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    dashboard.sign_in()

    def silent(*_: object, **__: object) -> None:
        raise StoreError("no answer")

    monkeypatch.setattr(dashboard.store, "select", silent)
    answer = dashboard.client.get("/articles")
    assert answer.status_code == 503
    assert 'href="/system"' in answer.text
    monkeypatch.undo()
    settle_in(dashboard.store)
    asked_for(dashboard)
    assert 'href="/articles"' in dashboard.client.get("/").text


def test_a_producer_is_enough_for_its_page(filled: Path, tmp_path: Path) -> None:
    with site(filled, tmp_path / "home", notify_db=tmp_path / "seats.db") as opened:
        opened.sign_in()
        assert 'href="/notifications"' in opened.client.get("/").text
