"""The preview shows what a recipient would get."""

import json
from email import message_from_bytes
from email.policy import default

from mailout.letters.content.document import Document, Problem
from mailout.letters.content.footer import Footer
from mailout.letters.content.layout import render
from mailout.letters.content.model import UNSUBSCRIBE_URL
from mailout.outbox.delivery.preview import write_preview

URL = "https://example.org/u?token=t"


def test_the_four_files_agree_and_the_problems_are_told(tmp_path):
    document = Document("Привет", "<p>Тело</p>", "Тело", problems=(Problem("link_dropped", "m", "x.md"),))
    content = render(document, Footer("Org", "Address", "https://example.org/u"))
    values = {UNSUBSCRIBE_URL: URL}
    summary = write_preview(
        document,
        content,
        tmp_path / "out",
        values,
        to="ann@example.org",
        from_email="news@example.org",
        unsubscribe_url=URL,
    )
    out = tmp_path / "out"
    message = message_from_bytes((out / "message.eml").read_bytes(), policy=default)
    html, text = (out / "message.html").read_text(), (out / "message.txt").read_text()
    assert message.get_body(("html",)).get_content().replace("\r\n", "\n") == html
    assert message.get_body(("plain",)).get_content().replace("\r\n", "\n") == text
    assert text.endswith(f"Unsubscribe: {URL}")
    problems = [{"code": "link_dropped", "message": "m", "where": "x.md", "stops": None}]
    assert json.loads((out / "problems.json").read_text()) == problems
    assert summary["problems"] == problems
    assert summary["subject"] == "Привет"
    assert summary["html_bytes"] == len(html.encode())
