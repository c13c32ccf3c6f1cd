"""The report from its templates: one HTML file to open in a browser (nothing to load, nothing that runs), and
Markdown for a Prefect artifact."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from mailout.base.time_format import spoken
from mailout.insight.reporting.details import details, identifiers
from mailout.insight.reporting.files import replacing
from mailout.insight.reporting.phrases import (
    came_back,
    first_of,
    headline,
    ledger_numbers,
    ledger_shown,
    meaning,
    next_steps,
    share,
    waiting,
)
from mailout.insight.reporting.plot import NARROW, WIDE, described, plot
from mailout.insight.reporting.summary import Summary
from mailout.outbox.queue.mailout import Mailout, MailoutOutcome, Status

_ACTIVE = re.compile(r"[\\`*_{}\[\]()#+\-!|~$]")
_BADGES: Mapping[Status, str] = {
    Status.PENDING: "waiting",
    Status.PROCESSING: "sending",
    Status.CANCELLED: "cancelled",
}


def escaped(written: str) -> str:
    """What people wrote, as text in Markdown: no markup, no HTML, no table of its own, one line."""
    line = " ".join(written.replace("\0", "").split())
    entities = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ACTIVE.sub(r"\\\g<0>", entities)


def _with_code(text: str) -> Markup:
    """Words between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 (escaped before)


def _in_markdown(value: object) -> Markup:
    """Whatever a template puts in, unless it is marked as safe."""
    return value if isinstance(value, Markup) else Markup(escaped(str(value)))  # noqa: S704 (escaped)


def _templates(**how: Any) -> Environment:
    return Environment(
        loader=PackageLoader("mailout.insight.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        **how,
    )


_HTML = _templates()
_HTML.filters["code"] = _with_code
_MARKDOWN = _templates(finalize=_in_markdown)


def html_report(summary: Summary, zone: tzinfo = UTC, *, csv: str | None = None) -> str:
    """`csv`: a link to the list of all recipients, relative to where the page will lie."""
    return _HTML.get_template("report.html.j2").render(
        _values(summary, zone),
        badge=badge(summary.mailout),
        # Our own SVG: everything in it is escaped where it is built.
        wide=Markup(plot(summary, width=WIDE, zone=zone)),  # noqa: S704
        narrow=Markup(plot(summary, width=NARROW, zone=zone)),  # noqa: S704
        as_of=spoken(summary.as_of, zone),
        csv=csv,
    )


def write_html(summary: Summary, path: Path, zone: tzinfo = UTC, *, csv: Path | None = None) -> None:
    """Put the page at `path`, whole. `csv`: where the list lies, wherever both are moved together."""
    link = quote(Path(os.path.relpath(csv, path.parent)).as_posix()) if csv is not None else None
    text = html_report(summary, zone, csv=link)
    with replacing(path) as file:
        file.write(text)


def markdown_report(summary: Summary, zone: tzinfo = UTC) -> str:
    return _MARKDOWN.get_template("report.md.j2").render(
        _values(summary, zone),
        described=described(summary, zone),
        picture=b64encode(plot(summary, zone=zone).encode()).decode(),
    )


def ledger_table(summary: Summary) -> list[dict[str, Any]]:
    """For a Prefect table artifact."""
    ledger = summary.mailout.ledger
    lines = [(name, n, meaning(column, summary.mailout)) for column, name, n in ledger_numbers(ledger)]
    lines.append(("recipients", ledger.recipients, "all of these together"))
    return [
        {"state": name, "messages": n, "share": share(n, ledger.recipients), "meaning": means}
        for name, n, means in lines
    ]


def _values(summary: Summary, zone: tzinfo) -> dict[str, Any]:
    """What both templates show."""
    mailout, unknown = summary.mailout, summary.unknown_addresses
    *rows, total = ledger_table(summary)
    shown = [name for _, name, _ in ledger_shown(mailout.ledger)]
    return {
        "mailout": mailout,
        "headline": headline(mailout),
        "waiting": waiting(mailout, zone, now=summary.as_of),
        "ledger": [row for row in rows if row["state"] in shown],
        "total": [total] if total["messages"] else [],
        "failures": [(group, first_of(group.addresses, group.count)) for group in summary.failures],
        "unknown": first_of(unknown, mailout.ledger.unknown) if mailout.ledger.unknown else None,
        "steps": next_steps(mailout),
        "came_back": came_back(mailout),
        "details": list(details(summary, zone)),
        "identifiers": list(identifiers(summary)),
    }


def badge(mailout: Mailout) -> str:
    """One word for how it stands: waiting, sending, cancelled, sent or failed."""
    if mailout.status is Status.COMPLETED:
        return (mailout.outcome or MailoutOutcome.SENT).value
    return _BADGES[mailout.status]
