"""Notion's JSON, built by hand in the shape that its API answers with (version 2026-03-11)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from mailout.letters.content.notion import Block

Json = dict[str, Any]

PLAIN = {
    "bold": False,
    "italic": False,
    "strikethrough": False,
    "underline": False,
    "code": False,
    "color": "default",
}


def id_of(name: str) -> str:
    """The same name is always the same id."""
    sound = name.encode("utf-8", "backslashreplace").decode()
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"notion/{sound}"))


def text(content: str, href: str | None = None, **style: Any) -> Json:
    link = {"url": href} if href else None
    return {
        "type": "text",
        "text": {"content": content, "link": link},
        "annotations": PLAIN | style,
        "plain_text": content,
        "href": href,
    }


def mention(kind: str, value: Any, plain: str = "", href: str | None = None) -> Json:
    about = {"type": kind, kind: value}
    return {"type": "mention", "mention": about, "annotations": PLAIN, "plain_text": plain, "href": href}


def formula(expression: str) -> Json:
    return {
        "type": "equation",
        "equation": {"expression": expression},
        "annotations": PLAIN,
        "plain_text": expression,
        "href": None,
    }


def rich(words: str | Sequence[Json]) -> list[Json]:
    return [text(words)] if isinstance(words, str) and words else list(words or [])


def block(kind: str, data: Json | None = None, *children: Json, id: str | None = None) -> Json:
    """A block with its children inside, as the fixtures keep them; the stub hands them out level by level."""
    return {
        "object": "block",
        "id": id or id_of(f"{kind}/{data!r}/{[child['id'] for child in children]}"),
        "type": kind,
        "has_children": bool(children),
        "in_trash": False,
        kind: data or {},
        "children": list(children),
    }


def words(kind: str, said: str | Sequence[Json] = "", *children: Json, **data: Any) -> Json:
    return block(kind, {"rich_text": rich(said), "color": "default"} | data, *children)


def p(said: str | Sequence[Json] = "", *children: Json, **data: Any) -> Json:
    return words("paragraph", said, *children, **data)


def hosted(kind: str, name: str, caption: str = "") -> Json:
    """A file that Notion keeps: the stub puts its own address and an expiring signature in place."""
    return block(
        kind,
        {
            "caption": rich(caption),
            "type": "file",
            "file": {"url": f"{{files}}/{name}", "expiry_time": "2026-11-15T10:00:00.000Z"},
        },
    )


def external(kind: str, url: str, caption: str = "") -> Json:
    return block(kind, {"caption": rich(caption), "type": "external", "external": {"url": url}})


def row(*cells: str | Sequence[Json]) -> Json:
    return block("table_row", {"cells": [rich(cell) for cell in cells]})


def table(*rows: Json, head: bool = True, side: bool = False) -> Json:
    width = len(rows[0]["table_row"]["cells"])
    data = {"table_width": width, "has_column_header": head, "has_row_header": side}
    return block("table", data, *rows)


def column(*children: Json, ratio: float | None = None) -> Json:
    return block("column", {"width_ratio": ratio} if ratio else {}, *children)


def blocks(tree: Sequence[Json]) -> list[Block]:
    """The fixture as the loader would return it."""
    return [Block.of(one, blocks(one.get("children", []))) for one in tree]


def with_files(tree: Any, files: str) -> Any:
    """The same JSON with the address of the file host filled in."""
    if isinstance(tree, dict):
        return {key: with_files(value, files) for key, value in tree.items()}
    if isinstance(tree, list):
        return [with_files(value, files) for value in tree]
    return tree.replace("{files}", files) if isinstance(tree, str) else tree
