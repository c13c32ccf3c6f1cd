"""A policy lets web pages write into `subscribers`: what they may say, and what they learn by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from mailout.adapters.supabase import SupabaseStore
from mailout.letters.audience import subscriber_rows
from mailout.readers.port import Confirmed
from tests.contract.postgres import PostgresRpc, database, empty, migrate
from tests.contract.scenes import enqueue, freeze
from tests.contract.test_join import confirmation

OUTSIDERS = ("anon", "authenticated")
FORM = """
grant insert, update on subscribers to anon, authenticated;
create policy sign_up on subscribers for insert to anon, authenticated with check (true);
create policy profile on subscribers for update to anon, authenticated using (true) with check (true);
"""
"""As wide as a careless project might make them. An update that names its row would need `select`, too."""

KEPT = (
    "email_norm, status, status_updated_at, bounce_type, bounce_subtype, left_at, complained_at, from_name, "
    "email_problem, hard_status, hard_status_at, ocd_ids, attributes"
)


@pytest.fixture(scope="module")
def address() -> str:
    made = database("sign_up")
    migrate(made)
    with psycopg.connect(made) as admin:
        admin.execute(FORM)
    return made


@pytest.fixture
def admin(address: str) -> Iterator[psycopg.Connection[Any]]:
    empty(address)
    with psycopg.connect(address, autocommit=True, row_factory=dict_row) as connection:
        yield connection


@pytest.fixture(params=OUTSIDERS)
def form(
    request: pytest.FixtureRequest, admin: psycopg.Connection[Any], address: str
) -> Iterator[psycopg.Connection[Any]]:
    """What a web page has: a connection in a role of the publishable key."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"set role {request.param}")
        yield connection


@pytest.fixture
def store(address: str) -> Iterator[SupabaseStore]:
    made = SupabaseStore.over(PostgresRpc(address))
    yield made
    made.close()


def _rows(admin: psycopg.Connection[Any], email: str) -> list[dict[str, Any]]:
    query = f"select {KEPT} from subscribers where lower(email) = lower(%s) order by email_norm nulls last"
    return admin.execute(query, (email,)).fetchall()


@pytest.mark.parametrize("status", ["bounced", "unsubscribed"])
def test_nobody_can_be_taken_off_the_list_by_a_form(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any], status: str
) -> None:
    """The publishable key is in every page: with it one could end the mail of anybody."""
    admin.execute("insert into subscribers (email) values ('ann@example.org')")
    before = _rows(admin, "ann@example.org")
    form.execute("insert into subscribers (email, status) values ('Ann@Example.org', %s)", (status,))
    form.execute("insert into subscribers (email, status) values ('ann@BÜCHER.example', %s)", (status,))
    assert _rows(admin, "ann@example.org")[:1] == before
    assert {row["status"] for row in _rows(admin, "ann@BÜCHER.example")} == {"active"}


def test_what_decides_who_gets_mail_is_not_the_forms_to_say(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any]
) -> None:
    form.execute(
        "insert into subscribers (email, email_norm, email_problem, status, bounce_type, bounce_subtype,"
        " status_updated_at, left_at, complained_at, from_name, created_at)"
        " values ('new@example.org', 'other@example.org', 'duplicate', 'bounced', 'Permanent', 'General',"
        " '2020-01-01', '2020-01-01', '2020-01-01', 'Your bank', '2020-01-01')"
    )
    (row,) = _rows(admin, "new@example.org")
    assert row.pop("email_norm") == "new@example.org"
    assert row.pop("status") == "active"
    assert (row.pop("ocd_ids"), row.pop("attributes")) == ([], {})
    assert set(row.values()) == {None}
    (made,) = admin.execute("select created_at > '2026-01-01' as recent from subscribers").fetchall()
    assert made["recent"]


def test_who_is_forgotten_leaves_no_second_row_that_could_come_to_life(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any]
) -> None:
    admin.execute("insert into subscribers (email) values ('ann@example.org')")
    admin.execute("insert into subscribers (email) values (' Ann@Example.org')")
    admin.execute("insert into subscribers (email) values ('joann@example.org')")
    assert len(_rows(admin, "ann@example.org")) + len(_rows(admin, " Ann@Example.org")) == 2
    admin.execute("select mailout_forget('ann@example.org', 'forgotten:1')")
    left = admin.execute("select email from subscribers").fetchall()
    assert [row["email"] for row in left] == ["joann@example.org"]


WRITTEN: dict[str, Any] = {
    "uuid": "00000000-0000-4000-8000-000000000001",
    "text": "unsubscribed",
    "timestamp with time zone": "2020-01-01",
    "jsonb": Jsonb(["ocd-division/country:us"]),
}


def test_of_what_a_form_writes_the_address_and_the_attributes_stay_and_nothing_else(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any]
) -> None:
    """A column that somebody adds later, and forgets, would be the next way to end a person's mail."""
    columns = admin.execute(
        "select column_name as name, data_type as type from information_schema.columns"
        " where table_name = 'subscribers' and column_name not in ('email', 'attributes')"
    ).fetchall()
    names = [one["name"] for one in columns]
    assert {"id", "hard_status", "hard_status_at", "ocd_ids", "status"} <= set(names)
    admin.execute("insert into subscribers (email) values ('plain@example.org')")
    form.execute(
        f"insert into subscribers (email, attributes, {', '.join(names)})"
        f" values (%s, %s{', %s' * len(names)})",
        ["new@example.org", Jsonb({"name": "Nia"}), *(WRITTEN[one["type"]] for one in columns)],
    )
    plain, new = admin.execute("select * from subscribers order by email desc").fetchall()
    assert new.pop("attributes") == {"name": "Nia"}
    for row in (plain, new):
        assert row.pop("email_norm") == row.pop("email")
        assert str(row.pop("id")) != WRITTEN["uuid"]
        assert row.pop("created_at").year > 2020
    assert new == {name: plain[name] for name in new}


@pytest.mark.parametrize(
    "attributes",
    [
        "scalar",
        7,
        None,
        ["name"],
        {"age": 7},
        {"name": None},
        {"name": {"first": "Nia"}},
        {"name": "N" * 201},
        {"n" * 201: "Nia"},
        {f"name{n}": "Nia" for n in range(21)},
    ],
    ids=lambda given: str(given)[:20],
)
def test_attributes_that_no_form_should_write_are_dropped_and_everybody_gets_their_letter(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any], store: SupabaseStore, attributes: Any
) -> None:
    """One anonymous insert stopped all mail, and the page of people."""
    admin.execute(
        """insert into subscribers (email, attributes) values ('ann@example.org', '{"name": "Ann"}')"""
    )
    form.execute(
        "insert into subscribers (email, attributes) values ('eve@example.org', %s)", (Jsonb(attributes),)
    )
    assert [one["attributes"] for one in subscriber_rows.subscribers(store)] == [{"name": "Ann"}, {}]
    id = enqueue(store)
    assert freeze(store, id, attributes=["name"]) == 2


def test_twenty_strings_of_two_hundred_characters_are_kept(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    most = {f"name{n}": "ü" * 200 for n in range(20)}
    form.execute("insert into subscribers (email, attributes) values ('a@example.org', %s)", (Jsonb(most),))
    assert subscriber_rows.subscriber(store, "a@example.org")["attributes"] == most


def test_an_address_of_a_megabyte_is_not_kept(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any]
) -> None:
    form.execute("insert into subscribers (email) values (%s)", ("a" * 1_000_000 + "@example.org",))
    assert admin.execute("select length(email) as n, email_problem from subscribers").fetchall() == [
        {"n": 320, "email_problem": "invalid"}
    ]


def test_a_table_of_a_projects_own_shape_still_takes_sign_ups() -> None:
    """A key of another kind, a dropped column, one without a default: a form that fails loses readers."""
    address = database("own_shape")
    with psycopg.connect(address, autocommit=True, row_factory=dict_row) as admin:
        admin.execute(
            "create table subscribers (id bigint generated by default as identity primary key, gone text,"
            " email text, consent text not null, twice text generated always as (email || email) stored)"
        )
        admin.execute("alter table subscribers drop column gone")
        migrate(address)
        admin.execute(FORM)
        admin.execute("set role anon")
        for email in ("ann@example.org", "bob@example.org"):
            admin.execute("insert into subscribers (id, email, consent) values (1, %s, 'yes')", (email,))
        admin.execute("reset role")
        rows = admin.execute(
            "select id, email, consent, twice, status from subscribers order by id"
        ).fetchall()
    assert len({row.pop("id") for row in rows}) == 2
    assert rows == [
        {"email": email, "consent": "yes", "twice": email * 2, "status": "active"}
        for email in ("ann@example.org", "bob@example.org")
    ]


def test_a_project_that_begins_with_a_word_of_its_own_keeps_it(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any]
) -> None:
    """Who confirms addresses first must not find them active because the form said so."""
    admin.execute("alter table subscribers drop constraint subscribers_status_known")
    admin.execute("alter table subscribers alter column status set default 'unconfirmed'")
    try:
        form.execute("insert into subscribers (email, status) values ('new@example.org', 'active')")
        assert [row["status"] for row in _rows(admin, "new@example.org")] == ["unconfirmed"]
    finally:
        admin.execute("delete from subscribers")
        admin.execute("alter table subscribers alter column status set default 'active'")
        admin.execute(
            "alter table subscribers add constraint subscribers_status_known"
            " check (status in ('active', 'unsubscribed', 'bounced'))"
        )


def test_a_row_that_waits_is_not_made_active_by_a_second_sign_up(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any]
) -> None:
    admin.execute("insert into subscribers (email, status) values ('ann@example.org', 'unsubscribed')")
    form.execute("insert into subscribers (email, status) values ('ann@example.org', 'active')")
    assert [row["status"] for row in _rows(admin, "ann@example.org")] == ["unsubscribed", "active"]
    assert [row["email_norm"] for row in _rows(admin, "ann@example.org")] == ["ann@example.org", None]


@pytest.mark.parametrize("has_complained", [False, True])
def test_a_form_brings_nobody_back_who_was_forgotten_and_does_not_write_their_address_down(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any], store: SupabaseStore, has_complained: bool
) -> None:
    """Anybody can use the form, also to have letters sent to somebody who wanted to be erased."""
    admin.execute("insert into subscribers (email) values ('gone@example.org')")
    if has_complained:
        admin.execute("update subscribers set complained_at = now(), status = 'unsubscribed'")
    store.forget("gone@example.org", "forgotten:1")
    for written in ("gone@example.org", "Gone@example.org", "new@example.org"):
        added = form.execute(
            "insert into subscribers (email, attributes) values (%s, %s)", (written, Jsonb({"name": "Gus"}))
        )
        assert added.statusmessage == "INSERT 0 1"
    assert list(store.audience_sample(None, None, 9)) == ["new@example.org"]
    (row,) = admin.execute("select count(*) as n from subscribers s where s::text ~* 'gone@|gus'").fetchall()
    assert row["n"] == 1, "the new one's name"
    assert subscriber_rows.unreachable(store) == {}


@pytest.mark.parametrize(
    ("written", "norm"),
    [("Angry@example.org", "angry@example.org"), ("eva@bücher.example", "eva@xn--bcher-kva.example")],
)
def test_a_form_does_not_make_anybody_active_who_complained_about_a_single_mail(
    admin: psycopg.Connection[Any],
    form: psycopg.Connection[Any],
    store: SupabaseStore,
    written: str,
    norm: str,
) -> None:
    admin.execute(
        "insert into delivery_events (id, email, event_type, event_at) values ('1', %s, 'spamreport', now())",
        (norm,),
    )
    form.execute("insert into subscribers (email) values (%s)", (written,))
    store.normalise_addresses()
    (row,) = _rows(admin, written)
    assert (row["status"], row["complained_at"] is None) == ("unsubscribed", False)


@pytest.mark.parametrize(
    "columns",
    [
        {"email": "{}"},
        {"email": "{}", "email_norm": "{}"},
        {"email": "another@example.org", "email_norm": "{}"},
        {"email": "{}", "status": "bounced"},
    ],
)
def test_the_answer_does_not_tell_who_is_on_the_list(
    admin: psycopg.Connection[Any],
    form: psycopg.Connection[Any],
    store: SupabaseStore,
    columns: dict[str, str],
) -> None:
    admin.execute("insert into subscribers (email) values ('known@example.org')")
    store.unsubscribe("left@example.org", None)
    answers = set()
    for email in ("known@example.org", "left@example.org", "stranger@example.org"):
        values = [value.format(email) for value in columns.values()]
        query = f"insert into subscribers ({', '.join(columns)}) values ({', '.join(['%s'] * len(values))})"
        answers.add(form.execute(query, values).statusmessage)
    assert answers == {"INSERT 0 1"}


def test_the_row_of_somebody_who_left_has_no_id_that_can_be_calculated(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    """Who offers that id would learn from the conflict that the address is known."""
    store.unsubscribe("left@example.org", None)
    for parts in ("'subscriber', 'left@example.org'", "'left@example.org'"):
        (row,) = admin.execute(f"select mailout_uuid({parts})::text as id").fetchall()
        taken = form.execute(
            "insert into subscribers (id, email) values (%s, 'new@example.org')", (row["id"],)
        )
        assert taken.statusmessage == "INSERT 0 1"


@pytest.mark.parametrize(
    "change",
    [
        "status = 'bounced'",
        "email_norm = 'other@example.org'",
        "email_problem = 'invalid'",
        "bounce_type = 'Permanent', bounce_subtype = 'General'",
        "left_at = now(), complained_at = now(), status_updated_at = now()",
        "from_name = 'Your bank'",
        "hard_status = 'unsubscribed', hard_status_at = now()",
        """ocd_ids = '["ocd-division/country:us"]', created_at = '2020-01-01'""",
        "attributes = '7'",
    ],
)
def test_an_update_leaves_alone_what_is_not_the_forms_to_say(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any], change: str
) -> None:
    admin.execute("insert into subscribers (email) values ('ann@example.org')")
    before = _rows(admin, "ann@example.org")
    form.execute(f"update subscribers set {change}")
    assert _rows(admin, "ann@example.org") == before


@pytest.mark.parametrize("target", ["ann@example.org", "eva@bücher.example"])
def test_an_address_does_not_inherit_that_somebody_else_has_left(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any], store: SupabaseStore, target: str
) -> None:
    """A row that bounced, given another's address: the other one would get no mail any more."""
    admin.execute("insert into subscribers (email, status) values ('gone@example.org', 'bounced')")
    form.execute("update subscribers set email = %s", (target,))
    admin.execute("insert into subscribers (email) values (%s)", (target,))
    form.execute("update subscribers set email = %s", (target,))
    store.normalise_addresses()
    assert subscriber_rows.subscriber_counts(store) == {"active": 1, "unsubscribed": 0, "bounced": 1}
    assert subscriber_rows.subscriber(store, "gone@example.org")["status"] == "bounced"


def test_the_service_and_the_table_editor_may_say_everything(
    admin: psycopg.Connection[Any], address: str
) -> None:
    """The editor is a person of the project; and a function of the project's own acts as its owner."""
    admin.execute("insert into subscribers (email) values ('ann@example.org'), ('bob@example.org')")
    with psycopg.connect(address, autocommit=True) as service:
        service.execute("set role service_role")
        service.execute("update subscribers set status = 'bounced' where email_norm = 'ann@example.org'")
    admin.execute(
        "create or replace function leave(address text) returns void language sql security definer"
        " set search_path = public as"
        " $$ update subscribers set status = 'unsubscribed' where email_norm = $1 $$"
    )
    with psycopg.connect(address, autocommit=True) as form:
        form.execute("set role anon")
        form.execute("select leave('bob@example.org')")
    assert [row["status"] for row in _rows(admin, "ann@example.org")] == ["bounced"]
    assert [row["status"] for row in _rows(admin, "bob@example.org")] == ["unsubscribed"]


def test_who_signed_up_by_a_form_may_confirm_a_list_and_keeps_what_they_have(
    admin: psycopg.Connection[Any], form: psycopg.Connection[Any], store: SupabaseStore
) -> None:
    """Both ways in lead to one person; a form can say nothing of when somebody confirmed."""
    form.execute(
        "insert into subscribers (email, attributes, confirmed_at)"
        " values ('ann@BÜCHER.example', '{\"name\": \"Ann B\"}', '2030-01-01')"
    )
    norm = "ann@xn--bcher-kva.example"
    given = replace(confirmation(norm, "news", at=store.now() - 1), written="ann@BÜCHER.example")
    assert store.confirm_sign_up(given) is Confirmed.JOINED
    (row,) = admin.execute("select email_norm, status, attributes, confirmed_at from subscribers").fetchall()
    assert (row["email_norm"], row["status"], row["attributes"]) == (norm, "active", {"name": "Ann B"})
    assert row["confirmed_at"].year < 2030
    assert store.audience_size("news") == store.audience_size(None) == 1
