"""Strangers who join: what one post may cause, what a confirmation changes, what is erased."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest

from mailout.base.errors import StoreRolledBack
from mailout.base.ids import sign_up_key, transactional_id, uuid_of, welcome_id
from mailout.insight.alerts import alert_rows
from mailout.insight.metrics import metric_rows
from mailout.insight.metrics.port import Counter
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.letters.audience.port import Choice, ImportRecord, SubscriberRow
from mailout.letters.audience.subscriber_rows import IMPORT_TABLE
from mailout.letters.content.model import Content, mark
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.recovery import reap
from mailout.outbox.delivery.single_mails import OURS, SIGNED_LINK, Category, SignedLink, SingleMail
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback.ingest import ingest
from mailout.outbox.feedback.port import Received
from mailout.readers import sign_up_rows
from mailout.readers.confirmations import erase_unconfirmed
from mailout.readers.port import (
    CONFIRM_SECONDS,
    DAY_SECONDS,
    Asked,
    Confirmation,
    Confirmed,
    SignUp,
    SignUpDay,
)
from mailout.store import Store
from tests.clocks import NOON, FakeClock
from tests.contract.scenes import Sender, mailout, result, subscribe
from tests.contract.stores import StoreFactory
from tests.ses_events import ses_event
from tests.unit.outbox.delivery.sending import MemoryJournals

ANN = "ann@example.org"
LETTER = Content("Please confirm", f"<p>{mark(SIGNED_LINK)}</p>", mark(SIGNED_LINK))
WORDING = "I want to get News by e-mail."
PAGE = "https://shop.example.org/about"


def ask(
    store: Store, email: str = ANN, network: str = "192.0.2.0/24", lists: Sequence[str] = ("news",)
) -> Asked:
    key = sign_up_key(email, lists, store.now())
    mail = SingleMail(
        id=transactional_id(OURS, key, rehearsal=True),
        company_id=OURS,
        request_id=key,
        email=email,
        content=LETTER,
        category=Category.CONFIRMATION,
        idempotency_key=key,
        is_rehearsal=True,
        link=SignedLink("join", "/join/confirm", {"email": email, "lists": list(lists), "at": store.now()}),
    )
    return store.ask_sign_up(SignUp(mail, network, lists, "2026-11-16"))


def confirmation(email: str = ANN, *lists: str, **more: Any) -> Confirmation:
    given = {"wording": WORDING, "page": PAGE, "at": NOON, "day": "2026-11-16", "name": "Ann", **more}
    return Confirmation(email, email, lists or ("news",), **given)


def confirm(store: Store, email: str = ANN, *lists: str, **more: Any) -> Confirmed:
    return store.confirm_sign_up(confirmation(email, *lists, **more))


def lists_of(store: Store, email: str = ANN) -> dict[str, bool]:
    """Each list that there is a row for, and whether they are on it."""
    return {
        one["list_key"]: one["unsubscribed_at"] is None
        for one in subscriber_rows.subscriber(store, email)["lists"]
    }


def outbox(factory: StoreFactory) -> int:
    return int(factory.raw("select count(*) as n from email_outbox")[0]["n"])


def hear(store: Store, *payloads: str) -> None:
    store.receive_events([Received(uuid_of("sns", one), "sns", one) for one in payloads])
    ingest(store, "smart")


def bounce(email: str, at: float, ses_id: str, kind: str = "Permanent") -> str:
    return ses_event(
        "Bounce",
        at=at,
        ses_id=ses_id,
        bounceType=kind,
        bounceSubType="General",
        bouncedRecipients=[{"emailAddress": email, "status": "5.1.1"}],
        destination=[email],
    )


def complaint(email: str, at: float, ses_id: str) -> str:
    return ses_event(
        "Complaint", at=at, ses_id=ses_id, complainedRecipients=[{"emailAddress": email}], destination=[email]
    )


# ── What a post may cause ──


def test_a_stranger_gets_one_mail_however_often_a_form_is_posted(store: Store, factory: StoreFactory) -> None:
    """Else any form that is open to all bombs whoever's address is typed in."""
    assert ask(store) is Asked.SENT
    assert {ask(store, lists=lists) for lists in (("news",), ("other",), ("news", "other"))} == {
        Asked.ADDRESS
    }
    assert outbox(factory) == 1
    factory.set_now(NOON + 599)
    assert ask(store) is Asked.ADDRESS
    factory.set_now(NOON + 601)
    assert ask(store) is Asked.SENT


def test_a_list_that_is_ticked_twice_is_asked_for_once(store: Store, factory: StoreFactory) -> None:
    assert ask(store, lists=("news", "news")) is Asked.SENT
    assert [row["asked"] for row in factory.raw("SELECT asked FROM sign_up_days")] == [1]


def test_a_stranger_gets_three_mails_a_day_at_most(store: Store, factory: StoreFactory) -> None:
    for hour in range(3):
        factory.set_now(NOON + 3600 * hour)
        assert ask(store, network=f"10.0.{hour}.0/24") is Asked.SENT
    factory.set_now(NOON + 3600 * 5)
    assert ask(store, network="10.1.0.0/24") is Asked.ADDRESS
    factory.set_now(NOON + DAY_SECONDS + 1)
    assert ask(store) is Asked.SENT


def test_one_network_has_thirty_an_hour(store: Store, factory: StoreFactory) -> None:
    """A botnet in one place reaches thirty strangers, and takes nothing from the rest of the world."""
    verdicts = [ask(store, f"reader{n}@example.org") for n in range(31)]
    assert verdicts == [Asked.SENT] * 30 + [Asked.NETWORK]
    assert ask(store, "other@example.org", network="198.51.100.0/24") is Asked.SENT
    factory.set_now(NOON + 3601)
    assert ask(store, "reader30@example.org") is Asked.SENT


def test_a_flood_is_stopped_first_by_the_limit_of_all(store: Store, factory: StoreFactory) -> None:
    """A million networks with an address each: no limit but this one knows them."""
    marks = [(NOON - 1, f"network {n}".encode(), f"address {n}".encode()) for n in range(1000)]
    for one in marks:
        factory.raw("insert into sign_up_marks values (?, ?, ?)", one)
    before = outbox(factory)
    assert [ask(store, f"reader{n}@example.org", network=f"{n}") for n in range(20)] == [Asked.ALL] * 20
    assert outbox(factory) == before
    assert factory.raw("select count(*) as n from sign_up_marks")[0]["n"] == 1000, "a refused post has a row"
    assert metric_rows.counts(store)[Counter.SIGN_UPS, "all"] == 20
    factory.set_now(NOON + 3600)
    assert ask(store) is Asked.SENT


def test_what_the_limits_count_by_is_a_secret_and_gone_after_a_day(
    store: Store, factory: StoreFactory
) -> None:
    ask(store)
    (row,) = factory.raw("select network, address from sign_up_marks")
    assert "192.0.2" not in str(row["network"])
    assert "ann" not in str(row["address"])
    factory.set_now(NOON + DAY_SECONDS)
    store.erase_sign_ups(NOON - 1, 100)
    assert not factory.raw("select 1 from sign_up_marks")


def test_posts_at_once_cause_one_mail(factory: StoreFactory) -> None:
    """A double click is two posts at the same moment."""
    store = factory.make(FakeClock())
    stores = [factory.open_again() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        verdicts = sorted(pool.map(ask, stores))
    assert verdicts == ["address", "address", "address", "sent"]
    assert outbox(factory) == 1
    assert metric_rows.counts(store)[Counter.SIGN_UPS, "sent"] == 1


def test_a_post_neither_reads_nor_writes_who_is_subscribed(store: Store, factory: StoreFactory) -> None:
    """Whoever asks for an address learns nothing of it: the outcome is the same for all of them."""
    subscribe(store, "active@example.org")
    subscribe(store, "gone@example.org", status="unsubscribed")
    subscribe(store, "bounced@example.org", status="bounced")
    before = factory.raw("select * from subscribers order by email_norm")
    people = ["active", "gone", "bounced", "new"]
    assert {ask(store, f"{name}@example.org") for name in people} == {Asked.SENT}
    assert factory.raw("select * from subscribers order by email_norm") == before
    assert not factory.raw("select 1 from subscriptions")
    assert not factory.raw("select 1 from consents")


# ── Who gets the confirmation ──


def test_a_confirmation_reaches_who_bounced_or_unsubscribed(store: Store) -> None:
    """A mailbox that works again can be proved by nothing else."""
    subscribe(store, ANN, status="bounced")
    subscribe(store, "bea@example.org", status="unsubscribed")
    hear(store, bounce("cat@example.org", NOON - 9, "ses-cat"))
    for email in (ANN, "bea@example.org", "cat@example.org"):
        ask(store, email)
    begun = Sender(store, None).begin(9)
    assert sorted(one.email for one in begun) == [ANN, "bea@example.org", "cat@example.org"]


@pytest.mark.parametrize("known", [True, False])
def test_nobody_who_complained_gets_another_mail(store: Store, known: bool) -> None:
    if known:
        subscribe(store, ANN)
    hear(store, complaint(ANN, NOON - 9, "ses-ann"))
    assert ask(store) is Asked.SENT, "whoever posts it sees no difference"
    reply = Sender(store, None).step(want=9)
    assert not reply.rows
    assert reply.suppressed == 1
    assert confirm(store) is Confirmed.COMPLAINED
    assert not lists_of(store) if known else not store.select(subscriber_rows.COLUMNS, {"email_norm": ANN})


# ── What confirming changes ──


def test_a_stranger_joins_the_chosen_lists_alone(store: Store, factory: StoreFactory) -> None:
    store.put(LIST_TABLE, [List("news", "News", public=True)])
    store.put(LIST_TABLE, [List("other", "Other", public=True)])
    ask(store)
    factory.set_now(NOON + 60)
    assert confirm(store) is Confirmed.JOINED
    found = subscriber_rows.subscriber(store, ANN)
    assert (found["status"], found["attributes"]["name"]) == ("active", "Ann")
    assert lists_of(store) == {"news": True, "general": False, "other": False}
    assert store.audience_size(None) == 0, "general is everybody's, unless they chose something else"
    assert store.audience_size("news") == 1
    (consent,) = subscriber_rows.consents(store, ANN)
    assert (consent["list_key"], consent["at"], consent["wording"], consent["source"]) == (
        "news",
        NOON + 60,
        WORDING,
        PAGE,
    )
    assert sign_up_rows.sign_up_days(store, "2026-11-01") == [SignUpDay("2026-11-16", "news", 1, 1)]


def test_an_active_readers_other_lists_stay(store: Store) -> None:
    """Else a form could take somebody off what they read."""
    subscribe(store, ANN, lists=("weekly",), attributes={"name": "Dr. Ann"})
    assert confirm(store) is Confirmed.JOINED
    assert lists_of(store) == {"weekly": True, "news": True}
    assert store.audience_size(None) == 1
    assert subscriber_rows.subscriber(store, ANN)["attributes"]["name"] == "Dr. Ann"


@pytest.mark.parametrize("status", ["unsubscribed", "bounced"])
def test_who_was_gone_comes_back_to_the_chosen_lists_alone(store: Store, status: str) -> None:
    subscribe(store, ANN, lists=("weekly",), status=status)
    assert confirm(store) is Confirmed.JOINED
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active"
    assert lists_of(store) == {"weekly": False, "news": True, "general": False}


def test_who_left_one_list_comes_back_to_it(store: Store) -> None:
    subscribe(store, ANN, lists=("news",))
    store.unsubscribe(ANN, "news")
    store.unsubscribe(ANN, "general")
    confirm(store, ANN, "news", "general")
    assert lists_of(store) == {"news": True, "general": True}


def test_who_was_forgotten_comes_back_by_their_own_act(store: Store) -> None:
    subscribe(store, ANN)
    store.forget(ANN, "forgotten-1")
    assert confirm(store) is Confirmed.JOINED
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active"
    assert store.import_subscribers([SubscriberRow(ANN, ANN)]).forgotten == 0


def test_a_complaint_outlives_being_forgotten(store: Store) -> None:
    subscribe(store, ANN)
    hear(store, complaint(ANN, NOON - 9, "ses-ann"))
    store.forget(ANN, "forgotten-1")
    assert confirm(store) is Confirmed.COMPLAINED


def test_a_complaint_that_comes_after_being_forgotten_counts_and_names_nobody(
    store: Store, factory: StoreFactory
) -> None:
    """Archived or deleted messages leave only the address in the event to go by."""
    subscribe(store, ANN)
    store.forget(ANN, "forgotten-1")
    hear(store, complaint(ANN, NOON - 9, "ses-ann"))
    assert ANN not in str(factory.raw("SELECT * FROM delivery_events"))
    assert confirm(store) is Confirmed.COMPLAINED


def test_a_delivery_that_is_reported_after_being_forgotten_keeps_nobody_away(store: Store) -> None:
    store.forget(ANN, "forgotten-1")
    hear(store, ses_event("Delivery", ses_id="ses-ann"))
    assert confirm(store) is Confirmed.JOINED


def test_a_link_that_is_followed_twice_does_nothing_the_second_time(
    store: Store, factory: StoreFactory
) -> None:
    confirm(store)
    factory.set_now(NOON + 60)
    assert confirm(store) is Confirmed.KNOWN
    assert len(subscriber_rows.consents(store, ANN)) == 1
    store.unsubscribe(ANN, None)
    assert confirm(store) is Confirmed.OVER, "an old link must not undo that somebody left"
    assert subscriber_rows.subscriber(store, ANN)["status"] == "unsubscribed"
    factory.set_now(NOON + 120)
    assert confirm(store, at=NOON + 100) is Confirmed.JOINED, "a new sign-up does"


@pytest.mark.parametrize("status", ["active", "unsubscribed", "bounced", None])
@pytest.mark.parametrize("list_key", ["news", None])
def test_an_old_link_brings_nobody_back_who_left_after_it(
    store: Store, factory: StoreFactory, status: str | None, list_key: str | None
) -> None:
    """However they stood when they left: the last word is the one that counts."""
    if status is not None:
        subscribe(store, ANN, status=status, lists=("news",))
    factory.set_now(NOON + 60)
    store.unsubscribe(ANN, list_key)
    before = store.select(subscriber_rows.SUBSCRIPTIONS, {"email": ANN})
    assert confirm(store) is Confirmed.OVER
    assert store.select(subscriber_rows.SUBSCRIPTIONS, {"email": ANN}) == before
    factory.set_now(NOON + 120)
    assert confirm(store, ANN, "weekly", at=NOON + 30) is (
        Confirmed.OVER if list_key is None else Confirmed.JOINED
    ), "another list than the one that they left"
    assert confirm(store, at=NOON + 100) is Confirmed.JOINED, "a new sign-up does"


def test_an_old_link_brings_nobody_back_who_left_through_ses(store: Store, factory: StoreFactory) -> None:
    subscribe(store, ANN)
    hear(store, ses_event("Subscription", ANN, at=NOON + 60))
    factory.set_now(NOON + 120)
    assert confirm(store) is Confirmed.OVER


@pytest.mark.parametrize("leaves", [True, False])
def test_who_joins_again_gets_letters_at_once(store: Store, leaves: bool) -> None:
    """A pause from before would last for months after "You are subscribed"."""
    subscribe(store, ANN)
    store.choose(ANN, Choice(snooze_seconds=90 * DAY_SECONDS))
    if leaves:
        store.unsubscribe(ANN, None)
    assert confirm(store) is Confirmed.JOINED
    assert store.audience_size("news") == 1


def test_two_clicks_at_once_are_one_consent(factory: StoreFactory) -> None:
    store = factory.make(FakeClock())
    stores = [factory.open_again() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        verdicts = sorted(pool.map(confirm, stores))
    assert verdicts == ["joined", "known", "known", "known"]
    assert len(subscriber_rows.consents(store, ANN)) == 1
    assert sign_up_rows.sign_up_days(store, "")[0].confirmed == 1


def test_an_undone_import_takes_nobody_away_who_confirmed_since(store: Store) -> None:
    id = uuid_of("import")
    store.put(IMPORT_TABLE, [ImportRecord(id, "me", "file.csv", {}, {})])
    store.import_subscribers([SubscriberRow(ANN, ANN, lists=("news",))], import_id=id)
    confirm(store)
    assert store.undo_import(id).people == 0
    assert lists_of(store) == {"news": True}


# ── Bounces before it ──


def test_bounces_before_a_sign_up_no_longer_count_whenever_they_are_told(factory: StoreFactory) -> None:
    """Whatever order events and the sign-up come in, the end is the same."""
    hard = bounce(ANN, NOON - 100, "ses-1")
    soft = [
        bounce(ANN, NOON - 90 + n, f"soft-{n}", "Transient").replace("General", "MailboxFull")
        for n in range(3)
    ]
    ends = []
    for order in permutations(["hard", "soft", "join"]):
        store = factory.make(FakeClock())
        subscribe(store, ANN)
        for what in order:
            if what == "join":
                confirm(store)
            else:
                hear(store, *([hard] if what == "hard" else soft))
        found = subscriber_rows.subscriber(store, ANN)
        ends.append((found["status"], found["bounce_type"], found["bounce_subtype"]))
    assert set(ends) == {("active", None, None)}


def test_bounces_after_a_sign_up_count(store: Store) -> None:
    confirm(store)
    soft = [bounce(ANN, NOON + n, f"soft-{n}", "Transient").replace("General", "MailboxFull") for n in (1, 2)]
    old = bounce(ANN, NOON - 1, "soft-0", "Transient").replace("General", "MailboxFull")
    hear(store, old, *soft)
    assert subscriber_rows.subscriber(store, ANN)["status"] == "active", "two since then"
    hear(store, bounce(ANN, NOON + 9, "ses-1"))
    assert subscriber_rows.subscriber(store, ANN)["status"] == "bounced"


def test_a_complaint_told_late_counts_whatever_its_date(store: Store) -> None:
    confirm(store)
    hear(store, complaint(ANN, NOON - 1000, "ses-1"))
    assert subscriber_rows.subscriber(store, ANN)["status"] == "unsubscribed"


# ── What is erased ──


def sent(store: Store, email: str = ANN) -> str:
    """Asks, and the mail is sent; its SES id."""
    ask(store, email)
    sender = Sender(store, None)
    (claimed,) = sender.begin(9)
    sender.step(results=[result(claimed, provider_message_id=f"ses-{email}")], close=True)
    return f"ses-{email}"


def test_a_sign_up_that_nobody_confirms_is_erased_after_a_week(store: Store, factory: StoreFactory) -> None:
    """Somebody else may have typed the address in: nothing of a stranger stays."""
    hear(store, ses_event("Delivery", ses_id=sent(store), at=NOON, destination=[ANN], recipients=[ANN]))
    assert store.erase_sign_ups(NOON - 1, 100) == 0
    factory.set_now(NOON + CONFIRM_SECONDS + 1)
    assert store.erase_sign_ups(store.now() - CONFIRM_SECONDS, 100) == 1
    for table in ("email_outbox", "delivery_events", "sign_up_marks", "subscribers", "error_records"):
        assert not factory.raw(f"select * from {table}"), table
    assert sign_up_rows.sign_up_days(store, "")[0].open == 1, "counted, not named"


def test_a_confirmed_one_stays_without_what_its_link_said(store: Store, factory: StoreFactory) -> None:
    ask(store)
    factory.set_now(NOON + 60)
    confirm(store)
    factory.set_now(NOON + CONFIRM_SECONDS + 1)
    assert store.erase_sign_ups(store.now() - CONFIRM_SECONDS, 100) == 0
    assert factory.raw("select email, variables from email_outbox") == [{"email": ANN, "variables": None}]


def test_erasing_keeps_who_complained_or_bounced(store: Store, factory: StoreFactory) -> None:
    """By a hash that only this store can compute: else the next post would reach who said no."""
    ses_id = sent(store)
    other = sent(store, "bea@example.org")
    hear(store, complaint(ANN, NOON, ses_id), bounce("bea@example.org", NOON, other))
    factory.set_now(NOON + CONFIRM_SECONDS + 1)
    assert store.erase_sign_ups(store.now() - CONFIRM_SECONDS, 100) == 2
    assert not factory.raw("select * from delivery_events")
    kept = str(factory.raw("select hash, what from erased_feedback"))
    assert "example" not in kept
    ask(store)
    ask(store, "bea@example.org")
    assert [one.email for one in Sender(store, None).begin(9)] == ["bea@example.org"]
    assert confirm(store) is Confirmed.COMPLAINED
    receipt = SingleMail(
        id=uuid_of("receipt"),
        company_id="shop",
        request_id="1",
        email="bea@example.org",
        content=LETTER,
        is_rehearsal=True,
    )
    store.accept_single_mails([receipt])
    assert Sender(store, None).step(want=9).suppressed == 1, "a dead address gets no receipt either"


def test_erasing_goes_in_parts(store: Store, factory: StoreFactory) -> None:
    for n in range(5):
        ask(store, f"reader{n}@example.org")
    factory.set_now(NOON + CONFIRM_SECONDS + 1)
    assert [store.erase_sign_ups(store.now() - 1, 2) for _ in range(4)] == [2, 2, 1, 0]


def test_forgetting_somebody_erases_their_consents(store: Store, factory: StoreFactory) -> None:
    ask(store)
    factory.set_now(NOON + 60)
    confirm(store)
    store.forget(ANN, "forgotten-1")
    assert not factory.raw("select * from consents")
    assert ANN not in str(factory.raw("select * from email_outbox"))


# ── A list's own mail ──


def welcome(list_key: str | None = "news") -> SingleMail:
    return SingleMail(
        id=uuid_of("welcome"),
        company_id="default",
        request_id="1",
        email=ANN,
        content=LETTER,
        category=Category.MARKETING,
        list_key=list_key,
        values={"var:first_name": "Ann"},
        is_rehearsal=True,
    )


def test_a_mail_of_a_list_brings_its_list_and_its_values(store: Store) -> None:
    confirm(store)
    store.accept_single_mails([welcome()])
    claimed = Sender(store, None).begin_one()
    assert (claimed.list_key, claimed.variables) == ("news", {"var:first_name": "Ann"})


@pytest.mark.parametrize("leaves", ["news", None])
def test_a_mail_of_a_list_is_not_sent_to_who_left_it_before(store: Store, leaves: str | None) -> None:
    confirm(store)
    store.accept_single_mails([welcome()])
    store.unsubscribe(ANN, leaves)
    assert Sender(store, None).step(want=1).suppressed == 1


def test_who_is_owed_a_welcome(store: Store, factory: StoreFactory) -> None:
    """Who is new to a list that has a letter for it; not who was on it before, nor who has left."""
    for key in ("news", "weekly"):
        store.put(LIST_TABLE, [List(key, key, public=True, welcome_ref=f"{key}.md")])
    store.put(LIST_TABLE, [List("plain", "plain", public=True)])
    subscribe(store, "bea@example.org", lists=("news",))
    factory.set_now(NOON + 10)
    for email in (ANN, "bea@example.org", "cat@example.org"):
        confirm(store, email, "news", "plain", "general")
    store.unsubscribe("cat@example.org", "news")

    def owed(since: float = NOON) -> list[tuple[str, str, str]]:
        found = sign_up_rows.owed_welcomes(store, since, rehearsal=True)
        return [(one.email, one.list_key, one.welcome_ref) for one in found]

    assert owed() == [(ANN, "news", "news.md")]
    assert owed(NOON + 11) == []
    store.accept_single_mails([replace(welcome(), id=welcome_id("news", ANN, rehearsal=True))])
    assert owed() == []
    assert list(sign_up_rows.owed_welcomes(store, NOON, rehearsal=False)), "a rehearsal uses nothing up"


def test_a_message_in_the_air_is_not_erased(store: Store, factory: StoreFactory) -> None:
    ask(store)
    claimed = Sender(store, None, lease=10**7).begin_one()
    factory.set_now(NOON + CONFIRM_SECONDS + 1)
    assert store.erase_sign_ups(store.now() - 1, 9) == 0
    assert outbox_rows.message(store, claimed.attempt.id)["state"] == State.SENT_ATTEMPT


def test_confirmations_that_bounce_are_counted_apart(store: Store, factory: StoreFactory) -> None:
    """Strangers must not be able to stop a letter by typing in addresses that do not exist."""
    id = mailout(store, "bea@example.org")
    first, _ = sent(store), sent(store, "cat@example.org")
    assert metric_rows.confirmations(store) == {"sent": 0, "bounced": 0}, "rehearsals reach nobody"
    factory.raw("update email_outbox set is_rehearsal = (1 = 0)")
    hear(store, bounce(ANN, NOON, first))
    assert metric_rows.confirmations(store) == {"sent": 2, "bounced": 1}
    assert store.mailout(id).metrics.get("bounced", 0) == 0


def test_whoever_looks_after_it_hears_of_a_flood(store: Store, factory: StoreFactory) -> None:
    assert alert_rows.alert_signs(store, "ses").sign_up_brake_at is None
    for n in range(1000):
        factory.raw("insert into sign_up_marks values (?, ?, ?)", (NOON - 1, f"{n}".encode(), b"a"))
    ask(store)
    assert alert_rows.alert_signs(store, "ses").sign_up_brake_at == NOON
    factory.set_now(NOON + 60)
    ask(store)
    assert alert_rows.alert_signs(store, "ses").sign_up_brake_at == NOON + 60


def test_reconcile_erases_in_parts_until_all_are_gone(store: Store, factory: StoreFactory) -> None:
    for n in range(3):
        ask(store, f"reader{n}@example.org")
    assert erase_unconfirmed(store) == 0
    factory.set_now(NOON + CONFIRM_SECONDS + 1)
    assert (erase_unconfirmed(store), outbox(factory)) == (3, 0)


def test_a_machine_that_comes_back_does_not_take_what_was_erased_for_a_lost_store(
    store: Store, factory: StoreFactory
) -> None:
    """It died after sending a confirmation; a week later it would refuse to send anything."""
    journals = MemoryJournals()
    ask(store)
    sender = Sender(store, None)
    (claimed,) = sender.begin(9)
    journals.open(sender.session).call([claimed.attempt])
    journals.die()
    sender.step(results=[result(claimed.attempt)])
    factory.set_now(NOON + CONFIRM_SECONDS + 1)
    assert erase_unconfirmed(store) == 1
    assert reap(store, journals, 0.0) == 0
    factory.set_now(NOON + CONFIRM_SECONDS - 1)
    lost = MemoryJournals()
    lost.open(sender.session).call([claimed.attempt])
    lost.die()
    with pytest.raises(StoreRolledBack):
        reap(store, lost, 0.0)


def test_a_link_from_before_somebody_left_or_was_erased_brings_nobody_back(
    store: Store, factory: StoreFactory
) -> None:
    """Their last word was no; whoever asks again afterwards is welcome."""
    confirm(store)
    factory.set_now(NOON + 60)
    store.forget(ANN, "forgotten")
    assert confirm(store) is Confirmed.OVER  # the link that was used
    assert subscriber_rows.subscribers(store) == []
    assert confirm(store, at=NOON + 120) is Confirmed.JOINED
    factory.set_now(NOON + 180)
    store.unsubscribe(ANN, None, None)
    assert confirm(store, ANN, "other", at=NOON + 150) is Confirmed.OVER  # one that never was
    assert subscriber_rows.subscriber(store, ANN)["status"] == "unsubscribed"
    assert confirm(store, ANN, "other", at=NOON + 200) is Confirmed.JOINED
