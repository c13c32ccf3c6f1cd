"""What a mailout leaves behind for people: the CSV and the report page, made from the store at any time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Any, Protocol

from mailout.base.errors import HomeUnwritable
from mailout.insight.reporting.files import csv_path, html_path, replace_address
from mailout.insight.reporting.rendering import write_html
from mailout.insight.reporting.rows import write_csv
from mailout.insight.reporting.summary import Summary, summarise
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import QueueStore
from mailout.outbox.queue.snapshot import QueueForecast

log = logging.getLogger("mailout.reporting")


@dataclass(frozen=True, slots=True)
class Reports:
    """The summary of a mailout, and where its files are."""

    summary: Summary
    csv: Path
    html: Path
    written: bool = True  # the files; False: whoever stopped the sending did not wait for them


class ReportPages(Protocol):
    """Where people wrote the mailouts."""

    def update(self, mailout_id: str) -> bool: ...
    def update_later(self, mailout: Mailout) -> None: ...


@dataclass(frozen=True, slots=True, repr=False)
class Reporting:
    store: QueueStore
    pages: ReportPages
    queue_forecast: QueueForecast
    folder: Path
    timezone: tzinfo
    transport: str  # its name
    census: Callable[[str], Mapping[str, Any]] | None = None  # of an article, by its mailout's id

    def report(self, id: str, note: str | None = None) -> Reports:
        """Write the files again; the mailout's Notion page is updated. `note`: what else the summary says."""
        summary = summarise(
            self.store,
            id,
            transport=self.transport,
            forecast=self.queue_forecast.forecast(id),
            note=note,
            census=self.census,
        )
        reports = Reports(summary, *self._paths(id))
        if summary.mailout.archived_at is None:  # else they would be made of nothing
            try:
                self._write(reports)
            except HomeUnwritable as error:
                log.warning("The report was not written, the mailout is as it should be. %s", error)
        self.pages.update(id)
        return reports

    def postpone(self, mailout: Mailout) -> Reports:
        """The counts alone: files and page take long, and whoever stopped the sending should not wait."""
        self.pages.update_later(mailout)
        summary = Summary(mailout, self.store.now(), transport=self.transport)
        return Reports(summary, *self._paths(mailout.id), written=False)

    def keep(self, id: str) -> None:
        """Its files, if this machine has none: once it is archived they cannot be made any more."""
        csv, html = self._paths(id)
        if not csv.exists() or not html.exists():
            self._write(Reports(summarise(self.store, id, census=self.census), csv, html))

    def forget(self, address: str, instead: str) -> set[str]:
        """In every file on this machine: an archived mailout's cannot be made again, and whoever erased
        this person before may have been cut off. The mailouts whose files had the address."""
        files = (*self.folder.glob("*.csv"), *self.folder.glob("*.html"))
        found = {path.stem for path in files if replace_address(path, address, instead)}
        parts = self.folder.glob("*/*.part.csv")
        return found | {path.parent.name for path in parts if replace_address(path, address, instead)}

    def _paths(self, id: str) -> tuple[Path, Path]:
        return csv_path(self.folder, id), html_path(self.folder, id)

    def _write(self, reports: Reports) -> None:
        write_csv(self.store, reports.summary.mailout.id, reports.csv)
        write_html(reports.summary, reports.html, self.timezone, csv=reports.csv)
