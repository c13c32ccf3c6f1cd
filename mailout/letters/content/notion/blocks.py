"""A page as Notion's API gives it: a tree of blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mailout.letters.content.model import clean, in_every_text

MAX_BLOCK_DEPTH = 60
"""Deeper blocks are shown at this depth: no mail client can show more, and no page may exhaust the stack."""

MAX_BLOCKS = 20_000
"""What comes after is left out and reported: far more than any mail can carry."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def mailable(written: str) -> str:
    """What Notion hands over, without our own marks, control characters and halves of letters."""
    return _CONTROL.sub("", clean(written)).encode("utf-8", "replace").decode()


def as_mapping(value: object) -> Mapping[str, Any]:
    """Whatever stands where the API promises an object."""
    return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Block:
    """One block. `trouble` says in a sentence what could not be read of it. `is_lost`: all that its author
    sees there, so it must not be sent without."""

    id: str
    type: str
    data: Mapping[str, Any] = field(default_factory=dict)
    children: tuple[Block, ...] = ()
    trouble: str | None = None
    is_lost: bool = False

    @classmethod
    def of(
        cls,
        answer: Mapping[str, Any],
        children: Iterable[Block] = (),
        trouble: str | None = None,
        *,
        is_lost: bool = False,
    ) -> Block:
        """From the API's JSON."""
        kind = str(answer.get("type") or "unsupported")
        data = as_mapping(answer.get(kind))
        return cls(str(answer.get("id") or ""), kind, data, tuple(children), trouble, is_lost)

    @property
    def name(self) -> str:
        """Its type as people know it: an `unsupported` block says which type it hides."""
        return str(self.data.get("block_type") or self.type) if self.type == "unsupported" else self.type


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Every block, depth-first, in the page's order."""
    waiting = list(blocks)[::-1]
    while waiting:
        block = waiting.pop()
        yield block
        waiting.extend(reversed(block.children))


def within_limits(blocks: Iterable[Block]) -> tuple[tuple[Block, ...], bool]:
    """The same page no deeper and no longer than allowed, and whether anything was left out.

    Without recursion: this is what makes it safe for everything after it to recurse. Its texts are made
    mailable on the way: whatever is marked later was marked by us.
    """
    root: list[tuple[Block, list[Any]]] = []
    waiting = [(block, 1, root) for block in reversed(tuple(blocks))]
    count = 0
    while waiting and count < MAX_BLOCKS:
        block, depth, siblings = waiting.pop()
        count += 1
        own: list[tuple[Block, list[Any]]] = []
        siblings.append((block, own))
        # Past the limit, descendants follow their ancestor as its siblings: flat, but in order.
        deeper, target = (depth + 1, own) if depth < MAX_BLOCK_DEPTH else (depth, siblings)
        waiting.extend((child, deeper, target) for child in reversed(block.children))
    return tuple(_built(root)), bool(waiting)


def _built(nodes: list[tuple[Block, list[Any]]]) -> list[Block]:
    """Depth is bounded here, so recursion is safe."""
    return [
        replace(block, data=in_every_text(block.data, mailable), children=tuple(_built(children)))
        for block, children in nodes
    ]
