"""`POST /ses-events`: what is believed is kept before it is answered; everything else is one 403."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from httpx import Client

from mailout.adapters.sqlite import SqliteStore
from mailout.base import error_log
from mailout.base.errors import MailoutError, StoreUnavailable
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.feedback.ingest import ingest
from tests.gateway.conftest import OneCertificate, Open
from tests.ses_events import ses_event
from tests.sns_messages import CERTIFICATE_URL, TOPIC, Signer, Topic

PLAIN = {"content-type": "text/plain; charset=UTF-8"}  # what SNS says of its JSON


def post(gateway: Client, body: bytes) -> Any:
    return gateway.post("/ses-events", content=body, headers=PLAIN)


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_verified_message_is_in_the_inbox_when_it_is_answered(
    gateway: Client, store: SqliteStore, version: str
) -> None:
    message = ses_event("Bounce") + "\n"
    answer = post(gateway, Topic(version=version).notification(message, Subject=None))
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert [row.payload for row in feedback_rows.waiting_events(store, 10)] == [message]


def test_a_replayed_message_changes_nothing(gateway: Client, store: SqliteStore) -> None:
    body = Topic().notification(ses_event("Bounce"))
    assert [post(gateway, body).status_code for _ in range(2)] == [200, 200]
    ingest(store, "any")
    assert post(gateway, body).status_code == 200
    assert feedback_rows.inbox(store)["waiting"] == 0
    assert [row["event_type"] for row in store.select(feedback_rows.DELIVERY_EVENTS)] == ["bounce"]


def test_posts_at_the_same_time_are_all_kept(gateway: Client, store: SqliteStore) -> None:
    """They share commits; none may be answered and lost."""
    bodies = [Topic().notification(ses_event("Open", at=float(n))) for n in range(60)]
    with ThreadPoolExecutor(12) as pool:
        codes = set(pool.map(lambda body: post(gateway, body).status_code, bodies))
    assert codes == {200}
    assert feedback_rows.inbox(store)["waiting"] == 60


def forged(**changes: Any) -> bytes:
    return json.dumps(json.loads(Topic().notification("hello")) | changes).encode()


FILE = CERTIFICATE_URL.rpartition("/")[2]
REFUSED = {
    "another key": lambda: Topic(signer=Signer.make()).notification("hello"),
    "a changed message": lambda: forged(Message="other"),
    "a foreign topic": lambda: Topic(arn="arn:aws:sns:eu-west-1:999999999999:x").notification("hello"),
    "a look-alike host": lambda: forged(
        SigningCertURL=f"https://sns.eu-west-1.amazonaws.com.evil.example/{FILE}"
    ),
    "a bucket": lambda: forged(SigningCertURL=f"https://sns.s3.amazonaws.com/{FILE}"),
    "a port": lambda: forged(SigningCertURL=f"https://sns.eu-west-1.amazonaws.com:8443/{FILE}"),
    "user info": lambda: forged(SigningCertURL=f"https://x@sns.eu-west-1.amazonaws.com/{FILE}"),
    "a query": lambda: forged(SigningCertURL=f"{CERTIFICATE_URL}?x"),
    "deep JSON": lambda: b"[" * 500_000,
    "deep objects": lambda: b'{"a":' * 100_000,
    "no JSON": lambda: b"hello",
    "no text": lambda: b"\xff\x00\xfe",
    "nothing": lambda: b"",
}


@pytest.mark.parametrize("why", list(REFUSED))
def test_everything_else_is_refused_and_told_nothing(
    gateway: Client, store: SqliteStore, certificates: OneCertificate, why: str
) -> None:
    answer = post(gateway, REFUSED[why]())
    assert (answer.status_code, answer.json()) == (403, {"error": "forbidden"})
    assert feedback_rows.inbox(store)["waiting"] == 0
    assert set(certificates.asked) <= {CERTIFICATE_URL}


def test_a_certificate_that_cannot_be_had_makes_sns_try_again(
    gateway: Client, store: SqliteStore, certificates: OneCertificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a 403 SNS never comes again, and the event would be lost."""
    body = Topic().notification(ses_event("Bounce"))
    monkeypatch.setattr(certificates, "key", lambda url: None)
    answer = post(gateway, body)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
    monkeypatch.undo()
    assert post(gateway, body).status_code == 200
    assert feedback_rows.inbox(store)["waiting"] == 1


def test_many_who_wait_for_one_certificate_make_one_fetch(
    gateway: Client, store: SqliteStore, certificates: OneCertificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread each would leave none for the store: nobody could even unsubscribe meanwhile."""
    hold, find = threading.Event(), certificates.key

    def slow(url: str) -> Any:
        hold.wait(300)
        return find(url)

    monkeypatch.setattr(certificates, "key", slow)
    with ThreadPoolExecutor(60) as pool:
        bodies = [Topic().notification(ses_event("Bounce"), MessageId=str(uuid4())) for _ in range(60)]
        answers = [pool.submit(post, gateway, body) for body in bodies]
        try:
            assert gateway.get("/health").status_code == 200
        finally:
            hold.set()
        assert {answer.result().status_code for answer in answers} == {200}
    assert len(certificates.asked) < 5


def test_without_topics_nothing_is_believed(open_gateway: Open) -> None:
    assert post(open_gateway(sns_topic_arns=()), Topic().notification("hello")).status_code == 403


@pytest.mark.parametrize("declared", [True, False])
def test_ten_megabytes_are_not_read(gateway: Client, declared: bool) -> None:
    """With an honest length they are refused at once; without one, when the limit is passed."""
    taken = 0

    def endless() -> Any:
        nonlocal taken
        for _ in range(160):
            taken += 65_536
            yield b"x" * 65_536

    body: Any = b"x" * 10_485_760 if declared else endless()
    answer = gateway.post("/ses-events", content=body, headers=PLAIN)
    assert (answer.status_code, answer.json()) == (413, {"error": "too large"})


def test_a_subscription_is_confirmed_over_the_api(gateway: Client, confirmed: list[Any]) -> None:
    assert post(gateway, Topic().confirmation()).status_code == 200
    assert confirmed == [(TOPIC, "a-token")]


def test_a_foreign_subscription_is_not_confirmed(gateway: Client, confirmed: list[Any]) -> None:
    """Otherwise any stranger's topic could feed us events."""
    foreign = Topic(arn="arn:aws:sns:eu-west-1:999999999999:x")
    assert post(gateway, foreign.confirmation()).status_code == 403
    assert post(gateway, Topic(signer=Signer.make()).confirmation()).status_code == 403
    assert confirmed == []


def test_a_confirmation_that_fails_is_asked_for_again(open_gateway: Open) -> None:
    def fail(topic: str, token: str) -> None:
        raise MailoutError("no rights")

    assert post(open_gateway(confirm=fail), Topic().confirmation()).status_code == 503


def test_the_end_of_a_subscription_is_written_down(gateway: Client, store: SqliteStore) -> None:
    """Events that no longer come are missed by nobody, unless somebody says so."""
    assert post(gateway, Topic().confirmation("UnsubscribeConfirmation")).status_code == 200
    assert [error.code for error in error_log.errors(store)] == ["sns_subscription_ended"]


def test_a_store_that_does_not_answer_makes_sns_try_again(
    gateway: Client, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise StoreUnavailable("locked at /secret/place")

    # The router holds the method itself, so it is the connection that is taken away.
    monkeypatch.setattr(store.db, "write", fail)
    answer = post(gateway, Topic().notification(ses_event("Send")))
    assert (answer.status_code, answer.json()) == (503, {"error": "try again later"})


@pytest.mark.parametrize(("method", "path", "code"), [("GET", "/ses-events", 405), ("GET", "/nothing", 404)])
def test_every_refusal_is_short(gateway: Client, method: str, path: str, code: int) -> None:
    answer = gateway.request(method, path)
    assert answer.status_code == code
    assert set(answer.json()) == {"error"}


def test_health(gateway: Client, store: SqliteStore) -> None:
    assert (gateway.get("/health").status_code, gateway.get("/health").json()) == (200, {"ok": True})
    store.close()
    assert gateway.get("/health").status_code == 503


def test_the_description_is_complete(gateway: Client) -> None:
    """Who writes a client reads it, not our code."""
    described = gateway.get("/openapi.json").json()
    operations = {
        (method, path): operation
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    }
    assert set(operations) == {
        ("post", "/send-mailout"),
        ("post", "/ses-events"),
        ("post", "/webhooks/notion"),
        ("get", "/unsubscribe"),
        ("post", "/unsubscribe"),
        *((method, "/preferences") for method in ("get", "post")),
        *(("get", f"/archive{path}") for path in ("", "/feed.xml", "/sitemap.xml", "/{slug}")),
        ("get", "/view/{token}"),
        ("get", "/media/{name}"),
        ("get", "/health"),
        ("get", "/mail/progress/poll/"),
        ("get", "/mail/progress/stream"),
        ("get", "/metrics"),
        ("post", "/articles/send"),
        ("post", "/v1/email/send"),
        ("post", "/v1/email/send-batch"),
        ("get", "/v1/email/{outboxId}"),
        *((method, "/v1/recipients/{externalId}") for method in ("get", "put", "delete")),
        *(("post", f"/mailouts/{{id}}/{act}") for act in ("cancel", "pause", "resume", "retry", "settle")),
    }
    for operation in operations.values():
        assert operation["description"]
        assert {"200", "202", "204"} & set(operation["responses"])
    assert set(operations["post", "/ses-events"]["responses"]) == {"200", "403", "413", "503"}
    body = operations["post", "/ses-events"]["requestBody"]["content"]["text/plain"]["schema"]
    assert "SigningCertURL" in body["required"]
    assert {"400", "409"} <= set(operations["post", "/unsubscribe"]["responses"])
