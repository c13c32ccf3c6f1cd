"""What became of one mailout, gathered once and shown in many ways."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate, groupby, islice, pairwise, repeat
from typing import Any

from mailout.base.redact import redact_text
from mailout.base.time_format import iso
from mailout.insight.reporting.phrases import next_steps
from mailout.insight.reporting.queue_json import mailout_dict
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.outbox_rows import outcomes
from mailout.outbox.delivery.port import MessageOutcome
from mailout.outbox.delivery.states import COLUMN_OF, Column, State
from mailout.outbox.queue.forecast import Forecast
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import QueueStore

BUCKETS = 60
FIRST_ADDRESSES = 5
FAILED = (State.FAILED, State.VALIDATION_FAILED)
IDLE_GAP_SECONDS = 300.0
"""No message for longer than this: it was not being sent, so the time does not count against the rate."""


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures with the same code."""

    code: str
    count: int
    message: str  # the first one's
    addresses: tuple[str, ...]  # the first few


@dataclass(frozen=True, slots=True)
class Timeline:
    """Messages sent in equal parts of the time from the first to the last."""

    start: float
    end: float
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        return sum(self.counts)

    def edges(self) -> Iterator[tuple[float, int]]:
        """(moment, sent until then), from the start with none to the end with all."""
        width = (self.end - self.start) / len(self.counts)
        yield self.start, 0
        for index, sent in enumerate(accumulate(self.counts), start=1):
            yield self.start + index * width, sent


@dataclass(frozen=True, slots=True)
class Summary:
    """One mailout as it stands at `as_of`."""

    mailout: Mailout
    as_of: float
    transport: str | None = None
    failures: tuple[FailureGroup, ...] = ()  # the most frequent first
    unknown_addresses: tuple[str, ...] = ()  # the first few
    suppressed: Mapping[str, int] = field(default_factory=dict)  # by reason
    timeline: Timeline | None = None  # None: nothing sent
    census: Mapping[str, Any] | None = None  # of an article: its variants, and who was left out
    rate: float | None = None  # messages a second while it was being sent; None: too few to say
    forecast: Forecast | None = None  # None: it is over, or nobody asked
    note: str | None = None  # what whoever sent it has to say besides
    interrupted: str | None = None  # nobody sends it any more: how it goes on, in words
    goes_on_by: float | None = None  # and when the queue goes on with it at the latest, where it runs

    @property
    def duration(self) -> float | None:
        """Seconds from its start to its end, or until now; waits included."""
        started = self.mailout.started_at
        return None if started is None else max(0.0, (self.mailout.completed_at or self.as_of) - started)

    def redacted(self, hide: Callable[[str], str] = redact_text) -> Summary:
        """The same with addresses hidden, for places that more people can read."""
        mailout = self.mailout
        note, defer_note = (hide(said) if said else said for said in (self.note, mailout.defer_note))
        segment_filter = mailout.segment_filter
        if segment_filter is not None:  # which may name somebody
            segment_filter = {**segment_filter, "text": hide(segment_filter["text"])}
        return replace(
            self,
            mailout=replace(
                mailout,
                subject=hide(mailout.subject),
                defer_note=defer_note,
                segment_filter=segment_filter,
            ),
            failures=tuple(
                replace(
                    group,
                    message=hide(group.message),
                    addresses=tuple(map(hide, group.addresses)),
                )
                for group in self.failures
            ),
            unknown_addresses=tuple(map(hide, self.unknown_addresses)),
            suppressed={hide(reason): n for reason, n in self.suppressed.items()},
            note=note,
        )

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: times in ISO 8601, UTC."""
        timeline = self.timeline
        return {
            **mailout_dict(self.mailout, self.forecast),
            "as_of": iso(self.as_of),
            "first_sent_at": iso(timeline.start) if timeline else None,
            "last_sent_at": iso(timeline.end) if timeline else None,
            "duration_seconds": self.duration,
            "rate_per_second": self.rate,
            "transport": self.transport,
            "interrupted": self.interrupted,
            "goes_on_by": iso(self.goes_on_by),
            "failures": [asdict(group) for group in self.failures],
            "unknown_addresses": list(self.unknown_addresses),
            "suppressed": dict(self.suppressed),
            "census": self.census,
            "sent_over_time": list(timeline.counts) if timeline else [],
            "note": self.note,
            "next_steps": [asdict(step) for step in next_steps(self.mailout)],
        }


def summarise(
    store: QueueStore,
    mailout_id: str,
    *,
    transport: str | None = None,
    forecast: Forecast | None = None,
    note: str | None = None,
    census: Callable[[str], Mapping[str, Any]] | None = None,
) -> Summary:
    """Read a mailout once, page by page.

    `transport`, `forecast` and `note` are known to whoever sends; `census` reads an article's.
    Of every message only its time is kept (8 bytes), so a million of them take little room.
    """
    mailout = store.mailout(mailout_id)
    sent_at, suppressed = array("d"), Counter[str]()
    for row in outcomes(store, mailout_id):
        column = COLUMN_OF[State(row["state"])]
        if column is Column.SENT:
            sent_at.append(row["sent_at"] or 0.0)
        elif column is Column.SUPPRESSED:
            suppressed[row["error_message"] or "no longer subscribed"] += 1
    unknown = islice(outcomes(store, mailout_id, [State.UNKNOWN]), FIRST_ADDRESSES)
    moments = sorted(sent_at)
    return Summary(
        mailout=mailout,
        as_of=store.now(),
        transport=transport,
        failures=failure_groups(outcomes(store, mailout_id, FAILED)),
        unknown_addresses=tuple(row["email"] for row in unknown),
        suppressed=dict(sorted(suppressed.items())),
        census=census(mailout_id) if census and mailout.kind is Kind.ARTICLE else None,
        timeline=timeline_of(zip(moments, repeat(1)), moments[0], moments[-1]) if moments else None,
        rate=rate_of(moments),
        forecast=forecast,
        note=note,
    )


def failure_groups(
    rows: Iterable[MessageOutcome], addresses: int = FIRST_ADDRESSES
) -> tuple[FailureGroup, ...]:
    """By code, the most frequent first."""
    counts, messages = Counter[str](), dict[str, str]()
    first = defaultdict[str, list[str]](list)
    for row in rows:
        code = row["error_code"] or "NO_CODE"
        counts[code] += 1
        messages.setdefault(code, row["error_message"] or "")
        if len(first[code]) < addresses:
            first[code].append(row["email"])
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(FailureGroup(code, n, messages[code], tuple(first[code])) for code, n in ordered)


def timeline_of(sent: Iterable[tuple[float, int]], start: float, end: float) -> Timeline:
    """(moment, messages) in equal parts from the first moment to the last; one part if all are the same."""
    parts, span = (BUCKETS, end - start) if end > start else (1, 1.0)
    counts = [0] * parts
    for at, n in sent:
        counts[min(parts - 1, int((at - start) / span * parts))] += n
    return Timeline(start, end, tuple(counts))


def rate_of(ordered: Sequence[float]) -> float | None:
    """Messages a second between the moments at which some were recorded, without the pauses.

    Those recorded first are left out: when their sending began is not known.
    """
    seconds, messages = 0.0, 0
    batches = ((at, sum(1 for _ in same)) for at, same in groupby(ordered))
    for (before, _), (at, n) in pairwise(batches):
        if at - before <= IDLE_GAP_SECONDS:
            seconds, messages = seconds + at - before, messages + n
    return messages / seconds if seconds else None
