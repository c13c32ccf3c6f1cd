"""What one letter's page shows of its messages, read by index however many there are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from itertools import pairwise

from mailout.base.time_format import clock_time, short_day
from mailout.insight.history import history_rows
from mailout.insight.history.port import History
from mailout.insight.reporting.phrases import CAME_BACK, reported
from mailout.insight.reporting.plot import Chart, Line, chart
from mailout.insight.reporting.summary import (
    FAILED,
    FIRST_ADDRESSES,
    Summary,
    Timeline,
    failure_groups,
    summarise,
    timeline_of,
)
from mailout.kinds.articles import article_rows
from mailout.letters.audience.segment_tree import SegmentError
from mailout.letters.content.port import Kind
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import segment_names
from mailout.outbox.queue.mailout import Mailout
from mailout.store import Store

READ_ALL_MESSAGES = 2_000
"""Up to so many messages are read one by one."""
MOST_FAILED = 1_000
"""Of more, these are counted by reason."""
MOST_ADDRESSES = 50
PLOTTED_MESSAGES = 10
"""A picture of fewer tells nothing."""
EVENTS = ("delivered", "bounced", "complained", "opened", "clicked")


def summary_of(store: Store, mailout: Mailout) -> Summary:
    if mailout.ledger.recipients <= READ_ALL_MESSAGES:
        return summarise(store, mailout.id)
    failed = outbox_rows.messages(store, mailout.id, limit=MOST_FAILED, states=FAILED)
    unknown = outbox_rows.messages(store, mailout.id, limit=FIRST_ADDRESSES, states=[State.UNKNOWN])
    return Summary(
        mailout=mailout,
        as_of=store.now(),
        failures=failure_groups(failed, MOST_ADDRESSES),
        unknown_addresses=tuple(row["email"] for row in unknown),
        timeline=timeline(store, mailout.id),
    )


def is_counted(mailout: Mailout) -> bool:
    """Whether it would go to whoever is on its list when it is sent; else it is known who gets it."""
    decided = mailout.frozen_at is not None and not mailout.is_test and not mailout.is_rehearsal
    return not decided and mailout.kind is not Kind.ARTICLE


def people_on(store: Store, list_key: str | None, segment: str | None, *, snoozed: bool = False) -> int:
    """How many would get a letter to them now, or (`snoozed`) would not, because of a pause. Nobody in a
    segment that is refused: the page says why."""
    try:
        tree = None if segment is None else segment_names.usable_segment(store, segment).tree
    except SegmentError:
        return 0
    return store.audience_size(list_key, tree, snoozed=snoozed)


def people_for(store: Store, mailout: Mailout) -> int:
    """How many get this letter: as frozen, as counted for its batch, or who is on its list now."""
    if is_counted(mailout):
        return people_on(store, mailout.list_key, mailout.segment)
    if mailout.frozen_at is not None:
        return mailout.ledger.recipients
    return sum(
        one["recipients"] for one in article_rows.article_batch(store, mailout.id).census.get("variants", ())
    )


def timeline(store: History, mailout_id: str) -> Timeline | None:
    """In equal parts, from samples."""
    curve = store.sent_over_time(mailout_id)
    if not curve:
        return None
    newly = ((at, sent - before) for (_, before), (at, sent) in pairwise([(0.0, 0), *curve]))
    return timeline_of(newly, curve[0][0], curve[-1][0])


def events_chart(store: History, mailout: Mailout, zone: tzinfo) -> Chart | None:
    """What came back, as each reconcile found it and as it is now; None: too little is known to draw."""
    if mailout.ledger.sent < PLOTTED_MESSAGES:
        return None
    known = [*history_rows.mailout_over_time(store, mailout.id)]
    if known and any(known[-1][1].get(name, 0) != mailout.metrics.get(name, 0) for name in EVENTS):
        known.append((store.now(), mailout.metrics))
    shown = [name for name in EVENTS if any(counts.get(name) for _, counts in known)]
    if len(known) < 2 or not shown:
        return None
    span = known[-1][0] - known[0][0]
    lines = [Line(name, [(at, counts.get(name, 0)) for at, counts in known]) for name in shown]
    return chart("events", "What came back", lines, label=lambda at: clock_time(at, zone, span))


def letters_charts(letters: Sequence[Mailout], zone: tzinfo) -> Sequence[Chart]:
    """What became of the last letters, side by side: what arrived, and on a scale of its own what did not go
    well, which is near zero beside it. None at all: fewer than two have anything to show."""
    known = sorted((one for one in letters if reported(one)), key=_ended)
    if len(known) < 2:
        return ()

    def day(place: float) -> str:
        return short_day(datetime.fromtimestamp(_ended(known[round(place)]), zone).date())

    def line(word: str) -> Line:
        return Line(word, [(n, one.metrics.get(word, 0)) for n, one in enumerate(known)])

    sent = Line("sent", [(n, one.ledger.sent) for n, one in enumerate(known)])
    arrived, *others = map(line, CAME_BACK)
    return (
        chart("letters", "Sent and delivered", [sent, arrived], label=day),
        chart("losses", "Bounced, unsubscribed and complained", others, label=day),
    )


def _ended(mailout: Mailout) -> float:
    return mailout.completed_at or mailout.created_at
