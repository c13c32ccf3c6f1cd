"""Soft bounces count together: three messages end mail, a delivery between them keeps it going."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailout.base.ids import uuid_of
from mailout.letters.audience import subscriber_rows
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received
from mailout.store import Store
from tests.clocks import NOON, FakeClock
from tests.contract.scenes import Sender, mailout, result, subscribe
from tests.contract.stores import StoreFactory
from tests.ses_events import ses_event

ANN = "ann@example.org"


class Told(NamedTuple):
    """One event of one message at one moment."""

    what: str
    message: int
    second: int

    @property
    def payload(self) -> str:
        about: dict[str, Any] = {"at": NOON + self.second, "ses_id": f"ses-{self.message}"}
        recipient = {"emailAddress": ANN, "status": "4.2.2"}
        match self.what:
            case "soft":
                kind, subtype = "Transient", "MailboxFull"
            case "undetermined":
                kind, subtype = "Undetermined", "Undetermined"
            case "away":
                kind, subtype, recipient = "Transient", "General", {"emailAddress": ANN}
            case "dead":
                kind, subtype = "Permanent", "General"
            case _:
                return ses_event(self.what, **about)
        return ses_event(
            "Bounce", bounceType=kind, bounceSubType=subtype, bouncedRecipients=[recipient], **about
        )


def hear(store: Store, *told: Told, policy: str = "smart") -> None:
    received = [Received(uuid_of("sns", *map(str, one)), "sns", one.payload) for one in told]
    store.receive_events(received)
    ingest(store, policy)  # type: ignore[arg-type]


def status(store: Store) -> str:
    return str(subscriber_rows.subscriber(store, ANN)["status"])


def soft(*places: tuple[int, int]) -> list[Told]:
    return [Told("soft", message, second) for message, second in places]


def test_the_third_message_ends_mail(store: Store) -> None:
    subscribe(store, ANN)
    hear(store, *soft((1, 1), (2, 2), (2, 3), (1, 4)))
    assert status(store) == "active", "two messages, however often they bounce"
    hear(store, Told("undetermined", 3, 5))
    found = subscriber_rows.subscriber(store, ANN)
    assert (found["status"], found["bounce_type"], found["status_updated_at"]) == (
        "bounced",
        "Undetermined",
        NOON + 5,
    )


def test_a_permanent_bounce_ends_mail_at_once(store: Store) -> None:
    subscribe(store, ANN)
    hear(store, Told("dead", 1, 1))
    assert status(store) == "bounced"


def test_out_of_office_replies_never_do(store: Store) -> None:
    subscribe(store, ANN)
    hear(store, *(Told("away", n, n) for n in range(9)))
    assert status(store) == "active"


def test_a_delivery_that_is_reported_late_takes_it_back(store: Store) -> None:
    subscribe(store, ANN)
    hear(store, *soft((1, 1), (2, 2), (3, 3)))
    assert status(store) == "bounced"
    hear(store, Told("Delivery", 9, 9))
    assert status(store) == "bounced", "it was not between them"
    hear(store, Told("Delivery", 4, 2))
    found = subscriber_rows.subscriber(store, ANN)
    assert (found["status"], found["bounce_type"], found["bounce_subtype"]) == ("active", None, None)


@pytest.mark.parametrize("leave", ["unsubscribe", "import", "complaint"])
def test_whoever_left_meanwhile_stays_away_when_it_is_taken_back(store: Store, leave: str) -> None:
    """The worst mistake: to write again to somebody who does not want it."""
    subscribe(store, ANN)
    hear(store, *soft((1, 1), (2, 2), (3, 3)))
    match leave:
        case "unsubscribe":
            store.unsubscribe(ANN, None)
        case "import":
            subscribe(store, ANN, status="unsubscribed")
        case "complaint":
            hear(store, Told("Complaint", 1, 8))
    assert status(store) == "bounced"
    hear(store, Told("Delivery", 4, 2))
    assert status(store) == "unsubscribed"


def test_an_import_that_knows_a_bounce_is_not_taken_back(store: Store) -> None:
    subscribe(store, ANN)
    hear(store, *soft((1, 1), (2, 2), (3, 3)))
    subscribe(store, ANN, status="bounced")
    hear(store, Told("Delivery", 4, 2))
    assert status(store) == "bounced"


KINDS = ("soft", "soft", "soft", "undetermined", "away", "Delivery", "dead", "Complaint", "Subscription")
EVENTS = st.lists(
    st.builds(Told, st.sampled_from(KINDS), st.integers(1, 4), st.integers(0, 6)), max_size=9, unique=True
)


def expected(told: list[Told]) -> str:
    """The same law in other words."""
    bounces = sorted((one.second, one.message) for one in told if one.what in ("soft", "undetermined"))
    deliveries = [one.second for one in told if one.what == "Delivery"]
    runs: dict[int, set[int]] = {}
    for second, message in bounces:
        runs.setdefault(sum(1 for one in deliveries if one < second), set()).add(message)
    if any(one.what == "dead" for one in told) or any(len(messages) >= 3 for messages in runs.values()):
        return "bounced"
    return "unsubscribed" if any(one.what in ("Complaint", "Subscription") for one in told) else "active"


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(told=EVENTS, data=st.data())
def test_any_order_in_any_batches_ends_the_same(
    factory: StoreFactory, told: list[Told], data: st.DataObject
) -> None:
    found = []
    for _ in range(2):
        store = factory.make(FakeClock())
        subscribe(store, ANN)
        order = data.draw(st.permutations(told))
        cut = data.draw(st.integers(0, len(order)))
        hear(store, *order[:cut])
        hear(store, *order[cut:])
        row = subscriber_rows.subscriber(store, ANN)
        found.append(
            tuple(row[name] for name in ("status", "bounce_type", "bounce_subtype", "complained_at"))
        )
    assert found[0] == found[1]
    assert found[0][0] == expected(told)


def test_the_mailbox_simulator_counts_in_no_rate(store: Store) -> None:
    simulated = "bounce@simulator.amazonses.com"
    id = mailout(store, simulated, ANN)
    sender = Sender(store, id)
    claimed = sender.begin(2)
    sender.step(results=[result(one) for one in claimed])
    for one in claimed:
        payload = ses_event("Bounce", one.email, attempt=one.attempt)
        store.receive_events([Received(one.attempt.id, "sns", payload)])
    ingest(store, "smart")
    assert store.mailout(id).metrics == {"bounced": 1}
