"""The text part: what people read who read no HTML, and what a voice reads to them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.letters.content.plaintext import plain_text
from mailout.letters.content.variables import marked


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One\n  two</p><p>three</p>", "One two\n\nthree"),
        ("<h1>Title</h1><p>x</p>", "Title\n=====\n\nx"),
        ("<h2>Ёлки</h2>", "Ёлки\n----"),
        ("<p>a<br>b</p>", "a\nb"),
        ('<a href="https://x.y/">here</a>', "here (https://x.y/)"),
        ('<a href="https://x.y/">https://x.y/</a>', "https://x.y/"),
        ('<a href="mailto:a@b.c">a@b.c</a>', "a@b.c"),
        ('<a href="mailto:a@b.c">write</a>', "write (a@b.c)"),
        ('<a href="mailto:a@b.c?subject=Hi%20you">write</a>', "write (mailto:a@b.c?subject=Hi%20you)"),
        ('<a href="tel:+1">call</a>', "call (+1)"),
        ('<a href="tel:+49%2030%201234%0A%EE%80%80x">call</a>', "call (+49 30 1234 x)"),
        ('<a href="https://x.y/"><img src="p" alt="A boat"></a>', "[A boat] (https://x.y/)"),
        ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "- a\n  - b\n- c"),
        ("<ol start=9><li>a<li>b</ol>", "9. a\n10. b"),
        ("<ol><li><p>a</p><p>b</p></li></ol>", "1. a\n   b"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
        ("<pre><code>if x:\n    y  z\n</code></pre>", "    if x:\n        y  z"),
        ("<hr>", "* * *"),
        ("<p>now <s>later</s> and here</p>", "now ~~later~~ and here"),
        ("<script>x</script><style>y</style><p>a &amp; b</p>", "a & b"),
        ("<p>open <b>bold", "open bold"),
        ("</p></div>loose", "loose"),
        ("", ""),
    ],
)
def test_it_reads_well(html, text):
    assert plain_text(html) == text


def test_a_table_of_data_is_aligned_by_what_is_seen():
    html = (
        "<table><thead><tr><th>Что</th><th align='right'>Сумма</th></tr></thead>"
        "<tbody><tr><td>молоко 🥛</td><td align='right'>12</td></tr><tr><td>хлеб</td></tr></tbody></table>"
    )
    assert plain_text(html) == "Что        Сумма\n---------  -----\nмолоко 🥛     12\nхлеб"


def test_a_variable_is_as_wide_as_what_is_read_in_its_place():
    html = marked("<h2>Dear {{ first_name | friend }}</h2><h2>{{ city }}</h2>")
    dear, city = plain_text(html).split("\n\n")
    assert (dear.rpartition("\n")[2], city.rpartition("\n")[2]) == ("-----------", "----")
    table = (
        "<table><tr><td>{{ first_name | friend }}</td><td>1</td></tr><tr><td>b</td><td>2</td></tr></table>"
    )
    assert plain_text(marked(table)).endswith("b       2")


def test_a_layout_table_reads_from_top_to_bottom():
    """A transactional mail is one big table; its text must not be columns."""
    assert plain_text("<table><tr><td><p>a</p></td><td><p>b</p></td></tr></table>") == "a\n\nb"
    assert plain_text("<table><tr><td>a</td></tr><tr><td>b</td></tr></table>") == "a\n\nb"


def test_deep_nesting_costs_its_indentation_and_no_more():
    """A quoted quote of a quote… must not end the process."""
    assert plain_text("<blockquote>" * 5000 + "deep").endswith("> deep")


@given(st.text(alphabet='<>/ab"= hrliptdu&;\n', max_size=80))
def test_no_html_is_too_broken(html):
    text = plain_text(html)
    assert text == text.strip("\n")
