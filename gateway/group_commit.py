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
    commit: asyncio.Task[Any] | None = None


class GroupCommit(Generic[T]):
    """While one batch is being written, the next one fills."""

    def __init__(self, write: Callable[[Sequence[T]], Any]) -> None:
        self._write = write
        self._filling: _Batch[T] = _Batch()
        self._turn = asyncio.Lock()

    async def put(self, item: T) -> Any:
        """When the item is durable: what the store answered for it, if it answers for each. Raises what the
        store raised."""
        batch = self._filling
        place = len(batch.items)
        batch.items.append(item)
        if batch.commit is None:
            batch.commit = asyncio.create_task(self._commit(batch))
        # One caller that goes away must not take the others along.
        answers = await asyncio.shield(batch.commit)
        return answers[place] if isinstance(answers, list | tuple) else None

    async def _commit(self, batch: _Batch[T]) -> Any:
        async with self._turn:
            self._filling = _Batch()
            return await run_in_threadpool(self._write, batch.items)
