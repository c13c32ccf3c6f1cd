"""A mail to look at before it is sent: the same bytes a recipient would get, in four files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mailout.letters.content.document import Document, Problem
from mailout.letters.content.layout import preheader_in
from mailout.letters.content.model import Content
from mailout.letters.content.preflight import findings
from mailout.outbox.delivery.compose import list_id, list_name
from mailout.outbox.delivery.mime import Envelope
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Attempt


def write_preview(
    document: Document,
    content: Content,
    directory: Path,
    values: Mapping[str, str],
    *,
    to: str,
    from_email: str,
    from_name: str = "",
    reply_to: str | None = None,
    unsubscribe_url: str | None = None,
    unsubscribe_mailbox: str | None = None,
    list_key: str | None = None,
    called: str | None = None,
    org_name: str = "",
    date: float = 0.0,
    refusals: Sequence[Problem] = (),
) -> dict[str, Any]:
    """Writes `message.html`, `.txt`, `.eml` and `problems.json`; returns what there is to say of them."""
    attempt = Attempt("preview", 0)
    mail = Mail(
        *(attempt, None, to, from_email, from_name, reply_to, content, values, unsubscribe_url),
        unsubscribe_mailbox=unsubscribe_mailbox,
        list_id=list_id(list_key, from_email),
        list_name=list_name(list_key, org_name, called),
    )
    message = Envelope(content).splice(mail, date)
    problems = [asdict(problem) for problem in findings(document, content)]
    refused = [asdict(problem) for problem in refusals]
    files = {
        "message.html": content.html_segments.fill(values).encode(),
        "message.txt": content.text_segments.fill(values).encode(),
        "message.eml": message,
        "problems.json": (json.dumps(refused + problems, ensure_ascii=False, indent=2) + "\n").encode(),
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (directory / name).write_bytes(data)
    return {
        "subject": content.subject_segments.fill(values),
        "preheader": preheader_in(content.html_segments.fill(values)),
        "html_bytes": len(files["message.html"]),
        "text_bytes": len(files["message.txt"]),
        "message_bytes": len(message),
        "refusals": refused,
        "problems": problems,
        "files": [str(directory / name) for name in files],
    }
