"""Lists on the dashboard: added, edited, and joined by a form that can be copied."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest

from gateway.dashboard import lists
from mailout.adapters.sqlite import SqliteStore
from mailout.insight.history import history_rows
from mailout.insight.history.port import days_ago
from mailout.letters.audience import list_rows
from mailout.letters.audience.port import Choice, SubscriberRow
from tests.dashboard.conftest import EDITOR, Site, site
from tests.dashboard.scene import SCRIPT, ZONE

ANA = "person000@example.org"


def test_a_list_is_added_described_and_offered_by_a_form(filled: Path, tmp_path: Path) -> None:
    with site(filled, tmp_path / "home", public_url="https://mail.example.org") as dashboard:
        dashboard.sign_in()
        _described(dashboard)


def _described(dashboard: Site) -> None:
    assert (
        "The list Weekly news is there" in dashboard.act("/lists/add", key="weekly", name="Weekly news").text
    )
    said = dashboard.act(
        "/lists/edit",
        key="weekly",
        name=f"Weekly {SCRIPT}",
        description=SCRIPT,
        public="yes",
        reply_to="weekly@example.org",
        color="#0b5c8a",
        links="Web=https://example.org",
        language="de",
    ).text
    assert "Saved." in said
    saved = list_rows.by_key_or_name(dashboard.store, "weekly")
    assert (saved.public, saved.archive, saved.reply_to) == (True, False, "weekly@example.org")
    assert saved.brand == {"color": "#0b5c8a", "language": "de", "links": [["Web", "https://example.org"]]}
    page = dashboard.client.get("/lists/one?key=weekly").text
    assert SCRIPT not in page
    assert 'value="#0b5c8a"' in page
    assert 'value="Web=https://example.org"' in page
    assert '<pre tabindex="0">&lt;form' in page  # its code, to be copied
    form = unescape(page.partition('<pre tabindex="0">')[2].partition("</pre>")[0])
    assert '<input type="hidden" name="list" value="weekly">' in form
    assert "/join" in form
    assert "Abonnieren" in form
    whole = dashboard.client.get("/lists").text
    assert SCRIPT not in whole
    assert "weekly" in whole
    assert {"added a list", "changed a list"} <= {act.what for act in history_rows.acts(dashboard.store)}


def test_an_empty_field_takes_a_value_away_and_a_wrong_one_changes_nothing(dashboard: Site) -> None:
    dashboard.sign_in()
    dashboard.act("/lists/add", key="events", name="Events")
    dashboard.act("/lists/edit", key="events", name="Events", from_name="Ann", public="yes")
    assert "must be a colour" in dashboard.act("/lists/edit", key="events", name="Other", color="red").text
    before = list_rows.by_key_or_name(dashboard.store, "events")
    assert (before.name, before.from_name, before.public) == ("Events", "Ann", True)
    dashboard.act("/lists/edit", key="events", name="Events")
    after = list_rows.by_key_or_name(dashboard.store, "events")
    assert (after.from_name, after.public) == (None, False)
    assert "There is one when anybody may join" in dashboard.client.get("/lists/one?key=events").text


def test_people_and_pauses_are_counted_and_an_imported_list_can_be_described(dashboard: Site) -> None:
    dashboard.sign_in()
    size = dashboard.store.audience_size("newsletter")
    dashboard.store.choose(ANA, Choice(snooze_seconds=60.0))
    page = dashboard.client.get("/lists/one?key=newsletter").text
    assert f"<dd>{size - 1:,}</dd>" in page
    assert "<dt>Asked for a pause</dt><dd>1</dd>" in page
    dashboard.act("/lists/edit", key="newsletter", name="The newsletter")
    assert list_rows.by_key_or_name(dashboard.store, "The newsletter").is_saved
    assert "no list" in dashboard.client.get("/lists/one?key=nowhere").text


def test_an_editor_neither_sees_nor_changes_lists(dashboard: Site) -> None:
    dashboard.sign_in(EDITOR)
    assert dashboard.client.get("/lists").status_code == 403
    assert dashboard.act("/lists/add", key="mine", name="Mine").status_code == 403
    assert list_rows.named_list(dashboard.store, "mine") is None


def test_one_wrong_field_loses_nothing_that_was_typed(dashboard: Site) -> None:
    dashboard.sign_in()
    dashboard.act("/lists/add", key="events", name="Events")
    typed = {"name": "Events", "description": "Every month", "footer": "You were there", "archive": "yes"}
    page = dashboard.act("/lists/edit", key="events", color="navy", **typed).text
    assert "Colour: it must be a colour" in page
    for shown in ("Every month", "You were there", "navy"):
        assert f'value="{shown}"' in page, shown
    assert 'name="archive" value="yes" checked' in page
    for wrong in ("not a page", "https://example.org", "é" * 200):
        page = dashboard.act("/lists/edit", key="events", name="Events", welcome_ref=wrong).text
        assert f"There is no file or Notion page {wrong}." in page
    page = dashboard.act("/lists/edit", key="events", name="Events", reply_to="x").text
    assert "Reply-to: " in page
    page = dashboard.act("/lists/add", key="gatherings", name="Events").text
    assert "There is a list called Events already" in page
    assert 'value="gatherings"' in page
    assert "mailout lists" not in dashboard.act("/lists/add", key="events").text


def test_a_tab_that_was_opened_before_another_saved_takes_nothing_back(dashboard: Site) -> None:
    dashboard.sign_in()
    dashboard.act("/lists/add", key="events", name="Events")
    page = dashboard.client.get("/lists/one?key=events").text
    was = dict(re.findall(r'name="(was:\w+)" value="([^"]*)"', page))
    assert was["was:name"] == "Events"
    opened = was | {name.removeprefix("was:"): value for name, value in was.items()} | {"key": "events"}
    dashboard.act("/lists/edit", **opened | {"footer": "You were there", "public": "yes"})
    assert "Saved." in dashboard.act("/lists/edit", **opened | {"color": "#0b5c8a"}).text
    saved = list_rows.by_key_or_name(dashboard.store, "events")
    assert (saved.footer, saved.public, saved.brand) == ("You were there", True, {"color": "#0b5c8a"})
    dashboard.act("/lists/edit", **was, key="events", name="Events", footer="")
    assert list_rows.by_key_or_name(dashboard.store, "events").footer == "You were there"


def _members(store: SqliteStore) -> None:
    statuses = ["active"] * 6 + ["bounced"] * 2 + ["unsubscribed"] * 2
    rows = [
        SubscriberRow(f"m{i}@example.org", f"m{i}@example.org", lists=("members",), status=status)
        for i, status in enumerate(statuses)
    ]
    store.import_subscribers(rows)


def _shown(dashboard: Site, key: str) -> str:
    page = dashboard.client.get("/lists").text
    return page.partition(f'<td data-label="Key">{key}</td>')[2].partition('"People">')[2].partition("<")[0]


def test_the_lists_say_who_gets_their_letters_as_the_page_of_each_does(dashboard: Site) -> None:
    """They counted those who had bounced or unsubscribed, too, and only every half hour."""
    dashboard.sign_in()
    _members(dashboard.store)
    dashboard.store.keep_counts(days_ago(dashboard.store.now(), ZONE, 0))
    assert _shown(dashboard, "members") == "6"
    dashboard.act("/people/add", email="new@example.org", list="members")
    assert _shown(dashboard, "members") == "7"
    assert "<dt>People</dt><dd>7</dd>" in dashboard.client.get("/lists/one?key=members").text


def test_very_many_are_not_counted_for_every_list_that_nobody_is_on(
    dashboard: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 300 of them and 50,000 people the page never came."""
    dashboard.sign_in()
    _members(dashboard.store)
    dashboard.store.keep_counts(days_ago(dashboard.store.now(), ZONE, 0))
    dashboard.act("/lists/add", key="empty")
    monkeypatch.setattr(lists, "COUNTED_LIVE", 0)
    monkeypatch.setattr(SqliteStore, "audience_size", None)
    assert _shown(dashboard, "empty") == "0"
    assert _shown(dashboard, "members") == "10"
    assert "counted every half hour" in dashboard.client.get("/lists").text
