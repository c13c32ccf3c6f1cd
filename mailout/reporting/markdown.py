"""The report as Markdown, for a Prefect artifact."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from typing import Any

from mailout.queue.mailout import Mailout
from mailout.reporting.details import details, identifiers
from mailout.reporting.phrases import (
    COLUMN_NAMES,
    MEANINGS,
    came_back,
    first_of,
    headline,
    next_steps,
    share,
    waiting,
)
from mailout.reporting.plot import described, plot
from mailout.reporting.summary import Summary

_ACTIVE = re.compile(r"[\\`*_{}\[\]()#+\-!|~$]")


def escaped(written: str) -> str:
    """What people wrote, as text: no markup, no HTML, no table of its own, one line."""
    line = " ".join(written.replace("\0", "").split())
    entities = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ACTIVE.sub(r"\\\g<0>", entities)


def markdown_report(summary: Summary, zone: tzinfo = UTC) -> str:
    """Headline, ledger, picture, failures, what to do next."""
    return "\n\n".join(_parts(summary, zone)) + "\n"


def ledger_table(summary: Summary) -> list[dict[str, Any]]:
    """For a Prefect table artifact."""
    ledger = summary.mailout.ledger
    lines = [(name, int(getattr(ledger, c.value)), MEANINGS[c]) for c, name in COLUMN_NAMES.items()]
    lines.append(("recipients", ledger.recipients, "all of these together"))
    return [
        {"state": name, "messages": n, "share": share(n, ledger.recipients), "meaning": meaning}
        for name, n, meaning in lines
    ]


def _parts(summary: Summary, zone: tzinfo) -> Iterator[str]:
    mailout = summary.mailout
    yield f"# {escaped(mailout.subject) or 'No subject yet'}"
    if came := came_back(mailout):
        yield " · ".join(f"**{number}** {word}{f' ({part})' if part else ''}" for word, number, part in came)
    yield f"**{headline(mailout)}**"
    why = waiting(mailout, zone)
    if why is not None:
        yield escaped(why)
    rows = [row for row in ledger_table(summary) if row["messages"] or row["state"] in ("sent", "failed")]
    yield _table(
        ("", "messages", "share", "meaning"),
        [(row["state"], f"{row['messages']:,}", row["share"], row["meaning"]) for row in rows],
    )
    yield _picture(summary, zone)
    if summary.failures:
        yield "## Failures"
        yield _failures(summary)
    if summary.unknown_addresses:
        yield "## Unknown"
        yield escaped(first_of(summary.unknown_addresses, mailout.ledger.unknown))
    if next_steps(mailout):
        yield "## What to do next"
        yield _what_next(mailout)
    yield "## Details"
    yield _table(("", ""), [(escaped(label), escaped(text)) for label, text in details(summary, zone)])
    yield "## Ids"
    yield _table(("", ""), [(escaped(label), escaped(text)) for label, text in identifiers(summary)])


def _picture(summary: Summary, zone: tzinfo) -> str:
    image = b64encode(plot(summary, zone=zone).encode()).decode()
    return f"![{escaped(described(summary, zone))}](data:image/svg+xml;base64,{image})"


def _failures(summary: Summary) -> str:
    return _table(
        ("code", "messages", "what was said", "addresses"),
        [
            (escaped(g.code), f"{g.count:,}", escaped(g.message), escaped(first_of(g.addresses, g.count)))
            for g in summary.failures
        ],
    )


def _what_next(mailout: Mailout) -> str:
    return "\n".join(f"- {step.advice}\n\n  `{step.command}`\n" for step in next_steps(mailout)).rstrip()


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
