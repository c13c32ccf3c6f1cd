"""What the dashboard looks back on: pages of letters, one person's mail, counts over time, the acts' log."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from mailout.base import error_log
from mailout.base.ids import transactional_id, uuid_of
from mailout.insight.history import history_rows
from mailout.insight.history.history_rows import ACT_TABLE, keep_run, keep_written_pages
from mailout.insight.history.port import REFUSALS_KEPT, Act, Refusal, WrittenPage, WrittenPages
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content.model import Content
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import TRIED_ONCE
from mailout.outbox.delivery.single_mails import DEFAULT_COMPANY, SingleMail
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue.mailout import Status
from mailout.store import Store
from tests.clocks import NOON
from tests.contract.scenes import Sender, dead_event, enqueue, mailout, result
from tests.contract.stores import StoreFactory
from tests.contract.test_single_mails import mail

EVERY = ("real", "rehearsal", "test")


def test_letters_come_by_page_the_newest_first(store: Store, factory: StoreFactory) -> None:
    """Else somebody with a hundred letters never finds the second fifty."""
    ids = []
    for n in range(5):
        factory.set_now(NOON + n * 1.000001)
        ids.append(enqueue(store, f"page {n}", subject=f"Letter {n}"))
    first = history_rows.letters(store, modes=EVERY, limit=3)
    assert [one.id for one in first] == ids[:1:-1]
    rest = history_rows.letters(store, modes=EVERY, limit=3, before=(first[-1].created_at, first[-1].id))
    assert [one.id for one in rest] == ids[1::-1]


def test_letters_are_told_apart_by_mode_and_status(store: Store) -> None:
    real = enqueue(store, "real")
    test = enqueue(store, "test", is_test=True)
    rehearsal = enqueue(store, "rehearsal", is_rehearsal=True)
    store.cancel(real)
    for mode, id in (("real", real), ("test", test), ("rehearsal", rehearsal)):
        assert [one.id for one in history_rows.letters(store, modes=[mode])] == [id]
    assert [one.id for one in history_rows.letters(store, modes=EVERY, statuses=[Status.CANCELLED])] == [real]


def test_one_persons_mail_is_found_by_address(store: Store) -> None:
    one = mailout(store, "ana@example.org", "ben@example.org", ref="one")
    two = mailout(store, "ana@example.org", ref="two")
    found = history_rows.messages_to(store, "ana@example.org")
    assert {str(row["campaign_id"]) for row in found} == {one, two}
    assert {row["subject"] for row in found} == {"News"}
    assert history_rows.messages_to(store, "nobody@example.org") == []


def test_letters_are_told_apart_by_kind(store: Store) -> None:
    enqueue(store, "page")
    article = enqueue(store, "article", kind=Kind.ARTICLE)
    assert [one.id for one in history_rows.letters(store, modes=EVERY, kind=Kind.ARTICLE)] == [article]
    assert len(history_rows.letters(store, modes=EVERY)) == 2


def test_mails_without_a_mailout_are_found_by_address(store: Store) -> None:
    mailout(store, "ana@example.org")
    store.accept_single_mails([mail("a", email="ana@example.org"), mail("b", email="ana@example.org")])
    store.accept_single_mails([mail("c", email="ben@example.org")])
    found = history_rows.single_mails_to(store, "ana@example.org")
    assert [str(row["id"]) for row in found] == [transactional_id("acme", key) for key in "ba"]
    assert {(row["subject"], row["campaign_id"], row["state"]) for row in found} == {
        ("Your receipt", None, "PENDING")
    }
    assert len(history_rows.single_mails_to(store, "ana@example.org", limit=1)) == 1


def test_notifications_are_counted_by_state(store: Store) -> None:
    for n, rehearsal in enumerate((False, False, False, True)):
        store.accept_single_mails([notification(n, rehearsal=rehearsal)])
    store.accept_single_mails([mail("no notification")])
    store.cancel_single_mails([uuid_of("notification 1")])
    assert history_rows.notification_states(store, rehearsal=False) == {"PENDING": 2, "SUPPRESSED": 1}
    assert history_rows.notification_states(store, rehearsal=True) == {"PENDING": 1}
    found = history_rows.latest_notifications(store, rehearsal=False)
    assert [row["dedupe_key"] for row in found] == ["event 2", "event 1", "event 0"]
    assert {row["subject"] for row in found} == {"A seat is free"}


def notification(n: int, *, rehearsal: bool = False) -> SingleMail:
    return SingleMail(
        id=uuid_of(f"notification {n}"),
        company_id=DEFAULT_COMPANY,
        email=f"p{n}@example.org",
        content=Content("A seat is free", "<p>Seat</p>", "Seat"),
        values={TRIED_ONCE: "yes"},
        idempotency_key=f"event {n}",
        request_id=None,
        is_rehearsal=rehearsal,
    )


def test_the_curve_ends_with_all_that_left(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, *(f"p{n}@example.org" for n in range(10)))
    assert store.sent_over_time(id) == []
    sender = Sender(store, id)
    for n in range(10):
        factory.set_now(NOON + n)
        (claimed,) = sender.begin()
        sender.step(results=[result(claimed)])
    curve = store.sent_over_time(id, points=5)
    assert curve[-1][1] == 10
    assert [at for at, _ in curve] == sorted(at for at, _ in curve)
    assert NOON <= curve[0][0] <= curve[-1][0] <= NOON + 9


def test_people_are_counted_once_a_day_the_last_count_stands(store: Store) -> None:
    store.import_subscribers([SubscriberRow("a@example.org", "a@example.org", lists=("news",))])
    store.keep_counts("2026-11-14")
    store.import_subscribers([SubscriberRow("b@example.org", "b@example.org", status="bounced")])
    store.keep_counts("2026-11-14")
    store.keep_counts("2026-11-15")
    found = history_rows.people_over_time(store, "2026-11-14")
    assert [day for day, _ in found] == ["2026-11-14", "2026-11-15"]
    assert dict(found[0][1]) == {"active": 1, "bounced": 1, "list:news": 1}
    assert [day for day, _ in history_rows.people_over_time(store, "2026-11-15")] == ["2026-11-15"]


def test_a_mailouts_counts_get_a_row_for_each_change(store: Store, factory: StoreFactory) -> None:
    id = mailout(store, "a@example.org", "b@example.org")
    store.keep_counts("2026-11-15")
    assert history_rows.mailout_over_time(store, id) == []
    sender = Sender(store, id)
    for n, state in enumerate((State.SENT, State.FAILED), start=1):
        (claimed,) = sender.begin()
        sender.step(results=[result(claimed, state)])
        factory.set_now(NOON + n * 900)
        store.keep_counts("2026-11-15")
        factory.set_now(NOON + n * 900 + 60)
        store.keep_counts("2026-11-15")
    assert [(at, dict(counts)) for at, counts in history_rows.mailout_over_time(store, id)] == [
        (NOON + 900, {"sent": 1, "failed": 0}),
        (NOON + 1800, {"sent": 1, "failed": 1}),
    ]


def test_acts_are_written_down_the_latest_first(store: Store) -> None:
    store.put(ACT_TABLE, [Act("admin (127.0.0.1)", "paused a letter", "m1")])
    store.put(ACT_TABLE, [Act("editor (127.0.0.1)", "asked for a test", "m2", at=NOON + 5)])
    latest, first = history_rows.acts(store)
    assert (latest.what, latest.at, first.who, first.at) == (
        "asked for a test",
        NOON + 5,
        "admin (127.0.0.1)",
        NOON,
    )
    assert len(history_rows.acts(store, limit=1)) == 1


def test_a_link_to_sign_in_is_used_by_one_of_all_who_try_at_once(store: Store) -> None:
    """Else a link that somebody copied opens the dashboard a second time."""
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(lambda _: store.end_login("link", NOON + 60), range(8)))
    assert sorted(told) == [False] * 7 + [True]
    assert not store.end_login("link", NOON + 60)


def test_a_login_that_was_ended_stays_so_for_every_gateway_until_its_time(
    store: Store, factory: StoreFactory
) -> None:
    """Else a copied cookie would open the dashboard after its owner has signed out."""
    store.end_login("one", NOON + 60)
    assert (history_rows.login_ended(store, "one"), history_rows.login_ended(store, "other")) == (True, False)
    factory.set_now(NOON + 61)
    store.end_login("other", NOON + 120)
    assert (history_rows.login_ended(store, "one"), history_rows.login_ended(store, "other")) == (
        False,
        True,
    ), "it has ended by itself"


def test_a_dead_letter_goes_back_into_the_inbox_once(store: Store) -> None:
    """An event that a later version can read is not lost."""
    dead_event(store, '{"odd": 1}')
    assert feedback_rows.waiting_events(store, 10) == []
    (dead,) = error_log.dead_letters(store)
    assert store.requeue_dead_letter(str(dead["id"]))
    assert [(one.id, one.payload) for one in feedback_rows.waiting_events(store, 10)] == [
        ("sns-1", '{"odd": 1}')
    ]
    assert error_log.dead_letters(store) == []
    assert not store.requeue_dead_letter(str(dead["id"]))


def test_written_pages_are_replaced_whole_and_have_their_time(store: Store, factory: StoreFactory) -> None:
    """Else a page that was sent or deleted stays among the drafts."""
    assert history_rows.written_pages(store) is None
    first = WrittenPage("page-1", "Spring", "Draft", is_ready=False, list_key="weekly", edited_at=NOON)
    second = WrittenPage("page-2", "Summer", "Ready", is_ready=True, is_test=True, send_at=NOON + 60)
    keep_written_pages(store, [first, second])
    factory.set_now(NOON + 90)
    keep_written_pages(store, [second])
    assert history_rows.written_pages(store) == WrittenPages(NOON + 90, [second])


def test_the_first_one_to_say_which_journals_are_a_stores_is_heard(store: Store) -> None:
    assert history_rows.journal_folder(store) is None
    for name in ("one.supabase.co", "mail.example.org"):
        history_rows.keep_journal_folder(store, name)
        assert history_rows.journal_folder(store) == "one.supabase.co"


def test_refusals_are_counted_by_reason_and_only_the_latest_kinds_are_kept(
    store: Store, factory: StoreFactory
) -> None:
    """Anybody can make a request that is refused: it must not fill the store."""
    store.keep_refusals({("/ses-events", "not JSON"): 2})
    factory.set_now(NOON + 5)
    store.keep_refusals({("/ses-events", "not JSON"): 3, ("/webhooks/notion", "no signature"): 1})
    one, other = history_rows.refusals(store)
    assert (one, other.path) == (Refusal("/ses-events", "not JSON", 5, NOON + 5), "/webhooks/notion")
    factory.set_now(NOON + 9)
    store.keep_refusals({("/ses-events", f"reason {n:03}"): 1 for n in range(REFUSALS_KEPT)})
    kept = history_rows.refusals(store, limit=1000)
    assert (len(kept), kept[0].why, kept[-1].why) == (REFUSALS_KEPT, "reason 000", "reason 099")


def test_the_last_run_of_a_mailout_is_known(store: Store) -> None:
    id = enqueue(store, "page")
    assert history_rows.run_of(store, id) is None
    keep_run(store, id, "run-1")
    keep_run(store, id, "run-2")
    assert (history_rows.run_of(store, id), history_rows.run_of(store, "nothing")) == ("run-2", None)
