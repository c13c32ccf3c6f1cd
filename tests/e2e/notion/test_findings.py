"""What an author should look at is said on the page when a run is asked for: once, and kept up to date."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.e2e.notion.conftest import PAGE, Build, Notion, plain
from tests.e2e.notion.test_queue import run_queue
from tests.stubs.notion_pages import block, external, hosted, id_of, p
from tests.stubs.notion_workspace import mailout_page, workspace

DRAFT = (p("The price is TK euros"), block("unsupported", {"block_type": "button"}))


def comments(notion: Notion) -> list[str]:
    """What stands beside the page now."""
    said: list[Any] = notion.stub.comments(PAGE)
    return ["".join(item["plain_text"] for item in one["rich_text"]) for one in said]


def test_a_test_and_a_real_run_keep_one_comment(engine_with: Build, notion: Notion) -> None:
    notion.load(*DRAFT, status="Ready", is_test=True)
    run_queue(engine_with())
    (said,) = comments(notion)
    first, *findings = said.splitlines()
    assert first == "Worth checking in this letter:"
    assert findings[0].startswith("• “The price is TK euros”: A Notion button follows.")
    assert findings[1].startswith("• “The price is TK euros”: “TK” looks like")
    notion.stub.edit(PAGE, status="Ready", is_test=False, blocks=[p("The price is TODO euros")])
    run_queue(engine_with())
    (said,) = comments(notion)
    assert "TODO" in said
    assert "button" not in said, "it is up to date"


def test_what_was_corrected_is_said_to_be(engine_with: Build, notion: Notion) -> None:
    notion.load(*DRAFT, status="Ready", is_test=True)
    run_queue(engine_with())
    notion.stub.edit(PAGE, status="Ready", is_test=False, blocks=[p("The price is 3 euros")])
    run_queue(engine_with())
    assert comments(notion) == ["Worth checking in this letter: nothing any more."]


def test_an_earlier_versions_comment_is_brought_up_to_date(engine_with: Build, notion: Notion) -> None:
    notion.load(*DRAFT, status="Ready", is_test=True)
    engine = engine_with()
    assert engine.pages.reporter is not None
    engine.pages.reporter.note(
        PAGE, "Check before this letter goes out:\n• “TK” looks like a forgotten note."
    )
    run_queue(engine)
    (said,) = comments(notion)
    assert said.startswith("Worth checking in this letter:")


def test_a_letter_with_nothing_to_look_at_gets_no_comment(engine_with: Build, notion: Notion) -> None:
    notion.load(status="Ready", is_test=True)
    run_queue(engine_with())
    assert comments(notion) == []


def test_where_it_may_not_comment_the_property_says_it(engine_with: Build, notion: Notion) -> None:
    page = mailout_page("Hello", "Ready", is_test=True)
    page["properties"]["status_note"] = {"type": "rich_text", "rich_text": []}
    notion.stub.load(workspace(pages={PAGE: page}, blocks={PAGE: list(DRAFT)}))
    notion.stub.script({"path": "/comments", "status": 403, "body": "{}", "times": 99})
    run_queue(engine_with())
    notion.stub.edit(PAGE, status="Ready", is_test=False, blocks=[p("The price is 3 euros")])
    run_queue(engine_with())
    notes = [
        plain(call["body"]["properties"]["status_note"])
        for call in notion.stub.calls("PATCH")
        if "status_note" in call["body"]["properties"]
    ]
    assert len(notes) == 2
    assert "“TK” looks like" in notes[0]
    assert notes[1] == "Worth checking in this letter: nothing any more."


HEIC = base64.b64encode(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic").decode()
EXPIRES = "This picture's address expires within an hour. Put the picture itself into the letter."
FILES = {"IMG_1.heic": {"type": "image/heic", "base64": HEIC}}


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        (
            hosted("image", "IMG_1.heic", "The harbour"),
            "“IMG_1.heic”: Most mail programs cannot show this picture. Save it as JPEG or PNG and put it in"
            " again.",
        ),
        (
            block("synced_block", {"synced_from": {"type": "block_id", "block_id": id_of("gone")}}),
            "“Dear members,”: The synced block after this cannot be read. Share its original page with"
            " mailout, or copy the text here.",
        ),
        (
            external(
                "image", "https://prod-files-secure.s3.amazonaws.com/a.png?v=1&X-Amz-Expires=3600", "Us"
            ),
            f"“https://prod-files-secure.s3.amazonaws.com/a.png”: {EXPIRES}",
        ),
        (
            external("image", "https://www.notion.so/image/a.png?table=block", "Us"),
            f"“https://www.notion.so/image/a.png”: {EXPIRES}",
        ),
    ],
)
def test_what_readers_would_not_get_stops_a_real_letter_and_no_test(
    engine_with: Build, notion: Notion, lost: dict[str, Any], said: str
) -> None:
    blocks = [
        p("Dear members,"),
        lost,
        p("Yours, the board, with some more words, so that this is a letter."),
    ]
    notion.load(*blocks, status="Ready", is_test=True, files=FILES)
    run_queue(engine_with(PUBLIC_URL="https://mail.example.org"))
    assert notion.statuses()[-1] == "Draft"
    assert f"• {said}" in comments(notion)[0].splitlines()
    notion.stub.edit(PAGE, status="Ready", is_test=False, blocks=blocks)
    run_queue(engine_with(PUBLIC_URL="https://mail.example.org"))
    assert notion.statuses()[-1] == "Failed"
    assert comments(notion)[-1] == f"{said} Then set the page to Ready again."
