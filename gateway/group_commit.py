"""Many posts, one commit: each is answered after the commit that holds it, and none pays for one alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from starlette.concurrency import run_in_threadpool

T = TypeVar("T")


@dataclass
class _Batch(Generic[T]):
    items: list[T] = field(default_factory=list)
    commit: asyncio.Task[None] | None = None


class GroupCommit(Generic[T]):
    """While one batch is being written, the next one fills."""

    def __init__(self, write: Callable[[Sequence[T]], Any]) -> None:
        self._write = write
        self._filling: _Batch[T] = _Batch()
        self._turn = asyncio.Lock()

    async def put(self, item: T) -> None:
        """Returns when the item is durable; raises what the store raised."""
        batch = self._filling
        batch.items.append(item)
        if batch.commit is None:
            batch.commit = asyncio.create_task(self._commit(batch))
        await asyncio.shield(batch.commit)  # one caller that goes away must not take the others along

    async def _commit(self, batch: _Batch[T]) -> None:
        async with self._turn:
            self._filling = _Batch()
            await run_in_threadpool(self._write, batch.items)
