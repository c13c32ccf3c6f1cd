"""Bulk mails go through SES's templates: what people wrote must come out as they wrote it."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from mailout.adapters.ses.letters import prepare
from mailout.letters.content.model import Content, mark
from tests.stubs.ses_mail import render

NAMES = ["name", "unsubscribe_url", "a.b", "with space"]
written = st.text(alphabet="{}\\/#!&>^ab\n\u2028ш", max_size=12)
pieces = st.lists(st.one_of(written, st.sampled_from([mark(name) for name in NAMES])), max_size=8)
texts = pieces.map("".join)


@given(
    content=st.builds(Content, subject=texts, html=texts, text=texts),
    values=st.fixed_dictionaries(dict.fromkeys(NAMES, written)),
)
@example(
    content=Content("{" + mark("name") + "}", "\\" + mark("name"), "{{{{ {{#if}} }}"),
    values=dict.fromkeys(NAMES, "{{name}}"),
)
def test_a_reader_gets_the_same_bytes_in_bulk_as_in_single_mode(content, values):
    prepared = prepare(content)
    simple = prepared.simple(values)
    data = json.loads(prepared.template.data(values))
    parts = {part: render(text, data) for part, text in prepared.template.content.items()}
    assert parts.pop("Subject") == simple["Subject"]["Data"]
    assert parts == {part: body["Data"] for part, body in simple["Body"].items()}


@given(content=st.builds(Content, subject=texts, html=texts, text=texts))
def test_a_subject_never_has_a_second_line(content):
    values = dict.fromkeys(NAMES, "x\r\nBcc: victim@example.org")
    subject = prepare(content).simple(values)["Subject"]["Data"]
    assert len(subject.splitlines()) <= 1


def test_one_shared_template_is_made_once_for_all_recipients():
    content = Content("s", "h" + mark("name"), "t")
    assert prepare(content).template is prepare(Content("s", "h" + mark("name"), "t")).template


def test_a_templates_size_counts_the_braces_that_it_carries():
    """A call over SES's 1 MB is refused for all its recipients."""
    template = prepare(Content("s", " ".join("{" * n for n in range(2, 300)), "")).template
    sent = {"TemplateContent": template.content, "TemplateData": template.default_data}
    assert template.size >= len(json.dumps(sent)) - 100
