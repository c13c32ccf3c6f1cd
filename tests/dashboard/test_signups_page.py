"""The page of sign-ups: counted by day and list, and nobody named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mailout.base.time_format import iso
from mailout.letters.audience.list_rows import LIST_TABLE, List
from tests.contract.test_join import ANN, WORDING, ask, confirmation
from tests.dashboard.conftest import EDITOR, site
from tests.dashboard.scene import SCRIPT


def test_sign_ups_are_counted_by_day_and_list_and_nobody_is_named(filled: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "signup": True,
        "public_url": "https://mail.example.org",
        "unsubscribe_secret": "a secret",
    }
    with site(filled, tmp_path / "home", from_email="news@example.org", **settings) as opened:
        store, today = opened.store, iso(opened.store.now())[:10]
        store.put(LIST_TABLE, [List("news", f"News {SCRIPT}", public=True)])
        for n in range(3):
            ask(store, f"stranger{n}@example.org")
        ask(store, "stranger0@example.org")
        store.confirm_sign_up(confirmation("stranger1@example.org", "news", at=store.now() - 1))
        store.db.change("UPDATE sign_up_days SET day = ?", (today,))
        opened.sign_in(EDITOR)
        assert 'href="/signups"' in opened.client.get("/").text
        page = opened.client.get("/signups").text
        assert "3 people asked to join, 1 confirmed it, 2 did not or not yet." in page
        assert "<dt>over the limit of the address</dt><dd>1</dd>" in page
        assert "&lt;script&gt;" in page
        assert "<script>window" not in page
        assert "stranger" not in page


def test_without_signup_the_menu_has_no_such_page(filled: Path, tmp_path: Path) -> None:
    with site(filled, tmp_path / "home") as opened:
        opened.sign_in()
        assert "/signups" not in opened.client.get("/").text
        assert "is closed" in opened.client.get("/signups").text


def test_a_persons_page_shows_what_they_agreed_to(filled: Path, tmp_path: Path) -> None:
    with site(filled, tmp_path / "home") as opened:
        opened.store.confirm_sign_up(confirmation(at=opened.store.now() - 1))
        opened.sign_in()
        page = opened.client.get("/person", params={"email": ANN}).text
        assert WORDING in page
        assert "https://shop.example.org/about" in page
