"""Single mails through SES: as they were handed in, headers and all, and what SES then tells of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mailout.adapters.ses import SesMode
from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.app.single_mail_run import send_what_waits
from mailout.base.ids import transactional_id
from mailout.base.settings import load_settings
from mailout.base.time_format import iso
from mailout.insight.alerts.port import AlertKind
from mailout.insight.reporting.queue_json import snapshot_dict
from mailout.letters.content.model import UNSUBSCRIBE_URL, Content, mark
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.single_mails import Category, SingleMail
from tests.clocks import FakeClock
from tests.contract.ses.conftest import Open
from tests.stubs.ses_control import SesStub


@pytest.fixture(params=list(SesMode))
def engine(request: Any, stub: SesStub, open_transport: Open, tmp_path: Path) -> Iterator[Engine]:
    env = {
        "MAILOUT_HOME": str(tmp_path / "home"),
        "FROM_EMAIL": "shop@example.org",
        "FROM_NAME": "The Shop",
        "TRANSACTIONAL_FROM_EMAIL": "receipts@shop.example.org",
        "ORG_NAME": "The Harbour",
        "ORG_ADDRESS": "1 Quay",
        "UNSUBSCRIBE_BASE_URL": "https://mail.example.org/unsubscribe",
        "UNSUBSCRIBE_SECRET": "a secret of some length",
    }
    transport = open_transport(request.param)
    built = wiring.build(load_settings(env=env), FakeClock(), transport=transport, inline=True)
    yield built
    built.store.close()


def hand_in(engine: Engine, key: str = "a", **changes: Any) -> str:
    fields: dict[str, Any] = {
        "id": transactional_id("shop", key),
        "company_id": "shop",
        "request_id": f"request {key}",
        "email": f"{key}@example.org",
        "content": Content("Your receipt", "<p>Thank you, {{ name }}</p>", "Thank you, {{ name }}"),
    }
    (acceptance,) = engine.store.accept_single_mails([SingleMail(**fields | changes)])
    return acceptance.id


def test_it_leaves_as_it_was_handed_in(engine: Engine, stub: SesStub) -> None:
    """Marks of other template engines included: SES would otherwise take them for its own."""
    id = hand_in(engine, from_name="Ana's Shop", reply_to="help@example.org", headers={"X-Order": "7"})
    send_what_waits(engine.sending)
    (message,) = stub.messages()
    assert (message["to"], message["from"]) == (
        "a@example.org",
        "Ana's Shop <receipts@shop.example.org>",
    )
    assert (message["subject"], message["text"].strip()) == ("Your receipt", "Thank you, {{ name }}")
    assert message["headers"]["X-Order"] == "7"
    assert not {"List-Unsubscribe", "List-Id"} & set(message["headers"])
    row = outbox_rows.message(engine.store, id)
    assert row["state"] == "SENT"
    assert outbox_rows.find_messages(engine.store, row["ses_message_id"]) == [id]


def test_recipients_refused_in_the_sandbox_fail_singly_and_the_next_mail_leaves(
    engine: Engine, stub: SesStub
) -> None:
    refused = [hand_in(engine, f"sandbox-{n}") for n in range(5)]
    fine = hand_in(engine, "fine")
    text = "Email address is not verified. The following identities failed the check in region X: "
    answer = {"do": "answer", "status": 400, "code": "MessageRejected", "message": f"{text}one@example.org"}
    stub.script(answer | {"to": "sandbox-"})
    send_what_waits(engine.sending)
    rows = [outbox_rows.message(engine.store, id) for id in refused]
    assert {(row["state"], row["error_code"]) for row in rows} == {("FAILED", "RECIPIENT_NOT_VERIFIED")}
    assert outbox_rows.message(engine.store, fine)["state"] == "SENT"


def test_a_setting_that_is_wrong_stops_single_mails_and_says_so_until_one_is_sent(
    engine: Engine, stub: SesStub
) -> None:
    """Without it, receipts wait for hours and everything looks well."""
    text = "Email address is not verified. The following identities failed the check in region X: "
    named = f"{text}receipts@shop.example.org"
    stub.script({"do": "answer", "status": 400, "code": "MessageRejected", "message": named})
    ids = [hand_in(engine, key) for key in ("a", "b")]
    send_what_waits(engine.sending)
    waiting = engine.store.single_mails_waiting(rehearsal=False)
    assert waiting.due == 2
    assert waiting.hold is not None
    assert (waiting.hold.code, waiting.hold.needs_person) == ("SES_IDENTITY_NOT_VERIFIED", True)
    assert "Verify FROM_EMAIL's domain" in waiting.hold.why
    told = snapshot_dict(engine.queue_forecast.snapshot())["single_mails"]
    assert (told["waiting"], told["code"], told["since"]) == (2, waiting.hold.code, iso(waiting.hold.since))
    (alert,) = (alert for alert, _ in engine.alert_sender.look())
    assert (alert.kind, "2 single mails wait" in alert.text) == (AlertKind.SINGLE_MAILS, True)
    stub.script()
    send_what_waits(engine.sending)
    assert {outbox_rows.message(engine.store, id)["state"] for id in ids} == {"SENT"}
    assert engine.store.single_mails_waiting(rehearsal=False).held is None
    assert not engine.alert_sender.look()


@pytest.mark.parametrize("n", [14, 20])
def test_all_its_headers_arrive(engine: Engine, stub: SesStub, n: int) -> None:
    """SES's API takes fifteen; a mail with more goes as a raw message."""
    headers = {f"X-Number-{i}": f"value {i}" for i in range(n - 2)}
    headers |= {"References": "<a@example.org> <b@example.org>", "In-Reply-To": "<b@example.org>"}
    hand_in(engine, headers=headers)
    send_what_waits(engine.sending)
    (message,) = stub.messages()
    assert {name: message["headers"].get(name) for name in headers} == headers


def test_marketing_has_its_link_and_headers(engine: Engine, stub: SesStub) -> None:
    link = mark(UNSUBSCRIBE_URL)
    content = Content("News", f"<p>News</p><a href='{link}'>Unsubscribe</a>", f"News {link}")
    hand_in(engine, category=Category.MARKETING, content=content, headers={"X-Order": "7"})
    send_what_waits(engine.sending)
    (message,) = stub.messages()
    assert message["headers"]["List-Unsubscribe"].startswith("<https://mail.example.org/unsubscribe?token=")
    assert message["headers"]["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert message["headers"]["List-Id"] == "The Harbour <general.example.org>"
    assert "https://mail.example.org/unsubscribe?token=" in message["text"]


def test_receipts_keep_their_own_sender_when_news_leave_with_them(engine: Engine, stub: SesStub) -> None:
    """Gmail judges a sender by what it sends: complaints about news must not take receipts with them."""
    link = mark(UNSUBSCRIBE_URL)
    content = Content("News", f"<a href='{link}'>Unsubscribe</a>", f"News {link}")
    hand_in(engine, "receipt")
    hand_in(engine, "news", category=Category.MARKETING, content=content)
    send_what_waits(engine.sending)
    assert {message["to"]: message["from"] for message in stub.messages()} == {
        "receipt@example.org": "The Shop <receipts@shop.example.org>",
        "news@example.org": "The Shop <shop@example.org>",
    }
