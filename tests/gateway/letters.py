"""Letters that were sent, with content as the layout makes it."""

from __future__ import annotations

from typing import Any

from mailout.base import ids
from mailout.letters.content.content_rows import keep_content
from mailout.letters.content.footer import Footer
from mailout.letters.content.layout import render
from mailout.letters.content.markdown import parse_markdown
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.letters.content.variables import as_written
from mailout.outbox.queue.mailout import NewMailout
from mailout.readers.web_archive import slug_of
from mailout.store import Store
from tests.contract.scenes import Sender, freeze, result, subscribe

HOST = "https://mail.example.org"
FOOTER = Footer("Harbour Association", "1 Quay Street", f"{HOST}/unsubscribe", HOST, True)


def content_of(subject: str, body: str = "The ferry runs again, every hour until ten at night.") -> Content:
    return render(parse_markdown(f"---\nsubject: {subject!r}\n---\n\n{body}\n", "letter.md").document, FOOTER)


def letter(
    store: Store, subject: str, *, content: Content | None = None, sent: bool = True, **fields: Any
) -> str:
    """Its id. It went to one reader, or (`sent` is false) still waits."""
    content = content or content_of(subject)
    ref = fields.pop("ref", subject)
    id = fields.pop("id", ids.mailout_id(ref))
    list_key = fields.get("list_key")
    subscribe(store, "ann@example.org", lists=(list_key,) if list_key else ())
    new = {"kind": Kind.MARKDOWN, "ref": ref, "public": True, "slug": slug_of(content.subject, id)} | fields
    store.enqueue(NewMailout(id=id, subject=as_written(content.subject), **new))
    store.set_content(id, keep_content(store, content), as_written(content.subject))
    if sent:
        send(store, id)
    return id


def send(store: Store, id: str) -> None:
    freeze(store, id)
    store.start(id, "worker")
    sender = Sender(store, id)
    claimed = sender.begin(10)
    sender.step(results=[result(one) for one in claimed], close=True)
    store.complete(id)
