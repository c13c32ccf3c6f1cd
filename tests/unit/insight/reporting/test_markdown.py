from __future__ import annotations

import re
from base64 import b64decode
from html import unescape

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mailout.insight.reporting.plot import plot
from mailout.insight.reporting.rendering import escaped, ledger_table, markdown_report
from mailout.insight.reporting.summary import FailureGroup
from tests.unit.insight.reporting.scenes import LEDGER, NASTY, mailout, summary

RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
WRITTEN = st.text(st.sampled_from("ab1 .\\`*_{}[]()#+-!|~<>&;:/\"'@=$\n\t") | st.characters(), max_size=40)


@given(WRITTEN)
def test_what_people_wrote_is_shown_as_they_wrote_it(written: str) -> None:
    """Else a subject or a server's answer could put links, pictures or HTML into the report."""
    shown = " ".join(written.replace("\0", "").split())
    html = RENDERER.render(f"| a | b |\n| --- | --- |\n| x{escaped(written)}y | z |")
    (cell, last) = re.findall(r"<td>(.*?)</td>", html, re.DOTALL)
    assert "<" not in cell
    assert unescape(cell).replace("\ufffd", "") == f"x{shown}y".replace("\ufffd", "")
    assert last == "z"


def test_nothing_that_people_wrote_becomes_markup() -> None:
    nasty = summary(
        mailout(subject=NASTY, ref=NASTY, defer_note=NASTY),
        failures=(FailureGroup("REJECTED", 6, NASTY, (NASTY,)),),
        unknown_addresses=(NASTY,),
        transport=NASTY,
    )
    html = RENDERER.render(markdown_report(nasty))
    assert "<script" not in html
    assert "<a " not in html
    assert html.count("<h1>") == 1
    assert html.count("<table>") == 4


def test_the_picture_is_in_the_report() -> None:
    report = markdown_report(summary())
    (image,) = re.findall(r"!\[.*\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", report)
    assert b64decode(image).decode() == plot(summary())


def test_it_says_what_to_do_next() -> None:
    """Else a person with failed or unknown messages has to look up the commands."""
    report = markdown_report(summary())
    assert f"`mailout queue retry {mailout().id}`" in report
    assert f"`mailout queue settle {mailout().id} --as sent`" in report


def test_the_table_is_the_ledger_and_balances() -> None:
    rows = {row["state"]: row for row in ledger_table(summary())}
    assert rows.pop("recipients")["messages"] == sum(row["messages"] for row in rows.values()) == 300
    assert rows["in flight"]["messages"] == LEDGER.in_flight
    assert rows["sent"]["share"] == "96.7 %"
