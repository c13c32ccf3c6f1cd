"""Blocks as mail programs need them; what a program does not know is taken out, as it would ignore it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.letters.content.footer import Footer
from mailout.letters.content.layout import render
from mailout.letters.content.mail_blocks import directed, for_mail
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.model import mark
from mailout.letters.content.plaintext import plain_text


def test_a_wide_table_scrolls_in_a_box_and_an_inner_one_does_not():
    html = for_mail("<table><tr><td><table><tr><td>x</td></tr></table></td></tr></table>")
    assert html.count('class="scroll"') == 1
    assert "scroll" not in for_mail('<table role="presentation"><tr><td>x</td></tr></table>')


def test_code_is_a_cell_whose_lines_break_also_in_outlook():
    """Outlook knows no `pre-wrap`: one long line made the whole letter 1,011 px wide."""
    html = for_mail("<pre><code>if x:\n    y &lt; 2\n</code></pre>")
    assert "<pre" not in html
    assert '<td class="code-in"><code>if x:<br><!--[if mso]>\u00a0\u00a0\u00a0\u00a0<![endif]-->    y' in html
    assert plain_text(html).split() == ["if", "x:", "y", "<", "2"]


def test_a_quote_keeps_its_bar_in_outlook():
    html = for_mail('<blockquote class="n-red"><p>q</p></blockquote>')
    assert '<td class="quote-in n-red"><blockquote><p>q</p></blockquote></td>' in html


def test_a_long_word_may_break_where_no_style_says_so():
    word = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerk"
    html = for_mail(f'<p>{word} <a href="https://x.y/{word}">x</a>{mark("var:" + word)}</p>')
    assert html.count("<wbr>") == 2
    assert html.replace("<wbr>", "").count(word) == 3


def test_blocks_begin_where_their_language_begins():
    html = for_mail('<p>Hello</p><p>שלום</p><ul><li>שלום</li></ul><p dir="ltr">שלום</p><p>1. مرحبا</p>')
    assert re.findall(r"<(\w+) dir=\"(\w+)\"", html) == [
        ("p", "rtl"), ("ul", "rtl"), ("li", "rtl"), ("p", "ltr"), ("p", "rtl"),
    ]  # fmt: skip


@pytest.mark.parametrize(("words", "lang"), [("שלום לכולם", "he"), ("مرحبا بالجميع", "ar")])
def test_a_letter_in_hebrew_or_arabic_is_right_to_left_as_a_whole(words, lang):
    body = f"{words}\n\n- {words}\n\n> {words}\n\nHello"
    document = parse_markdown(f"---\nsubject: {words}\n---\n{body}", "n.md").document
    html = render(document, Footer("Org", "Street", "https://x.y/u")).html
    assert f'<html lang="{lang}" dir="rtl"' in html
    assert '<td class="card" align="right"' in html
    assert re.search(r"<p dir=\"ltr\"[^>]*text-align: left[^>]*>Hello", html)
    assert re.search(r'<td class="quote-in" dir="rtl"[^>]*border-right: 4px', html)


def test_letters_from_left_to_right_are_untouched():
    assert directed("<p>Hello</p>", "ltr") == "<p>Hello</p>"


@given(st.text(max_size=120))
def test_no_word_is_lost_in_the_boxes(body):
    html = parse_markdown(f"x\n\n{body}", "n.md").document.html_body
    shown = re.sub(r"<!--.*?-->|<wbr>", "", for_mail(html))
    words = re.findall(r"\w+", re.sub(r"<[^>]*>", " ", html))
    assert set(words) <= set(re.findall(r"\w+", re.sub(r"<[^>]*>", " ", shown)))
