"""Single mails: handed in durably and once, found again by any of their ids, sent in turns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mailout.base import error_log
from mailout.base.errors import NotFound, StoreError, UsageError
from mailout.base.ids import transactional_id, uuid_of
from mailout.base.signed_links import SignedLinks
from mailout.kinds.single_mails import companies
from mailout.kinds.single_mails.companies import (
    KnownRecipient,
    Scope,
    add_company,
    add_token,
    hash_of,
    new_token,
    recipient_id,
    set_limits,
)
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content import content_rows
from mailout.letters.content.model import Content, mark
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.compose import SingleComposer
from mailout.outbox.delivery.protocol import Attempt
from mailout.outbox.delivery.single_mails import (
    CANCELLED,
    NO_SENDER,
    OURS,
    SIGNED_LINK,
    UNSERVED,
    UNSERVED_SECONDS,
    Category,
    SignedLink,
    SingleMail,
    SingleMailsHeld,
    Verdict,
)
from mailout.outbox.delivery.states import WAITING, State
from mailout.outbox.queue import actions, queue_rows
from mailout.outbox.queue.limits import Limits
from mailout.outbox.queue.limits import buckets as queue_buckets
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import NOWHERE, Sender, buckets, mailout, result, state_of
from tests.contract.stores import StoreFactory


def mail(key: str, *, company: str = "acme", **changes: Any) -> SingleMail:
    fields: dict[str, Any] = {
        "id": transactional_id(company, key),
        "company_id": company,
        "request_id": f"request {key}",
        "email": "ana@example.org",
        "content": Content("Your receipt", "<p>Thank you</p>", "Thank you"),
        "idempotency_key": key,
        "fingerprint": "one",
        "is_rehearsal": True,  # the senders of these scenes write to a folder
    }
    return SingleMail(**fields | changes)


def verdict(store: Store, one: SingleMail) -> Verdict:
    (acceptance,) = store.accept_single_mails([one])
    return acceptance.verdict


def test_the_same_key_is_one_message_and_another_body_a_conflict(store: Store) -> None:
    first, again, other = store.accept_single_mails(
        [mail("a"), replace(mail("a"), request_id="second"), mail("a", fingerprint="two")]
    )
    assert [first.verdict, again.verdict, other.verdict] == [
        Verdict.ACCEPTED,
        Verdict.REPEATED,
        Verdict.CONFLICT,
    ]
    assert first.id == again.id
    assert again.request_id == "request a"
    assert len(Sender(store, None).begin(5)) == 1
    (late,) = store.accept_single_mails([mail("a")])
    assert (late.verdict, late.state) == (Verdict.REPEATED, State.SENT_ATTEMPT)


def test_keys_belong_to_their_company(store: Store) -> None:
    assert verdict(store, mail("a")) is Verdict.ACCEPTED
    assert verdict(store, mail("a", company="zoo", fingerprint="two")) is Verdict.ACCEPTED
    assert outbox_rows.single_mail(store, "zoo", transactional_id("acme", "a")) is None
    found = outbox_rows.single_mail(store, "acme", transactional_id("acme", "a"))
    assert found is not None
    assert (found["subject"], found["request_id"], found["state"]) == (
        "Your receipt",
        "request a",
        "PENDING",
    )


def test_what_the_sender_needs_comes_with_the_claim(store: Store) -> None:
    headers = {"X-Order": "7", "References": "<a@b>"}
    store.accept_single_mails(
        [mail("a", headers=headers, reply_to="help@example.org", category=Category.MARKETING)]
    )
    row = Sender(store, None).begin_one()
    assert (row.headers, row.reply_to, row.category) == (headers, "help@example.org", "marketing")
    assert content_rows.content(store, row.content_hash).subject == "Your receipt"


def test_a_secret_link_is_in_the_mail_alone_and_nowhere_in_the_store(store: Store) -> None:
    """Whoever may read the store, a page, an export or a backup could follow it else."""
    link = SignedLink("sign-in", "/login/link", {"email": "ana@example.org", "at": NOON})
    letter = Content("Sign in", f"<p>{mark(SIGNED_LINK)}</p>", mark(SIGNED_LINK))
    store.accept_single_mails([mail("a", link=link, content=letter)])
    row = Sender(store, None).begin_one()
    composer = SingleComposer(
        partial(content_rows.content, store),
        footer=lambda: pytest.fail("it needs no footer"),
        tokens=None,
        from_email="news@example.org",
        from_name="",
        reply_to=None,
        link_secrets=["a secret"],
        public_url="https://mail.example.org/",
    )
    sent = composer(row)
    text = sent.content.text_segments.fill(sent.values)
    address, token = text.split("?token=")
    assert address == "https://mail.example.org/login/link"
    assert SignedLinks(["a secret"], "sign-in").read(token) == link.payload
    kept = outbox_rows.single_mail(store, "acme", row.attempt.id)
    assert kept is not None
    assert kept["variables"] == {SIGNED_LINK: link.written()}
    signature = token.partition(".")[2]
    assert signature not in f"{kept} {content_rows.content(store, row.content_hash)}"
    with pytest.raises(UsageError, match="PUBLIC_URL"):
        replace(composer, public_url=None)(row)


def test_it_waits_for_its_time(store: Store, factory: StoreFactory) -> None:
    store.accept_single_mails([mail("later", send_at=NOON + 60), mail("past", send_at=NOON - 60)])
    sender = Sender(store, None)
    assert [row.attempt.id for row in sender.begin(5)] == [transactional_id("acme", "past")]
    factory.set_now(NOON + 59)
    assert not store.has_single_mails(sender.session)
    assert not sender.begin(5)
    factory.set_now(NOON + 61)
    assert store.has_single_mails(sender.session)
    assert len(sender.begin(5)) == 1


def test_a_message_is_found_by_any_of_its_ids(store: Store) -> None:
    store.accept_single_mails([mail("a"), mail("b", request_id="batch"), mail("c", request_id="batch")])
    sender = Sender(store, None)
    first = sender.begin_one()
    sender.step(results=[result(first, provider_message_id="ses-1")])
    a, b, c = (transactional_id("acme", key) for key in "abc")
    for name in (a, "request a", "ses-1"):
        assert list(outbox_rows.find_messages(store, name)) == [a]
    assert list(outbox_rows.find_messages(store, "batch")) == [b, c]
    assert (
        list(outbox_rows.find_messages(store, "nothing"))
        == list(outbox_rows.find_messages(store, NOWHERE))
        == []
    )


# ── what went wrong ──


def test_a_failed_single_mail_is_tried_again_and_only_when_somebody_names_it(store: Store) -> None:
    """Otherwise it is a dead end: its key is used up, and its customer never gets a receipt."""
    a, b = (acceptance.id for acceptance in store.accept_single_mails([mail("a"), mail("b")]))
    sender = Sender(store, None)
    rows = sender.begin(5)
    sender.step(
        results=[result(row, State.FAILED, code="RECIPIENT_NOT_VERIFIED", retry_in=3600.0) for row in rows]
    )
    assert store.retry_failed(None) == 0
    with pytest.raises(NotFound):
        store.retry_failed(None, ids=[a, NOWHERE])
    actions.retry_single_mail(store, a)
    assert [state_of(store, id) for id in (a, b)] == [State.PENDING, State.FAILED]
    (again,) = sender.begin(5)
    assert (again.attempt.id, again.number) == (a, 1)
    sender.step(results=[result(again)])
    assert state_of(store, a) is State.SENT
    events = [event["type"] for event in outbox_rows.message_events(store, a)]
    assert events.count("FAILED") == 1
    with pytest.raises(UsageError, match="has not failed: it is SENT"):
        actions.retry_single_mail(store, a)


def test_a_waiting_single_mail_is_taken_back_and_one_on_its_way_is_not(store: Store) -> None:
    a, b = (acceptance.id for acceptance in store.accept_single_mails([mail("a"), mail("b")]))
    sender = Sender(store, None)
    (begun,) = sender.begin(1)
    waits = b if begun.attempt.id == a else a
    actions.cancel_single_mail(store, waits)
    assert state_of(store, waits) is State.SUPPRESSED
    assert outbox_rows.message(store, waits)["error_message"] == CANCELLED
    with pytest.raises(UsageError, match="does not wait: it is SENT_ATTEMPT"):
        actions.cancel_single_mail(store, begun.attempt.id)
    assert sender.begin(5) == []


def test_single_mails_of_one_company_are_listed_by_state_the_latest_first(store: Store) -> None:
    store.accept_single_mails([mail("a"), mail("b"), mail("c", company="zoo")])
    found = outbox_rows.single_mails(store, WAITING, "acme")
    assert [row["request_id"] for row in found] == ["request b", "request a"]
    assert len(outbox_rows.single_mails(store, WAITING)) == 3
    assert outbox_rows.single_mails(store, [State.FAILED]) == []


def test_a_message_of_a_mailout_is_not_retried_as_a_single_mail(store: Store) -> None:
    """Its mailout counts it."""
    id = mailout(store, "ana@example.org")
    row = Sender(store, id).begin_one()
    for act in (actions.retry_single_mail, actions.cancel_single_mail):
        with pytest.raises(UsageError, match="message of a mailout"):
            act(store, row.attempt.id)


def test_a_single_mail_in_doubt_is_settled_by_a_person(store: Store, factory: StoreFactory) -> None:
    store.accept_single_mails([mail("a"), mail("b")])
    sender = Sender(store, None)
    sender.step(results=[result(row, State.UNKNOWN) for row in sender.begin(2)])
    a, b = (transactional_id("acme", key) for key in "ab")
    assert store.settle(None, State.SENT, wait=900) == 0  # each is named: there is no "all of them"
    with pytest.raises(NotFound):
        store.settle(None, State.SENT, wait=900, ids=[a, NOWHERE])
    assert store.settle(None, State.SENT, wait=900, ids=[a]) == 1
    assert [event["type"] for event in outbox_rows.message_events(store, a)][-2:] == ["UNKNOWN", "SENT"]
    with pytest.raises(StoreError, match="too recently"):
        store.settle(None, State.PENDING, wait=900, ids=[b])
    factory.set_now(NOON + 900)
    assert store.settle(None, State.PENDING, wait=900, ids=[b]) == 1
    assert (state_of(store, a), state_of(store, b)) == (State.SENT, State.PENDING)
    other = mailout(store, "a@example.org")
    sender = Sender(store, other)
    row = sender.begin_one()
    sender.step(results=[result(row, State.UNKNOWN)])
    with pytest.raises(NotFound):  # it has a mailout, whose ledger would not know
        store.settle(None, State.SENT, wait=900, ids=[row.attempt.id])


def test_a_result_without_a_row_is_a_dead_letter(store: Store) -> None:
    """Somebody restored a backup, or deleted rows: what was called must not vanish without a word."""
    gone = Attempt(uuid_of("gone"), 3)
    store.accept_single_mails([mail("a")])
    sender = Sender(store, None)
    told = result(gone, provider_message_id="ses-9")
    reply = sender.step(results=[told, result(sender.begin_one())], withdraw=[Attempt(uuid_of("never"), 1)])
    assert list(reply.missing) == [gone.id]
    assert list(sender.step(results=[told]).missing) == [gone.id]  # told again, kept once
    (letter,) = error_log.dead_letters(store)
    assert (letter["topic"], letter["error"]) == ("outbox", "OUTBOX_NOT_FOUND")
    assert letter["payload"] == {"message": gone.id, "epoch": 3, "state": "SENT", "ses_id": "ses-9"}
    assert state_of(store, transactional_id("acme", "a")) is State.SENT


# ── recipients ──


def known(external: str = "u-1", email: str = "ana@example.org", company: str = "acme") -> KnownRecipient:
    return KnownRecipient(company, recipient_id(company, external), external, email, "Ana")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"recipient_id": recipient_id("acme", "u-1")}, Verdict.ACCEPTED),
        ({"external_id": "u-1"}, Verdict.ACCEPTED),
        ({"recipient_id": recipient_id("acme", "u-1"), "external_id": "u-1"}, Verdict.ACCEPTED),
        ({"recipient_id": recipient_id("acme", "u-1"), "external_id": "u-2"}, Verdict.NO_RECIPIENT),
        ({"recipient_id": uuid_of("nobody")}, Verdict.NO_RECIPIENT),
        ({"recipient_id": recipient_id("acme", "gone")}, Verdict.NO_RECIPIENT),
        ({"external_id": "gone"}, Verdict.NO_RECIPIENT),
        ({"recipient_id": recipient_id("zoo", "u-1")}, Verdict.NO_RECIPIENT),
        ({"external_id": "u-1", "email": "bo@example.org"}, Verdict.NO_RECIPIENT),
        ({"external_id": "new"}, Verdict.ACCEPTED),
    ],
)
def test_the_recipient_who_is_named_must_be_there(
    store: Store, changes: dict[str, Any], expected: Verdict
) -> None:
    """It exists, is not deleted, and company and address agree; a name that is new is written down."""
    for one in (known(), known("gone"), known(company="zoo")):
        assert store.put_recipient(one)
    assert store.delete_recipient("acme", "gone")
    assert verdict(store, mail("a", **changes)) is expected
    if expected is Verdict.NO_RECIPIENT:
        assert not outbox_rows.find_messages(store, transactional_id("acme", "a"))
    else:
        assert len(Sender(store, None).begin(5)) == 1
    if changes.get("external_id") == "new":
        made = companies.recipient(store, "acme", "new")
        assert made is not None
        assert (made.email, made.id) == ("ana@example.org", recipient_id("acme", "new"))


def test_a_recipient_who_is_deleted_meanwhile_gets_nothing(store: Store) -> None:
    """Found when it is claimed: received, which is an attempt, and never called."""
    store.put_recipient(known())
    store.accept_single_mails([mail("a", external_id="u-1")])
    store.delete_recipient("acme", "u-1")
    id = transactional_id("acme", "a")
    assert Sender(store, None).step(want=5).refused == 1
    row = outbox_rows.message(store, id)
    assert (row["state"], row["error_code"], row["attempts"]) == (
        "VALIDATION_FAILED",
        "RECIPIENT_NOT_FOUND",
        1,
    )
    events = outbox_rows.message_events(store, id)
    assert [event["type"] for event in events] == ["RECEIVED", "VALIDATION_FAILED"]
    assert events[0]["metadata"] == {"attempt": 1}


def test_recipients_are_made_changed_deleted_and_made_again(store: Store) -> None:
    assert store.put_recipient(known())
    assert not store.put_recipient(known(email="new@example.org"))
    found = companies.recipient(store, "acme", "u-1")
    assert found is not None
    assert (found.email, found.name, found.id) == ("new@example.org", "Ana", recipient_id("acme", "u-1"))
    assert companies.recipient(store, "zoo", "u-1") is None
    assert store.delete_recipient("acme", "u-1")
    assert not store.delete_recipient("acme", "u-1")
    assert companies.recipient(store, "acme", "u-1") is None
    assert store.put_recipient(known())


# ── companies and tokens ──


def test_a_token_is_known_by_its_hash_until_it_is_revoked(store: Store) -> None:
    text, token = new_token("acme", [Scope.SEND], 60)
    add_token(store, token)
    assert [company.id for company in companies.companies(store)] == ["acme"]
    found = companies.token(store, hash_of(text))
    assert found is not None
    assert (found.company_id, found.scopes, found.limit_per_minute, found.revoked_at) == (
        "acme",
        (Scope.SEND,),
        60,
        None,
    )
    assert companies.token(store, hash_of(text + "x")) is None
    assert store.revoke_token(token.id)
    assert not store.revoke_token(token.id)
    revoked = companies.token(store, hash_of(text))
    assert revoked is not None
    assert revoked.revoked_at == NOON
    assert [one.id for one in companies.tokens(store)] == [token.id]


@pytest.mark.parametrize(("kind", "limits"), [("hour", (2, None)), ("day", (None, 2))])
def test_a_companys_own_limit_holds(store: Store, kind: str, limits: tuple[int | None, int | None]) -> None:
    """Above or below the one for every company, and also where there is none."""
    add_company(store, "acme")
    with pytest.raises(NotFound):
        set_limits(store, "nobody", 1, 1)
    assert set_limits(store, "acme", *limits).id == "acme"
    store.accept_single_mails([mail(f"a{n}") for n in range(4)])
    store.accept_single_mails([mail(f"z{n}", company="zoo") for n in range(4)])
    begun = Sender(store, None).begin(8, buckets=buckets(NOON))
    assert sorted(row.company_id for row in begun) == ["acme"] * 2 + ["zoo"] * 4
    set_limits(store, "acme", None, None)
    assert len(Sender(store, None).begin(8, buckets=buckets(NOON))) == 2


def test_a_company_at_its_own_limit_is_told_which_one_until_it_ends(store: Store) -> None:
    """Its mails wait, and those of others leave: no run is held up, so none would say why."""
    limits = Limits(ZoneInfo("UTC"))

    def told(now: float, rehearsal: bool = False) -> tuple[str, str] | None:
        return companies.why_they_wait(store, "acme", limits, now, rehearsal=rehearsal)

    add_company(store, "acme")
    set_limits(store, "acme", 2, None)
    store.accept_single_mails([mail(f"a{n}") for n in range(4)])
    assert told(NOON) is None
    Sender(store, None).begin(8, buckets=queue_buckets(limits, NOON))
    said = "acme has used up its limit of this hour (2); it goes on at 16 Nov 2026 13:00 UTC."
    assert told(NOON) == ("hour", said)
    assert (told(NOON + 3600), told(NOON, rehearsal=True)) == (None, None)
    store.pause_all(True)
    assert (told(NOON) or ("",))[0] == "all_paused"


def test_a_companys_own_limit_holds_for_its_mailouts(store: Store) -> None:
    add_company(store, "acme")
    set_limits(store, "acme", 1, None)
    id = mailout(store, "a@example.org", "b@example.org", company_id="acme")
    sender = Sender(store, id)
    assert len(sender.begin(5, buckets=buckets(NOON))) == 1
    assert sender.step(want=5, buckets=buckets(NOON)).limited == "hour"


# ── what holds them up ──


def test_why_single_mails_wait_is_known_since_it_began_and_only_while_one_waits(
    store: Store, factory: StoreFactory
) -> None:
    store.hold_single_mails(SingleMailsHeld(NOON, "SES_A", "First.", True), rehearsal=True)
    store.hold_single_mails(SingleMailsHeld(NOON + 60, "SES_B", "Then.", False), rehearsal=True)
    waiting = store.single_mails_waiting(rehearsal=True)
    assert (waiting.due, waiting.hold) == (0, None)
    store.accept_single_mails([mail("a"), mail("b"), mail("later", send_at=NOON + 3600)])
    waiting = store.single_mails_waiting(rehearsal=True)
    assert (waiting.due, waiting.hold) == (2, SingleMailsHeld(NOON, "SES_B", "Then.", False))
    assert store.single_mails_waiting(rehearsal=False).held is None
    store.hold_single_mails(None, rehearsal=True)
    assert store.single_mails_waiting(rehearsal=True).held is None
    assert not queue_rows.all_paused(store)


def test_mails_that_nobody_sends_say_so(store: Store, factory: StoreFactory) -> None:
    """Where only a gateway runs they wait for ever, and every page would say that all is well."""
    store.accept_single_mails([mail("a")])
    factory.set_now(NOON + UNSERVED_SECONDS - 1)
    assert store.single_mails_waiting(rehearsal=True).hold is None
    factory.set_now(NOON + UNSERVED_SECONDS)
    assert store.single_mails_waiting(rehearsal=True).hold == SingleMailsHeld(NOON, NO_SENDER, UNSERVED, True)
    assert "mailout doctor" in UNSERVED  # `up` may run, and Prefect's pool be paused
    assert store.single_mails_waiting(rehearsal=False).hold is None
    Sender(store, None)
    assert store.single_mails_waiting(rehearsal=True).hold is None


def test_a_link_that_waits_counts_as_a_single_mail_and_an_alert_does_not(store: Store) -> None:
    """Whoever wants to join waits for it, and nobody else would say so."""
    link = SignedLink("confirm", "join/confirm", {})
    store.accept_single_mails([mail("alert", company=OURS), mail("to confirm", company=OURS, link=link)])
    assert store.single_mails_waiting(rehearsal=True).due == 1


# ── turns ──


def test_companies_take_turns(store: Store) -> None:
    """Of a thousand of one company, the first goes before another's one, and no other."""
    store.accept_single_mails([mail(f"a{n}") for n in range(1000)])
    store.accept_single_mails([mail("z", company="zoo")])
    assert [row.company_id for row in Sender(store, None).begin(3)] == ["acme", "zoo", "acme"]


def test_companies_take_turns_also_where_one_leaves_at_a_time(store: Store, factory: StoreFactory) -> None:
    for company in ("acme", "bee", "zoo"):
        store.accept_single_mails([mail(f"{n}", company=company) for n in range(3)])
    sender = Sender(store, None)
    order = []
    for second in range(9):
        factory.set_now(NOON + second)
        order.append(sender.begin_one().company_id)
    assert order == ["acme", "bee", "zoo"] * 3


def test_single_mails_go_before_a_mailout_while_somebody_sends_them(store: Store) -> None:
    id = mailout(store, "a@example.org", "b@example.org", "c@example.org", "d@example.org")
    store.accept_single_mails([mail(f"{n}") for n in range(3)])
    bulk = Sender(store, id)
    assert len(bulk.begin(1)) == 1  # nobody is there for the single mails: a mailout does not wait for ever
    single = Sender(store, None)
    reply = bulk.step(want=3)
    assert not reply.rows
    assert reply.next_slot_at is not None
    assert reply.next_slot_at > reply.now
    assert len(single.begin(1)) == 1
    assert len(bulk.begin(3)) == 1  # what they leave
    assert len(single.begin(5)) == 2
    assert len(bulk.begin(5)) == 2


def test_a_full_company_keeps_no_mailout_waiting(store: Store) -> None:
    add_company(store, "zoo")
    set_limits(store, "zoo", 0, None)
    id = mailout(store, "a@example.org", "b@example.org")
    store.accept_single_mails([mail(f"{n}", company="zoo") for n in range(3)])
    Sender(store, None)
    assert len(Sender(store, id).begin(2, buckets=buckets(NOON))) == 2


def test_a_rehearsal_never_reaches_people_and_the_other_way_round(store: Store) -> None:
    """What was handed in for the folder stays for the folder, also after the transport is changed."""
    store.accept_single_mails([mail("for the folder"), mail("for people", is_rehearsal=False)])
    sender = Sender(store, None)
    assert [row.attempt.id for row in sender.begin(5)] == [transactional_id("acme", "for the folder")]
    reply = sender.step(want=5)
    assert (list(reply.rows), reply.next_due_at) == ([], None)
    assert state_of(store, transactional_id("acme", "for people")) is State.PENDING
    assert store.single_mails_waiting(rehearsal=False).due_since == NOON


def test_who_waits_and_whether_anybody_serves_them(store: Store, factory: StoreFactory) -> None:
    nothing = store.single_mails_waiting(rehearsal=True)
    assert (nothing.due_since, nothing.is_served, nothing.has_tokens) == (None, False, False)
    _, token = new_token("acme", [Scope.SEND], None)
    add_token(store, token)
    store.accept_single_mails([mail("a"), mail("later", send_at=NOON + 60)])
    factory.set_now(NOON + 7)
    waiting = store.single_mails_waiting(rehearsal=True)
    assert (waiting.now, waiting.due_since, waiting.is_served, waiting.has_tokens) == (
        NOON + 7,
        NOON,
        False,
        True,
    )
    sender = Sender(store, None)
    assert store.single_mails_waiting(rehearsal=True).is_served
    assert not store.single_mails_waiting(rehearsal=False).is_served
    sender.begin(5)
    assert not store.has_single_mails(sender.session)
    assert store.single_mails_waiting(rehearsal=True).due_since is None
    store.stop_machine("nobody")
    assert not store.has_single_mails(sender.session)
    store.revoke_token(token.id)
    assert not store.single_mails_waiting(rehearsal=True).has_tokens


def test_an_idle_sender_hears_that_it_should_stop(store: Store) -> None:
    sender = Sender(store, None, worker="machine-7")
    assert not store.has_single_mails(sender.session)
    store.stop_machine("machine")
    assert store.has_single_mails(sender.session)
    assert store.has_single_mails(NOWHERE)


def test_a_forgotten_person_leaves_no_mail_behind(store: Store, factory: StoreFactory) -> None:
    """Of a single mail the text itself is about them; what others got, too, stays."""
    own = Content("Dear Ana", "<p>Ana's receipt</p>", "Ana's receipt")
    store.accept_single_mails([mail("a", content=own, reply_to="help@example.org", headers={"X-Who": "Ana"})])
    store.accept_single_mails([mail("b"), mail("c", email="bo@example.org")])
    store.forget("ana@example.org", "forgotten")
    row = outbox_rows.message(store, transactional_id("acme", "a"))
    assert (row["email"], row["headers"], row["reply_to"], row["content_id"]) == (
        "forgotten",
        None,
        None,
        None,
    )
    assert factory.raw("SELECT subject FROM contents") == [{"subject": "Your receipt"}]
    assert len(Sender(store, None).begin(5)) == 1
    assert verdict(store, mail("a")) is not Verdict.ACCEPTED


@pytest.mark.parametrize(
    ("category", "goes_out"),
    [(Category.TRANSACTIONAL, True), (Category.MARKETING, False), (Category.CONFIRMATION, True)],
)
def test_who_asked_to_be_forgotten_gets_no_marketing(
    store: Store, category: Category, goes_out: bool
) -> None:
    """The row that said that they had unsubscribed is gone with them."""
    store.import_subscribers([SubscriberRow("ana@example.org", "ana@example.org")])
    store.unsubscribe("ana@example.org", None)
    store.forget("ana@example.org", "forgotten")
    store.accept_single_mails([mail("a", category=category)])
    assert bool(Sender(store, None).begin(5)) is goes_out
