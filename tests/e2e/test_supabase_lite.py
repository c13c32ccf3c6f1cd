"""The Supabase store end to end: supabase-py, HTTP, keys, the production migrations, a real Postgres."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import psycopg
import pytest

from mailout.adapters.supabase import SupabaseStore
from mailout.base.errors import StoreMismatch
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows, segment_names
from tests.contract.postgres import empty
from tests.contract.scenes import Sender, assert_ledger, enqueue, freeze, mailout, result, states
from tests.e2e.supabase_lite.server import PUBLISHABLE, SECRET, Lite


@pytest.fixture
def store(lite: Lite) -> Iterator[SupabaseStore]:
    empty(lite.database)
    made = SupabaseStore.connect(lite.url, SECRET)
    yield made
    made.close()


def test_the_secret_key_opens_the_store(store: SupabaseStore) -> None:
    store.check()
    assert store.now() > 1_700_000_000


def test_a_list_of_thousands_goes_in_and_comes_out_whole(store: SupabaseStore) -> None:
    """The API caps an answer at 1,000 rows and does not say so."""
    emails = [f"p{number:05}@example.org" for number in range(2500)]
    counts = store.import_subscribers([SubscriberRow(email, email) for email in emails])
    assert counts.added == 2500
    assert [row["email_norm"] for row in subscriber_rows.subscribers(store, limit=10_000)] == emails
    id = enqueue(store)
    assert freeze(store, id) == 2500
    assert [row["email"] for row in outbox_rows.messages(store, id, limit=10_000)] == emails


def test_a_mailout_is_stepped_through_over_http(store: SupabaseStore) -> None:
    id = mailout(store, "ann@example.org", "bob@example.org", "cat@example.org")
    sender = Sender(store, id)
    ann, bob = sender.begin(2)
    reply = sender.step(
        results=[result(ann), result(bob, State.RETRY_SCHEDULED, retry_in=3600.0, message="later")], want=5
    )
    assert [row.email for row in reply.rows] == ["cat@example.org"]
    sender.step(withdraw=[row.attempt for row in reply.rows], close=True)
    assert states(store, id) == {
        "ann@example.org": State.SENT,
        "bob@example.org": State.RETRY_SCHEDULED,
        "cat@example.org": State.PENDING,
    }
    assert_ledger(store, id)
    assert [event["type"] for event in outbox_rows.message_events(store, ann.attempt.id)][-1] == "SENT"


def test_the_publishable_key_calls_nothing_and_reads_nothing(lite: Lite, store: SupabaseStore) -> None:
    """It stands in web pages: with it, nobody may see an address or send a mail."""
    mailout(store, "ann@example.org")
    outsider = SupabaseStore.connect(lite.url, PUBLISHABLE)
    for call in (
        outsider.now,
        outsider.check,
        lambda: subscriber_rows.subscribers(outsider),
        lambda: queue_rows.mailouts(outsider),
    ):
        with pytest.raises(StoreMismatch, match="SUPABASE_SERVICE_ROLE_KEY"):
            call()
    outsider.close()
    with psycopg.connect(lite.database) as connection:
        names = connection.execute(
            "select relname from pg_class"
            " where relnamespace = 'public'::regnamespace and relkind in ('r', 'v')"
        ).fetchall()
        functions = connection.execute(
            "select proname, proargnames[1:pronargs] from pg_proc"
            " where proname like 'mailout\\_%' and prorettype <> 'trigger'::regtype"
        ).fetchall()
    assert len(functions) > 50
    for name, arguments in functions:
        answer = _call(lite, name, dict.fromkeys(arguments or ()), PUBLISHABLE)
        assert answer.status_code in (401, 403), (name, answer.text)
    for (name,) in names:
        seen = _read(lite, name, PUBLISHABLE)
        assert seen.status_code in (401, 403) or seen.json() == [], name
    for name in ("subscribers", "email_outbox", "campaign_queue", "contents"):
        assert _read(lite, name, SECRET).json() != [], name


def _read(lite: Lite, name: str, key: str) -> httpx.Response:
    return httpx.get(f"{lite.url}/rest/v1/{name}?select=*", headers={"apikey": key}, timeout=300)


def _call(lite: Lite, name: str, arguments: dict[str, None], key: str) -> httpx.Response:
    return httpx.post(f"{lite.url}/rest/v1/rpc/{name}", json=arguments, headers={"apikey": key}, timeout=300)


def test_a_wrong_key_is_refused_in_one_line(lite: Lite) -> None:
    stranger = SupabaseStore.connect(lite.url, "sb_secret_of_another_project")
    with pytest.raises(StoreMismatch, match="SUPABASE_SERVICE_ROLE_KEY") as raised:
        stranger.check()
    assert "\n" not in str(raised.value)
    stranger.close()


def test_a_segment_goes_over_http_as_a_tree(store: SupabaseStore) -> None:
    rows = [("ann", "Porto", ("a",)), ("bob", "PORTO", ()), ("cat", 'o\'Slo \\ "x"', ("b",))]
    store.import_subscribers(
        [SubscriberRow(f"{n}@x.org", f"{n}@x.org", attributes={"city": c}, lists=on) for n, c, on in rows]
    )
    segment_names.save(store, "porto", 'city = "porto" or in list b')
    segment_names.save(store, "porto", 'city = "porto" and not in list a')
    assert store.audience_sample(None, segment_names.segment(store, "porto").tree, 5) == ["bob@x.org"]
    assert (store.audience_size(None), store.audience_size(None, snoozed=True)) == (3, 0)
    odd, _ = segment_names.save(store, "odd", r'''city = "O'SLO \\ \"X\""''')
    assert store.audience_sample(None, odd.tree, 5) == ["cat@x.org"]
    id = enqueue(store, segment="porto")
    assert freeze(store, id) == 1
    assert store.mailout(id).reach == "1 of 3"
