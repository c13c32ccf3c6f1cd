"""Machines that share one Supabase: each has a home of its own, with its journal and its outbox folder."""

from __future__ import annotations

import bisect
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mailout.adapters.supabase import SupabaseStore
from mailout.letters.audience.port import SubscriberRow
from tests.chaos.senders import LETTER, Home
from tests.contract.postgres import PostgresRpc
from tests.e2e.conftest import Ended
from tests.e2e.supabase_lite.server import SECRET, Lite
from tests.warm_commands import Command, run_command


@dataclass
class Machine(Home):
    """Its commands reach the store over HTTP; the test looks at it from behind."""

    database: str = ""

    def store(self) -> SupabaseStore:  # type: ignore[override]
        return SupabaseStore.over(PostgresRpc(self.database))

    def freeze(self, process: Command) -> None:
        """At any moment: its transactions are the server's."""
        process.send_signal(signal.SIGSTOP)

    def __call__(self, *arguments: str | Path, **settings: str) -> Ended:
        ended = run_command([*map(str, arguments)], cwd=self.path, env=self.environment | settings)
        return Ended(ended.returncode, ended.stdout, ended.stderr)


def machine(lite: Lite, path: Path, recipients: int = 0, **settings: str) -> Machine:
    """A new machine; `recipients`: so many people are in the store."""
    path.mkdir(parents=True)
    (path / "letter.md").write_text(LETTER, encoding="utf-8")
    made = Machine(
        path,
        [f"p{index:04}@example.org" for index in range(recipients)],
        {
            "MAILOUT_HOME": str(path),
            "SUPABASE_URL": lite.url,
            "SUPABASE_SERVICE_ROLE_KEY": SECRET,
            "FROM_EMAIL": "news@example.org",
            "ORG_NAME": "The Gardeners",
            "ORG_ADDRESS": "1 Garden Lane",
            "UNSUBSCRIBE_BASE_URL": "https://example.org/unsubscribe",
            "UNSUBSCRIBE_SECRET": "not a secret",
            "LOCK_SECONDS": "4",
            **settings,
        },
        lite.database,
    )
    store = made.store()
    store.import_subscribers([SubscriberRow(email, email) for email in made.people])
    store.close()
    return made


def accepted_by(machines: Sequence[Machine]) -> Counter[str]:
    """How often each address was accepted, on all machines together."""
    return sum((one.accepted() for one in machines), Counter())


def fullest_second(machines: Sequence[Machine]) -> int:
    moments = sorted(path.stat().st_mtime for one in machines for path in one.files())
    return max(bisect.bisect_left(moments, start + 1) - i for i, start in enumerate(moments))
