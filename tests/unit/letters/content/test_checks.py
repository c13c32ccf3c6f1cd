"""What never leaves, and what leaves with a warning."""

import pytest

from mailout.base.errors import Abort, AbortCode
from mailout.letters.content.checks import GMAIL_CLIPS, MAX_HTML, MAX_SUBJECT, check_content, check_document
from mailout.letters.content.document import Document
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.model import Content
from mailout.letters.content.notion import Block
from mailout.letters.content.notion import render as page
from mailout.letters.content.variables import marked


def code_of(content: Content) -> AbortCode | None:
    try:
        check_content(content)
    except Abort as abort:
        return abort.code
    return None


def html(body: str) -> AbortCode | None:
    return code_of(Content("s", body, "t"))


@pytest.mark.parametrize(
    "body",
    [
        "<script>x</script>",
        "<SCRIPT src=x>",
        "<svg><script>x</script></svg>",
        "<!--><script>x</script>-->",
        "<![CDATA[><script>x</script>]]>",
        "<p onclick='x'>a</p>",
        "<img/onerror=x src=y>",
        "<a href='javascript:x'>a</a>",
        "<a href=' JaVa\tScript:x'>a</a>",
        "<a href='&#106;avascript:x'>a</a>",
        "<form action='javascript:x'></form>",
        "<img srcset='https://a 1x, javascript:x 2x'>",
        "<p style='background:url(javascript:x)'>a</p>",
        "<meta http-equiv=refresh content='0;url=javascript:x'>",
        "<!--[if IE]><script>x</script><![endif]-->",
        "<noscript><p title='</noscript><img src=x onerror=x>'></noscript>",
        "<iframe srcdoc='&lt;script&gt;'></iframe>",
        "<a href='vbscript:x'>a</a>",
    ],
)
def test_what_runs_in_a_readers_program_is_refused(body):
    assert html(body) is AbortCode.INVALID_TEMPLATE


@pytest.mark.parametrize(
    "body",
    [
        "<pre>&lt;script&gt;alert(1)&lt;/script&gt;</pre>",
        "<code>&lt;a href='javascript:x' onclick='y'&gt;</code>",
        "<img src='https://x.y/z' alt='javascript: the good parts'>",
        "<p>one onclick= two</p>",
        "<a href='https://x.y/?javascript:x'>x</a>",
        "<textarea><script>shown, not run</script></textarea>",
        "<ul>" + "<li>many, never closed" * 1000 + "</ul>",
        "<!--[if mso]><table><tr><td><![endif]--><p>x</p>",
        "<!DOCTYPE html><p>x</p>",
    ],
)
def test_talking_about_scripts_is_allowed(body):
    """An escaped code sample is text; a newsletter for programmers must get through."""
    assert html(body) is None


def test_sizes_have_ends():
    assert html("x" * MAX_HTML) is None
    assert html("x" * (MAX_HTML - 1) + "я") is AbortCode.INVALID_TEMPLATE
    assert code_of(Content("я" * MAX_SUBJECT, "x", "x")) is None
    assert code_of(Content("я" * (MAX_SUBJECT + 1), "x", "x")) is AbortCode.INVALID_TEMPLATE


def test_a_subject_is_as_long_as_it_is_written_whatever_alphabet_its_fallback_has():
    written = "{{ first_name | Уважаемые друзья и подписчики }}, весна пришла"
    assert code_of(Content(marked(written), "x", "x")) is None
    with pytest.raises(Abort, match="The subject has 151 characters"):
        check_content(Content(marked(written + "!" * (151 - len(written))), "x", "x"))


@pytest.mark.parametrize(
    "part",
    [
        "<div>",
        "<b>",
        "<ul><li>",
        "<table><tr><td>",
        "<div></x>",
        "<div><!-- </div> -->",
        "<div title='</div>'>",
    ],
)
def test_html_nested_without_end_is_refused_and_crashes_nothing(part):
    """One request must not take the sender down."""
    assert html(part * 2_000) is AbortCode.INVALID_TEMPLATE
    with pytest.raises(Abort, match="nested"):
        check_document(Document("s", part * 2_000, "x"))


@pytest.mark.parametrize("part", ["<!--", "<?", "<a ", "<p x=", "<![CDATA[", "</", "<a href='", "<"])
def test_broken_html_is_judged_in_no_time(part):
    """Python's own parser would take minutes, and the sender with it; pytest's limit is shorter."""
    assert html(part * 60_000) in (None, AbortCode.INVALID_TEMPLATE)


def test_gmails_clip_and_a_missing_alt_are_warned_of():
    assert check_content(Content("s", "x" * GMAIL_CLIPS, "t")) == ()
    problems = check_content(Content("s", "x" * GMAIL_CLIPS + "<img src='https://x/y'>", "t"))
    assert [(p.code, p.where) for p in problems] == [
        ("html_clipped", None),
        ("picture_without_alt", "https://x/y"),
    ]


@pytest.mark.parametrize("subject", ["", "  ", "\r\n\t", "\u200b\u2800", marked("{{ first_name | }}\u200b")])
def test_without_a_subject_nothing_leaves(subject):
    assert code_of(Content(subject, "x", "x")) is AbortCode.SUBJECT_REQUIRED
    with pytest.raises(Abort) as caught:
        check_document(Document(subject, "<p>x</p>", "x"))
    assert caught.value.code is AbortCode.SUBJECT_REQUIRED


@pytest.mark.parametrize(
    "subject", ["🎉", marked("{{ first_name }}"), marked("{{ a | }}{{ first_name | you }}")]
)
def test_a_subject_that_everybody_sees_is_one(subject):
    check_content(Content(subject, "x", "x"))


@pytest.mark.parametrize("body", ["", " \n", "<p> </p>\n<p>&nbsp;</p>", "<div></div>"])
def test_without_a_body_nothing_leaves(body):
    with pytest.raises(Abort) as caught:
        check_document(Document("s", body, ""))
    assert caught.value.code is AbortCode.EMPTY_BODY


def words(text: str) -> dict[str, object]:
    return {"rich_text": [{"type": "text", "plain_text": text}]}


BLANK_BLOCKS = [
    Block("1", "divider", {}),
    Block("1", "bulleted_list_item", words("")),
    Block("1", "numbered_list_item", words("")),
    Block("1", "to_do", words("") | {"checked": True}),
    Block("1", "to_do", words(" ")),
    Block("1", "toggle", words("")),
    Block("1", "code", words(" ")),
    Block("1", "paragraph", words("\u200b")),
    Block("1", "paragraph", words("\u00a0\ufeff")),
    Block("1", "paragraph", words("\u3164\u00ad")),
]


@pytest.mark.parametrize("block", BLANK_BLOCKS, ids=lambda block: block.type)
def test_a_page_on_which_there_is_nothing_to_see_is_refused(block):
    with pytest.raises(Abort) as caught:
        check_document(page([block, BLANK_BLOCKS[0]], "s"))
    assert caught.value.code is AbortCode.EMPTY_BODY


@pytest.mark.parametrize(
    "body", ["---", "- \n- ", "1.", ">", "&#8203;", "<!-- later -->", "![Logo](data:image/png;base64,AA)"]
)
def test_a_file_in_which_there_is_nothing_to_see_is_refused(body):
    with pytest.raises(Abort) as caught:
        check_document(parse_markdown(f"---\nsubject: s\n---\n\n{body}", "n.md").document)
    assert caught.value.code is AbortCode.EMPTY_BODY


@pytest.mark.parametrize("body", ["!", "🌱", "7", "- x", "{{ name }}", "ありがとう", "שלום", "<b>&lt;</b>"])
def test_the_shortest_letter_is_one(body):
    check_document(parse_markdown(f"---\nsubject: s\n---\n{body}", "n.md").document)


def test_a_picture_alone_is_a_body():
    picture, nothing = '<p><img src="https://x/y.png" alt=""></p>', "<p> </p>"
    check_document(Document("s", picture, ""))
    with pytest.raises(Abort):
        check_document(Document("s", nothing, ""))


def test_an_empty_transactional_mail_is_refused():
    assert code_of(Content("s", " ", "")) is AbortCode.EMPTY_BODY
