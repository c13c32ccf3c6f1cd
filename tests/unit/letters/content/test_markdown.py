"""A Markdown file becomes a mail: nothing written is lost, nothing dangerous gets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.base.errors import UsageError
from mailout.letters.content.front_matter import LetterOptions
from mailout.letters.content.inert_html import require_inert
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.media import media_ref
from mailout.letters.content.model import mark


def html_of(body: str) -> str:
    return parse_markdown(body, "n.md").document.html_body


def text_of(body: str) -> str:
    return parse_markdown(body, "n.md").document.text_body


def test_front_matter_says_how_to_send():
    source = "---\nid: 007\nsubject: 'Новости: ноябрь'\ntest: true\nfrom_name: Ann\nlist: news\n---\nHello"
    mailout = parse_markdown(source, "n.md")
    assert mailout.options == LetterOptions(
        id="007", subject="Новости: ноябрь", is_test=True, from_name="Ann", list="news"
    )
    assert mailout.document.subject == "Новости: ноябрь"
    assert mailout.document.text_body == "Hello"


@pytest.mark.parametrize(
    "source", ["Hello", "---\n---\nHello", "\ufeff---\nsubject:\n---\nHello", "---\r\n---\r\nHello"]
)
def test_front_matter_may_be_missing_or_empty(source):
    mailout = parse_markdown(source, "n.md")
    assert (mailout.options, mailout.document.text_body) == (LetterOptions(), "Hello")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("---\nid: x\nsubjekt: y\n---\n", "line 3: `subjekt`"),
        ("---\nid: x\nid: y\n---\n", "line 3: `id` is given twice"),
        ("---\nsubject: a: b\n---\n", "line 2"),
        ("---\ntest: perhaps\n---\n", "line 2: `test` is true or false"),
        ("---\nsubject: [a, b]\n---\n", "`subject` takes one value"),
        ("---\n- a\n---\n", "not a list of"),
        ("---\nsubject: a\n", "has no end"),
        ("---\nsubject: 'a\n---\n", "cannot be read"),
        ("---\nsubject: !!python/object:os.system x\n---\n", "`subject`, only “x” would be read"),
        ("---\n? [a]\n: b\n---\n", "no key"),
        ("---\nid: x\nsubject: @home\n---\n", "n.md, line 3: “subject: @home” cannot be read"),
        ("---\nsubject: {{ name | Hi }}, news\nid: x\n---\n", "line 2: “subject: {{ name | Hi }}, news”"),
        ("---\nid: x\nsubject: 'tis the season\ntest: true\n---\n", "line 3: “subject: 'tis"),
        ("---\nid: x\nsubject: [News] today\n---\n", "Write one `key: value` a line, and put this value in"),
        ("---\nsubject: {{ name }}\n---\n", 'Put it in quotes: `subject: "…"`'),
    ],
)
def test_a_wrong_front_matter_is_told_with_its_place(source, said):
    with pytest.raises(UsageError) as caught:
        parse_markdown(source, "n.md")
    assert said in str(caught.value)
    assert "n.md" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "said", "remedy"),
    [
        ("subject: News #12", "of `subject`, only “News” would be read", '`subject: "News #12"`'),
        ("subject: #1 news", "`subject` would be empty", '`subject: "#1 news"`'),
        ("subject: !x y", "only “y”", '`subject: "!x y"`'),
        ("subject: &a x", "only “x”", '`subject: "&a x"`'),
        ("subject: The\n  long #1", "only “The long”", '`subject: "The long #1"`'),
        ('byline: Ann "Boss" # 1\r', 'only “Ann "Boss"”', r'`byline: "Ann \"Boss\" # 1"`'),
        ("headline: No #1 after all", "only “No”", '`headline: "No #1 after all"`'),
    ],
)
def test_nothing_of_a_value_is_cut_off_without_a_word(line, said, remedy):
    """A subject that lost its number would go to everybody."""
    with pytest.raises(UsageError) as caught:
        parse_markdown(f"---\nlist: news\n{line}\npreheader: x\n---\nHello", "n.md")
    assert caught.value.message.startswith("n.md, line 3: ")
    assert said in caught.value.message
    assert remedy in (caught.value.remedy or "")


@pytest.mark.parametrize(
    ("lines", "subject"),
    [
        ("# mine\nsubject: C#1 is 1! & more\n  # yours\ntest: true # for now", "C#1 is 1! & more"),
        ('subject: "News #12" # the number', "News #12"),
        ("subject: 'News #12'\ndate: 2026-12-04 # Friday\nlanguage: DE # German", "News #12"),
        ("subject: >\n  News #12\n  today", "News #12 today"),
        ("subject: News\nlist:   # everybody\nid: a # keep\nheadline: no # none", "News"),
        ("subject:\n  # the number\n  News\n  today", "News today"),
        ("subject: x\rtest: true # c\rheadline: false", "x"),
        ('{"subject": x y, id: z}', "x y"),
        ('"subject": x y\n? id\n: z', "x y"),
    ],
)
def test_comments_and_quotes_are_what_they_are_in_yaml(lines, subject):
    assert parse_markdown(f"---\n{lines}\n---\nHello", "n.md").options.subject == subject


@pytest.mark.parametrize(
    ("body", "html", "text"),
    [
        ("## A *b*", "<h2>A <em>b</em></h2>", "A b\n---"),
        ("**b** ~~s~~ `c`", "<p><strong>b</strong> <s>s</s> <code>c</code></p>", "b ~~s~~ c"),
        (
            "[a](https://x.y/?q=1&r=2)",
            '<p><a href="https://x.y/?q=1&amp;r=2">a</a></p>',
            "a (https://x.y/?q=1&r=2)",
        ),
        ("1. a\n2. b", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>", "1. a\n2. b"),
        ("> q", "<blockquote>\n<p>q</p>\n</blockquote>", "> q"),
        ("    x  <b>", "<pre><code>x  &lt;b&gt;\n</code></pre>", "    x  <b>"),
        (
            "![A boat](https://x.y/b.png)",
            '<p><img src="https://x.y/b.png" alt="A boat"></p>',
            "[A boat]",
        ),
    ],
)
def test_what_markdown_says_is_shown_and_told(body, html, text):
    assert (html_of(body), text_of(body)) == (html, text)


def test_tables_keep_their_alignment():
    body = "| a | b |\n|---|--:|\n| x | 10 |"
    assert '<td align="right">10</td>' in html_of(body)
    assert text_of(body) == "a   b\n-  --\nx  10"


@pytest.mark.parametrize(
    "body",
    [
        "<script>alert(1)</script>",
        "a <script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "<a href=' java\nscript:alert(1)'>x</a>",
        "[x](vbscript:x) [y](data:text/html,x) [z](file:///etc/passwd)",
        "<iframe src='https://x.y'></iframe><style>p{}</style><form action=x></form>",
        "![x](javascript:alert(1))",
        "<div style='background:url(javascript:x)'>a</div>",
    ],
)
def test_nothing_that_runs_or_leads_astray_survives(body):
    html = html_of(body).lower()
    require_inert(html)
    for forbidden in (
        "<script",
        "javascript:",
        "onerror",
        "data:",
        "file:",
        "<iframe",
        "<style",
        "<form",
        "style=",
    ):
        assert forbidden not in html


def test_a_dropped_link_keeps_its_words_and_is_reported():
    document = parse_markdown("[our page](about.md)", "n.md").document
    assert document.text_body == "our page"
    assert [(p.code, p.where) for p in document.problems] == [("link_dropped", "about.md")]


@pytest.mark.parametrize(
    ("address", "named"),
    [
        ("htps://example.org/pay?a=1&b=2", "htps://example.org/pay?a=1&b=2"),
        ("sms:+49123", "sms:+49123"),
        ("whatsapp://x", "whatsapp://x"),
        ("webcal://example.org/c", "webcal://example.org/c"),
        ("ftp://example.org/{{ city | Rome }}", "ftp://example.org/{{ city | Rome }}"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("https://example.org:port/", "https://example.org:port/"),
    ],
)
def test_no_link_loses_its_address_without_a_word(address, named):
    """An address with a typing mistake would go out as plain words, and nobody would pay."""
    for body in (f"[words](<{address}>)", f'<a href="{address}">words</a>', f"<A HREF='{address}'>words</A>"):
        document = parse_markdown(body, "n.md").document
        assert document.html_body == "<p><a>words</a></p>"
        assert [(p.code, p.where) for p in document.problems] == [("link_dropped", named)]


def test_no_picture_is_left_out_without_a_word():
    picture = f"data:image/png;base64,{'iVBORw0KGgo' * 500}"
    for body in (f"![Our logo]({picture})", f'<img alt="Our logo" src="{picture}">'):
        (problem,) = parse_markdown(body, "n.md").document.problems
        assert problem.code == "picture_dropped"
        assert (problem.where or "").startswith("data:image/png;base64,iVBOR")
        assert len(problem.where or "") <= 100
    (problem,) = parse_markdown("![](file:///home/ann/a.png)", "n.md").document.problems
    assert (problem.code, problem.where) == ("picture_dropped", "file:///home/ann/a.png")


@pytest.mark.parametrize(
    "body",
    [
        "[a](https://x.y/?a=1&copy=2&amp;b=%20c) ![d](https://x.y/?a=1&copy=2)",
        '<a href="https://x.y/?a=1&copy=2&b=3">a</a> <img alt=d src=https://x.y/?a=1&amp;copy=2>',
        "<a href=' https://x.y '>a</a> <https://x.y/{{ b | c }}> [e](tel:+49123) a@example.org",
    ],
)
def test_an_address_that_stays_is_not_called_dropped(body):
    assert parse_markdown(body, "n.md").document.problems == ()


def test_pictures_beside_the_file_are_media_and_the_same_one_is_kept_once():
    document = parse_markdown("![a](pics/a%20b.png) ![b](c.png) ![a](pics/a%20b.png)", "n.md").document
    assert [(m.ref, m.source, m.name) for m in document.media] == [
        (media_ref(1), "pics/a b.png", "a b.png"),
        (media_ref(2), "c.png", "c.png"),
    ]
    assert document.html_body.count(media_ref(1)) == 2


def test_nobody_can_type_a_mark():
    """Else a person could write a variable, or break the recipient's unsubscribe link."""
    assert html_of(f"a {mark('unsubscribe_url')}") == "<p>a unsubscribe_url</p>"


def test_the_preheader_is_the_first_paragraph():
    long = "The dome opens again on Saturday, [come and see](https://x.y/z) what you have made of it."
    document = parse_markdown(
        f"# A title that is long enough to be taken for one\n\n- a\n\n{long}", "n"
    ).document
    assert document.preheader == "The dome opens again on Saturday, come and see what you have made of it."


@pytest.mark.parametrize(("body", "lang"), [("Hello", "en"), ("Привет", "ru"), ("Вітаємо її", "uk")])
def test_a_voice_reads_it_in_its_language(body, lang):
    assert parse_markdown(body, "n.md").document.lang == lang


@given(st.text(max_size=200))
def test_any_text_renders_and_always_the_same(body):
    body = f"x\n\n{body}"
    assert parse_markdown(body, "n.md") == parse_markdown(body, "n.md")
