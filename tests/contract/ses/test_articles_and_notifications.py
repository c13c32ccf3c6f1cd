"""Articles and notifications through the real SES client, over every store."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from mailout.adapters.ses import SesTransport
from mailout.app import wiring
from mailout.base import error_log
from mailout.base.settings import Settings
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Outcome
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import dead_letters
from mailout.outbox.queue.mailout import MailoutOutcome
from tests.clocks import FakeClock
from tests.contract.articles import BATCH, CLEO, UNA, order, settle_in
from tests.contract.scenes import states
from tests.contract.ses.conftest import Open
from tests.contract.stores import StoreFactory
from tests.producer.scene import Scene
from tests.stubs.ses_control import SesStub
from tests.unit.outbox.delivery.sending import MemoryJournals

UNAVAILABLE = {"do": "answer", "status": 503, "code": "ServiceUnavailableException", "message": "try later"}


class Timed:
    """The transport, and when it was called, on the test's clock."""

    def __init__(self, transport: SesTransport, clock: FakeClock) -> None:
        self._transport, self._clock = transport, clock
        self.calls: list[tuple[float, str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        self.calls.extend((self._clock.monotonic(), mail.to) for mail in mails)
        return self._transport.send(mails)

    def gaps(self, email: str) -> list[float]:
        times = [at for at, to in self.calls if to == email]
        return [round(later - sooner, 6) for sooner, later in pairwise(times)]


def test_a_5xx_of_the_provider_is_retried_after_1_4_and_10_seconds_and_ends_as_a_dead_letter(
    factory: StoreFactory, stub: SesStub, open_transport: Open, tmp_path: Path
) -> None:
    clock = FakeClock()
    store = factory.make(clock)
    settle_in(store)
    transport = Timed(open_transport(), clock)
    settings = Settings(
        mailout_home=tmp_path,
        mailout_transport="ses",
        from_email="news@example.org",
        org_name="The Ledger",
        org_address="1 Main Street",
        unsubscribe_base_url="https://mail.example.org/unsubscribe",
        unsubscribe_secret="a secret of some length",
        send_rate_per_sec=0,
    )
    engine = wiring.build(
        settings,
        clock,
        store=store,
        transport=transport,
        journals=MemoryJournals(),
        worker="test",
        inline=True,
    )
    stub.script(UNAVAILABLE | {"to": UNA})
    mailout = engine.intake.articles.enqueue(order())
    assert mailout is not None
    engine.deliver(mailout.id)
    assert transport.gaps(UNA) == [1.0, 4.0, 10.0]
    assert stub.accepted()["by_address"] == {CLEO: 1}
    (letter,) = error_log.dead_letters(store)
    assert (letter["topic"], letter["error"]) == ("send", "SES_SERVICE_UNAVAILABLE: try later")
    payload = letter["payload"]
    assert (payload["email"], payload["send_batch_id"], payload["attempts"]) == (UNA, BATCH, 4)
    assert [row["email"] for row in factory.raw("SELECT email FROM delivery_history")] == [CLEO]

    stub.script()
    dead_letters.requeue(store, letter["id"])
    assert states(store, mailout.id)[UNA] is State.PENDING
    engine.deliver(mailout.id)
    assert stub.accepted()["by_address"] == {CLEO: 1, UNA: 1}
    assert (store.mailout(mailout.id).outcome, error_log.dead_letters(store)) == (MailoutOutcome.SENT, [])


def test_what_ses_answers_is_what_the_producers_row_is_told(
    factory: StoreFactory, stub: SesStub, open_transport: Open, folder: Path
) -> None:
    scene = Scene(factory, folder)
    scene.transport = open_transport()  # type: ignore[assignment]
    rows = {
        name: scene.producer.one(f"{name}@example.org", event={"dedupe_key": name})
        for name in ("fine", "busy", "busier", "lost", "refused")
    }
    stub.script(
        UNAVAILABLE | {"to": "busy@", "headers": {"Retry-After": "30"}},
        UNAVAILABLE | {"to": "busier@", "headers": {"Retry-After": "Wed, 01 Jan 2076 00:00:00 GMT"}},
        {"do": "drop", "to": "lost@", "accept": True},
        {"do": "answer", "to": "refused@", "status": 400, "code": "MessageRejected", "message": "no"},
    )
    scene.run()
    told = {name: scene.producer.row(id) for name, id in rows.items()}
    assert {name: (row["fanout_status"], row["fanout_attempts"]) for name, row in told.items()} == {
        "fine": ("sent", 1),
        "busy": ("pending", 1),
        "busier": ("pending", 1),
        "lost": ("failed", 1),
        "refused": ("failed", 1),
    }
    (mail,) = stub.messages("fine@example.org")
    assert told["fine"]["error"]["providerMessageId"] == mail["id"]
    link = "https://app.example.org/unsubscribe?token=token-fine%40example.org"
    assert (mail["headers"]["List-Unsubscribe"], link in mail["html"], link in mail["text"]) == (
        f"<{link}>",
        True,
        True,
    )
    assert "List-Unsubscribe-Post" not in mail["headers"]
    assert {"subscriptionId": "1", "openEventId": "1", "term": "92026", "campus": "NB"}.items() <= mail[
        "tags"
    ].items()
    assert told["lost"]["error"]["code"] == "outcome_unknown"
    assert told["refused"]["error"]["code"] == "SES_MESSAGE_REJECTED"
    # As long as SES asks for, and not longer than the lock's 120 s.
    assert told["busy"]["error"]["retryAfterSeconds"] == 30.0
    assert told["busy"]["locked_at"] == "2026-11-16T11:58:30.000Z"
    assert told["busier"]["error"]["retryAfterSeconds"] == 120.0
    assert told["busier"]["locked_at"] == "2026-11-16T12:00:00.000Z"

    stub.script()
    for waited, sent in ((29, {"fine", "lost"}), (2, {"fine", "lost", "busy"}), (90, {*rows} - {"refused"})):
        scene.wait(waited)
        scene.run()
        assert stub.accepted()["by_address"] == {f"{name}@example.org": 1 for name in sent}
    assert scene.producer.row(rows["busy"])["fanout_attempts"] == 2
