"""The law of letters: every word of the source is in HTML and text, or a finding names it."""

import json
import re
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.letters.content.document import Document
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.raw_html import TAGS

SPEC = json.loads(Path(__file__).with_name("spec_examples.json").read_text(encoding="utf-8"))
EXAMPLES = [(kind, n, one) for kind in ("commonmark", "gfm") for n, one in enumerate(SPEC[kind], start=1)]

WORDS = re.compile(r"[^\W_]+")
NO_WORDS = re.compile(
    r"&[A-Za-z0-9#]+;|%[0-9A-Fa-f]{2}"  # an entity, a byte of an address
    r"|(?m:^[ \t>*+-]*(?:\d{1,9}[.)][ \t>*+-]*)+)"  # a list's numbers
    r"|\[\^[^\]\s]+\]|\[[xX]\](?=\s)"  # a note's name, a tick
    r"|\[(?:[^\[\]\\]|\\.)+\]:|(?<=\])\[(?:[^\[\]\\]|\\.)+\]"  # a link's name
    r"|(?m:^[ \t>*+-]*(?:`{3,}|~{3,})[ \t]*[^\s`]+)"  # a code's language
    rf"|</?(?i:{'|'.join(sorted(TAGS))})\b[^<>]*>"  # tags that mail carries; what they lack is found below
    r"|(?m:^\s*[-:| ]+$)"
)


def document_of(body: str) -> Document:
    return parse_markdown(f"---\n---\n{body}", "n.md").document


def lost(body: str, document: Document, written: set[str]) -> dict[str, set[str]]:
    named = " ".join(f"{problem.where}" for problem in document.problems)
    html = unescape(document.html_body)
    media = " ".join(one.source for one in document.media)
    return {
        place: {word for word in written if word not in shown and word not in named and word not in media}
        for place, shown in (("html", html), ("text", document.text_body))
    }


@pytest.mark.parametrize(("kind", "number", "body"), EXAMPLES, ids=[f"{k}-{n}" for k, n, _ in EXAMPLES])
def test_no_word_of_the_specifications_examples_is_lost(kind: str, number: int, body: str) -> None:
    written = set(WORDS.findall(NO_WORDS.sub(" ", body)))
    assert lost(body, document_of(body), written) == {"html": set(), "text": set()}, body


PIECES = [
    "{} *{}* **{}** ~~{}~~ `{}`",
    "Dear <{}>, {}",
    "if {}<{} then {}>{}",
    "a <script>{}</script> {}",
    "<script>\n{}\n\n{}",
    "<style>{}</style> {}",
    "{} <title>{} {}",
    "<textarea>{}",
    "<iframe src={}>{}</iframe>",
    "<template>{}</template>",
    "<noscript>{}",
    "<div>{}</div>",
    "<div>\n\n{}\n\n</div>",
    "<div {}=1>{}",
    "<p>{}",
    "<b>{} {}",
    "{}</b>",
    "<table><tr><td>{}</td></tr><caption>{}</caption></table>",
    "<td>{}",
    "press <td> {}",
    "<ul>{}<li>{}</ul>",
    "<ol><p>{}</p></ol>",
    "<!-- {} --> {}",
    "<?php {} ?>",
    "<!DOCTYPE {}>",
    "<![CDATA[{}]]>",
    "{}[^{}]\n\n[^{}]: {}",
    "[^1]: {}",
    "- [ ] {}\n- [x] {}",
    "{}\n: {}",
    "1. {}\n2. {}",
    "> {}\n>> {}",
    "# {}",
    "| {} | {} |\n|-|-|\n| {} | {} | {} |",
    "> | {} | {} |\n> |-|-|\n> | {} | {} | {} |",
    "``` {} {}\n{}\n```",
    "    {} <{}>",
    '[{}](https://x.y/{} "{}")',
    "[{}]({}.md)",
    '![{}](https://x.y/p.png "{}")',
    "![{} [{}](https://x.y/{})](https://x.y/p.png)",
    '[{}]: https://x.y/{} "{}"',
    "https://x.y/{}",
    "{}@{}.org",
    "www.{}.org",
    "<https://x.y/{}>",
    '<a href="https://x.y/{}" title="{}" onclick="{}">{}</a>',
    '<img src="https://x.y/p.png" alt="{}" title="{}">',
    '<abbr title="{}">{}</abbr>',
    "<details><summary>{}",
    "{}\n---",
    "---",
    "\\<{}>",
    "&lt;{}&gt;",
    "<{}",
    "{}>",
    "<math>{}</math>",
    "<svg><text>{}</text></svg>",
    "<select><option>{}",
    "<pre>{}\n\n{}</pre>",
    "<ruby>{}<rt>{}</rt></ruby>",
    "<h1>{}",
    "<center>{}",
    "<A HREF='x'>{}</a>",
    "<del>{}",
    "<q>{}</q>",
]


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(["\n\n", "\n", " "])), max_size=8))
def test_no_word_is_lost_however_its_markup_is_put_together(parts: list[tuple[str, str]]) -> None:
    body, number = "", 0
    for piece, joint in parts:
        holes = piece.count("{}")
        body += piece.format(*(f"w{number + hole}w" for hole in range(holes))) + joint
        number += holes
    document = document_of(body)
    labels = set(WORDS.findall(" ".join(re.findall(r"\[\^\w+\]|\[\w+\]:|(?:```|~~~) \w+", body))))
    assert lost(body, document, {f"w{n}w" for n in range(number)} - labels) == {"html": set(), "text": set()}


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("Dear <Name>, hello", "Dear <Name>, hello"),
        ("if x<y then z>w", "if x<y then z>w"),
        ("One <script>alert(1)</script> two\n\nThree", "One <script>alert(1)</script> two\n\nThree"),
        ("One <title>two\n\nThree", "One <title>two\n\nThree"),
        ("Press <b> to go on", "Press <b> to go on"),
        ("~~all of it~~", "~~all of it~~"),
        ("a[^1]\n\n[^1]: The note.", "a[1]\n\n* * *\n\n1. The note."),
        ("- [ ] tea\n- [x] cake", "- ☐ tea\n- ☑ cake"),
        ("Dome\n: It turns.", "Dome\n\nIt turns."),
        (
            "See https://x.y/z, www.x.org or a@x.org.",
            "See https://x.y/z, www.x.org (https://www.x.org) or a@x.org.",
        ),
        ("Read README.md and 1.2", "Read README.md and 1.2"),
        ("<b>bold</b> and <u>under</u>", "bold and under"),
    ],
)
def test_readers_get_the_words_that_were_written(body: str, text: str) -> None:
    document = document_of(body)
    assert (document.text_body, document.problems) == (text, ())


def test_a_finding_names_what_readers_do_not_see() -> None:
    tags = "Hi <!-- ask Ida -->\n\n<div style='color: red'>x</div>"
    body = f"{tags}\n\n[a]: https://x.y\n\n|a|\n|-|\n|b|c|\n\n``` py title\nx\n```"
    found = {problem.code: problem.where for problem in document_of(body).problems}
    assert found == {
        "comment_dropped": "ask Ida",
        "attribute_dropped": "<div style='color: red'>",
        "link_unused": "[A]: https://x.y",
        "cells_dropped": "c",
        "code_words": "py title",
    }
