"""The migrations: on an empty project, twice, on one that has lived; and who may see what they made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from mailout.adapters.supabase import SupabaseStore
from mailout.adapters.supabase.rpc import FINGERPRINT, SCHEMA_VERSION
from mailout.base.errors import StoreError, StoreMismatch
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.queue import segment_names
from tests.contract.postgres import MIGRATIONS, PostgresRpc, database, empty, migrate, migrated
from tests.contract.scenes import enqueue, freeze, mailout, subscribe

OUTSIDERS = ("anon", "authenticated")


@pytest.fixture
def admin() -> Iterator[psycopg.Connection[Any]]:
    """The shared database, seen by its owner."""
    empty(migrated())
    with psycopg.connect(migrated(), autocommit=True) as connection:
        yield connection


@pytest.fixture
def store(admin: psycopg.Connection[Any]) -> Iterator[SupabaseStore]:
    made = SupabaseStore.over(PostgresRpc(migrated()))
    yield made
    made.close()


# ── applying them ──


def test_they_may_be_applied_twice_and_lose_nothing() -> None:
    """`supabase db push` after a restored migration table must not cost anybody a row."""
    address = database("twice")
    migrate(address)
    store = SupabaseStore.over(PostgresRpc(address))
    id = mailout(store, "ann@example.org", "bob@example.org", list_key="weekly")
    before = (store.mailout(id), outbox_rows.messages(store, id), subscriber_rows.subscribers(store))
    migrate(address)
    assert (store.mailout(id), outbox_rows.messages(store, id), subscriber_rows.subscribers(store)) == before
    store.check()
    store.close()


def test_the_program_knows_the_functions_that_they_make(store: SupabaseStore) -> None:
    """Else `doctor` warns everybody, and soon nobody reads it."""
    made = store.rpc("mailout_fingerprint", {})
    assert made == FINGERPRINT, f'Write in mailout/adapters/supabase/rpc.py: FINGERPRINT = "{made}"'


def test_a_project_without_them_is_told_which_command_to_run() -> None:
    store = SupabaseStore.over(PostgresRpc(database("bare")))
    with pytest.raises(StoreMismatch, match="supabase db push"):
        store.check()
    store.close()


@pytest.mark.parametrize(("version", "remedy"), [(0, "supabase db push"), (99, "newer mailout")])
def test_another_schema_is_refused_before_anything_is_sent(version: int, remedy: str) -> None:
    class Answers:
        def __call__(self, name: str, params: object) -> int:
            return version

        def close(self) -> None: ...

    with pytest.raises(StoreMismatch, match=remedy):
        SupabaseStore.over(Answers()).check()


def test_a_plain_postgres_without_supabases_roles_is_enough() -> None:
    """A Postgres without Supabase has none of these roles, and need not have them."""
    with psycopg.connect(database("plain")) as connection:
        for role in (*OUTSIDERS, "service_role"):
            connection.execute(
                sql.SQL("alter role {} rename to {}").format(
                    sql.Identifier(role), sql.Identifier(f"no {role}")
                )
            )
        for script in MIGRATIONS:
            connection.execute(script.read_text(encoding="utf-8"))
        version = connection.execute("select mailout_schema_version()").fetchone()
        connection.rollback()
    assert version == (SCHEMA_VERSION,)


# ── a project that has lived ──

OLD_TABLE = """
create table subscribers (
    id bigint generated always as identity primary key, email text, status text default 'active',
    bounce_type text, bounce_subtype text, status_updated_at timestamptz, from_name text,
    created_at timestamptz default now()
);
insert into subscribers (email, status, from_name, created_at) values
    ('Ann@Example.org', 'active', 'Older', '2024-01-01'),
    ('ann@example.org', 'active', 'Newer', '2025-01-01'),
    ('  bob@example.org ', 'active', null, '2024-01-01'),
    ('BOB@example.org', 'unsubscribed', null, '2025-01-01'),
    (E'\\tcat@example.org\\u00a0', 'active', null, null),
    ('not an address', 'active', null, '2024-01-01'),
    ('two@@example.org', 'active', null, '2024-01-01'),
    (null, 'active', null, '2024-01-01'),
    ('dora@пример.рф', 'active', null, '2024-01-01'),
    ('Dora@Пример.рф', 'bounced', null, '2025-01-01'),
    ('eva@bücher.example', 'active', null, '2024-01-01'),
    ('fay@example.org', 'paused by hand', null, '2024-01-01');
"""


@pytest.fixture
def lived() -> Iterator[psycopg.Connection[Any]]:
    address = database("lived")
    with psycopg.connect(address, autocommit=True, row_factory=dict_row) as connection:
        connection.execute(OLD_TABLE)
        migrate(address)
        yield connection


@pytest.fixture
def lived_store(lived: psycopg.Connection[Any]) -> Iterator[SupabaseStore]:
    made = SupabaseStore.over(PostgresRpc(str(lived.info.dsn)))
    yield made
    made.close()


def _column(connection: psycopg.Connection[Any], column: str) -> list[tuple[Any, Any]]:
    rows = connection.execute(f"select email, {column} as value from subscribers order by id").fetchall()
    return [(row["email"], row["value"]) for row in rows]


BAD_ROWS = """
create table subscribers (id uuid primary key default gen_random_uuid(), email text, status text,
    attributes jsonb, ocd_ids jsonb, hard_status text, hard_status_at timestamptz);
insert into subscribers (email, status, attributes, ocd_ids, hard_status) values
    ('a@example.org', 'active', '"scalar"', null, null),
    ('b@example.org', 'active', '[1]', '"ocd-division/country:us"', 'unsubscribed'),
    ('c@example.org', 'active', null, '["ocd-division/country:us", 7, ["x"], null]', 'nonsense'),
    ('d@example.org', 'bounced', '{"name": "Dan"}', '["ocd-division/country:us"]', 'active'),
    ('e@example.org', 'bounced', '{}', '[]', 'nonsense');
"""
NO_CHECKS = """
alter table subscribers drop constraint subscribers_attributes_object, alter column attributes drop not null,
    drop constraint subscribers_ocd_ids_strings, alter column ocd_ids drop not null;
update subscribers s set attributes = bad.attributes, ocd_ids = bad.ocd_ids
from (values ('a@example.org', '"scalar"'::jsonb, null::jsonb), ('b@example.org', '[1]', '7'),
             ('c@example.org', null, '["ocd-division/country:us", 7, ["x"], null]')
     ) bad (email, attributes, ocd_ids)
where s.email_norm = bad.email;
"""
"""As a project looks whose owner took the checks away."""


def test_rows_that_are_bad_already_are_repaired_by_the_migration() -> None:
    """They were written before there were checks: one of them stopped every letter."""
    address = database("bad_rows")
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute(BAD_ROWS)
        migrate(address)
        rows = admin.execute(
            "select attributes, ocd_ids, hard_status from subscribers order by email"
        ).fetchall()
        assert rows == [
            ({}, [], None),
            ({}, [], None),
            ({}, ["ocd-division/country:us"], None),
            ({"name": "Dan"}, ["ocd-division/country:us"], "active"),
            ({}, [], None),
        ]
        for column, value in (
            *(("attributes", one) for one in ('"scalar"', "[]", "null", None)),
            *(("ocd_ids", one) for one in ('"x"', "{}", "[7]", '[["x"]]', None)),
            *(("hard_status", one) for one in ("bounced", "nonsense")),
        ):
            with pytest.raises(psycopg.IntegrityError):
                admin.execute(f"update subscribers set {column} = %s", (value,))


def test_a_bad_row_stops_no_letter_no_page_and_no_census() -> None:
    """One row of a stranger's costs its own values, never everybody's mail."""
    address, us = database("unchecked"), "ocd-division/country:us"
    migrate(address)
    store = SupabaseStore.over(PostgresRpc(address))
    subscribe(store, *(f"{name}@example.org" for name in "abcd"), attributes={"name": "Nia"})
    with psycopg.connect(address) as owner:
        owner.execute(NO_CHECKS)
    people = subscriber_rows.subscribers(store, search="example")
    assert [one["attributes"] for one in people] == [{}, {}, {}, {"name": "Nia"}]
    assert [one["ocd_ids"] for one in people] == [[], [], [us], []]
    assert (
        subscriber_rows.subscriber(store, "a@example.org")["attributes"],
        store.lacking("name", None).people,
    ) == ({}, 3)
    everybody = store.members(limit=10, list_key="general")
    assert [list(one.ocd_ids) for one in everybody] == [[], [], [us], []]
    assert not segment_names.anybody_has(store, "scalar")
    assert freeze(store, enqueue(store), attributes=["name"]) == 4
    subscribe(store, *(f"{name}@example.org" for name in "abc"), attributes={"name": "Nia"})
    assert [one["attributes"] for one in subscriber_rows.subscribers(store)] == [{"name": "Nia"}] * 4
    store.close()


def test_rows_from_before_keep_one_for_each_address_and_say_why_the_others_wait(
    lived: psycopg.Connection[Any],
) -> None:
    """Who had left under one spelling gets no mail under another, and nobody's row is deleted."""
    norms = [norm for _, norm in _column(lived, "email_norm")]
    problems = [problem for _, problem in _column(lived, "email_problem")]
    assert norms == [
        *("ann@example.org", None, None, "bob@example.org", "cat@example.org"),
        *(None, None, None, None, None, None, "fay@example.org"),
    ]
    assert problems == [
        *(None, "duplicate", "duplicate", None, None),
        *("invalid", "invalid", "invalid", "not_ascii", "not_ascii", "not_ascii", None),
    ]
    migrate(str(lived.info.dsn))
    assert [norm for _, norm in _column(lived, "email_norm")] == norms


def test_a_status_that_was_an_enum_keeps_its_words() -> None:
    address = database("enum")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("create type standing as enum ('active', 'unsubscribed', 'bounced')")
        table, _, _ = OLD_TABLE.partition("insert")
        connection.execute(table.replace("status text default 'active'", "status standing"))
        connection.execute("insert into subscribers (email, status) values ('ann@example.org', 'bounced')")
        migrate(address)
        connection.execute("insert into subscribers (email) values ('bob@example.org')")
        rows = connection.execute("select email_norm, status from subscribers order by email").fetchall()
    assert rows == [("ann@example.org", "bounced"), ("bob@example.org", "active")]


def test_only_the_active_ones_with_an_address_are_written_to(lived_store: SupabaseStore) -> None:
    id = enqueue(lived_store)
    freeze(lived_store, id)
    rows = outbox_rows.messages(lived_store, id)
    assert [row["email"] for row in rows] == ["ann@example.org", "cat@example.org"]
    assert rows[0]["from_name"] == "Older"


def test_python_frees_the_rows_whose_domain_needs_punycode(
    lived: psycopg.Connection[Any], lived_store: SupabaseStore
) -> None:
    """A subscriber with an IDN domain would otherwise never get mail; a bounce under one spelling counts."""
    assert subscriber_rows.unreachable(lived_store)["not_ascii"] > 0
    assert lived_store.normalise_addresses() == 2
    assert subscriber_rows.subscriber(lived_store, "dora@xn--e1afmkfd.xn--p1ai")["status"] == "bounced"
    assert subscriber_rows.subscriber(lived_store, "eva@xn--bcher-kva.example")["status"] == "active"
    assert lived_store.normalise_addresses() == 0
    assert "not_ascii" not in subscriber_rows.unreachable(lived_store)
    assert [email for email, problem in _column(lived, "email_problem") if problem == "not_ascii"] == []


def test_an_import_meets_the_rows_that_were_there(
    lived: psycopg.Connection[Any], lived_store: SupabaseStore
) -> None:
    (before,) = lived.execute("select count(*) as n from subscribers").fetchall()
    counts = lived_store.import_subscribers(
        [
            SubscriberRow("ann@example.org", "ann@example.org", from_name="Imported"),
            SubscriberRow("eva@bücher.example", "eva@xn--bcher-kva.example", from_name="Eva"),
        ]
    )
    (after,) = lived.execute("select count(*) as n from subscribers").fetchall()
    assert (counts.added, counts.updated, after) == (0, 2, before)


def test_people_can_leave_whatever_the_ids_of_the_table_are(lived_store: SupabaseStore) -> None:
    lived_store.unsubscribe("ann@example.org", None)
    lived_store.unsubscribe("not-yet-there@example.org", None)
    assert subscriber_rows.subscriber(lived_store, "ann@example.org")["status"] == "unsubscribed"
    assert subscriber_rows.subscriber(lived_store, "not-yet-there@example.org")["status"] == "unsubscribed"


@pytest.mark.parametrize(
    ("own", "remedy"),
    [
        ("add own text not null default ''; alter table subscribers alter own drop default", "a default"),
        ("add constraint one_each unique (from_name)", "drop it"),
    ],
)
def test_a_rule_of_the_projects_own_that_is_in_the_way_is_told_what_to_do(
    lived: psycopg.Connection[Any],
    lived_store: SupabaseStore,
    monkeypatch: pytest.MonkeyPatch,
    own: str,
    remedy: str,
) -> None:
    """And whose row it was stays in the database."""
    monkeypatch.setattr("mailout.adapters.supabase.rpc._PAUSE_SECONDS", 0.0)
    lived.execute(f"alter table subscribers {own}")
    dan = SubscriberRow("dan@example.org", "dan@example.org", from_name="Older")
    with pytest.raises(StoreError, match="Supabase refused") as refused:
        lived_store.import_subscribers([dan])
    assert remedy in (refused.value.remedy or "")
    assert "dan@" not in str(refused.value)
    assert "Older" not in str(refused.value)


def test_whoever_writes_a_row_the_key_is_filled(admin: psycopg.Connection[Any], store: SupabaseStore) -> None:
    """People add and edit subscribers in Supabase's table editor; a second spelling is a second row."""
    admin.execute(
        "insert into subscribers (email) values (' Ann@Example.ORG '), ('nobody'), ('bob@example.org')"
    )
    admin.execute("insert into subscribers (email, status) values ('ANN@example.org', 'unsubscribed')")
    assert subscriber_rows.subscriber(store, "ann@example.org")["status"] == "unsubscribed"
    admin.execute("update subscribers set email = 'Bobby@example.org' where email = 'bob@example.org'")
    assert [row["email_norm"] for row in subscriber_rows.subscribers(store)] == [
        "ann@example.org",
        "bobby@example.org",
    ]
    admin.execute("update subscribers set email = 'nobody@example.org' where email = 'nobody'")
    assert subscriber_rows.subscriber_counts(store) == {"active": 2, "unsubscribed": 1, "bounced": 0}


# ── who may see it ──


def _ours(admin: psycopg.Connection[Any]) -> Sequence[str]:
    rows = admin.execute(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v')"
    )
    return [name for (name,) in rows]


@pytest.mark.parametrize("role", OUTSIDERS)
def test_a_publishable_key_can_read_nothing(admin: psycopg.Connection[Any], role: str) -> None:
    """It stands in every web page of the project: one readable table is every subscriber's address."""
    names = _ours(admin)
    assert {"subscribers", "email_outbox", "email_logs", "send_logs", "state_transitions"} <= set(names)
    admin.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
    for name in names:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            admin.execute(sql.SQL("select * from {}").format(sql.Identifier(name)))


@pytest.mark.parametrize("role", OUTSIDERS)
def test_a_publishable_key_can_call_nothing(admin: psycopg.Connection[Any], role: str) -> None:
    callable_ones = admin.execute(
        "select oid::regprocedure::text from pg_proc where pronamespace = 'public'::regnamespace"
        " and has_function_privilege(%s, oid, 'execute')",
        (role,),
    ).fetchall()
    (ours,) = admin.execute(
        "select count(*) from pg_proc where pronamespace = 'public'::regnamespace"
        " and has_function_privilege('service_role', oid, 'execute')"
    ).fetchone() or (0,)
    assert callable_ones == []
    assert ours > 50


def test_every_table_has_row_level_security_and_every_view_its_callers_rights(
    admin: psycopg.Connection[Any],
) -> None:
    """The second lock: a later `grant` to everybody still shows no row."""
    open_tables = admin.execute(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'"
        " and not relrowsecurity"
    ).fetchall()
    open_views = admin.execute(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'v'"
        " and not coalesce('security_invoker=true' = any(reloptions), false)"
    ).fetchall()
    assert (open_tables, open_views) == ([], [])


def test_everything_says_what_it_is_for(admin: psycopg.Connection[Any]) -> None:
    """In Supabase's editor the comment is all that a person sees of the intention."""
    silent = admin.execute(
        "select relname::text from pg_class where relnamespace = 'public'::regnamespace"
        " and relkind in ('r', 'v') and obj_description(oid, 'pg_class') is null"
        " union all select proname::text from pg_proc where pronamespace = 'public'::regnamespace"
        " and obj_description(oid, 'pg_proc') is null"
    ).fetchall()
    assert silent == []
