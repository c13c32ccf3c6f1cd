"""The alarm over a real store: who is told what, how often, and what happens when the mail fails."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mailout.app.single_mail_run import send_what_waits
from mailout.base.ids import transactional_id
from mailout.insight.alerts.port import Alert, AlertKind
from mailout.insight.alerts.sender import ALERTS_A_LETTER
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.model import Content
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.port import REHEARSING, Allowance, Mail
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind, Timing
from mailout.outbox.delivery.single_mails import OURS, SingleMail
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import actions
from mailout.outbox.queue.mailout import DeferReason
from tests.clocks import FakeClock
from tests.unit.outbox.delivery.sending import ListTransport
from tests.unit.outbox.queue.driving import MINUTE, Drive, drive

ADMIN = "admin@example.org"
DAY = 86_400.0


class Post(ListTransport):
    """Keeps the mails to the administrator; everything else is refused by the account, if it is told to."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.letters: list[Mail] = []
        self.outcome: Outcome | None = None
        self.left: int | None = None

    def send(self, mails: Any) -> Any:
        self.letters += [mail for mail in mails if mail.to == ADMIN]
        return [self.outcome] * len(mails) if self.outcome else super().send(mails)

    def allowance(self) -> Allowance | None:  # type: ignore[override]
        return None if self.left is None else Allowance(self.left, None, most=1000)


REFUSED = Outcome(OutcomeKind.STOP, code="SES_ACCOUNT_PAUSED", message="Sending is paused.")
SPENT = Outcome(OutcomeKind.QUOTA, code="SES_DAILY_QUOTA", message="Daily message quota exceeded.")


class Watch:
    """A queue run every minute, with an alarm after each."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        made: list[Post] = []

        def make(clock: FakeClock) -> Post:
            made.append(Post(clock))
            return made[0]

        self.queue: Drive = drive(folder, make_transport=make, **settings)
        self.post = made[0]
        self.announced: list[Alert] = []

    def send_alerts(self) -> None:
        self.queue.engine.alert_sender.send_alerts(self.announced.append)
        send_what_waits(self.queue.engine.sending)

    def minutes(self, n: float, step: float = MINUTE) -> None:
        for _ in range(int(n * MINUTE / step)):
            self.queue.clock.sleep(step)
            self.send_alerts()

    def held(self, ref: str = "letter", reason: DeferReason = DeferReason.REPUTATION) -> str:
        id = self.queue.add(ref, 3)
        self.queue.store.defer(id, reason, None, "A note.")
        return id


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    made = Watch(tmp_path, ADMIN_EMAIL=ADMIN)
    yield made
    made.queue.store.close()


def test_it_is_told_once_however_often_somebody_looks(watch: Watch) -> None:
    id = watch.held()
    watch.send_alerts()
    watch.send_alerts()
    watch.minutes(60)
    (mail,) = watch.post.letters
    assert (mail.to, mail.from_email, mail.unsubscribe_url) == (ADMIN, "news@example.org", None)
    assert mail.content.subject == "Waits for you: “letter”"
    assert f"mailout queue resume {id}" in mail.content.text
    assert [alert.key for alert in watch.announced] == [f"deferred {id} reputation"]


def test_who_rehearses_beside_real_senders_leaves_the_alerts_to_them(watch: Watch) -> None:
    """They would lie in a folder, and the store would say that they were sent."""
    watch.held()
    watch.queue.store.open_session(None, worker="elsewhere", transport="ses", lease=0.0)
    watch.post.name = REHEARSING
    watch.send_alerts()
    assert (watch.post.letters, watch.announced) == ([], [])
    watch.post.name = "ses"
    watch.send_alerts()
    assert len(watch.post.letters) == len(watch.announced) == 1


def test_what_is_put_right_is_told_no_more_and_what_comes_back_is(watch: Watch) -> None:
    id = watch.held()
    watch.minutes(5)
    actions.resume(watch.queue.store, id)
    watch.minutes(2 * 1440, step=3600)
    told = [alert.subject for alert in watch.announced]
    assert told == ["Waits for you: “letter”", *["Does not move: “letter”"] * 2]  # nobody runs the queue here
    watch.queue.store.defer(id, DeferReason.REPUTATION, None)
    watch.minutes(5)
    assert [alert.subject for alert in watch.announced] == [*told, "Waits for you: “letter”"]
    assert len(watch.post.letters) == 4


def test_what_is_resumed_and_fails_again_in_one_run_is_told_again(watch: Watch) -> None:
    """The person has fixed the wrong thing: a queue that looks before and after finds out."""
    watch.post.outcome = REFUSED
    id = watch.queue.add("letter", 3)
    watch.queue.run()
    watch.send_alerts()
    watch.queue.clock.sleep(MINUTE)
    actions.resume(watch.queue.store, id)
    watch.queue.engine.alert_sender.look()
    watch.queue.clock.sleep(1)
    watch.queue.run()
    watch.send_alerts()
    assert len(watch.announced) == 2


def test_it_is_told_again_each_day_for_a_week(watch: Watch) -> None:
    watch.held()
    watch.minutes(20 * 1440, step=3600)
    assert len(watch.post.letters) == 7


def test_whoever_pauses_it_is_not_told_what_he_did(watch: Watch) -> None:
    id = watch.queue.add("letter", 3)
    actions.pause(watch.queue.store, id, "Not today.")
    watch.minutes(23 * 60, step=600)
    assert watch.announced == []
    watch.minutes(10 * 1440, step=3600)
    assert [mail.content.subject for mail in watch.post.letters] == ["Still paused: “letter”"]


def test_doubts_that_an_event_settles_are_nobodys_trouble(watch: Watch) -> None:
    watch.post.answer = lambda mail, nth: Outcome(OutcomeKind.UNKNOWN)
    quick, slow = watch.queue.add("quick", 1), watch.queue.add("slow", 2)
    watch.queue.run()
    watch.post.answer = lambda mail, nth: None
    watch.minutes(10)
    watch.queue.store.settle(quick, State.SENT, wait=0)
    watch.minutes(10)
    assert [(alert.kind, alert.mailout) for alert in watch.announced] == [(AlertKind.UNKNOWN, slow)]
    assert [mail.content.subject for mail in watch.post.letters] == ["2 messages in doubt: “slow”"]
    # Told when both ways of settling are open.
    actions.settle(watch.queue.store, slow, actions.SettleVerdict.PENDING, Timing.of(120))


def test_the_quota_is_told_while_a_mail_can_still_leave(watch: Watch) -> None:
    watch.post.left = 300
    watch.queue.engine.sending.provider.ask()
    watch.send_alerts()
    assert watch.announced == []
    watch.queue.add("letter", 210)
    watch.queue.run()
    watch.minutes(5)
    assert [mail.content.subject for mail in watch.post.letters] == ["The provider's quota is nearly spent"]
    assert "90 of the 1,000 messages" in watch.post.letters[0].content.text


def test_a_mail_that_cannot_leave_is_seen_in_the_log_and_tried_again(
    watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    """A spent quota lets no alert out either: the event has gone, and the mail follows when it can."""
    watch.post.outcome = SPENT
    watch.held()
    watch.send_alerts()
    assert "SES_DAILY_QUOTA" in caplog.text
    watch.minutes(3 * 60, step=600)
    assert len(watch.announced) == 1
    watch.post.outcome = None
    watch.post.letters.clear()
    watch.minutes(12 * 60)
    assert len(watch.post.letters) == 1


def test_a_mail_that_cannot_leave_changes_nothing_for_the_mailouts(watch: Watch) -> None:
    watch.held()
    watch.post.outcome = SPENT
    watch.send_alerts()
    watch.post.outcome = None
    id = watch.queue.add("other", 3)
    watch.queue.run()
    assert watch.queue.store.mailout(id).ledger.sent == 3


def test_an_alert_is_a_mail_of_the_outbox_with_a_story(watch: Watch) -> None:
    """Paced, counted and tried again as every other; past the outbox nobody could say what became of it."""
    watch.held()
    watch.send_alerts()
    (mail,) = watch.post.letters
    row = outbox_rows.message(watch.queue.store, mail.attempt.id)
    assert (row["state"], row["company_id"], row["category"]) == ("SENT", OURS, "transactional")
    assert row["charged_day"] is not None


def test_an_administrator_whose_address_bounced_gets_no_mail(watch: Watch) -> None:
    watch.queue.store.import_subscribers([SubscriberRow(ADMIN, ADMIN, status="bounced")])
    watch.held()
    watch.minutes(5)
    assert watch.post.letters == []
    assert len(watch.announced) == 1


def test_alerts_leave_while_everything_is_paused_and_nothing_else_does(watch: Watch) -> None:
    watch.held()
    watch.queue.store.pause_all(True)
    others = SingleMail(
        id=transactional_id("shop", "a"),
        company_id="shop",
        request_id="a",
        email="ana@example.org",
        content=Content("Your receipt", "<p>Thank you</p>", "Thank you"),
        is_rehearsal=watch.post.name == REHEARSING,
    )
    watch.queue.store.accept_single_mails([others])
    watch.minutes(5)
    assert len(watch.post.letters) == watch.post.calls == 1
    watch.queue.store.pause_all(False)
    watch.minutes(5)
    assert watch.post.calls == 2


def test_many_things_at_once_are_few_letters(watch: Watch) -> None:
    ids = {watch.held(f"letter {n}") for n in range(ALERTS_A_LETTER + 5)}
    watch.send_alerts()
    assert [mail.content.subject for mail in watch.post.letters] == [f"{ALERTS_A_LETTER} things wait for you"]
    watch.minutes(5)
    assert [mail.content.subject for mail in watch.post.letters[1:]] == ["5 things wait for you"]
    assert {alert.mailout for alert in watch.announced} == ids


def test_without_an_address_the_event_goes_out_and_the_log_says_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watch = Watch(tmp_path)
    watch.held()
    watch.minutes(60)
    assert len(watch.announced) == 1
    assert watch.post.calls == 0
    assert "Waits for you: “letter”" in caplog.text
    assert "ADMIN_EMAIL" in caplog.text
    watch.queue.store.close()
