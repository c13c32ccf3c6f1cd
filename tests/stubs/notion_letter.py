"""The letter that has everything: every block type and every kind of rich text."""

from __future__ import annotations

from tests.stubs.notion_pages import (
    Json,
    block,
    column,
    external,
    formula,
    hosted,
    id_of,
    mention,
    p,
    rich,
    row,
    table,
    text,
    with_files,
    words,
)

COLORS = ("gray", "brown", "orange", "yellow", "green", "blue", "purple", "pink", "red")

ORIGINAL = id_of("synced original")
OTHER_PAGE = "0f0e0d0c-0b0a-4908-8706-050403020100"


def every_block(files: str = "{files}") -> list[Json]:
    """A newsletter that uses everything that Notion can put on a page."""
    page = [
        p(),
        block("breadcrumb"),
        *_opening(),
        *_rich_text(),
        *_lists(),
        *_boxes(),
        *_media(),
        *_structure(),
        *_odd_ones(),
        p(),
    ]
    filled: list[Json] = with_files(page, files)
    return filled


def _opening() -> list[Json]:
    return [
        words("heading_1", "The November letter"),
        p("What we built this month, what broke, and what to try today.\nIt takes four minutes to read."),
        block("table_of_contents", {"color": "gray"}),
        block("divider"),
    ]


def _rich_text() -> list[Json]:
    link = "https://example.org/notes?a=1&b=2"
    return [
        words("heading_2", [text("Words in every "), text("style", italic=True)]),
        p(
            [
                text("Bold", bold=True),
                text(", "),
                text("italic", italic=True),
                text(", "),
                text("underlined", underline=True),
                text(", "),
                text("struck out", strikethrough=True),
                text(", "),
                text("code <b>", code=True),
                text(", "),
                text("all at once", bold=True, italic=True, underline=True, strikethrough=True, color="red"),
                text("; and characters that HTML minds: < > & \" '."),
            ]
        ),
        p([piece for color in COLORS for piece in (text(color, color=color), text(" "))]),
        p([piece for color in COLORS for piece in (text(color, color=f"{color}_background"), text(" "))]),
        p(
            [
                text("A link with "),
                text("two ", link),
                text("styles", link, bold=True),
                text(", a bare one "),
                text("https://example.org/", "https://example.org/"),
                text(", mail to "),
                text("us@example.org", "mailto:us@example.org"),
                text(", a "),
                text("telephone", "tel:+4930123456"),
                text(", a "),
                text("page in Notion", "/0f0e0d0c0b0a49088706050403020100"),
                text(" and a "),
                text("link that may not stay", "javascript:alert(1)"),
                text("."),
            ]
        ),
        p([text("Energy is "), formula("E = mc^2"), text(", as they say.")]),
        p(
            [
                mention("user", {"object": "user", "id": id_of("ana"), "name": "Ana Prado"}, "@Ana Prado"),
                text(" and "),
                mention("user", {"object": "user", "id": id_of("nobody")}, "@Anonymous"),
                text(" meet on "),
                mention("date", {"start": "2026-11-20", "end": "2026-11-22"}, "2026-11-20 → 2026-11-22"),
                text(" and call on "),
                mention(
                    "date",
                    {"start": "2026-12-01T09:00:00.000+01:00", "end": "2026-12-01T10:30:00.000+01:00"},
                    "2026-12-01T09:00:00.000+01:00 → 2026-12-01T10:30:00.000+01:00",
                ),
                text("; see "),
                mention("page", {"id": OTHER_PAGE}, "The plan", "https://app.notion.com/p/" + OTHER_PAGE),
                text(", "),
                mention("database", {"id": OTHER_PAGE}, "All letters"),
                text(", "),
                mention(
                    "link_mention", {"href": "https://example.org/post", "title": "A post about queues"}, ""
                ),
                text(", "),
                mention(
                    "link_preview",
                    {"url": "https://github.com/example/mailout/pull/7"},
                    "https://github.com/example/mailout/pull/7",
                    "https://github.com/example/mailout/pull/7",
                ),
                text(" "),
                mention(
                    "custom_emoji",
                    {"id": id_of("party"), "name": "party", "url": "{files}/party.png"},
                    ":party:",
                ),
                text(" "),
                mention(
                    "template_mention", {"type": "template_mention_date", "template_mention_date": "today"}
                ),
                text("."),
            ]
        ),
    ]


def _lists() -> list[Json]:
    return [
        words("heading_2", "Lists"),
        words(
            "bulleted_list_item",
            "Apples",
            words("bulleted_list_item", "Boskoop", words("bulleted_list_item", "from the old tree")),
            words("bulleted_list_item", "Gala"),
        ),
        words("bulleted_list_item", [text("Pears, "), text("on a blue ground", color="blue_background")]),
        words("numbered_list_item", "Open the page"),
        words(
            "numbered_list_item",
            "Set its status",
            words("numbered_list_item", "to Ready"),
            words("numbered_list_item", "or back to Draft"),
            p("A paragraph that belongs to the second step."),
        ),
        words("numbered_list_item", "Wait"),
        p("Another paragraph, so the count begins again:"),
        words("numbered_list_item", "Once more"),
        words("to_do", "Write the letter", checked=True),
        words("to_do", "Send it", words("to_do", "to ourselves first", checked=True), checked=False),
    ]


def _boxes() -> list[Json]:
    source = 'def greet(name: str) -> str:\n    """Say <hello>."""\n\n    return f"Hello, {name} & all"\n'
    return [
        words("heading_2", "Boxes", color="purple"),
        words("toggle", "What is inside?", p("This was folded away in Notion."), words("quote", "Open now.")),
        words(
            "heading_3",
            "A heading that folds",
            p("Its text."),
            words("bulleted_list_item", "and its list"),
            is_toggleable=True,
        ),
        words(
            "quote", "One sees clearly only with the heart.\nThe rest is invisible.", p("Antoine, roughly")
        ),
        words(
            "callout",
            [text("Mind the gap. ", bold=True), text("It is wider on Sundays.")],
            words("bulleted_list_item", "left"),
            words("bulleted_list_item", "right"),
            icon={"type": "emoji", "emoji": "💡"},
            color="yellow_background",
        ),
        words("callout", "No icon, no colour.", icon=None),
        words("callout", [text("Reserve a place", href="https://example.org/boat")], icon=None),
        words(
            "callout",
            "An icon of our own.",
            icon={"type": "file", "file": {"url": "{files}/icon.png"}},
            color="default",
        ),
        block("code", {"rich_text": rich(source), "caption": rich("greet.py"), "language": "python"}),
        block("equation", {"expression": "\\int_0^1 x^2\\,dx = \\frac{1}{3}"}),
        table(
            row("City", "Letters", [text("Notes")]),
            row("Zürich", "1,204", [text("with a "), text("link", "https://example.org/zh")]),
            row("東京", "87", ""),
            side=True,
        ),
        table(
            row("What happened", "What it means for those who read this in a text client"),
            row(
                "The queue learned to wait for a reason",
                "Nothing is sent twice, and nothing is lost on the way",
            ),
        ),
    ]


def _media() -> list[Json]:
    return [
        words("heading_2", "Pictures and files"),
        hosted("image", "harbour%20at%20dawn.png", "The harbour at dawn"),
        hosted("image", "chart.png"),
        external("image", "https://example.org/image?id=7"),
        external("video", "https://video.example.org/watch?v=abc", "How it works, in two minutes"),
        hosted("video", "tour.mp4"),
        hosted("audio", "episode.mp3", "Episode 12"),
        hosted("file", "minutes.txt"),
        external("pdf", "https://example.org/files/annual%20report.pdf", "The annual report"),
        block("bookmark", {"url": "https://example.org/a-long-read", "caption": rich("A long read")}),
        block("bookmark", {"url": "https://example.org/without-a-caption?utm=x", "caption": []}),
        block("embed", {"url": "https://maps.example.org/berlin", "caption": []}),
        block("link_preview", {"url": "https://github.com/example/mailout/pull/7"}),
    ]


def _structure() -> list[Json]:
    return [
        words("heading_2", "Structure"),
        block(
            "column_list",
            {},
            column(words("heading_4", "Left"), p("A third of the width."), ratio=1 / 3),
            column(words("heading_4", "Right"), p("Two thirds, with room for more words."), ratio=2 / 3),
        ),
        block(
            "tab",
            {},
            words(
                "paragraph", "Overview", p("What the first tab holds."), icon={"type": "emoji", "emoji": "🧭"}
            ),
            words("paragraph", "Details", p("What the second tab holds.")),
        ),
        block("synced_block", {"synced_from": None}, p("Said once, shown in many places."), id=ORIGINAL),
        block(
            "synced_block", {"synced_from": {"type": "block_id", "block_id": ORIGINAL}}, p("A copy of it.")
        ),
        block("link_to_page", {"type": "page_id", "page_id": OTHER_PAGE}),
        block("child_page", {"title": "Archive"}, id=id_of("archive")),
        block("child_database", {"title": "Readers' letters"}, id=id_of("letters")),
        block(
            "meeting_notes",
            {"title": rich("Editors' meeting"), "status": "notes_ready"},
            p("We agreed to write shorter letters."),
        ),
        p("A paragraph", p("with one nested in it", p("and one in that.")), color="green_background"),
    ]


def _odd_ones() -> list[Json]:
    return [
        block("unsupported", {"block_type": "button"}),
        words("brand_new_thing", "A type that nobody knew when this was written."),
        p([text("Thank you for reading.", color="gray")]),
    ]
