from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from mailout.insight.reporting.files import csv_path, html_path
from mailout.insight.reporting.rendering import badge, html_report, write_html
from mailout.insight.reporting.summary import FailureGroup
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.queue.mailout import MailoutOutcome, Status
from tests.unit.insight.reporting.scenes import NASTY, mailout, summary


class Page(HTMLParser):
    """What a browser would find: tags, addresses it would fetch, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.links: list[str | None] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on")
            if name in ("src", "srcset", "data"):
                self.fetched.append(value or "")
            if name == "href":
                self.links.append(value)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_it_needs_nothing_from_anywhere_and_runs_nothing() -> None:
    """Else a report opened offline is broken, or tells somebody that it was opened."""
    html = html_report(summary())
    page = Page(html)
    assert page.fetched == []
    assert not {"script", "link", "iframe", "img"} & set(page.tags)
    assert "@import" not in html
    assert "url(" not in html


def test_what_people_wrote_is_text() -> None:
    nasty = summary(
        mailout(subject=NASTY, ref=NASTY),
        failures=(FailureGroup(NASTY, 6, NASTY, (NASTY,)),),
        unknown_addresses=(NASTY,),
        transport=NASTY,
    )
    page = Page(html_report(nasty))
    assert "script" not in page.tags
    assert (
        page.text.count("<script>alert(1)</script>") == 8
    )  # title, heading, 3 × failure, unknown, 2 × details


def test_a_person_finds_what_happened_and_what_to_do() -> None:
    text = " ".join(Page(html_report(summary())).text.split())
    for said in (
        "News of November",
        "290 of 300 messages were sent; 6 failed and 2 are in doubt.",
        "a@example.org, b@example.org and 4 more",
        "They may have arrived.",
        f"mailout queue retry {mailout().id}",
        "2 people: no longer subscribed",
    ):
        assert said in text


def test_a_mailout_without_trouble_shows_none() -> None:
    fine = mailout(outcome=MailoutOutcome.SENT, ledger=Ledger(recipients=5, sent=5))
    text = Page(html_report(summary(fine, failures=(), unknown_addresses=()))).text
    assert "What failed" not in text
    assert "What to do next" not in text


def test_the_link_to_the_list_holds_wherever_the_folder_is_moved(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    write_html(summary(), html_path(reports, "m 1"), csv=csv_path(reports, "m 1"))
    page = Page(html_path(reports, "m 1").read_text(encoding="utf-8"))
    assert page.links == ["m%201.csv"]
    assert [file.name for file in reports.iterdir()] == ["m 1.html"]


@pytest.mark.parametrize("status", Status)
def test_every_status_has_a_badge_that_the_page_knows(status: Status) -> None:
    assert badge(mailout(status=status)) in {"waiting", "sending", "failed", "cancelled"}
    assert html_report(summary(mailout(status=status)))


def test_ids_within_the_page_are_unique() -> None:
    """The two pictures describe themselves by id: a doubled one would leave one of them undescribed."""
    ids = re.findall(r'\bid="([^"]+)"', html_report(summary()))
    assert len(ids) == len(set(ids)) == 4
