"""Asking for a mailout: only who may, written down before the answer, and never a draft."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from gateway.access import same
from gateway.notion_handshakes import HANDSHAKE_FILE
from gateway.wrong_passwords import MOST_FROM_ONE
from mailout.adapters.sqlite import SqliteStore
from mailout.base import ids
from mailout.base.errors import SourceError, SourceNotFound, SourceRefused, SourceUnavailable
from mailout.letters.content.notion.page import NotionPage
from mailout.letters.content.port import Kind
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import NewMailout
from mailout.outbox.queue.port import Request, RequestKind
from tests.clocks import FakeClock
from tests.gateway.conftest import Open
from tests.gateway.test_prefect_events import Prefect

API_TOKEN, WEBHOOK_TOKEN, AUTOMATION = "the token of these tests", "secret_webhook", "the automation's secret"
PAGE = "0123456789abcdef0123456789abcdef"
DASHED = "01234567-89ab-cdef-0123-456789abcdef"
BEARER = {"Authorization": f"Bearer {API_TOKEN}"}
READY = Request(DASHED, RequestKind.IF_READY)


@pytest.fixture
def prefect() -> Prefect:
    return Prefect()


@pytest.fixture
def gateway(open_gateway: Open, prefect: Prefect) -> httpx.Client:
    return open_gateway(
        emitter=prefect.emitter(),
        api_token=API_TOKEN,
        notion_webhook_token=WEBHOOK_TOKEN,
        notion_automation_secret=AUTOMATION,
    )


def told(gateway: httpx.Client, prefect: Prefect) -> list[Any]:
    gateway.get("/health")  # the loop has had its turn
    assert all(event["event"] == "mailout.requested" for event in prefect.events)
    return [event["payload"] for event in prefect.events]


# ── POST /send-mailout ──


def test_what_is_asked_for_is_in_the_store_before_prefect_hears_of_it(
    gateway: httpx.Client, store: SqliteStore, prefect: Prefect
) -> None:
    answer = gateway.post("/send-mailout", json={"page_id": PAGE}, headers=BEARER)
    assert (answer.status_code, answer.json()) == (202, {"ok": True, "ref": DASHED, "new": True})
    assert queue_rows.asked(store, waiting=0) == [Request(DASHED)]
    assert told(gateway, prefect) == [{"ref": DASHED, "test": None, "if_ready": False}]


def test_ten_times_in_a_minute_is_once(
    gateway: httpx.Client, store: SqliteStore, prefect: Prefect, clock: FakeClock
) -> None:
    spellings = [PAGE, DASHED, f"https://www.notion.so/Letter-{PAGE}", PAGE.upper()]
    for n in range(10):
        body = {"page_id": spellings[n % 4]}
        assert gateway.post("/send-mailout", json=body, headers=BEARER).json()["new"] == (n == 0)
    assert len(told(gateway, prefect)) == 1
    clock.wall += 61
    assert gateway.post("/send-mailout", json={"ref": PAGE}, headers=BEARER).json()["new"]


def test_a_mailout_of_the_queue_is_named_by_its_id(gateway: httpx.Client, store: SqliteStore) -> None:
    id = ids.mailout_id("letters/may.md")
    store.enqueue(NewMailout(id=id, kind=Kind.MARKDOWN, ref="letters/may.md", subject="May"))
    answer = gateway.post("/send-mailout", json={"mailout_id": id, "test": True}, headers=BEARER)
    assert answer.json()["ref"] == "letters/may.md"
    assert queue_rows.asked(store, waiting=0) == [Request("letters/may.md", RequestKind.TEST)]
    assert gateway.post("/send-mailout", json={"mailout_id": "none"}, headers=BEARER).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"ref": ""}',
        b'{"ref": "/etc/passwd"}',
        b'{"page_id": "letter.md"}',
        b'{"ref": "a.md", "page_id": "b"}',
        b'{"ref": "a.md", "test": "perhaps"}',
        b'{"ref": "a\\u0000b.md"}',  # no file has such a name, and Postgres takes no such text
        b'{"ref": "a\\nb.md"}',
    ],
)
def test_what_nobody_can_send_is_refused_at_once(
    gateway: httpx.Client, store: SqliteStore, body: bytes
) -> None:
    refused = gateway.post("/send-mailout", content=body, headers=BEARER)
    assert refused.status_code == 400
    assert refused.json()["error"] not in ("", "bad request"), "whoever has the token may know why"
    assert queue_rows.asked(store, waiting=0) == []


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer wrong", f"Basic {API_TOKEN}", API_TOKEN])
def test_without_the_token_nobody_can_send(
    gateway: httpx.Client, store: SqliteStore, header: str | None
) -> None:
    headers = {} if header is None else {"Authorization": header}
    answer = gateway.post("/send-mailout", json={"page_id": PAGE}, headers=headers)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert queue_rows.asked(store, waiting=0) == []


def test_without_a_token_in_the_settings_nobody_has_it(open_gateway: Open) -> None:
    gateway = open_gateway()
    for header in ("Bearer None", "Bearer"):
        answer = gateway.post("/send-mailout", json={"page_id": PAGE}, headers={"Authorization": header})
        assert answer.status_code == 403


@given(st.text(), st.text())
def test_only_the_secret_is_the_secret(secret: str, given: str) -> None:
    assert same(SecretStr(secret), given) == (secret == given)
    assert not same(None, given)


def test_a_prefect_that_is_away_costs_nobody_a_request(open_gateway: Open, store: SqliteStore) -> None:
    gateway = open_gateway(emitter=Prefect(500).emitter(), api_token=API_TOKEN)
    assert gateway.post("/send-mailout", json={"page_id": PAGE}, headers=BEARER).status_code == 202
    assert queue_rows.asked(store, waiting=0) == [Request(DASHED)]


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (SourceNotFound("There is no such page."), 404),
        (SourceError("That is no page."), 422),
        (SourceUnavailable("Notion does not answer."), 202),
        (SourceRefused("Notion does not let us in."), 202),
        (None, 202),
    ],
)
def test_a_page_that_is_not_there_is_refused_if_the_gateway_can_know(
    open_gateway: Open, store: SqliteStore, trouble: Exception | None, code: int
) -> None:
    def lookup(page: str) -> NotionPage:
        assert page == DASHED
        if trouble is not None:
            raise trouble
        return NotionPage(id=DASHED, subject="Spring", status="Ready")

    gateway = open_gateway(api_token=API_TOKEN, page_lookup=lookup)
    answer = gateway.post("/send-mailout", json={"page_id": PAGE}, headers=BEARER)
    assert answer.status_code == code
    assert len(queue_rows.asked(store, waiting=0)) == (code == 202)


@pytest.mark.parametrize(
    ("asked", "page_is_test", "code"), [(None, False, 422), (None, True, 202), (True, False, 202)]
)
def test_what_was_sent_is_refused_at_once_but_never_a_test_of_it(
    open_gateway: Open, store: SqliteStore, asked: bool | None, page_is_test: bool, code: int
) -> None:
    """Whoever asks again would otherwise get a 202 and learn it, perhaps, from Prefect."""
    store.enqueue(NewMailout(id=ids.mailout_id(DASHED), kind=Kind.NOTION, ref=DASHED, subject="Spring"))
    store.begin_freezing(ids.mailout_id(DASHED))
    store.freeze_recipients(ids.mailout_id(DASHED), [], None)
    store.complete(ids.mailout_id(DASHED))
    page = NotionPage(id=DASHED, subject="Spring", status="Ready", is_test=page_is_test)
    gateway = open_gateway(api_token=API_TOKEN, page_lookup=lambda id: page, mailout_transport="ses")
    answer = gateway.post("/send-mailout", json={"page_id": PAGE, "test": asked}, headers=BEARER)
    assert answer.status_code == code
    assert answer.json().get("error", "mailout_already_sent").startswith("mailout_already_sent")


def test_the_poll_shows_what_was_asked_for_and_is_no_mailout_yet(gateway: httpx.Client) -> None:
    gateway.post("/send-mailout", json={"ref": "letters/gone.md", "test": True}, headers=BEARER)
    poll = gateway.get("/mail/progress/poll/", headers=BEARER).json()
    assert (poll["queued_count"], poll["requests"]) == (0, [{"ref": "letters/gone.md", "how": "test"}])


# ── POST /webhooks/notion ──


def signed(body: object, token: str = WEBHOOK_TOKEN) -> dict[str, Any]:
    raw = json.dumps(body).encode()
    signature = hmac.new(token.encode(), raw, hashlib.sha256).hexdigest()
    return {"content": raw, "headers": {"X-Notion-Signature": f"sha256={signature}"}}


def change(kind: str = "page.properties_updated", entity: str = "page") -> dict[str, Any]:
    return {"id": "e1", "type": kind, "entity": {"id": DASHED, "type": entity}, "data": {}}


def automation(**page: Any) -> dict[str, Any]:
    return {"source": {"type": "automation", "automation_id": "a"}, "data": {"object": "page", **page}}


def test_a_signed_change_asks_for_the_page_if_it_is_ready(
    gateway: httpx.Client, store: SqliteStore, prefect: Prefect
) -> None:
    """Webhooks tell of every change: without the condition, correcting a draft's title would send it."""
    assert gateway.post("/webhooks/notion", **signed(change())).status_code == 200
    assert queue_rows.asked(store, waiting=0) == [READY]
    assert told(gateway, prefect) == [{"ref": DASHED, "test": None, "if_ready": True}]


@pytest.mark.parametrize(
    "body", [change("page.content_updated"), change("page.deleted"), change(entity="database"), {"type": "x"}]
)
def test_other_changes_are_heard_and_start_nothing(
    gateway: httpx.Client, store: SqliteStore, body: dict[str, Any]
) -> None:
    assert gateway.post("/webhooks/notion", **signed(body)).status_code == 200
    assert queue_rows.asked(store, waiting=0) == []


def test_an_automation_with_the_secret_asks_for_its_page(gateway: httpx.Client, store: SqliteStore) -> None:
    answer = gateway.post(
        "/webhooks/notion", json=automation(id=DASHED), headers={"X-Mailout-Secret": AUTOMATION}
    )
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert queue_rows.asked(store, waiting=0) == [READY]


def test_hex_digits_may_be_written_either_way(gateway: httpx.Client, store: SqliteStore) -> None:
    asked = signed(change())
    asked["headers"] = {name: value.upper() for name, value in asked["headers"].items()}
    assert gateway.post("/webhooks/notion", **asked).status_code == 200
    assert queue_rows.asked(store, waiting=0) == [READY]


def test_wrong_secrets_are_limited_by_address(gateway: httpx.Client) -> None:
    headers = {"X-Mailout-Secret": "wrong"}
    codes = [gateway.post("/webhooks/notion", json={}, headers=headers).status_code for _ in range(12)]
    assert (codes[0], codes[-1]) == (403, 429)
    assert gateway.post("/webhooks/notion", **signed(change())).status_code == 200


FORGERIES: list[Callable[[], dict[str, Any]]] = [
    lambda: {"json": change()},
    lambda: signed(change(), token="another"),
    lambda: signed(change()) | {"content": json.dumps(change("page.created")).encode()},
    lambda: {"json": automation(id=DASHED), "headers": {"X-Mailout-Secret": "wrong"}},
    lambda: {"json": automation(id=DASHED)},
]


@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_is_not_from_notion_starts_nothing(
    gateway: httpx.Client, store: SqliteStore, forgery: Callable[[], dict[str, Any]]
) -> None:
    assert gateway.post("/webhooks/notion", **forgery()).status_code == 403
    assert queue_rows.asked(store, waiting=0) == []


def test_without_secrets_in_the_settings_every_webhook_is_refused(open_gateway: Open) -> None:
    gateway = open_gateway()
    assert gateway.post("/webhooks/notion", **signed(change(), token="")).status_code == 403
    for secret in ("", "None"):
        headers = {"X-Mailout-Secret": secret}
        answer = gateway.post("/webhooks/notion", json=automation(id=DASHED), headers=headers)
        assert answer.status_code == 403


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.WARNING, logger="mailout.gateway"):
        yield caplog


def test_the_handshakes_token_is_in_a_file_of_ours_and_nowhere_else(
    open_gateway: Open, store: SqliteStore, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    gateway = open_gateway()
    answer = gateway.post("/webhooks/notion", json={"verification_token": "secret_abcdefgh"})
    assert (answer.status_code, "secret_abcdefgh" in answer.text) == (200, False)
    kept = tmp_path / HANDSHAKE_FILE
    assert kept.read_text() == "secret_abcdefgh (from 127.0.0.1)\n"
    assert kept.stat().st_mode & 0o077 == 0
    assert str(kept) in said.text
    assert "secret_abcdefgh" not in said.text
    assert queue_rows.asked(store, waiting=0) == []


def test_a_flood_of_handshakes_is_one_line_and_hides_nobody_elses_token(
    open_gateway: Open, tmp_path: Path, said: pytest.LogCaptureFixture
) -> None:
    gateway = open_gateway(trusted_proxies="127.0.0.1")
    gateway.post(
        "/webhooks/notion",
        json={"verification_token": "secret_of_notion"},
        headers={"X-Forwarded-For": "192.0.2.1"},
    )
    codes = [
        gateway.post(
            "/webhooks/notion",
            json={"verification_token": f"adopt_me_{n}"},
            headers={"X-Forwarded-For": "198.51.100.1"},
        ).status_code
        for n in range(3 * MOST_FROM_ONE)
    ]
    assert codes == [200] * MOST_FROM_ONE + [429] * 2 * MOST_FROM_ONE
    assert sum("asks to verify" in line for line in said.messages) == 1
    assert "adopt_me" not in said.text
    assert len(said.messages) == 2, "and one for all that were too many"
    assert "secret_of_notion (from 192.0.2.1)" in (tmp_path / HANDSHAKE_FILE).read_text()


def test_a_strangers_handshake_cannot_put_his_words_into_the_log(
    gateway: httpx.Client, open_gateway: Open, said: pytest.LogCaptureFixture
) -> None:
    """Once a token is set, another one could only mislead."""
    gateway.post("/webhooks/notion", json={"verification_token": "secret_abcdefgh"})
    assert "secret_abcdefgh" not in said.text
    for token in ("a\nERROR: call this number", "x" * 1000, None, 7):
        answer = open_gateway().post("/webhooks/notion", json={"verification_token": token})
        assert answer.status_code == 400


@pytest.mark.parametrize("body", [b"", b"\xff", b"7", b"[]", b"[" * 100_000, b'{"a":' * 100_000, b"{"])
def test_no_body_is_an_error_of_ours(gateway: httpx.Client, body: bytes) -> None:
    """Notion pauses an automation whose endpoint fails; a stranger should not be able to fill our log."""
    signature = hmac.new(WEBHOOK_TOKEN.encode(), body, hashlib.sha256).hexdigest()
    headers = {"X-Notion-Signature": f"sha256={signature}"}
    assert gateway.post("/webhooks/notion", content=body, headers=headers).status_code == 400
    assert gateway.post("/webhooks/notion", content=body).status_code in (400, 403, 413)
