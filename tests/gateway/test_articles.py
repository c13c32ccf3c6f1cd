"""`POST /articles/send`: who may ask, what is refused, and what is written down."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.articles import MOST_ERRORS
from gateway.wrong_passwords import MANY_OVER_ALL, MOST_FROM_ONE, WRONG_PASSWORD_SECONDS, WrongPasswords
from mailout.adapters.sqlite import SqliteStore
from mailout.base import ids
from mailout.kinds.articles.order import ArticleOrder
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.port import RequestKind
from tests.contract.articles import BATCH, settle_in
from tests.gateway.conftest import Open

PASSWORD = "a password for these tests"
WANTED: dict[str, Any] = {"campaign_tag": "spring", "article_key": "budget", "send_batch_id": BATCH}
BEARER = {"Authorization": f"Bearer {PASSWORD}"}


class Emitted:
    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def emit(self, event: str, payload: Any = None, *, after: float = 0.0) -> None:
        self.events.append((event, payload))

    async def close(self) -> None:
        return None


@pytest.fixture
def emitted() -> Emitted:
    return Emitted()


@pytest.fixture
def gateway(open_gateway: Open, store: SqliteStore, emitted: Emitted) -> Any:
    settle_in(store)
    return open_gateway(admin_password=PASSWORD, emitter=emitted, mailout_transport="ses")


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({}, {}),
        ({"Authorization": "Bearer wrong"}, {}),
        ({}, {"admin_password": "wrong"}),
        ({"Authorization": "Bearer wrong"}, {"admin_password": PASSWORD}),
        ({}, {"admin_password": 7}),
    ],
)
def test_a_wrong_admin_password_is_401_and_writes_nothing(
    gateway: Any, store: SqliteStore, headers: Any, field: Any
) -> None:
    answer = gateway.post("/articles/send", json=WANTED | field, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")
    assert queue_rows.asked(store, 0) == []


def test_after_too_many_wrong_passwords_the_right_one_is_not_told_from_a_guess(
    gateway: Any, store: SqliteStore
) -> None:
    """It is the dashboard's password too: whoever could go on guessing here would get in there."""
    for n in range(MOST_FROM_ONE):
        answer = gateway.post("/articles/send", json=WANTED | {"admin_password": f"guess {n}"})
        assert answer.status_code == 401
    guess = gateway.post("/articles/send", json=WANTED | {"admin_password": "another guess"})
    right = gateway.post("/articles/send", json=WANTED, headers=BEARER)
    assert (guess.status_code, right.status_code) == (429, 429)
    assert int(right.headers["Retry-After"]) > 0
    assert queue_rows.asked(store, 0) == []


def test_guesses_here_and_at_the_login_are_counted_together(gateway: Any) -> None:
    """It is one password: two counters would give twice the guesses."""
    for n in range(MOST_FROM_ONE):
        if n % 2:
            assert gateway.post("/login", data={"password": f"guess {n}"}).status_code == 401
        else:
            assert gateway.post("/articles/send", json={"admin_password": f"guess {n}"}).status_code == 401
    assert gateway.post("/login", data={"password": PASSWORD}).status_code == 429
    assert gateway.post("/articles/send", json=WANTED, headers=BEARER).status_code == 429


def test_many_guesses_from_everywhere_slow_this_down_as_the_login_is(
    open_gateway: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    wrong = WrongPasswords(sleep=sleep)
    monkeypatch.setattr("gateway.app.WrongPasswords", lambda: wrong)
    gateway = open_gateway(admin_password=PASSWORD)
    for n in range(MANY_OVER_ALL):
        wrong.one_more(f"192.0.2.{n}")
    gateway.post("/articles/send", json=WANTED, headers=BEARER)
    gateway.post("/login", data={"password": PASSWORD})
    assert slept == [WRONG_PASSWORD_SECONDS, WRONG_PASSWORD_SECONDS]


def test_who_is_shut_out_or_has_no_password_is_not_read(gateway: Any) -> None:
    """A body costs time to read: only after lock-out and password, and never a long one."""
    assert gateway.post("/articles/send", content=b"{" * 70_000).status_code == 413
    long, wrong = b"x" * 900_000, {"Authorization": "Bearer wrong"}
    assert gateway.post("/articles/send", content=long, headers=wrong).status_code == 401
    assert gateway.post("/articles/send", content=long, headers=BEARER).status_code == 413
    for _ in range(MOST_FROM_ONE):
        gateway.post("/articles/send", headers=wrong)
    assert gateway.post("/articles/send", content=long).status_code == 429


def test_of_many_wrong_fields_a_few_are_named(gateway: Any) -> None:
    many = WANTED | {f"field{n}": 1 for n in range(1_000)}
    assert len(gateway.post("/articles/send", json=many, headers=BEARER).json()["details"]) == MOST_ERRORS


def test_without_a_password_on_the_server_nobody_gets_in_and_it_says_why(open_gateway: Open) -> None:
    answer = open_gateway().post("/articles/send", json=WANTED, headers=BEARER)
    assert answer.status_code == 503
    assert "ADMIN_PASSWORD" in answer.json()["message"]


@pytest.mark.parametrize("headers", [BEARER, {}])
def test_it_is_written_down_and_prefect_is_told(
    gateway: Any, store: SqliteStore, emitted: Emitted, headers: Any
) -> None:
    body = WANTED | {"audience_filter": {"state": "OH"}, "actor": "ann"}
    if not headers:
        body["admin_password"] = PASSWORD
    answer = gateway.post("/articles/send", json=body, headers=headers)
    assert answer.status_code == 202
    id = ids.article_id("spring", BATCH)
    assert answer.json() == {"ok": True, "data": {"mailout_id": id, "new": True}}
    (asked,) = queue_rows.asked(store, 0)
    assert asked.how is RequestKind.ARTICLE
    (event,) = emitted.events
    assert event[0] == "mailout.article.requested"
    # The flow makes the same request of the event, to the letter: else it would find it answered.
    assert ArticleOrder.checked(**event[1]).to_ref() == asked.ref
    assert PASSWORD not in str(event) + asked.ref
    again = gateway.post("/articles/send", json=body, headers=headers).json()
    assert again["data"] == {"mailout_id": id, "new": False}
    assert len(emitted.events) == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"campaign_tag": "Spring"}, "campaign_tag"),
        ({"article_key": "no such"}, "article_key"),
        ({"send_batch_id": "7"}, "send_batch_id"),
        ({"audience_filter": {"state": 7}}, "audience_filter.state"),
        ({"audience_filter": {"colour": "red"}}, "audience_filter.colour"),
        ({"audience_filter": {"county": "Franklin"}}, "audience_filter.county"),
        ({"article_key": "not-there"}, "article_key"),
        ({"what": "is this"}, "what"),
    ],
)
def test_what_is_wrong_is_said_field_by_field(
    gateway: Any, store: SqliteStore, change: Any, field: str
) -> None:
    answer = gateway.post("/articles/send", json=WANTED | change, headers=BEARER)
    assert (answer.status_code, answer.json()["code"]) == (400, "VALIDATION_ERROR")
    assert field in answer.json()["details"]
    assert queue_rows.asked(store, 0) == []


def test_a_batch_id_that_is_asked_for_again_with_another_filter_is_refused_at_the_door(
    gateway: Any, store: SqliteStore
) -> None:
    """No flow has taken the first up yet: the second was answered 202, and dropped."""
    assert gateway.post("/articles/send", json=WANTED, headers=BEARER).status_code == 202
    other = WANTED | {"audience_filter": {"list": "general"}, "actor": "ben"}
    for _ in range(2):
        refused = gateway.post("/articles/send", json=other, headers=BEARER)
        assert (refused.status_code, refused.json()["code"]) == (409, "BATCH_USED")
    again = gateway.post("/articles/send", json=WANTED, headers=BEARER)
    assert (again.status_code, again.json()["data"]["new"]) == (202, False)
    assert len(queue_rows.asked(store, 0)) == 1


def test_a_batch_that_somebody_else_asks_for_again_is_the_same(
    gateway: Any, store: SqliteStore, emitted: Emitted
) -> None:
    for actor, new in (("ann", True), ("ben", False), ("ann", False)):
        answer = gateway.post("/articles/send", json=WANTED | {"actor": actor}, headers=BEARER)
        assert (answer.status_code, answer.json()["data"]["new"]) == (202, new)
    (asked,) = queue_rows.asked(store, 0)
    assert ArticleOrder.from_ref(asked.ref).actor == "ann"
    assert len(emitted.events) == 1


@pytest.mark.parametrize("body", ["", "[]", "{", "null"])
def test_what_is_no_object_is_refused(gateway: Any, body: str) -> None:
    assert gateway.post("/articles/send", content=body, headers=BEARER).json()["code"] == "VALIDATION_ERROR"


def test_a_batch_that_nobody_could_unsubscribe_from_is_not_taken(
    open_gateway: Open, store: SqliteStore
) -> None:
    settle_in(store)
    local = {"unsubscribe_base_url": "http://127.0.0.1:8025/unsubscribe"}
    gateway = open_gateway(admin_password=PASSWORD, mailout_transport="ses", **local)
    answer = gateway.post("/articles/send", json=WANTED, headers=BEARER)
    assert (answer.status_code, answer.json()["code"]) == (503, "FOOTER_ENV_MISSING")
    assert "UNSUBSCRIBE_BASE_URL" in answer.json()["message"]
    assert queue_rows.asked(store, 0) == []


def test_an_empty_audience_is_said_and_nothing_is_written(gateway: Any, store: SqliteStore) -> None:
    answer = gateway.post(
        "/articles/send", json=WANTED | {"audience_filter": {"state": "TX"}}, headers=BEARER
    )
    assert answer.status_code == 200
    assert answer.json() == {"ok": True, "data": {"sent": 0, "skipped": "NO_RECIPIENTS"}}
    assert queue_rows.asked(store, 0) == []
