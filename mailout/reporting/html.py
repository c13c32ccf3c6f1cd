"""The report as one HTML file to open in a browser: nothing to load, nothing that runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from mailout.queue.mailout import Mailout, MailoutOutcome, Status
from mailout.reporting.details import details, identifiers
from mailout.reporting.files import replacing
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
from mailout.reporting.plot import NARROW, WIDE, plot
from mailout.reporting.summary import Summary
from mailout.time_format import spoken

_TEMPLATES = Environment(
    loader=PackageLoader("mailout.reporting"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def _with_code(text: str) -> Markup:
    """Words between backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 (escaped before)


_TEMPLATES.filters["code"] = _with_code

_BADGES: Mapping[Status, str] = {
    Status.PENDING: "waiting",
    Status.PROCESSING: "sending",
    Status.CANCELLED: "cancelled",
}


def html_report(summary: Summary, zone: tzinfo = UTC, *, csv: str | None = None) -> str:
    """`csv`: a link to the list of all recipients, relative to where the page will lie."""
    mailout = summary.mailout
    ledger = mailout.ledger
    rows = [(c.value, name, getattr(ledger, c.value), MEANINGS[c]) for c, name in COLUMN_NAMES.items()]
    return _TEMPLATES.get_template("report.html.j2").render(
        mailout=mailout,
        badge=badge(mailout),
        headline=headline(mailout),
        waiting=waiting(mailout, zone),
        ledger=[row for row in rows if row[2] or row[0] in ("sent", "failed")],
        recipients=ledger.recipients,
        share=share,
        # Our own SVG: everything in it is escaped where it is built.
        wide=Markup(plot(summary, width=WIDE, zone=zone)),  # noqa: S704
        narrow=Markup(plot(summary, width=NARROW, zone=zone)),  # noqa: S704
        failures=[(group, first_of(group.addresses, group.count)) for group in summary.failures],
        unknown=first_of(summary.unknown_addresses, ledger.unknown) if ledger.unknown else None,
        steps=next_steps(mailout),
        came_back=came_back(mailout),
        details=list(details(summary, zone)),
        identifiers=list(identifiers(summary)),
        as_of=spoken(summary.as_of, zone),
        csv=csv,
    )


def write_html(summary: Summary, path: Path, zone: tzinfo = UTC, *, csv: Path | None = None) -> None:
    """Put the page at `path`, whole. `csv`: where the list lies, wherever both are moved together."""
    link = quote(Path(os.path.relpath(csv, path.parent)).as_posix()) if csv is not None else None
    text = html_report(summary, zone, csv=link)
    with replacing(path) as file:
        file.write(text)


def badge(mailout: Mailout) -> str:
    """One word for how it stands: waiting, sending, cancelled, sent or failed."""
    if mailout.status is Status.COMPLETED:
        return (mailout.outcome or MailoutOutcome.SENT).value
    return _BADGES[mailout.status]
