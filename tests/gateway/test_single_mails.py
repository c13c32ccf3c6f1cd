"""`/v1`: single mails are handed in once, refused with a code and a place, told only to their company."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from html import unescape
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import Request

from gateway.access import WrongTokens
from gateway.api.callers import Callers
from gateway.api.problems import ApiProblem
from gateway.edge import Answer, Edge
from gateway.looks import needs_a_sender
from gateway.wrong_passwords import MOST_FROM_ONE
from mailout.adapters.sqlite import SqliteStore
from mailout.base.ids import uuid_of
from mailout.base.time_format import iso
from mailout.insight.metrics import metric_rows
from mailout.insight.metrics.port import Counter
from mailout.kinds.single_mails import companies
from mailout.kinds.single_mails.companies import Scope, add_token, new_token, set_limits
from mailout.kinds.single_mails.single_mails import SingleMailIntake
from mailout.letters.content import content_rows
from mailout.letters.content.model import MARK_CLOSE, MARK_OPEN, mark
from mailout.letters.content.plaintext import plain_text
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.single_mails import SingleMailsHeld, SingleMailsWaiting
from mailout.outbox.delivery.states import State
from tests.clocks import NOON
from tests.contract.scenes import Sender, result
from tests.gateway.conftest import Open

MAIL = {"to": "ana@example.org", "subject": "Your receipt", "html": "<p>Thank you, {{ name }}</p>"}


class Api:
    """A company's program."""

    def __init__(self, client: httpx.Client, token: str) -> None:
        self.client = client
        self._token = token

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self._token}", **more.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **more)

    def send(
        self, key: str | None = None, http: dict[str, Any] | None = None, **changes: Any
    ) -> httpx.Response:
        body = {name: value for name, value in (MAIL | changes).items() if value is not ...}
        given = (http or {}) | ({"Idempotency-Key": key} if key else {})
        return self.call("POST", "/v1/email/send", json=body, headers=given)


Company = Callable[..., Api]


@pytest.fixture
def company(open_gateway: Open, store: SqliteStore) -> Company:
    client: list[httpx.Client] = []

    def make(
        name: str = "acme", *, scopes: tuple[Scope, ...] = tuple(Scope), limit: int | None = None
    ) -> Api:
        text, token = new_token(name, scopes, limit)
        add_token(store, token)
        if not client:
            client.append(open_gateway(unsubscribe_base_url="https://x.y/unsubscribe"))
        return Api(client[0], text)

    return make


@pytest.fixture
def api(company: Company) -> Api:
    return company()


def test_a_mail_is_in_the_outbox_when_it_is_answered(api: Api, store: SqliteStore) -> None:
    answer = api.send(http={"X-Request-Id": "order-7"})
    assert answer.status_code == 202
    told = answer.json()
    assert (told["requestId"], told["status"], answer.headers["x-request-id"]) == (
        "order-7",
        "PENDING",
        "order-7",
    )
    (row,) = Sender(store, None).begin(5)
    assert row.attempt.id == told["outboxId"]
    content = content_rows.content(store, row.content_hash)
    assert MAIL["html"].removeprefix("<p>") in content.html
    assert content.text == "Thank you, {{ name }}"


def test_while_single_mails_are_held_health_and_each_waiting_mail_say_why(
    api: Api, store: SqliteStore
) -> None:
    """A company that asks about its receipt, and whoever watches the service, would see nothing wrong."""
    assert api.client.get("/health").json() == {"ok": True}
    id = api.send().json()["outboxId"]
    assert api.call("GET", f"/v1/email/{id}").json()["errorCode"] is None
    held = SingleMailsHeld(NOON, "SES_ACCESS_DENIED", "Allow it to these@example.org.", needs_person=True)
    store.hold_single_mails(held, rehearsal=True)
    health = api.client.get("/health")
    assert (health.status_code, health.json()["single_mails"]) == (
        200,
        {"waiting": 1, "since": iso(NOON), "code": "SES_ACCESS_DENIED"},
    )
    story = api.call("GET", f"/v1/email/{id}").json()
    assert (story["status"], story["errorCode"], story["errorReason"]) == ("PENDING", held.code, held.why)


def test_a_waiting_mail_tells_of_a_pause_and_of_its_companys_own_limit(api: Api, store: SqliteStore) -> None:
    def told(id: str) -> str | None:
        return api.call("GET", f"/v1/email/{id}").json()["errorCode"]

    now, later = api.send().json()["outboxId"], api.send(sendAt=iso(NOON + 60)).json()["outboxId"]
    assert (told(now), told(later)) == (None, None)
    set_limits(store, "acme", 0, None)
    assert (told(now), told(later)) == ("hour", None)
    store.pause_all(True)
    assert (told(now), told(later)) == ("all_paused", None)


def test_what_is_refused_at_the_door_is_counted_by_the_check_that_it_failed(
    api: Api, store: SqliteStore
) -> None:
    """A program that hands in nothing but nonsense is seen by nobody else."""
    assert api.send(to="nobody").status_code == 400
    assert api.send(subject=...).status_code == 400
    bad = {"messages": [{"to": "ana@example.org", "idempotencyKey": "a"}]}
    assert api.call("POST", "/v1/email/send-batch", json=bad).status_code == 202
    counted = metric_rows.counts(store)
    failed = {type: n for (name, type), n in counted.items() if name == Counter.VALIDATION_FAILURES}
    assert failed == {"RECIPIENT": 1, "INTEGRITY": 2}


def test_a_fragment_gets_the_layout_unless_it_is_to_stay_bare(api: Api, store: SqliteStore) -> None:
    """Bare, it arrives in Times, without a margin, and white in the dark."""
    whole = "<html><body><p>News</p></body></html>"
    for html, layout, framed in (
        ("<p>News</p>", True, True),
        ("<p>News</p>", False, False),
        (whole, True, False),
    ):
        assert api.send(html=html, layout=layout).status_code == 202
        shown = content_rows.content(store, Sender(store, None).begin_one().content_hash).html
        assert ("prefers-color-scheme: dark" in shown, "Unsubscribe" in shown) == (framed, False)
        assert framed or shown == html


@pytest.mark.parametrize("end", ["<!-- </body> -->", "<!--", "<style>", "<textarea>", "</table></td>"])
def test_whatever_a_fragment_leaves_open_the_link_to_leave_by_is_shown(
    api: Api, store: SqliteStore, end: str
) -> None:
    assert api.send(category="marketing", html=f"<p>News</p>{end}").status_code == 202
    content = content_rows.content(store, Sender(store, None).begin_one().content_hash)
    assert "Unsubscribe (" in plain_text(content.html)
    assert content.html_segments.names == ("unsubscribe_url",)


def test_without_a_key_every_request_is_a_mail_of_its_own(api: Api, store: SqliteStore) -> None:
    ids = {api.send().json()["outboxId"] for _ in range(3)}
    assert len(ids) == len(Sender(store, None).begin(9)) == 3


def test_a_key_is_one_mail(api: Api, company: Company, store: SqliteStore) -> None:
    first, again = api.send("k"), api.send("k")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["outboxId"] == again.json()["outboxId"]
    assert again.headers["idempotency-replayed"] == "true"
    assert api.send("k", subject="Another").status_code == 409
    assert company("zoo").send("k", subject="Another").status_code == 202
    assert len(Sender(store, None).begin(9)) == 2


def problem(answer: httpx.Response) -> tuple[int, str, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == answer.status_code
    assert told["requestId"] == answer.headers["x-request-id"]
    return answer.status_code, told["code"], told["errors"][0]["field"] if told["errors"] else ""


def test_an_unknown_category_is_answered_with_those_there_are(api: Api) -> None:
    refused = api.send(category="spam")
    assert problem(refused) == (400, "INVALID_PAYLOAD", "category")
    assert refused.json()["detail"] == "category: input should be 'transactional' or 'marketing'."


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/v1/nothing", (404, "NOT_FOUND")),
        ("POST", "/v1/email/send/", (404, "NOT_FOUND")),
        ("PATCH", "/v1/email/send", (405, "METHOD_NOT_ALLOWED")),
    ],
)
def test_a_wrong_address_or_method_is_a_problem_document_too(
    api: Api, method: str, path: str, code: tuple[int, str]
) -> None:
    """A program that reads every refusal in one way would fail at these."""
    answer = api.call(method, path, headers={"X-Request-Id": "order-7"})
    assert problem(answer)[:2] == code
    assert answer.headers["x-request-id"] == "order-7"
    assert ("allow" in answer.headers) is (code[0] == 405)
    unnamed = problem(api.call(method, path, headers={"X-Request-Id": "with blank"}))
    assert unnamed[:2] == code


INTEGRITY = [
    ({"to": ...}, "to"),
    ({"subject": ...}, "subject"),
    ({"html": ...}, "html"),
    ({"to": 7}, "to"),
    ({"subject": None}, "subject"),
    ({"html": ["x"]}, "html"),
    ({"subject": " "}, "subject"),
    ({"subject": "two\nlines"}, "subject"),
    ({"to": "a" * 310 + "@example.org"}, "to"),
    ({"text": "x" * (512 * 1024 + 1)}, "text"),
    ({"headers": {f"X-{n}": "1" for n in range(21)}}, "headers"),
    ({"headers": {"Bcc": "eve@example.org"}}, "headers.Bcc"),
    ({"headers": {"X-A": "one\r\nBcc: eve@example.org"}}, "headers.X-A"),
    ({"headers": {"X-Mailout-Epoch": "9"}}, "headers.X-Mailout-Epoch"),
    ({"headers": {"X-A": 1}}, "headers.X-A"),
    ({"headers": {"X-A": "é" * 330}}, "headers.X-A"),  # 660 bytes, but SES gets it encoded
    ({"headers": {"X-\u212aey": "a"}}, "headers.X-\u212aey"),
    ({"headers": {"Reference\u017f": "a"}}, "headers.Reference\u017f"),
    ({"category": "spam"}, "category"),
    ({"sendAt": "tomorrow"}, "sendAt"),
    ({"sendAt": "2026-11-15T10:00:00"}, "sendAt"),
    ({"sendAt": "9999-12-31T23:59:59-12:00"}, "sendAt"),
    ({"sendAt": "0001-01-01T00:00:00+14:00"}, "sendAt"),
    ({"unknown": 1}, "unknown"),
    ({"recipient": {}}, "recipient"),
    ({"recipient": {"name": "Ana"}}, "recipient"),
    ({"recipient": {"recipientId": "not-a-uuid"}}, "recipient.recipientId"),
    ({"recipient": {"externalId": "u", "email": "bo@example.org"}}, "recipient.email"),
    ({"recipient": {"externalId": "a/b"}}, "recipient.externalId"),
    ({"recipient": {"externalId": ".."}}, "recipient.externalId"),
    ({"recipient": {"externalId": "\ufffd"}}, "recipient.externalId"),
    ({"recipient": {"externalId": "a\nb"}}, "recipient.externalId"),
    ({"html": "<p>a\u0000b</p>"}, "html"),
]


@pytest.mark.parametrize(("changes", "field"), INTEGRITY)
def test_integrity(api: Api, store: SqliteStore, changes: dict[str, Any], field: str) -> None:
    """Presence, types, UUIDs, sizes, who the recipient is: refused at the door, and nothing is stored."""
    assert problem(api.send("k", **changes)) == (400, "INVALID_PAYLOAD", field)
    assert not Sender(store, None).begin(9)


TEMPLATE = [
    ({"html": ""}, "html"),
    ({"html": "<p> </p>"}, "html"),
    ({"html": "x" * (512 * 1024 + 1)}, "html"),
    ({"subject": "x" * 151}, "subject"),
    ({"html": "<p>x</p><script>alert(1)</script>"}, "html"),
    ({"html": "<a href='javascript:x'>x</a>"}, "html"),
    ({"html": "<p onclick='x'>x</p>"}, "html"),
    ({"html": "<p>x</p><iframe src='https://x.y'></iframe>"}, "html"),
    ({"html": "<p>x</p><!--[if mso]><![><![endif]-->"}, "html"),
    ({"html": "<p>x</p><template>" + "<div>" * 15_000 + "x" + "</div>" * 15_000 + "</template>"}, "html"),
    ({"html": "".join(f"<x{n}>" for n in range(15_000))}, "html"),
]


@pytest.mark.parametrize(("changes", "field"), TEMPLATE)
def test_template(api: Api, store: SqliteStore, changes: dict[str, Any], field: str) -> None:
    assert problem(api.send(**changes)) == (400, "INVALID_TEMPLATE", field)
    assert not Sender(store, None).begin(9)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"to": "nobody"}, "to"),
        ({"to": "Ana <ana@example.org>"}, "to"),
        ({"replyTo": "nobody"}, "replyTo"),
        ({"reply_to": "nobody"}, "replyTo"),
        ({"recipient": {"externalId": "u", "email": "nobody"}}, "recipient.email"),
    ],
)
def test_an_address_has_to_be_one(api: Api, changes: dict[str, Any], field: str) -> None:
    assert problem(api.send(**changes)) == (400, "INVALID_EMAIL", field)


def test_a_recipient_has_to_be_there(api: Api, company: Company, store: SqliteStore) -> None:
    made = api.call("PUT", "/v1/recipients/u-1", json={"email": "Ana@Example.org", "name": "Ana"})
    assert made.status_code == 201
    id = made.json()["recipientId"]
    assert api.send(recipient={"recipientId": id}).status_code == 202
    assert api.send(recipient={"externalId": "u-1", "email": "ANA@example.org"}).status_code == 202
    nobody = {"recipientId": uuid_of("nobody")}
    assert problem(api.send(recipient=nobody)) == (400, "RECIPIENT_NOT_FOUND", "recipient")
    other: dict[str, Any] = {"to": "bo@example.org", "recipient": {"recipientId": id}}
    assert problem(api.send(**other)) == (400, "RECIPIENT_NOT_FOUND", "recipient")
    assert problem(company("zoo").send(recipient={"recipientId": id}))[1] == "RECIPIENT_NOT_FOUND"
    assert api.call("DELETE", "/v1/recipients/u-1").status_code == 204
    assert problem(api.send(recipient={"recipientId": id}))[1] == "RECIPIENT_NOT_FOUND"
    sender = Sender(store, None)
    assert sender.step(want=9).refused == 2  # what was handed in before goes nowhere either


def test_recipients(api: Api, company: Company) -> None:
    path = "/v1/recipients/user 7"
    assert problem(api.call("GET", path))[:2] == (404, "RECIPIENT_NOT_FOUND")
    assert api.call("PUT", path, json={"email": "a@example.org"}).status_code == 201
    assert api.call("PUT", path, json={"email": "b@example.org", "name": "Bo"}).status_code == 200
    told = api.call("GET", path).json()
    assert (told["externalId"], told["email"], told["name"]) == ("user 7", "b@example.org", "Bo")
    assert company("zoo").call("GET", path).status_code == 404
    assert problem(api.call("PUT", path, json={"email": "nobody"})) == (400, "INVALID_EMAIL", "email")
    assert problem(api.call("PUT", path, json={}))[1] == "INVALID_PAYLOAD"
    assert api.call("DELETE", path).status_code == 204
    assert problem(api.call("DELETE", path))[:2] == (404, "RECIPIENT_NOT_FOUND")


@pytest.mark.parametrize("name", ["x" * 201, "%FF", "%EF%BF%BD", "a%0Ab"])
def test_a_recipients_name_that_is_none_is_refused_as_everything_else(api: Api, name: str) -> None:
    for method, body in (("PUT", {"email": "a@example.org"}), ("GET", None), ("DELETE", None)):
        answer = api.call(method, f"/v1/recipients/{name}", json=body)
        assert problem(answer) == (400, "INVALID_PAYLOAD", "externalId")


def test_the_whole_story_and_only_to_its_company(api: Api, company: Company, store: SqliteStore) -> None:
    id = api.send("k", http={"X-Request-Id": "order-7"}).json()["outboxId"]
    sender = Sender(store, None)
    sender.step(results=[result(sender.begin_one(), provider_message_id="ses-1")])
    told = api.call("GET", f"/v1/email/{id}").json()
    assert (told["status"], told["attempts"], told["sesMessageId"], told["requestId"]) == (
        "SENT",
        1,
        "ses-1",
        "order-7",
    )
    assert [one["type"] for one in told["history"]] == ["RECEIVED", "VALIDATED", "SENT_ATTEMPT", "SENT"]
    assert told["history"][3]["metadata"]["sesMessageId"] == "ses-1"
    assert told["events"] == []
    assert problem(company("zoo").call("GET", f"/v1/email/{id}"))[:2] == (404, "OUTBOX_NOT_FOUND")
    for nothing in (uuid_of("nothing"), "no-uuid"):
        assert problem(api.call("GET", f"/v1/email/{nothing}"))[:2] == (404, "OUTBOX_NOT_FOUND")


def test_a_throttled_mail_tells_the_code_and_when_it_goes_on(api: Api, store: SqliteStore) -> None:
    """A program that asks why its mail is late gets an answer instead of silence."""
    id = api.send("k").json()["outboxId"]
    sender = Sender(store, None)
    begun = sender.begin_one()
    throttled = result(begun, State.PENDING, code="SES_THROTTLING", retry_in=60.0, give_back=True)
    sender.step(results=[throttled])
    told = api.call("GET", f"/v1/email/{id}").json()
    assert (told["status"], told["attempts"], told["errorCode"]) == ("PENDING", 0, "SES_THROTTLING")
    assert told["nextAttemptAt"] == iso(outbox_rows.message(store, id)["next_attempt_at"])
    last = told["history"][-1]
    assert (last["type"], last["metadata"]["errorCode"]) == ("PENDING", "SES_THROTTLING")
    assert (last["metadata"]["backoffDelay"], last["metadata"]["count"]) == (60_000, 1)


def test_a_company_does_not_learn_that_somebody_unsubscribed_from_anothers_mail(
    api: Api, store: SqliteStore
) -> None:
    """That is the person's own business, and the other company's."""
    id = api.send("k", category="marketing").json()["outboxId"]
    store.unsubscribe(MAIL["to"], None)
    assert Sender(store, None).begin(9) == []
    told = api.call("GET", f"/v1/email/{id}").json()
    assert (told["status"], told["errorCode"], told["errorReason"]) == ("SUPPRESSED", None, None)
    assert "in the meantime" not in str(told)


def test_what_nobody_knows_is_told_and_so_is_what_a_person_says_of_it(api: Api, store: SqliteStore) -> None:
    id = api.send("k").json()["outboxId"]
    sender = Sender(store, None)
    sender.step(results=[result(sender.begin_one(), State.UNKNOWN, message="no answer came")])
    told = api.call("GET", f"/v1/email/{id}").json()
    assert (told["status"], told["errorReason"]) == ("UNKNOWN", "no answer came")
    store.settle(None, State.SENT, wait=900, ids=[id])
    told = api.call("GET", f"/v1/email/{id}").json()
    assert told["status"] == "SENT"
    assert [one["type"] for one in told["history"]][-2:] == ["UNKNOWN", "SENT"]


def test_marketing_gets_a_link_to_leave_by(api: Api, store: SqliteStore) -> None:
    html = "<html><body><p>News</p></body></html>"
    assert api.send(category="marketing", html=html, text="News").status_code == 202
    content = content_rows.content(store, Sender(store, None).begin_one().content_hash)
    assert content.html.index("Unsubscribe") < content.html.index("</body>")
    assert "Unsubscribe: " in content.text
    assert content.html_segments.names == ("unsubscribe_url",)


def test_the_link_to_leave_by_stands_at_the_end_of_turkish_too(api: Api, store: SqliteStore) -> None:
    """İ has two letters in lower case: places in the one text are not places in the other."""
    html = "<html><body><p>İstanbul, İzmir</p></BODY></html>"
    assert api.send(category="marketing", html=html).status_code == 202
    content = content_rows.content(store, Sender(store, None).begin_one().content_hash)
    assert content.html.startswith("<html><body><p>İstanbul, İzmir</p><hr>")
    assert content.html.endswith("</p></BODY></html>")


@pytest.mark.parametrize(
    "end", ["<!-- </body> -->", "<!--", '<div title="', "<style>", "<textarea>", "<title>"]
)
def test_marketing_that_would_hide_the_link_to_leave_by_is_refused(
    api: Api, store: SqliteStore, end: str
) -> None:
    answer = api.send(category="marketing", html=f"<p>News</p>{end}", layout=False)
    assert problem(answer) == (400, "INVALID_TEMPLATE", "html")
    assert not Sender(store, None).begin(9)


REFERENCES = [
    "&#xE000;",
    "&#xe001",
    "&#57344;",
    "&#x0E000;unsubscribe_url&#57345;",
    "&#&#xE000;xE000;x&#x&#xE001;E001;",
    "&#x\ue000E000;x&#xE001;",
]


@pytest.mark.parametrize("written", REFERENCES)
@pytest.mark.parametrize("changes", [{}, {"layout": False}, {"category": "marketing"}], ids=str)
@pytest.mark.parametrize("whole", [False, True])
def test_a_mark_written_as_a_reference_is_not_ours_either(
    api: Api, store: SqliteStore, written: str, changes: dict[str, Any], whole: bool
) -> None:
    """Decoded later, it would be one: a mail that asks for what nobody gave, or ends its sender."""
    html = f"<p>Icon {written} here</p>"
    html = f"<!doctype html><html><body>{html}</body></html>" if whole else html
    assert api.send(html=html, **changes).status_code == 202
    content = content_rows.content(store, Sender(store, None).begin_one().content_hash)
    ours = ("unsubscribe_url",) if changes.get("category") else ()
    assert content.html_segments.names == content.text_segments.names == ours
    bare = content.html.replace(mark("unsubscribe_url"), "") + content.text.replace(
        mark("unsubscribe_url"), ""
    )
    assert not {MARK_OPEN, MARK_CLOSE} & set(unescape(bare))


@pytest.mark.parametrize(
    "style", ["color", "*display:inline", "{{ css }}; color: red", "%%x%%", "color:red;b", "url(", "1px"]
)
def test_a_style_that_is_no_css_stays_as_it_is(api: Api, store: SqliteStore, style: str) -> None:
    """Other engines' placeholders, and tricks of old: no reason to lose a mail, nor its batch."""
    odd = MAIL | {"html": f'<p style="{style}">Hello, <b>{{{{ name }}}}</b></p>'}
    answer = api.call("POST", "/v1/email/send-batch", json={"messages": [MAIL, odd]})
    assert [one["status"] for one in answer.json()["results"]] == [202, 202]
    shown = [content_rows.content(store, one.content_hash).html for one in Sender(store, None).begin(2)]
    assert f'<p style="{style}">Hello, <b>{{{{ name }}}}</b></p>' in shown[1]
    assert all("prefers-color-scheme: dark" in html for html in shown)


def test_marks_in_what_a_program_hands_in_are_not_ours(api: Api, store: SqliteStore) -> None:
    api.send(html="<p>\ue000unsubscribe_url\ue001</p>", subject="\ue000x\ue001", layout=False)
    content = content_rows.content(store, Sender(store, None).begin_one().content_hash)
    assert (content.html, content.subject) == ("<p>unsubscribe_url</p>", "x")


# ── batches ──


def test_every_mail_of_a_batch_has_its_own_verdict(api: Api, store: SqliteStore) -> None:
    good = MAIL | {"idempotency_key": "a"}
    bad = MAIL | {"to": "nobody"}
    answer = api.call(
        "POST",
        "/v1/email/send-batch",
        json={"messages": [good, bad, good, good | {"subject": "Another"}, 7, MAIL | {"send_at": 7}]},
    )
    assert answer.status_code == 202
    told = answer.json()
    assert [one["status"] for one in told["results"]] == [202, 400, 202, 409, 400, 400]
    assert [one["code"] for one in told["results"][1::2]] == [
        "INVALID_EMAIL",
        "IDEMPOTENCY_CONFLICT",
        "INVALID_PAYLOAD",
    ]
    assert (told["accepted"], told["refused"]) == (2, 4)
    assert told["results"][0]["outboxId"] == told["results"][2]["outboxId"]
    assert len(Sender(store, None).begin(9)) == 1


def test_html_that_no_parser_understands_is_refused_and_the_others_of_its_batch_go_out(
    api: Api, store: SqliteStore
) -> None:
    odd = MAIL | {"html": "<p>x</p><!--[if mso]><![><![endif]-->"}
    answer = api.call("POST", "/v1/email/send-batch", json={"messages": [MAIL, odd, MAIL]})
    assert [one["status"] for one in answer.json()["results"]] == [202, 400, 202]
    assert len(Sender(store, None).begin(9)) == 2


@pytest.mark.parametrize("messages", [[], [MAIL] * 501, "x", None])
def test_a_batch_has_one_to_500_mails(api: Api, messages: Any) -> None:
    answer = api.call("POST", "/v1/email/send-batch", json={"messages": messages})
    assert problem(answer) == (400, "INVALID_PAYLOAD", "messages")


BODIES = {
    "/v1/email/send": MAIL | {"html": f"<p>{'word ' * 6000}</p>"},
    "/v1/email/send-batch": {"messages": [MAIL, MAIL]},
}


@pytest.mark.parametrize("path", BODIES)
def test_what_was_refused_because_it_took_too_long_is_not_stored(
    open_gateway: Open, store: SqliteStore, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Whoever gets a 503 sends it again, perhaps without a key."""
    text, token = new_token("acme", tuple(Scope), None)
    add_token(store, token)
    refused, ended = threading.Event(), threading.Event()
    prepare, edge = SingleMailIntake.prepare, Edge.__call__

    def prepare_slowly(self: SingleMailIntake, *given: Any, **more: Any) -> Any:
        assert refused.wait(300)
        return prepare(self, *given, **more)

    async def told_when_it_ends(self: Edge, *given: Any) -> None:
        await edge(self, *given)
        ended.set()

    monkeypatch.setattr(SingleMailIntake, "prepare", prepare_slowly)
    monkeypatch.setattr(Edge, "__call__", told_when_it_ends)
    monkeypatch.setattr("gateway.api.single_mails.BATCH_SECONDS", 0.05)
    api = Api(open_gateway(answer_seconds=0.05), text)
    assert api.call("POST", path, json=BODIES[path]).status_code == 503
    refused.set()
    assert ended.wait(300)
    assert Sender(store, None).begin(5) == []


@pytest.mark.parametrize("path", BODIES)
def test_once_it_is_being_stored_nobody_is_told_to_send_it_again(
    api: Api, store: SqliteStore, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    wait, accept = Answer.wait, store.accept_single_mails
    waits: list[float | None] = []

    def recorded(self: Answer, seconds: float | None) -> bool:
        waits.append(seconds)
        return wait(self, seconds)

    def store_them(mails: Any) -> Any:
        assert waits[-1] is None  # a slow commit is waited for
        return accept(mails)

    monkeypatch.setattr(Answer, "wait", recorded)
    monkeypatch.setattr(store, "accept_single_mails", store_them)
    assert api.call("POST", path, json=BODIES[path]).status_code == 202
    assert (60.0 in waits) == ("batch" in path)  # so long a batch within the limits may take


def test_a_batch_may_be_longer_than_a_mail(api: Api) -> None:
    long = MAIL | {"text": "x" * 400_000}
    answer = api.call("POST", "/v1/email/send-batch", json={"messages": [long] * 5})
    assert (answer.status_code, answer.json()["accepted"]) == (202, 5)
    assert api.call("POST", "/v1/email/send", content=b"x" * 1_100_000).status_code == 413


# ── who may ──


def test_without_a_good_token_nobody_comes_in(api: Api, store: SqliteStore) -> None:
    for headers in ({}, {"Authorization": "Bearer mo_wrong"}, {"Authorization": "Basic mo_x"}):
        answer = api.client.post("/v1/email/send", json=MAIL, headers=headers)
        assert problem(answer)[:2] == (401, "UNAUTHORIZED")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert not Sender(store, None).begin(9)


def test_wrong_tokens_do_not_reach_the_store_after_429(
    company: Company, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a stranger makes the store look things up as fast as he can ask; and whoever was let in before
    must not be shut out by a stranger at the same address."""
    api = company()
    assert api.send().status_code == 202
    asked: list[str] = []
    look = companies.token
    monkeypatch.setattr(companies, "token", lambda store, hash: asked.append(hash) or look(store, hash))
    headers = [{"Authorization": f"Bearer mo_guess{n}"} for n in range(3 * MOST_FROM_ONE)]
    codes = [api.client.get("/v1/recipients/x", headers=one).status_code for one in headers]
    assert codes == [401] * MOST_FROM_ONE + [429] * 2 * MOST_FROM_ONE
    assert len(asked) == MOST_FROM_ONE
    monkeypatch.setattr("gateway.api.callers.KEPT_SECONDS", 0.0)
    assert [api.send().status_code for _ in range(2)] == [202, 202]


def test_a_revoked_token_is_wrong(api: Api, store: SqliteStore) -> None:
    (token,) = companies.tokens(store)
    store.revoke_token(token.id)
    assert problem(api.send())[:2] == (401, "UNAUTHORIZED")


def test_a_token_does_what_it_is_for(company: Company) -> None:
    reader, writer = company(scopes=(Scope.READ,)), company(scopes=(Scope.SEND,))
    assert problem(reader.send())[:2] == (403, "FORBIDDEN")
    id = writer.send().json()["outboxId"]
    assert problem(writer.call("GET", f"/v1/email/{id}"))[:2] == (403, "FORBIDDEN")
    assert reader.call("GET", f"/v1/email/{id}").status_code == 200


def test_a_token_has_its_mails_a_minute(company: Company) -> None:
    api = company(limit=3)
    assert api.send().headers["ratelimit-remaining"] == "2"
    full = api.call("POST", "/v1/email/send-batch", json={"messages": [MAIL] * 3})
    assert problem(full)[:2] == (429, "RATE_LIMITED")
    assert int(full.headers["retry-after"]) >= 1
    assert (full.headers["ratelimit-limit"], full.headers["ratelimit-remaining"]) == ("3", "2")
    assert api.call("POST", "/v1/email/send-batch", json={"messages": [MAIL] * 2}).status_code == 202
    assert api.send().status_code == 429


def test_who_comes_again_when_told_to_is_let_in(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("gateway.api.callers.time", SimpleNamespace(monotonic=lambda: now[0]))
    callers, request = Callers(store, WrongTokens()), Request({"type": "http"})
    _, token = new_token("acme", tuple(Scope), 1)
    callers.charge(request, token, 1)
    now[0] = 29.7
    with pytest.raises(ApiProblem) as full:
        callers.charge(request, token, 1)
    now[0] += int(full.value.headers["Retry-After"])
    callers.charge(request, token, 1)


@pytest.mark.parametrize("name", ["Authorization", "Idempotency-Key"])
def test_of_two_headers_none_is_chosen(api: Api, store: SqliteStore, name: str) -> None:
    """A proxy that takes the other one would take the request for somebody else's, or for another mail."""
    headers = [("Authorization", f"Bearer {api._token}"), ("Idempotency-Key", "k")]
    answer = api.client.post("/v1/email/send", json=MAIL, headers=[*headers, (name, "Bearer mo_other")])
    assert problem(answer)[:2] == (400, "INVALID_PAYLOAD")
    assert not Sender(store, None).begin(5)


def test_a_mail_whose_recipient_was_forgotten_is_replayed_with_an_id(api: Api, store: SqliteStore) -> None:
    id = api.send("k").json()["outboxId"]
    store.forget("ana@example.org", "somebody")
    assert api.send("k").json()["requestId"] == id


def test_a_batch_that_no_minute_has_room_for_is_not_told_to_come_again(company: Company) -> None:
    """A program that does as it is told would ask for ever."""
    api = company(limit=3)
    refused = api.call("POST", "/v1/email/send-batch", json={"messages": [MAIL] * 10})
    assert problem(refused)[:2] == (400, "INVALID_PAYLOAD")
    told = "10 mails in one request, but this token may hand in 3 a minute: split it."
    assert refused.json()["detail"] == told
    assert "retry-after" not in refused.headers
    assert api.send().headers["ratelimit-remaining"] == "2"


@pytest.mark.parametrize("id", ["with blank", "x" * 129, "ünïcode".encode()])
def test_a_request_id_that_no_log_could_carry_is_refused(api: Api, id: str | bytes) -> None:
    assert problem(api.send(http={"X-Request-Id": id}))[:2] == (400, "INVALID_PAYLOAD")


def test_the_store_is_away(api: Api, store: SqliteStore) -> None:
    api.send()  # the token is known from now on
    store.close()
    assert problem(api.send())[:2] == (503, "UNAVAILABLE")


# ── that somebody sends ──


@pytest.mark.parametrize(
    ("waiting", "expected"),
    [
        (SingleMailsWaiting(100, None, False, False), False),
        (SingleMailsWaiting(100, None, False, True), True),
        (SingleMailsWaiting(100, 96, False, False), False),
        (SingleMailsWaiting(100, 94, False, False), True),
        (SingleMailsWaiting(100, 1, True, True), False),
    ],
)
def test_when_a_sender_is_needed(waiting: SingleMailsWaiting, expected: bool) -> None:
    assert needs_a_sender(waiting) is expected


def test_what_is_said_is_json(api: Api) -> None:
    answer = api.call("POST", "/v1/email/send", content=b"{not json")
    assert problem(answer)[:2] == (400, "INVALID_PAYLOAD")
    assert json.loads(answer.content)["title"]
