"""Wrong passwords and tokens, counted by address: so many in a while, then it has to wait."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable

LOCKOUT_SECONDS = 900.0
MOST_FROM_ONE = 10
MANY_OVER_ALL = 100
WRONG_PASSWORD_SECONDS = 2.0
SITES_KEPT = 10_000


class WrongTries:
    """Counted in the memory of this process: a restart forgives."""

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._ends = 0.0
        self._total = 0
        self._counts: Counter[str] = Counter()

    def wait_of(self, site: str) -> float | None:
        """Seconds until this address may try again; None: now."""
        self._begin_again_if_over()
        return self._ends - self._monotonic() if self._counts[site] >= MOST_FROM_ONE else None

    def one_more(self, site: str) -> None:
        self._begin_again_if_over()
        self._total += 1
        if site not in self._counts and len(self._counts) >= SITES_KEPT:
            self._let_one_go()
        if site in self._counts or len(self._counts) < SITES_KEPT:
            self._counts[site] += 1

    def _let_one_go(self) -> None:
        """Whoever has many addresses fills the list: the one with the fewest tries goes, none that waits."""
        fewest = min(self._counts, key=self._counts.__getitem__)
        if self._counts[fewest] < MOST_FROM_ONE:
            del self._counts[fewest]

    def _begin_again_if_over(self) -> None:
        now = self._monotonic()
        if now >= self._ends:
            self._ends = now + self._seconds
            self._total = 0
            self._counts.clear()


class WrongPasswords(WrongTries):
    """Ten in a quarter of an hour for each address; many over all slow everybody, a little. One counter for
    every place that takes a password: guesses here count there."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(LOCKOUT_SECONDS, monotonic)
        self._sleep = sleep

    @property
    def slow_by(self) -> float:
        """Before any password is looked at, also a right one: nobody learns from how long it took."""
        self._begin_again_if_over()
        return WRONG_PASSWORD_SECONDS if self._total >= MANY_OVER_ALL else 0.0

    async def take_turn(self, site: str) -> float | None:
        """Before a password is compared: wait if there were many wrong ones, then as `wait_of`. Await nothing
        between this and `one_more`: guesses at the same time are counted one by one."""
        await self._sleep(self.slow_by)
        return self.wait_of(site)
