"""Reading Notion: all of a page arrives, whatever its shape, or somebody is told what did not."""

from __future__ import annotations

from itertools import islice
from typing import Any

import httpx
import pytest

from mailout.base.errors import SourceNotFound, SourceUnavailable
from mailout.letters.content.notion import Block, render
from mailout.letters.content.notion.blocks import walk
from tests.stubs.notion_letter import every_block
from tests.stubs.notion_pages import Json, block, blocks, id_of, p, rich, words
from tests.stubs.notion_workspace import LETTER, MAILOUTS, mailout_page, workspace
from tests.unit.adapters.notion.conftest import NOW, Notion, Start


def read(start: Start, *tree: Json, also: dict[str, list[Json]] | None = None, **more: Any) -> list[Block]:
    """The page made of `tree`; `also`: blocks that hang elsewhere."""
    content = workspace(blocks={LETTER: list(tree)} | (also or {}), **more)
    return start(content).source.load_blocks(LETTER)


def test_a_page_comes_back_as_it_was_written(notion: Notion) -> None:
    """The loader and the renderer together: the same mail as from the blocks themselves."""
    loaded = render(notion.source.load_blocks(LETTER))
    straight = render(blocks(every_block("https://files.example.org")))
    # The fixture's copy has words of its own; Notion's has the original's.
    assert loaded.text_body == straight.text_body.replace("A copy of it.", "Said once, shown in many places.")
    assert [(media.ref, media.name) for media in loaded.media] == [(m.ref, m.name) for m in straight.media]


def test_all_pages_of_children_at_all_depths_are_read(start: Start) -> None:
    """The API gives a hundred at a time: the 101st paragraph is as much of the letter as the first."""
    deep = p("a", *(p(f"b{n}", p("c", p("d"))) for n in range(130)))
    loaded = read(start, *(p(f"top {n}") for n in range(250)), deep)
    assert len(loaded) == 251
    assert len(list(walk(loaded))) == 251 + 130 * 3


def test_a_synced_copy_shows_the_original(start: Start) -> None:
    original = block("synced_block", {"synced_from": None}, p("said once"), id=id_of("o"))
    copy = block("synced_block", {"synced_from": {"block_id": id_of("o")}}, id=id_of("c"))
    assert render(read(start, original, copy)).text_body == "said once\n\nsaid once"


def test_copies_of_one_original_cost_one_reading(start: Start) -> None:
    original = block("synced_block", {"synced_from": None}, p("said"), id=id_of("o"))
    copies = [
        block("synced_block", {"synced_from": {"block_id": id_of("o")}}, id=id_of(f"c{n}")) for n in range(20)
    ]
    notion = start(workspace(blocks={LETTER: [original, *copies]}))
    assert render(notion.source.load_blocks(LETTER)).text_body.count("said") == 21
    assert len(notion.stub.calls()) == 2


def test_copies_of_copies_come_to_an_end_and_somebody_is_told(start: Start) -> None:
    """Thirty synced blocks, each with two copies of the next, would be a thousand million blocks."""

    def copy(n: int, which: str) -> Json:
        return block("synced_block", {"synced_from": {"block_id": id_of(f"o{n}")}}, id=id_of(f"{which}{n}"))

    levels = {id_of(f"o{n}"): [copy(n + 1, "a"), copy(n + 1, "b")] for n in range(30)}
    loaded = read(start, copy(0, "a"), p("after"), also=levels | {id_of("o30"): [p("x")]})
    assert len(list(islice(walk(loaded), 30_000))) < 30_000
    assert any("longer than a mail" in problem.message for problem in render(loaded).problems)


def test_an_original_on_a_page_nobody_shared_is_reported(start: Start) -> None:
    copy = block("synced_block", {"synced_from": {"block_id": id_of("elsewhere")}}, id=id_of("c"))
    rendered = render(read(start, copy, p("after")))
    assert rendered.text_body == "after"
    (problem,) = rendered.problems
    assert "synced" in problem.message


def test_synced_blocks_that_contain_each_other_come_to_an_end(start: Start) -> None:
    """Otherwise a page could keep the sender reading for ever."""
    inner = block("synced_block", {"synced_from": {"block_id": id_of("o")}}, id=id_of("c"))
    original = block("synced_block", {"synced_from": None}, p("once"), inner, id=id_of("o"))
    rendered = render(read(start, original))
    assert rendered.text_body == "once"
    assert "contains itself" in rendered.problems[0].message


def test_an_unsupported_block_whose_children_are_refused_is_reported(start: Start) -> None:
    hidden = block("unsupported", {"block_type": "button"}, id=id_of("u")) | {"has_children": True}
    rendered = render(read(start, hidden, p("after"), refused={id_of("u"): 400}))
    assert rendered.text_body == "after"
    assert len(rendered.problems) == 1


def test_a_part_that_is_deleted_while_the_page_is_read_has_it_read_again(start: Start) -> None:
    """Its writer got Notion's own words, and the page was Failed. A page that is gone stays gone."""
    notion = start(workspace(blocks={LETTER: [words("bulleted_list_item", "a", p("b"))]}))
    (item,) = notion.source.load_blocks(LETTER)
    gone = {"status": 404, "body": "{}"}
    notion.stub.script({"path": f"/v1/blocks/{item.id}", **gone}, {"path": f"/v1/blocks/{LETTER}", **gone})
    with pytest.raises(SourceNotFound):
        notion.source.load_blocks(LETTER)
    with pytest.raises(SourceUnavailable, match="edited while it was read"):
        notion.source.load_blocks(LETTER)
    assert len(notion.source.load_blocks(LETTER)) == 1


def test_pages_within_the_page_are_linked_not_read(start: Start) -> None:
    """Their contents were not meant for this letter."""
    child = block("child_page", {"title": "Secret plans"}, p("not yet public"))
    rendered = render(read(start, child))
    assert "Secret plans" in rendered.text_body
    assert "not yet public" not in rendered.text_body


def test_meeting_notes_bring_summary_and_notes_but_no_transcript(start: Start) -> None:
    parts = {f"{part}_block_id": id_of(part) for part in ("summary", "notes", "transcript")}
    meeting = block("meeting_notes", {"title": rich("Editors"), "children": parts}) | {"has_children": True}
    said = {id_of(part): [p(part)] for part in ("summary", "notes", "transcript")}
    text = render(read(start, meeting, also=said)).text_body
    assert "summary\n\nnotes" in text
    assert "transcript" not in text


def test_blocks_in_the_trash_are_left_out(start: Start) -> None:
    assert [one.type for one in read(start, p("gone") | {"in_trash": True}, words("quote", "here"))] == [
        "quote"
    ]


def test_hosted_files_can_be_fetched_until_their_hour_is_over(notion: Notion) -> None:
    media = render(notion.source.load_blocks(LETTER)).media
    assert {httpx.get(one.source).status_code for one in media} == {200}
    notion.stub.expire_files()
    assert {httpx.get(one.source).status_code for one in media} == {403}


def test_a_page_says_what_its_mailout_is(notion: Notion) -> None:
    page = notion.source.load_page(LETTER)
    assert (page.id, page.subject, page.status) == (LETTER, "The November letter", "Ready")
    assert (page.is_test, page.sent_at, page.send_at, page.list) == (False, None, None, "news")


def test_a_page_that_is_not_there_or_in_the_trash_is_not_sent(start: Start) -> None:
    pages = {LETTER: mailout_page("gone") | {"in_trash": True}}
    source = start(workspace(pages=pages)).source
    with pytest.raises(SourceNotFound, match="trash"):
        source.load_page(LETTER)
    with pytest.raises(SourceNotFound, match="Connections"):
        source.load_page(id_of("nothing"))


def test_ready_pages_are_those_whose_time_has_come(start: Start) -> None:
    """Over all pages of the answer, oldest first; drafts and later ones wait."""
    ready = {
        id_of(f"ready {n}"): mailout_page(f"ready {n}", "Ready")
        | {"created_time": f"2026-11-01T08:00:00.{n:03}Z"}
        for n in range(150)
    }
    others = {
        id_of("draft"): mailout_page("draft", "Draft"),
        id_of("due"): mailout_page("due", "Ready", send_at={"start": "2026-11-15T00:00:00.000Z"})
        | {"created_time": "2026-11-02T08:00:00.000Z"},
        id_of("later"): mailout_page("later", "Ready", send_at={"start": "2026-11-15T00:00:01.000Z"}),
        id_of("never"): mailout_page("never", "Ready", send_at={"start": "9999-12-31"})  # to be refused
        | {"created_time": "2026-11-03T08:00:00.000Z"},
    }
    notion = start(workspace(pages=others | ready))
    assert notion.source.ready(NOW) == [
        *(id_of(f"ready {n}") for n in range(150)),
        id_of("due"),
        id_of("never"),
    ]


def test_a_database_is_looked_up_once(notion: Notion) -> None:
    notion.source.ready(NOW)
    notion.source.ready(NOW)
    assert sum(f"/databases/{MAILOUTS}" in call["path"] for call in notion.stub.calls("GET")) == 1


def test_a_select_serves_as_a_status(start: Start) -> None:
    content = workspace()
    properties = content["databases"][MAILOUTS]["properties"]
    content["databases"][MAILOUTS]["properties"] = properties | {"status": {"type": "select", "select": {}}}
    page = mailout_page("x", "Ready")
    page["properties"]["status"] = {"type": "select", "select": {"name": "Ready"}}
    content["pages"] = {LETTER: page}
    assert start(content).source.ready(NOW) == [LETTER]


def test_a_link_to_a_page_is_called_by_the_pages_title(start: Start) -> None:
    """Read once however often it is linked to; a page that is not shared has none."""
    content = workspace()
    links = [
        {"object": "block", "id": id_of(f"link {n}"), "type": "link_to_page", "has_children": False}
        | {"link_to_page": {"type": "page_id", "page_id": page}}
        for n, page in enumerate((LETTER, LETTER, id_of("a secret page")))
    ]
    content["blocks"][LETTER] = links
    notion = start(content)
    blocks = notion.source.load_blocks(LETTER)
    title = notion.source.load_page(LETTER).subject
    assert [block.data["title"] for block in blocks] == [title, title, ""]
    assert len([call for call in notion.stub.calls("GET") if call["path"].endswith(f"pages/{LETTER}")]) == 2
