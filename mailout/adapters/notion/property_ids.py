"""Which property is which: Notion keeps a property's id when somebody renames it."""

from __future__ import annotations

from collections.abc import Collection

from mailout.adapters.notion.calls import Json
from mailout.base.errors import SourceError
from mailout.base.select import Writes
from mailout.insight.history.history_rows import keep_note, note_value
from mailout.letters.content.notion.blocks import as_mapping
from mailout.letters.content.notion.page import is_filled

PROPERTY_IDS = "notion property ids"
"""Among the store's notes."""


class PropertyIds:
    """Of the properties with these names, in every data source; without a store, none is remembered."""

    def __init__(self, store: Writes | None, names: Collection[str]) -> None:
        self._store = store
        self._names = names

    def learn(self, source: str, properties: Json) -> None:
        if self._store is None:
            return
        found = {
            (source, name): str(id)
            for name in self._names
            if (id := as_mapping(properties.get(name)).get("id"))
        }
        known = self._known(self._store)
        if known | found != known:
            rows = [{"source": of, "name": name, "id": id} for (of, name), id in (known | found).items()]
            keep_note(self._store, PROPERTY_IDS, rows)

    def require_names(self, source: str, properties: Json) -> None:
        """Under another name it would count as empty, and the letter go to everybody, or at once."""
        known = self._known(self._store) if self._store is not None else {}
        called = {str(as_mapping(one).get("id")): name for name, one in properties.items()}
        for name in self._names:
            now = called.get(known.get((source, name), ""))
            if name not in properties and now is not None and is_filled(as_mapping(properties[now])):
                said = f"The property {name} is now called {now}. Rename it back to {name}"
                again = f"{said}, then set Ready again."
                raise SourceError(f"{said}, or set NOTION_PROP_*.", for_writer=again)
        self.learn(source, properties)

    @staticmethod
    def _known(store: Writes) -> dict[tuple[str, str], str]:
        return {(one["source"], one["name"]): one["id"] for one in note_value(store, PROPERTY_IDS)}
