"""`mailout send PAGE`: from a page in Notion to mails, and back to the page."""

from __future__ import annotations

import email
import email.policy
import json
from pathlib import Path
from typing import Any

import pytest

from mailout.app import wiring
from mailout.base.settings import load_settings
from mailout.insight.page_status import report_rows
from mailout.kinds.mailouts.requests import enqueue_ready
from tests.e2e.conftest import Commands
from tests.e2e.notion.conftest import PAGE, Notion
from tests.stubs.notion_letter import every_block
from tests.stubs.notion_pages import hosted, id_of, p
from tests.stubs.notion_workspace import workspace


def bodies(path: Path) -> tuple[email.message.EmailMessage, str, str]:
    message = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    return message, *(message.get_body((form,)).get_content() for form in ("html", "plain"))


def test_a_page_with_everything_reaches_everybody_with_its_pictures(
    commands: Commands, notion: Notion
) -> None:
    notion.load(*every_block(), subject="The November letter", status="Ready")
    ended = commands("send", f"https://www.notion.so/acme/Letter-{PAGE.replace('-', '')}?pvs=4", "--direct")
    assert ended.code == 0, ended.err
    first = commands.mails()[0]
    assert len(commands.mails()) == 3
    message, html, text = bodies(first)
    assert message["Subject"] == "The November letter"
    assert "127.0.0.1" not in html + text, "Notion's own addresses die within the hour"
    kept = list((commands.home / "media").iterdir())
    assert kept
    assert all(one.as_uri() in html + text for one in kept)
    assert notion.written() == [{"status": "Sending"}, {"status": "Draft"}], "a rehearsal leaves no trace"
    comments = [call["body"] for call in notion.stub.calls("POST") if call["path"] == "/v1/comments"]
    looked_at, rehearsed = (comment["rich_text"][0]["text"]["content"] for comment in comments)
    assert rehearsed == "Rehearsed: 3 letters were written to a folder."
    assert looked_at.startswith("Worth checking in this letter:")
    assert "leads into your Notion workspace" in looked_at
    read = [call["path"] for call in notion.stub.calls("GET") if f"{PAGE}/children" in call["path"]]
    assert len(read) == len(set(read)) > 0, "a long page takes Notion half a minute: it is read once"


def test_an_unchanged_page_is_rehearsed_once(commands: Commands, notion: Notion) -> None:
    assert commands("send", PAGE, "--direct").code == 0
    again = commands("send", PAGE, "--direct")
    assert (again.code, "mailout_already_sent" in again.one_line) == (1, True)
    assert len(commands.mails()) == 3
    assert notion.errors()[-1]["code"] == "mailout_already_sent"
    assert notion.statuses()[-1] == "Draft"


@pytest.mark.parametrize(
    ("status", "sent_at"),
    [("Send", None), ("Failed", {"start": "2026-11-01"}), ("Draft", {"start": "2026-11-01T10:00:00.000Z"})],
)
def test_what_the_page_says_counts_even_if_the_store_is_new(
    commands: Commands, notion: Notion, status: str, sent_at: dict[str, str] | None
) -> None:
    """After a move to another machine nobody should get last month's letter again."""
    notion.load(status=status, sent_at=sent_at)
    ended = commands("send", PAGE, "--direct")
    assert (ended.code, commands.mails()) == (1, [])
    assert notion.statuses() == []


def test_a_trial_leaves_no_trace_on_a_page_that_is_no_test(commands: Commands, notion: Notion) -> None:
    """`--test` on a page that waits for its hour must not take it out of the queue."""
    notion.load(status="Ready")
    assert commands("send", PAGE, "--test", "--direct").code == 0
    assert len(commands.mails()) == 2  # TEST_EMAILS
    assert notion.written() == []


@pytest.mark.parametrize(
    ("blocks", "subject", "code"),
    [
        ([], "", "subject_required"),
        ([p()], "Hello", "empty_body"),
        ([hosted("image", "gone.png")], "Hello", "media_unavailable"),
    ],
)
def test_what_must_not_be_sent_stops_before_the_first_mail_and_says_why(
    commands: Commands, notion: Notion, blocks: list[Any], subject: str, code: str
) -> None:
    notion.load(*blocks, subject=subject, status="Ready")
    ended = commands("send", PAGE, "--direct")
    assert (ended.code, code in ended.one_line) == (1, True)
    assert "X-Amz" not in ended.err, "a signed address opens the file to anybody"
    assert commands.mails() == []
    assert notion.written() == [{"status": "Failed"}], "without sent_at: it may be fixed and sent"
    (error,) = notion.errors()
    assert (error["code"], error["stage"], error["mailout"]) == (code, "content", PAGE)


def test_a_title_with_line_breaks_is_one_line_of_the_header(commands: Commands, notion: Notion) -> None:
    """A line break in a subject is how headers are smuggled in."""
    notion.load(subject="Hello\r\nBcc: everybody@example.org")
    assert commands("send", PAGE, "--direct").code == 0
    message, _, _ = bodies(commands.mails()[0])
    assert message["Subject"] == "Hello Bcc: everybody@example.org"
    assert message["Bcc"] is None


def test_five_thousand_blocks_are_read_to_the_last(
    commands: Commands, notion: Notion, tmp_path: Path
) -> None:
    notion.load(*(p(f"w{n}.") for n in range(5_000)))
    ended = commands("preview", PAGE, "--out", tmp_path / "out", "--json")
    assert ended.code == 0, ended.err
    text = (tmp_path / "out" / "message.txt").read_text(encoding="utf-8")
    assert "w0." in text
    assert "w4999." in text
    assert [problem["code"] for problem in ended.data["problems"]] == ["html_clipped"]


def test_a_preview_writes_nothing_to_notion(commands: Commands, notion: Notion, tmp_path: Path) -> None:
    notion.load(hosted("image", "chart.png"), p("Words"), status="Ready")
    ended = commands("preview", PAGE, "--out", tmp_path / "out", "--json")
    assert ended.code == 0, ended.err
    assert ended.data["subject"] == "Hello"
    assert "/media/" in (tmp_path / "out" / "message.html").read_text(encoding="utf-8")
    assert {call["method"] for call in notion.stub.calls()} == {"GET"}


def test_a_busy_notion_is_waited_for(commands: Commands, notion: Notion) -> None:
    again = {
        "headers": {"Retry-After": "0.1"},
        "body": json.dumps({"code": "rate_limited", "message": "slow"}),
    }
    notion.stub.script(
        {"method": "GET", "status": 429, **again},
        {"method": "GET", "path": "/children", "status": 529, **again},
        {"method": "GET", "path": "/children", "delay": 1},
        {"method": "PATCH", "status": 503, **again},
    )
    assert commands("send", PAGE, "--direct").code == 0
    assert notion.statuses()[-1] == "Draft"


def test_notion_away_at_the_end_fails_nothing_and_is_told_later(commands: Commands, notion: Notion) -> None:
    """Everybody has the mail: a report that does not get through must not say otherwise."""
    notion.load(status="Ready")
    notion.stub.script({"method": "PATCH", "path": PAGE, "drop": True, "times": 1000})
    ended = commands("send", PAGE, "--direct", "--json")
    assert (ended.code, ended.data["outcome"], len(commands.mails())) == (0, "sent", 3)
    assert "will be updated later" in ended.err
    notion.stub.script()
    engine = wiring.build(load_settings(env=commands.settings))
    assert set(report_rows.due_reports(engine.store)) == {ended.data["id"]}
    assert enqueue_ready(engine.intake) == []
    assert notion.written()[-1] == {"status": "Draft"}
    assert report_rows.due_reports(engine.store) == {}
    engine.store.close()
    engine.pages.reporter.close()  # type: ignore[attr-defined]


def test_a_page_without_a_token_is_a_setting_that_is_missing(commands: Commands) -> None:
    ended = commands("send", PAGE, "--direct", NOTION_TOKEN="")
    assert (ended.code, "NOTION_TOKEN" in ended.one_line) == (2, True)


@pytest.mark.parametrize("ref", ["letter", "https://example.org/letter", "x" * 5000])
def test_what_is_neither_page_nor_file_is_named(commands: Commands, ref: str) -> None:
    ended = commands("send", ref, "--direct")
    assert (ended.code, "neither a Notion page nor a Markdown file" in ended.one_line) == (2, True)


def test_doctor_is_content_and_says_so(commands: Commands) -> None:
    ended = commands("doctor", PUBLIC_URL="https://mail.example.org", ADMIN_EMAIL="admin@example.org")
    assert ended.code == 0, ended.out
    troubles = [line for line in ended.out.splitlines() if line.startswith(("  warn", "  fail"))]
    assert [line for line in troubles if "Python: " not in line] == []  # this one is about the machine
    assert "ok    NOTION_DB_MAILOUTS: can be read." in ended.out


def test_doctor_names_what_is_wrong_and_the_remedy(commands: Commands, notion: Notion) -> None:
    databases = workspace()["databases"]
    databases[id_of("mailouts")]["properties"].pop("sent_at")
    notion.load(databases=databases)
    ended = commands("doctor", "--json", ORG_ADDRESS="")
    assert (ended.code, ended.data["ok"]) == (1, False)
    failed = {check["name"]: check["remedy"] for check in ended.data["checks"] if check["level"] == "fail"}
    assert set(failed) == {"ORG_ADDRESS", "property sent_at"}
    assert all(failed.values())


def test_the_people_are_those_of_the_list(commands: Commands, notion: Notion, tmp_path: Path) -> None:
    path = tmp_path / "more.csv"
    path.write_text("email,lists\ndi@example.org,news\n", encoding="utf-8")
    assert commands("subscribers", "import", path, "--yes").code == 0
    notion.load(list={"name": "news"})
    assert commands("send", PAGE, "--direct").code == 0
    assert [mail.name.split("--")[0] for mail in commands.mails()] == ["di@example.org"]
