"""What the Notion stub holds and what its API does with it; `tests.stubs.notion` puts it on the wire."""

from __future__ import annotations

import threading
import uuid
from typing import Any

Json = dict[str, Any]


class Refused(Exception):
    """An answer with a status other than 200."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Workspace:
    """What is in Notion. One lock: the stub is asked by several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.address = ""
        self.load({})

    def load(self, content: Json) -> None:
        """Begin again with this workspace: no calls made, nothing scripted."""
        self.databases: dict[str, Json] = content.get("databases", {})
        self.pages: dict[str, Json] = content.get("pages", {})
        self.files: dict[str, Json] = content.get("files", {})
        self.refused: dict[str, int] = content.get("refused", {})
        self.children: dict[str, list[Json]] = {}
        for parent, blocks in content.get("blocks", {}).items():
            self._keep(parent, blocks)
        self.comments: dict[str, list[Json]] = {}  # by page
        self.calls: list[Json] = []
        self.faults: list[Json] = []
        self.hour = 1  # file addresses carry it; `expire` moves it on

    def _keep(self, parent: str, blocks: list[Json]) -> None:
        self.children[parent] = [{key: block[key] for key in block if key != "children"} for block in blocks]
        for block in blocks:
            if "children" in block and (block["children"] or block["id"] not in self.children):
                self._keep(block["id"], block["children"])

    def edit(self, page: str, status: str, is_test: bool, blocks: list[Json]) -> None:
        """As a person does it, who has other rights than the integration."""
        properties = self.pages[page]["properties"]
        kind = properties["status"]["type"]
        properties["status"] = {"type": kind, kind: {"name": status}}
        properties["is_test"] = {"type": "checkbox", "checkbox": is_test}
        self._keep(page, blocks)

    # ── What the API does ────────────────────────────────────────────────────────────────────────

    def answer(self, method: str, parts: list[str], query: dict[str, list[str]], body: Json) -> Any:
        match method, parts:
            case "GET", ["users", "me"]:
                return {"object": "user", "id": "bot", "type": "bot", "name": "mailout tests"}
            case "GET", ["pages", id]:
                return self._page(id)
            case "PATCH", ["pages", id]:
                return self._update(id, body)
            case "POST", ["pages"]:
                return self._create(body)
            case "GET", ["blocks", id, "children"]:
                return self._children(id, query)
            case "GET", ["databases", id]:
                database = self._one(self.databases, id)
                return {"object": "database", "id": id, "data_sources": [{"id": database["data_source"]}]}
            case "GET", ["data_sources", id]:
                _, database = self._by_source(id)
                return {"object": "data_source", "id": id, "properties": database["properties"]}
            case "POST", ["data_sources", id, "query"]:
                return self._query(id, body)
            case "POST", ["databases"]:
                return self._create_database(body)
            case "POST", ["comments"]:
                self._writable(body["parent"]["page_id"])
                comment = {
                    "object": "comment",
                    "id": str(uuid.uuid4()),
                    "rich_text": _as_read(body["rich_text"]),
                }
                self.comments.setdefault(str(uuid.UUID(body["parent"]["page_id"])), []).append(comment)
                return comment
            case "PATCH", ["comments", id]:
                every = (one for kept in self.comments.values() for one in kept)
                comment = next(one for one in every if one["id"] == id)
                comment["rich_text"] = _as_read(body["rich_text"])
                return comment
            case "GET", ["comments"]:
                kept = self.comments.get(str(uuid.UUID(query["block_id"][0])), [])
                return self._listed(kept, query.get("start_cursor", [""])[0], 100)
            case _:
                raise Refused(400, "invalid_request_url", f"Invalid request URL: {'/'.join(parts)}")

    def _one(self, kept: dict[str, Json], id: str) -> Json:
        found = kept.get(str(uuid.UUID(id)))
        if found is None:
            raise Refused(404, "object_not_found", f"Could not find object with ID: {id}.")
        return found

    def _page(self, id: str) -> Json:
        page = self._one(self.pages, id)
        database = page.get("database")
        parent: Json = {"type": "workspace", "workspace": True}
        if database in self.databases:
            source = self.databases[database]["data_source"]
            parent = {"type": "data_source_id", "data_source_id": source, "database_id": database}
        return {
            "object": "page",
            "parent": parent,
            "id": str(uuid.UUID(id)),
            "url": f"https://www.notion.so/{uuid.UUID(id).hex}",
            "in_trash": page.get("in_trash", False),
            "created_time": page.get("created_time", "2026-11-01T08:00:00.000Z"),
            "last_edited_time": page.get("last_edited_time", "2026-11-14T08:00:00.000Z"),
            "properties": page["properties"],
        }

    def _writable(self, id: str) -> Json:
        page = self._one(self.pages, id)
        if page.get("in_trash"):
            said = "Can't edit block that is archived. You must unarchive the block before editing."
            raise Refused(400, "validation_error", said)
        return page

    def _update(self, id: str, body: Json) -> Json:
        page = self._writable(id)
        for name, value in body["properties"].items():
            if name not in page["properties"]:
                raise Refused(400, "validation_error", f"{name} is not a property that exists.")
            kind = page["properties"][name]["type"]
            if list(value) != [kind]:
                raise Refused(400, "validation_error", f"{name} is expected to be {kind}.")
            self._check_option(page, name, kind, value)
            page["properties"][name] = {"type": kind, kind: _as_read(value[kind])}
        return self._page(id)

    def _check_option(self, page: Json, name: str, kind: str, value: Json) -> None:
        """A status takes only options that exist."""
        if kind != "status" or value["status"] is None or page.get("database") not in self.databases:
            return
        status = self.databases[page["database"]]["properties"][name]["status"]
        if value["status"]["name"] not in [option["name"] for option in status["options"]]:
            raise Refused(400, "validation_error", f"Status option {value['status']['name']} does not exist.")

    def _create(self, body: Json) -> Json:
        source, database = self._by_source(body["parent"]["data_source_id"])
        for name, value in body["properties"].items():
            for kind in ("rich_text", "title"):
                items = value.get(kind, [])
                if any(len(item["text"]["content"]) > 2000 for item in items) or len(items) > 100:
                    raise Refused(400, "validation_error", f"{name}: body failed validation: too long.")
            for one in value.get("relation", []):
                if not _is_id(one["id"]):
                    raise Refused(400, "validation_error", f"{name}: {one['id']} should be a valid uuid.")
            if database["properties"].get(name, {}).get("type") != next(iter(value)):
                raise Refused(400, "validation_error", f"{name} is not a property of that type.")
        id = str(uuid.uuid4())
        properties = {
            name: {"type": kind, kind: _as_read(value[kind])}
            for name, value in body["properties"].items()
            for kind in value
        }
        self.pages[id] = {"database": source, "properties": properties}
        return self._page(id)

    def _create_database(self, body: Json) -> Json:
        self._one(self.pages, body["parent"]["page_id"])
        schema: Json = {}
        for name, made in body["initial_data_source"]["properties"].items():
            ((kind, value),) = made.items()
            if kind == "status" and value:
                raise Refused(400, "validation_error", "status options cannot be set through the API.")
            if kind == "relation":
                self._by_source(value["data_source_id"])
            schema[name] = {"type": kind, kind: value}
        if [one["type"] for one in schema.values()].count("title") != 1:
            raise Refused(400, "validation_error", "Title is not provided.")
        id = str(uuid.uuid4())
        self.databases[id] = {"data_source": str(uuid.uuid4()), "properties": schema}
        source = {"id": self.databases[id]["data_source"], "name": "made"}
        return {"object": "database", "id": id, "data_sources": [source]}

    def _children(self, id: str, query: dict[str, list[str]]) -> Json:
        id = str(uuid.UUID(id))
        if id in self.refused:
            raise Refused(self.refused[id], "validation_error", "Block type is not supported via the API.")
        if id not in self.children:
            raise Refused(404, "object_not_found", f"Could not find block with ID: {id}.")
        size = int(query.get("page_size", ["100"])[0])
        return self._listed(self.children[id], query.get("start_cursor", [""])[0], min(size, 100))

    def _query(self, id: str, body: Json) -> Json:
        source, _ = self._by_source(id)
        ids = [one for one, page in self.pages.items() if page.get("database") == source]
        wanted = body["filter"].get("and") or body["filter"].get("or") or [body["filter"]]
        together = any if "or" in body["filter"] else all
        found = [
            self._page(one)
            for one in ids
            if together(fits(self.pages[one]["properties"][each["property"]], each) for each in wanted)
        ]
        (order,) = body["sorts"]
        found.sort(key=lambda page: page[order["timestamp"]], reverse=order["direction"] == "descending")
        return self._listed(found, body.get("start_cursor", ""), body.get("page_size", 100))

    def _by_source(self, id: str) -> tuple[str, Json]:
        for database_id, database in self.databases.items():
            if database["data_source"] == str(uuid.UUID(id)):
                return database_id, database
        raise Refused(404, "object_not_found", f"Could not find data source with ID: {id}.")

    def _listed(self, results: list[Json], cursor: str, size: int) -> Json:
        start = int(cursor or 0)
        end = start + size
        more = end < len(results)
        return {
            "object": "list",
            "results": results[start:end],
            "has_more": more,
            "next_cursor": str(end) if more else None,
        }

    def with_files(self, answer: str) -> str:
        """Hosted files get the address that is good for this hour."""
        signed = answer
        for name in self.files:
            signed = signed.replace(
                f"{{files}}/{name}", f"{self.address}/files/{name}?X-Amz-Hour={self.hour}"
            )
        return signed.replace("{files}", f"{self.address}/files")


def _as_read(value: Any) -> Any:
    """What was written, as a read gives it back."""
    if isinstance(value, list):
        return [{**item, "plain_text": item["text"]["content"]} if "text" in item else item for item in value]
    return value


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def fits(property: Json, wanted: Json) -> bool:
    """Whether a page's property passes one condition of a filter."""
    if "date" in wanted:
        return wanted["date"] == {"is_empty": True} and property.get("date") is None
    kind = "status" if "status" in wanted else "select"
    return bool((property.get(kind) or {}).get("name") == wanted[kind]["equals"])
