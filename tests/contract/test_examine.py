"""What a store can tell `doctor` of itself: that it is sound, and what in it is not."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest

from mailout.adapters.sqlite import SqliteStore
from mailout.adapters.supabase import SupabaseStore
from mailout.base.clock import SystemClock
from mailout.insight.doctor.checks import checked
from mailout.letters.audience import subscriber_rows
from mailout.store import Store
from tests.contract.postgres import MIGRATIONS, PostgresRpc, database, migrate, migrated
from tests.contract.scenes import Sender, mailout


def test_a_sound_store_has_nothing_to_complain_of(store: Store) -> None:
    assert {check.level for check in store.examine()} == {"ok"}


def test_a_database_that_cannot_be_written_to_has_failed() -> None:
    """Supabase makes it read-only when its disk is nearly full: everything can be read, and nothing sent."""
    store = SupabaseStore.over(PostgresRpc(f"{migrated()}&options=-cdefault_transaction_read_only%3Don"))
    (check,) = checked("store", store.examine)
    assert check.level == "fail"
    assert "free space or enlarge the disk" in check.remedy
    store.close()


@pytest.mark.parametrize("senders", [1, 2])
def test_a_sqlite_with_the_fault_is_named_once_several_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, senders: int
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 45, 1))
    store = SqliteStore(tmp_path / "mailout.db", SystemClock())
    id = mailout(store, "ann@example.org")
    for _ in range(senders):
        Sender(store, id)
    assert [check.level for check in store.examine()] == (["ok"] if senders == 1 else ["warn"])
    store.close()


@pytest.mark.parametrize(
    ("mistake", "door"),
    [
        ("grant select on subscribers to anon; create policy p on subscribers using (true)", "subscribers"),
        (
            "grant insert on subscriptions to anon;"
            " create policy p on subscriptions for insert with check (true)",
            "subscriptions (insert)",
        ),
        (
            "grant update (status) on subscribers to authenticated;"
            " create policy p on subscribers for update to authenticated using (true)",
            "subscribers (update)",
        ),
        (
            "grant delete on switches to anon; create policy p on switches for delete to public using (true)",
            "switches (delete)",
        ),
        (
            "grant insert on subscribers to anon; alter table subscribers disable row level security",
            "subscribers (insert)",
        ),
        ("grant select on contents to anon; alter table contents disable row level security", "contents"),
        ("grant select on email_logs to authenticated", "email_logs"),
        ("grant execute on function mailout_import_subscribers to public", "mailout_import_subscribers"),
    ],
)
def test_a_door_that_somebody_opened_is_named(mistake: str, door: str) -> None:
    """One careless grant, and the publishable key of a web page reads everybody's address."""
    address = database("doors")
    migrate(address)
    store = SupabaseStore.over(PostgresRpc(address))
    assert [check.level for check in store.examine()] == ["ok"]
    with psycopg.connect(address) as admin:
        for statement in mistake.split(";"):
            admin.execute(statement)
    (check,) = store.examine()
    assert check.level == "warn"
    assert check.message.endswith(f"opens: {door}")
    store.close()


def test_a_form_that_only_inserts_is_no_door_and_works() -> None:
    """Whoever signs up on a web page is written to; and warnings about nothing are soon read by nobody."""
    address = database("doors")
    migrate(address)
    with psycopg.connect(address) as admin:
        admin.execute("grant insert on subscribers to anon")
        admin.execute("create policy sign_up on subscribers for insert to anon with check (true)")
        admin.execute("set role anon")
        admin.execute("insert into subscribers (email) values (' New@Example.org')")
    store = SupabaseStore.over(PostgresRpc(address))
    assert [check.level for check in store.examine()] == ["ok"]
    assert subscriber_rows.subscriber(store, "new@example.org")["status"] == "active"
    store.close()


FEEDBACK, FORGETTING = (
    next(script for script in MIGRATIONS if script.name.endswith(f"_mailout_{name}.sql"))
    for name in ("feedback", "forgetting")
)


@pytest.mark.parametrize(
    "scripts",
    [
        [script for script in MIGRATIONS if script != FORGETTING],
        [*MIGRATIONS, FEEDBACK],
        [*MIGRATIONS, *MIGRATIONS[: MIGRATIONS.index(FORGETTING)]],
    ],
    ids=["one was skipped", "an old one came last", "not to the end"],
)
def test_functions_of_another_version_are_noticed(scripts: Sequence[Path]) -> None:
    """The version is right, and `forget` is the old one that leaves addresses behind."""
    address = database("mixed")
    migrate(address, scripts)
    store = SupabaseStore.over(PostgresRpc(address))
    found = {check.name: check for check in store.examine()}
    assert found["functions"].level == "warn"
    assert "from the first to the last" in found["functions"].remedy
    migrate(address)
    assert {check.level for check in store.examine()} == {"ok"}
    store.close()


def test_line_ends_of_windows_are_no_other_version() -> None:
    address = database("windows")
    with psycopg.connect(address) as owner:
        for script in MIGRATIONS:
            owner.execute(script.read_text(encoding="utf-8").replace("\n", "\r\n"))
    store = SupabaseStore.over(PostgresRpc(address))
    assert {check.level for check in store.examine()} == {"ok"}
    store.close()
