"""The page of segments: how many each means, who (for administrators), and letters that wait for one."""

from __future__ import annotations

import re

from mailout.base.ids import mailout_id
from mailout.letters.content.port import Kind
from mailout.outbox.queue import segment_names
from mailout.outbox.queue.mailout import NewMailout
from tests.dashboard.conftest import EDITOR, Site
from tests.dashboard.scene import SCRIPT

FEW = 'email contains "person00" and in list newsletter'


def plain(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_a_segment_is_saved_counted_and_shown_with_ten_people_for_administrators_alone(
    dashboard: Site,
) -> None:
    dashboard.sign_in()
    answer = dashboard.act("/segments", name="few", filter=FEW)
    page = answer.text
    size = dashboard.store.audience_size(None, segment_names.segment(dashboard.store, "few").tree)
    of = dashboard.store.audience_size(None)
    assert f"{size} of {of} people" in plain(page)
    assert 0 < page.count("@example.org</a></li>") == size <= 10
    dashboard.client.cookies.clear()
    dashboard.sign_in(EDITOR)
    page = dashboard.client.get("/segments?name=few").text
    assert f"{size} of {of} people" in plain(page)
    assert "@example.org" not in page
    assert 'action="/segments"' not in page


def test_an_address_within_a_filter_is_for_administrators_alone(dashboard: Site) -> None:
    segment_names.save(dashboard.store, "one", 'email = "person001@example.org"')
    dashboard.sign_in(EDITOR)
    for page in ("/segments", "/segments?name=one"):
        assert "person001@" not in dashboard.client.get(page).text


def test_of_many_people_ten_are_shown(dashboard: Site) -> None:
    segment_names.save(dashboard.store, "all", "in list newsletter")
    dashboard.sign_in()
    page = dashboard.client.get("/segments?name=all").text
    assert page.count("@example.org</a></li>") == 10


def test_a_mistake_in_a_filter_is_told_and_nothing_is_saved(dashboard: Site) -> None:
    dashboard.sign_in()
    answer = dashboard.act("/segments", name="wrong", filter="nmae = x")
    assert "Did you mean “name”?" in plain(answer.text)
    assert segment_names.segments(dashboard.store) == []
    assert 'name="name" value="wrong"' in answer.text
    assert ">nmae = x</textarea>" in answer.text
    segment_names.save(dashboard.store, "few", FEW)
    answer = dashboard.act("/segments", name="few", filter="nmae = y")
    assert answer.text.count(">nmae = y</textarea>") == 1
    assert 'name="name" value=""' in answer.text
    assert segment_names.segment(dashboard.store, "few").filter == FEW


def test_a_segment_that_a_letter_waits_for_is_not_deleted(dashboard: Site) -> None:
    segment_names.save(dashboard.store, "few", FEW)
    id = mailout_id("waiting")
    dashboard.store.enqueue(
        NewMailout(id=id, kind=Kind.NOTION, ref="waiting", subject="Waits", segment="few")
    )
    dashboard.sign_in()
    assert f'href="/letters/{id}"' in dashboard.client.get("/segments?name=few").text
    answer = dashboard.act("/segments/delete", name="few")
    assert "is used by a letter that waits: “Waits”" in plain(answer.text)
    letter = plain(dashboard.client.get(f"/letters/{id}").text)
    assert "in the segment few would get it" in letter
    dashboard.store.cancel(id)
    dashboard.act("/segments/delete", name="few")
    assert segment_names.segments(dashboard.store) == []


def test_names_and_filters_are_shown_as_text(dashboard: Site) -> None:
    segment_names.save(dashboard.store, SCRIPT, f"email contains {'“' + SCRIPT + '”'}")
    dashboard.sign_in()
    for address in ("/segments", "/"):
        assert "<script>window" not in dashboard.client.get(address).text
    page = dashboard.client.get("/segments", params={"name": SCRIPT}).text
    assert "<script>window" not in page
    assert "0 of" in plain(page)


def test_a_segment_that_is_not_there_is_said_so(dashboard: Site) -> None:
    dashboard.sign_in()
    answer = dashboard.client.get("/segments?name=nothing")
    assert answer.status_code == 404
    assert "There is no such segment." in answer.text
