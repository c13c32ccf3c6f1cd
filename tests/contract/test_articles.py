"""Articles from slices, on every store: what is kept, who gets what, and that a replay changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.base import error_log
from mailout.base.errors import Abort, AbortCode, NotFound, StoreError, UsageError
from mailout.kinds.articles import article_rows, articles
from mailout.kinds.articles.articles import BatchUsed
from mailout.kinds.articles.order import ArticleOrder
from mailout.kinds.articles.port import Member, SliceCounts
from mailout.kinds.articles.variants import Variants
from mailout.letters.audience.places import FilterError
from mailout.letters.content.slices import PublishStatus, Slice, assemble, live
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import ARTICLE_RETRIES, Outcome, OutcomeKind
from mailout.outbox.delivery.states import State
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue import dead_letters, queue_rows
from mailout.outbox.queue.mailout import Mailout, MailoutOutcome, Status
from mailout.store import Store
from tests.clocks import FakeClock
from tests.contract.articles import (
    ARLINGTON,
    BATCH,
    CLEO,
    CLEVELAND,
    FRANKLIN,
    OHIO,
    SLICES,
    TEX,
    UNA,
    US,
    engine_on,
    order,
    part,
    settle_in,
)
from tests.contract.scenes import assert_ledger, dead_event, states, subscribe
from tests.contract.stores import StoreFactory

UNAVAILABLE = Outcome(
    OutcomeKind.TRANSIENT, code="SERVICE_UNAVAILABLE", category="TRANSIENT_ERROR", message="503"
)
REFUSED = Outcome(OutcomeKind.INVALID, code="INVALID_EMAIL", category="PERMANENT_ERROR", message="no")
REJECTED = Outcome(OutcomeKind.PERMANENT, code="MESSAGE_REJECTED", category="PERMANENT_ERROR", message="no")


class World:
    """An engine over one store, and what it has sent."""

    def __init__(self, store: Store, clock: FakeClock, home: Path, **transport: Any) -> None:
        self.store, self.clock, self.home = store, clock, home
        self.mails: dict[str, Mail] = {}
        self.answers: dict[str, Outcome] = {}  # to whom, instead of accepting
        self.starts: list[float] = []
        self.engine = engine_on(store, clock, home, answer=self._answer, **transport)

    def _answer(self, mail: Mail, nth: int) -> Outcome | None:
        self.starts.append(self.clock.monotonic())
        if mail.to in self.answers:
            return self.answers[mail.to]
        self.mails[mail.to] = mail
        return None

    def send(self, wanted: ArticleOrder | None = None) -> Mailout:
        mailout = self.engine.intake.articles.enqueue(wanted or order())
        assert mailout is not None
        self.engine.deliver(mailout.id)
        return self.store.mailout(mailout.id)

    def text(self, email: str) -> str:
        mail = self.mails[email]
        return mail.content.text_segments.fill(mail.values)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(factory: StoreFactory, clock: FakeClock) -> Store:
    made = factory.make(clock)
    settle_in(made)
    return made


@pytest.fixture
def world(store: Store, clock: FakeClock, tmp_path: Path) -> World:
    return World(store, clock, tmp_path)


# ── slices ──


def test_slices_come_back_as_they_were_and_a_second_import_changes_nothing(store: Store) -> None:
    one = part(
        7,
        None,
        "Text.",
        article_key="other",
        tags=("a", "b"),
        publish_at=1e9,
        expires_at=2e9,
        title="T",
        link_url="https://example.org",
        sort_index=2,
    )
    assert store.import_slices([one]) == SliceCounts(added=1)
    assert store.import_slices([one]) == SliceCounts(unchanged=1)
    assert article_rows.slices(store, "other") == [one]
    assert len(article_rows.slices(store)) == len(SLICES) + 1


def test_an_import_replaces_the_slice_in_the_same_place(store: Store) -> None:
    changed = replace(SLICES[1], title="Ohio today", publish_status=PublishStatus.ARCHIVED)
    assert store.import_slices([changed, SLICES[0]]) == SliceCounts(updated=1, unchanged=1)
    assert changed in article_rows.slices(store, "budget")
    assert len(article_rows.slices(store, "budget")) == len(SLICES)


def test_no_two_slices_are_in_one_place_whoever_writes(store: Store, factory: StoreFactory) -> None:
    with pytest.raises(Exception, match=r"(?i)unique"):
        factory.raw(
            "INSERT INTO content_slices (id, article_key, section_order, scope_ocd_id)"
            f" VALUES ('by hand', 'budget', 2, '{OHIO}')"
        )


# ── the acceptance tests ──


def test_replay_of_a_batch_leaves_delivery_history_as_it_was(world: World, factory: StoreFactory) -> None:
    world.send()
    tables = ("campaign_runs", "campaign_queue", "email_outbox", "article_batches", "dead_letters")

    def look() -> list[Any]:
        history = factory.raw("SELECT * FROM delivery_history ORDER BY email")
        assert [(row["email"], row["campaign_tag"], row["send_batch_id"]) for row in history] == [
            (CLEO, "spring", BATCH),
            (UNA, "spring", BATCH),
        ]
        return [history, *(factory.raw(f"SELECT * FROM {table} ORDER BY 1") for table in tables)]

    before, sent = look(), len(world.starts)
    world.clock.sleep(3600)
    world.store.import_subscribers([])  # nothing new
    again = World(world.store, world.clock, world.home)
    assert again.send().status is Status.COMPLETED
    assert again.send(order(actor="somebody else")).status is Status.COMPLETED
    assert look() == before
    assert (len(world.starts), again.starts) == (sent, [])


def test_an_upper_arlington_recipient_gets_the_headline_and_all_four_places_in_one_block(
    world: World,
) -> None:
    mailout = world.send()
    mail = world.mails[UNA]
    assert mail.content.subject == "The budget in Upper Arlington"
    text = world.text(UNA)
    block = "The nation.\n\nThe state.\n\nThe county.\n\nThe town."
    assert block in text
    assert text.index("The budget in Upper Arlington") < text.index("Roads first") < text.index(block)
    assert (mailout.ledger.recipients, mailout.outcome) == (2, MailoutOutcome.SENT)


def test_a_cleveland_recipient_gets_the_nation_and_the_state_only(world: World) -> None:
    world.send()
    assert world.mails[CLEO].content.subject == "The budget"
    assert "The nation.\n\nThe state." in world.text(CLEO)
    assert "county" not in world.text(CLEO)
    assert "town" not in world.text(CLEO)


def test_a_5xx_of_the_provider_is_retried_after_1_4_and_10_seconds_and_ends_as_a_dead_letter(
    world: World, store: Store, factory: StoreFactory
) -> None:
    world.answers[UNA] = UNAVAILABLE
    mailout = world.send()
    gaps = [
        round(later - sooner, 6) for sooner, later in zip(world.starts[-4:], world.starts[-3:], strict=False)
    ]
    assert gaps == [1.0, 4.0, 10.0]
    assert len(world.starts) == 5  # Cleo's one, Una's four
    (letter,) = error_log.dead_letters(store)
    message = outbox_rows.messages(store, mailout.id, states=[State.FAILED])[0]
    assert letter["topic"] == "send"
    assert letter["error"].startswith("SERVICE_UNAVAILABLE")
    payload = letter["payload"]
    assert (payload["mailout"], payload["message"], payload["email"]) == (mailout.id, message["id"], UNA)
    assert (payload["send_batch_id"], payload["variant"]) == (BATCH, message["content_id"])
    assert mailout.outcome is MailoutOutcome.FAILED
    assert len(factory.raw("SELECT 1 FROM delivery_history")) == 1


# ── dead letters ──


def test_a_permanent_failure_is_a_dead_letter_at_once(world: World, store: Store) -> None:
    world.answers[UNA] = REJECTED
    world.send()
    assert [letter["payload"]["attempts"] for letter in error_log.dead_letters(store)] == [1]


def test_a_dead_letter_that_is_requeued_has_four_new_attempts(world: World, store: Store) -> None:
    world.answers[UNA] = UNAVAILABLE
    mailout = world.send()
    (letter,) = error_log.dead_letters(store)
    dead_letters.requeue(store, letter["id"])
    assert error_log.dead_letters(store) == []
    assert states(store, mailout.id)[UNA] is State.PENDING
    assert store.mailout(mailout.id).status is Status.PENDING
    world.starts.clear()
    world.engine.deliver(mailout.id)
    assert len(world.starts) == 4
    assert len(error_log.dead_letters(store)) == 1
    world.answers.clear()
    dead_letters.requeue(store, letter["id"])
    world.engine.deliver(mailout.id)
    assert store.mailout(mailout.id).outcome is MailoutOutcome.SENT
    assert error_log.dead_letters(store) == []
    assert_ledger(store, mailout.id)


def test_retrying_a_mailout_takes_its_dead_letters_up_too(world: World, store: Store) -> None:
    world.answers[UNA] = REJECTED
    mailout = world.send()
    assert store.retry_failed(mailout.id) == 1
    assert error_log.dead_letters(store) == []


def test_a_dead_letter_that_is_dropped_leaves_its_message_failed(world: World, store: Store) -> None:
    world.answers[UNA] = REJECTED
    mailout = world.send()
    (letter,) = error_log.dead_letters(store)
    assert error_log.dead_letter(store, letter["id"]) == letter
    assert store.drop_dead_letter(letter["id"])
    assert not store.drop_dead_letter(letter["id"])
    assert states(store, mailout.id)[UNA] is State.FAILED
    with pytest.raises(NotFound):
        error_log.dead_letter(store, letter["id"])


def test_an_event_that_could_not_be_read_is_read_again(store: Store) -> None:
    dead_event(store, "?")
    (letter,) = error_log.dead_letters(store)
    assert dead_letters.requeue(store, letter["id"]) == []
    assert [one.payload for one in feedback_rows.waiting_events(store, 10)] == ["?"]
    assert error_log.dead_letters(store) == []


def test_what_was_dropped_cannot_be_requeued(world: World, store: Store) -> None:
    world.answers[UNA] = REJECTED
    mailout = world.send()
    store.retry_failed(mailout.id)
    world.engine.deliver(mailout.id)
    (letter,) = error_log.dead_letters(store)
    store.drop_dead_letter(letter["id"])
    with pytest.raises(NotFound):
        dead_letters.requeue(store, letter["id"])


def test_of_several_dead_letters_all_are_requeued_or_none(world: World, store: Store) -> None:
    """The checks refuse Una's message before it is sent: it would be a dead letter again."""
    world.answers |= {UNA: REFUSED, CLEO: REJECTED}
    mailout = world.send()
    letters = {one["payload"]["email"]: one["id"] for one in error_log.dead_letters(store)}
    before = states(store, mailout.id)
    assert (before[UNA], before[CLEO]) == (State.VALIDATION_FAILED, State.FAILED)
    with pytest.raises(UsageError, match="would refuse it again") as refused:
        dead_letters.requeue(store, letters[CLEO], letters[UNA])
    assert "drop" in (refused.value.remedy or "")
    assert states(store, mailout.id) == before
    assert dead_letters.requeue(store, letters[CLEO], letters[CLEO]) == [mailout.id]
    assert states(store, mailout.id)[CLEO] is State.PENDING


def test_endless_throttling_ends_as_a_dead_letter_too(world: World, store: Store) -> None:
    """Also of several messages at once, when it is nobody's own fault: an article is news for a day."""
    throttled = Outcome(
        OutcomeKind.THROTTLED, code="THROTTLED", category="TRANSIENT_ERROR", message="slow down"
    )
    world.answers |= {UNA: throttled, CLEO: throttled}
    mailout = world.send()
    for _ in range(20):
        if mailout.status is Status.COMPLETED:
            break
        world.clock.sleep(3600)
        mailout = world.send()
    assert mailout.status is Status.COMPLETED
    assert {letter["payload"]["email"] for letter in error_log.dead_letters(store)} == {UNA, CLEO}


# ── who gets what ──


def test_everybody_is_counted_before_anything_is_sent(world: World, store: Store) -> None:
    store.import_slices(
        [
            replace(
                SLICES[0],
                scope_ocd_id=None,
                is_headline=False,
                title=None,
                sort_index=9,
                id="everywhere",
                body_md="For all.",
            )
        ]
    )
    census = world.engine.intake.articles.census("budget", {})
    assert [(one.recipients, one.title) for one in census.variants] == [
        (1, "Where the money goes"),
        (1, "The budget"),
        (1, "The budget in Upper Arlington"),
    ]
    assert (census.recipients, census.no_slices, census.headline_missing) == (3, 0, 1)
    assert census.variants[2].slices == [
        "1 everywhere",
        f"1 {US}",
        f"2 {OHIO}",
        f"3 {FRANKLIN}",
        f"4 {ARLINGTON}",
    ]
    assert queue_rows.mailouts(store) == []
    assert world.engine.intake.articles.census("budget", {"state": "OH"}).no_slices == 0


def test_who_matches_no_slice_is_skipped_and_counted(world: World, store: Store) -> None:
    mailout = world.send()
    assert TEX not in states(store, mailout.id)
    assert article_rows.article_batch(store, mailout.id).census["no_slices"] == 1


@pytest.mark.parametrize(
    ("audience", "reached"),
    [
        ({"state": "OH", "county": "Franklin"}, {UNA}),
        ({"plan": "gold"}, {UNA}),
        ({"state": "OH"}, {UNA, CLEO}),
        ({"list": "general"}, {UNA, CLEO}),
        ({"filter": 'plan = "GOLD"'}, {UNA}),
        ({"filter": '"plan" in ("gold", "silver")'}, {UNA}),
        ({"filter": f"in place {ARLINGTON} or in place {CLEVELAND}"}, {UNA, CLEO}),
        ({"filter": 'not plan = "gold" or not has plan', "state": "OH"}, {CLEO}),
    ],
)
def test_a_filter_says_who_is_meant(
    audience: dict[str, str], reached: set[str], world: World, store: Store
) -> None:
    assert set(states(store, world.send(order(audience_filter=audience)).id)) == reached


@pytest.mark.parametrize(
    "audience", [{"colour": "red"}, {"list": "nobody-is-here"}, {"filter": "colour = red"}, {"filter": "has"}]
)
def test_a_filter_that_nobody_knows_is_refused(audience: dict[str, str], world: World, store: Store) -> None:
    with pytest.raises(FilterError):
        world.send(order(audience_filter=audience))
    assert queue_rows.mailouts(store) == []


def test_an_empty_audience_writes_nothing(world: World, store: Store, factory: StoreFactory) -> None:
    assert world.engine.intake.articles.enqueue(order(audience_filter={"state": "TX"})) is None
    assert queue_rows.mailouts(store) == []
    assert factory.raw("SELECT * FROM campaign_runs") == []


def test_an_article_without_published_slices_is_refused(world: World) -> None:
    with pytest.raises(UsageError, match="nothing-here"):
        world.send(order(article_key="nothing-here"))


def test_who_has_left_general_gets_no_article(world: World, store: Store) -> None:
    store.unsubscribe(UNA, "general")
    assert set(states(store, world.send().id)) == {CLEO}


# ── batches ──


def test_a_batch_is_written_down_with_who_asked_for_it(world: World, factory: StoreFactory) -> None:
    mailout = world.send()
    (run,) = factory.raw("SELECT * FROM campaign_runs")
    assert (run["campaign_tag"], run["article_key"], run["actor"], run["send_batch_id"]) == (
        *("spring", "budget", "ann"),
        BATCH,
    )
    assert (mailout.actor, mailout.list_key, mailout.retry_plan) == ("ann", "general", ARTICLE_RETRIES)


def test_a_batch_id_stands_for_one_article_and_one_audience(world: World, store: Store) -> None:
    world.send()
    store.import_slices([part(1, None, "Text.", article_key="other", title="T")])
    for other in (order(article_key="other"), order(audience_filter={"state": "OH"})):
        with pytest.raises(BatchUsed):
            world.engine.intake.articles.enqueue(other)
    assert world.send(order(campaign_tag="autumn")).ledger.sent == 2


def test_slices_that_are_edited_afterwards_change_nothing(world: World, store: Store) -> None:
    mailout = world.engine.intake.articles.enqueue(order())
    assert mailout is not None
    store.import_slices([replace(one, body_md="Edited.", title="Edited") for one in SLICES])
    world.engine.deliver(mailout.id)
    assert "Edited" not in world.text(UNA) + world.text(CLEO)


def test_a_rehearsal_uses_nothing_up(world: World, store: Store, factory: StoreFactory) -> None:
    folder = World(store, world.clock, world.home, name="folder")
    rehearsed = folder.send()
    assert folder.send().id == rehearsed.id
    assert len(folder.mails) == 2
    assert rehearsed.is_rehearsal
    assert factory.raw("SELECT * FROM delivery_history") == []
    assert factory.raw("SELECT * FROM campaign_runs") == []
    real = world.send()
    assert real.id != rehearsed.id
    assert real.ledger.sent == 2


@pytest.mark.parametrize("dies_after", range(4))
def test_freezing_goes_on_where_it_was_killed(
    dies_after: int, world: World, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(articles, "CHUNK", 1)
    mailout = world.engine.intake.articles.enqueue(order())
    assert mailout is not None
    parts = 0
    freeze_recipients = store.freeze_recipients

    def dying(*arguments: Any) -> int:
        nonlocal parts
        parts += 1
        if parts > dies_after:
            raise StoreError("killed")
        return freeze_recipients(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(store, "freeze_recipients", dying, raising=False)
        if dies_after < 4:
            try:
                world.engine.sending.freeze(mailout.id)
            except StoreError:
                assert store.mailout(mailout.id).frozen_at is None
    store.import_slices([replace(one, body_md="Edited.") for one in SLICES])
    world.engine.deliver(mailout.id)
    assert set(world.mails) == {UNA, CLEO}
    assert "Edited" not in world.text(UNA) + world.text(CLEO)
    assert store.mailout(mailout.id).ledger.recipients == 2
    assert_ledger(store, mailout.id)


def test_recipients_of_one_variant_share_bulk_calls(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    """Neighbours by address have different texts: in their order, nearly every call would hold one mail."""
    places = [(US,), (US, OHIO), (US, OHIO, FRANKLIN), (US, OHIO, FRANKLIN, ARLINGTON)]
    for n in range(46):
        subscribe(store, f"p{n:03}@example.org", ocd_ids=places[n % 4])
    world = World(store, clock, tmp_path, max_batch=50)
    mailout = world.send()
    assert mailout.ledger.sent == len(world.mails) == 48
    assert sorted(world.engine.sending.transport.sizes) == [11, 12, 12, 13]  # type: ignore[attr-defined]


def test_who_comes_between_the_census_and_the_freezing_gets_a_variant_of_their_own(
    world: World, store: Store
) -> None:
    mailout = world.engine.intake.articles.enqueue(order())
    assert mailout is not None
    subscribe(store, "fay@example.org", ocd_ids=(US, OHIO, FRANKLIN))
    world.engine.deliver(mailout.id)
    assert "The county." in world.text("fay@example.org")


@pytest.mark.parametrize(
    "asking",
    [
        {"title": "News for {{ city }}"},
        {"dek": "For {{ city }}"},
        {"body": "You in {{ city | your town }}."},
        {"link_url": "https://example.org/?c={{city}}"},
    ],
)
def test_a_slice_that_asks_for_an_attribute_stops_the_batch_before_the_queue(
    asking: dict[str, str], world: World, store: Store
) -> None:
    """Nobody is there yet: who comes after the census would be the first to read it."""
    body = asking.get("body", "The village.")
    fields = {name: value for name, value in asking.items() if name != "body"}
    store.import_slices([part(5, f"{OHIO}/place:yellow_springs", body, **fields)])
    intake = world.engine.intake.articles
    for ask in (lambda: intake.census("budget", {}), lambda: intake.id_if_anybody(order())):
        with pytest.raises(Abort, match=r"section 5 for .*yellow_springs .*\{\{ city \}\}"):
            ask()
    with pytest.raises(Abort) as refused:
        world.send()
    assert refused.value.code is AbortCode.VARIABLE_MISSING
    assert [one.code for one in error_log.errors(store)] == ["variable_missing"]
    assert queue_rows.mailouts(store) == []
    store.import_slices([part(5, f"{OHIO}/place:yellow_springs", "The village.")])
    assert world.send().ledger.sent == 2  # the batch id is not used up


def test_a_batch_that_nobody_could_unsubscribe_from_is_refused_and_a_rehearsal_is_not(
    world: World, store: Store, tmp_path: Path
) -> None:
    local = "http://localhost:8025/unsubscribe"
    with pytest.raises(Abort, match="UNSUBSCRIBE_BASE_URL"):
        World(store, world.clock, tmp_path, unsubscribe_base_url=local).send()
    assert [one.code for one in error_log.errors(store)] == ["footer_env_missing"]
    assert queue_rows.mailouts(store) == []
    folder = World(store, world.clock, tmp_path, unsubscribe_base_url=local, name="folder")
    assert folder.send().ledger.sent == 2


def test_what_every_message_has_is_filled_in_and_an_escaped_brace_is_read(world: World, store: Store) -> None:
    title = r"For {{ email }}, \{{ as written }}"
    store.import_slices([replace(SLICES[0], title=title), replace(SLICES[3], title=None, dek=None)])
    mailout = world.send()
    assert mailout.subject == "For {{ email }}, {{ as written }}"
    mail = world.mails[CLEO]
    assert mail.content.subject_segments.fill(mail.values) == f"For {CLEO}, {{{{ as written }}}}"
    assert f"For {CLEO}, {{{{ as written }}}}</h1>" in mail.content.html_segments.fill(mail.values)
    assert [one.code for one in error_log.errors(store)] == []


def test_what_to_look_at_in_a_slice_is_recorded_once_for_all_variants(world: World, store: Store) -> None:
    store.import_slices([replace(SLICES[0], body_md="TODO: the nation.")])
    mailout = world.send()
    found = [(one.code, one.mailout) for one in error_log.errors(store)]
    assert found == [("placeholder_text", mailout.id)]


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from([None, US, OHIO, FRANKLIN]), st.integers(0, 1)),
        unique=True,
        max_size=8,
    ),
    st.lists(st.sets(st.sampled_from([US, OHIO, FRANKLIN, ARLINGTON])), max_size=6),
)
def test_grouping_many_gives_each_what_they_would_get_alone(
    places: list[tuple[int, str | None, int]], people: list[set[str]]
) -> None:
    slices: list[Slice] = [
        part(section, scope, f"{section} {scope} {index}", sort_index=index, title="T" if index else None)
        for section, scope, index in places
    ]
    variants = Variants(live(slices, 0.0))
    members = [Member(f"p{n}@example.org", None, sorted(ocd_ids)) for n, ocd_ids in enumerate(people)]
    keys = variants.keys(members).to_list() if members else []
    assert [variants.article(key) for key in keys] == [assemble(slices, ocd_ids, 0.0) for ocd_ids in people]
