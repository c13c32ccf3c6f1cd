"""Notion: where mailouts are written, and where we report what became of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from mailout.adapters.notion.blocks import BlockReader
from mailout.adapters.notion.calls import PAGE_SIZE, Json, NotionCalls, NotionConfig
from mailout.adapters.notion.databases import (
    ERROR_PROPERTIES,
    error_properties,
    errors_checks,
    mailouts_checks,
    notes_check,
    option_names,
    sources_checks,
)
from mailout.adapters.notion.notes import NotionNotes
from mailout.adapters.notion.property_ids import PropertyIds
from mailout.base.clock import Clock, timestamp_of
from mailout.base.error_log import ErrorRecord
from mailout.base.errors import SettingsError, SourceError, SourceNotFound, SourceRefused
from mailout.base.select import Writes
from mailout.insight.doctor.checks import Check
from mailout.insight.history.port import WrittenPage
from mailout.insight.page_status.state import PageStatus
from mailout.letters.content.notion.blocks import Block
from mailout.letters.content.notion.page import (
    DECIDING,
    KINDS,
    NotionPage,
    Value,
    holds,
    iso,
    page_of,
    property_value,
)
from mailout.letters.content.refs import page_id_of

log = logging.getLogger(__name__)

DB_MAILOUTS = "NOTION_DB_MAILOUTS"
OLDEST_FIRST: Json = {"timestamp": "created_time", "direction": "ascending"}


class NotionSource:
    """Reads pages and blocks, writes statuses, counts and errors."""

    def __init__(self, config: NotionConfig, clock: Clock, store: Writes | None = None) -> None:
        self._config = config
        self._ids = PropertyIds(store, [config.properties[key] for key in DECIDING])
        self._clock = clock
        self._calls = NotionCalls(config, clock)
        self._data_sources: dict[str, Sequence[Json]] = {}  # by database
        self._warned: set[str] = set()
        self.keeps_errors = bool(config.db_errors)
        self.finds_ready = bool(config.db_mailouts)
        self.later: Mapping[str, float] | None = None
        self.notes = NotionNotes(self._calls, self.page, self._warn_once)

    def close(self) -> None:
        self._calls.close()

    # ── Reading ──────────────────────────────────────────────────────────────────────────────────

    def load_page(self, page_id: str) -> NotionPage:
        return self.read(self.page_not_in_trash(page_id))

    def read(self, answer: Json) -> NotionPage:
        """What the API's JSON says of a mailout."""
        return page_of(answer, self._config.properties, self._config.zone)

    def load_blocks(self, page_id: str) -> list[Block]:
        return BlockReader(self._calls).tree(page_id)

    def ready(self, now: float) -> list[str]:
        """Pages that ask to be sent and whose time has come, oldest first."""
        if not self.finds_ready:
            return []
        is_ready, source = self._has_status(self._config.statuses[PageStatus.READY])
        answers = self._found("looking for mailouts that are ready", source, is_ready)
        found = [(self.read(one), timestamp_of(one.get("last_edited_time")) or 0.0) for one in answers]
        self.later = {page.id: edited for page, edited in found if page.asks_from > now}
        return [page.id for page, _ in found if page.asks_from <= now]

    def done_by_hand(self, since: float) -> list[str]:
        """Pages that a person has set to done, without a time of sending: edited since then."""
        if not self.finds_ready:
            return []
        is_done, source = self._has_status(self._config.statuses[PageStatus.SEND])
        sent_at = self._config.properties["sent_at"]
        if (self._schema(source).get(sent_at) or {}).get("type") != "date":
            return []
        wanted = {"and": [is_done, {"property": sent_at, "date": {"is_empty": True}}]}
        return [
            self.read(answer).id
            for answer in self._found("looking for mailouts that were never sent", source, wanted)
            if (timestamp_of(answer.get("last_edited_time")) or since) >= since
        ]

    def written(self) -> list[WrittenPage]:
        """Drafts, pages that ask to be sent and those that failed, the last edited first: 100 at most."""
        if not self.finds_ready:
            return []
        shown = (PageStatus.READY, PageStatus.DRAFT, PageStatus.FAILED)
        is_written, source = self._has_status(*(self._config.statuses[status] for status in shown))
        edited_last = {"timestamp": "last_edited_time", "direction": "descending"}
        answers = self._found("looking for drafts", source, is_written, edited_last)
        return [self._written(answer) for answer in islice(answers, PAGE_SIZE)]

    def _written(self, answer: Json) -> WrittenPage:
        page = self.read(answer)
        return WrittenPage(
            page.id,
            page.subject,
            page.status or "",
            is_ready=page.status == self._config.statuses[PageStatus.READY],
            is_test=page.is_test,
            list_key=page.list,
            send_at=page.send_at,
            edited_at=timestamp_of(answer.get("last_edited_time")),
            is_failed=page.status == self._config.statuses[PageStatus.FAILED],
        )

    def _has_status(self, *statuses: str) -> tuple[Json, str]:
        """The filter for them, whether it is a status or a select, and the data source that it is for."""
        name = self._config.properties["status"]
        source = self._data_source(self._config.db_mailouts, DB_MAILOUTS)
        schema = self._schema(source)
        self._ids.learn(source, schema)
        kind = str((schema.get(name) or {}).get("type"))
        if kind not in KINDS["status"]:
            raise SourceError(
                f"The mailouts database has no status or select called {name!r}.",
                remedy="Add it, or set NOTION_PROP_STATUS.",
            )
        options = option_names(schema[name])
        there = [status for status in statuses if status in options] or statuses
        wanted = [{"property": name, kind: {"equals": status}} for status in there]
        return wanted[0] if len(wanted) == 1 else {"or": wanted}, source

    def _found(self, what: str, source: str, wanted: Json, order: Json = OLDEST_FIRST) -> Iterator[Json]:
        query = {"filter": wanted, "sorts": [order]}
        found = self._calls.pages(what, lambda api, paging: api.data_sources.query(source, **query, **paging))
        return (one for one in found if one.get("object") == "page" and not one.get("in_trash"))

    def page(self, page_id: str) -> Json:
        page: Json = self._calls.make(f"reading the page {page_id}", lambda api: api.pages.retrieve(page_id))
        return page

    def page_not_in_trash(self, page_id: str) -> Json:
        answer = self.page(page_id)
        if answer.get("in_trash") or answer.get("archived"):
            raise SourceNotFound(f"The page {page_id} is in the trash.", remedy="Restore it in Notion.")
        return answer

    def is_mailout(self, answer: Json) -> bool:
        """Whether the page is in the mailouts database; without one, every page may be a mailout.

        Other databases have pages that are "Ready", too, and must not be mailed to everybody.
        """
        if not self._config.db_mailouts:
            return True
        parent = answer.get("parent") or {}
        if page_id_of(str(parent.get("database_id"))) == page_id_of(self._config.db_mailouts):
            return True
        source = page_id_of(str(parent.get("data_source_id")))
        return source is not None and source == page_id_of(
            self._data_source(self._config.db_mailouts, DB_MAILOUTS)
        )

    # ── Reporting ────────────────────────────────────────────────────────────────────────────────

    def update_page(self, page_id: str, properties: Mapping[str, Value], page: Json) -> None:
        """Write what we know under our names for it, if the database can hold it.

        Writing the same values twice changes nothing, so this is tried again like a read. What the page
        says already is left out; `page` is the page as it was read.
        """
        there = page.get("properties") or {}
        body, skipped = {}, []
        for key, value in properties.items():
            name = self._config.properties[key]
            told = iso(value) if key == "sent_at" and value is not None else value  # also where it is a text
            written = property_value(str((there.get(name) or {}).get("type")), told)
            if written is None:
                skipped.append(name)
            elif not holds(there.get(name), value):
                body[name] = written
        self._warn_once(skipped)
        if body:
            self._calls.make(
                f"updating the page {page_id}", lambda api: api.pages.update(page_id, properties=body)
            )

    def lacks_option(self, page: Json, status: str) -> bool:
        """Whether the page's status cannot be this one. A select makes its options as they are written."""
        name = self._config.properties["status"]
        source = (page.get("parent") or {}).get("data_source_id")
        if not source or ((page.get("properties") or {}).get(name) or {}).get("type") != "status":
            return False
        try:
            schema = self._schema(str(source))
        except (SourceNotFound, SourceRefused):  # the page alone is shared with us
            return False
        return status not in option_names(schema.get(name) or {})

    def create_error_page(self, row: ErrorRecord, page_id: str | None, subject: str | None) -> None:
        """In the errors database. A creation that may have worked is not repeated.

        `page_id`: the mailout's page, for a database in which `mailout` is a relation.
        """
        source = self._data_source(self._config.db_errors, "NOTION_DB_ERRORS")
        schema = self._schema(source)
        self._warn_once([name for name in ERROR_PROPERTIES if name not in schema])
        body = {
            "parent": {"type": "data_source_id", "data_source_id": source},
            "properties": error_properties(row, schema, page_id, subject, self._clock.now()),
        }
        self._calls.make("recording an error", lambda api: api.pages.create(**body), repeatable=False)

    def _warn_once(self, names: Sequence[str]) -> None:
        if new := [name for name in names if name not in self._warned]:
            self._warned.update(new)
            log.warning("Notion: no property to write %s into; left out", ", ".join(new))

    # ── Databases ────────────────────────────────────────────────────────────────────────────────

    def _data_source(self, ref: str | None, setting: str) -> str:
        """A database's first data source: that is where its pages are since 2025."""
        return str(self._sources_of(ref, setting)[0]["id"])

    def _sources_of(self, ref: str | None, setting: str) -> Sequence[Json]:
        id = page_id_of(ref or "")
        if id is None:
            raise SettingsError(
                f"{setting} names no database.", remedy="Set it to the database's id or address."
            )
        if id not in self._data_sources:
            database = self._calls.make(f"reading the database {id}", lambda api: api.databases.retrieve(id))
            sources = database.get("data_sources") or ()
            if not sources:
                raise SourceNotFound(
                    f"The database {id} has no data source that we may read.",
                    remedy="Share it with the integration (••• → Connections).",
                )
            self._data_sources[id] = sources
        return self._data_sources[id]

    def _schema(self, source: str) -> Json:
        answer = self._calls.make(
            f"reading the data source {source}", lambda api: api.data_sources.retrieve(source)
        )
        return answer.get("properties") or {}

    # ── doctor ───────────────────────────────────────────────────────────────────────────────────

    def check(self) -> list[Check]:
        """The token, the databases, their properties: each with what to do about it."""
        try:
            me = self._calls.make("asking who we are", lambda api: api.users.me())
        except SourceError as error:
            return [Check("NOTION_TOKEN", "fail", error.message, error.remedy or "")]
        found = [Check("NOTION_TOKEN", "ok", f"we are {me.get('name') or me.get('id')}")]
        mailouts = "Set it to find pages that are ready; single pages can be sent without."
        errors = "Set it to see errors in Notion; the store keeps them in any case."
        for setting, ref, look, why in (
            ("NOTION_DB_MAILOUTS", self._config.db_mailouts, self._check_mailouts, mailouts),
            ("NOTION_DB_ERRORS", self._config.db_errors, errors_checks, errors),
        ):
            if not ref:
                found.append(Check(setting, "warn", "is not set", why))
                continue
            try:
                schema = self._schema(self._data_source(ref, setting))
            except (SourceError, SettingsError) as error:
                found.append(Check(setting, "fail", error.message, error.remedy or ""))
                continue
            found.append(Check(setting, "ok", "can be read"))
            found.extend(look(schema))
        return found

    def _check_mailouts(self, schema: Json) -> list[Check]:
        found = mailouts_checks(schema, self._config.properties, self._config.statuses)
        found += sources_checks(self._sources_of(self._config.db_mailouts, DB_MAILOUTS))
        try:
            page = self._any_page()
            readable = page is None or self.notes.can_be_read(page)
        except SourceError:  # what it lacks is among the checks already, or it is away just now
            return found
        return found if page is None else [*found, notes_check(schema, readable=readable)]

    def _any_page(self) -> str | None:
        """To try something out on; None: there is no letter yet."""
        has_any, source = self._has_status(*self._config.statuses.values())
        return next((str(one["id"]) for one in self._found("looking for a letter", source, has_any)), None)
