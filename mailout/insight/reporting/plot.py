"""One picture of a mailout: messages sent over time, and the ledger as one bar. SVG, built by hand.

It carries its own background and follows the reader's light or dark mode, so that it can be read wherever
it is put: inside a page, or as an image in a Prefect artifact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from html import escape

from mailout.base.time_format import clock_time, lasting, spoken
from mailout.insight.reporting.phrases import count, ledger_numbers
from mailout.insight.reporting.summary import Summary, Timeline
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.delivery.states import Column

WIDE, NARROW = 720, 340
"""Two widths, since text in a picture does not wrap: a desktop's and a phone's."""

PAD = 16
_CHART = 150  # height
LETTER_PIXELS = 6.7  # mean width of a letter at 12 px, on the generous side
_LEAST = 3.0  # a share too small to see is still shown
STYLE = """
.mailout-plot{--ground:#fff;--ink:#1d2733;--soft:#5c6b7a;--line:#dfe5ec;--sent:#1a7f5a;--failed:#c8373f;
--unknown:#d99a00;--suppressed:#8b93a0;--in_flight:#2f7fd0;--pending:#c3ccd8;
font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
@media (prefers-color-scheme:dark){.mailout-plot{--ground:#1a212b;--ink:#e8edf3;--soft:#a3b0bf;--line:#323d4b;
--sent:#3fbf8f;--failed:#ff7a7f;--unknown:#f2bd42;--suppressed:#8f9aa8;--in_flight:#63aef5;--pending:#4d5b6c}}
.mailout-plot .ground{fill:var(--ground)}.mailout-plot text{fill:var(--ink);font-variant-numeric:tabular-nums}
.mailout-plot .soft{fill:var(--soft)}.mailout-plot .head{font-weight:600}
.mailout-plot .grid{stroke:var(--line)}.mailout-plot .curve{fill:none;stroke:var(--sent);stroke-width:2;
stroke-linejoin:round}.mailout-plot .area{fill:var(--sent);opacity:.14}
.mailout-plot .sent{fill:var(--sent)}.mailout-plot .failed{fill:var(--failed)}
.mailout-plot .unknown{fill:var(--unknown)}.mailout-plot .suppressed{fill:var(--suppressed)}
.mailout-plot .in_flight{fill:var(--in_flight)}.mailout-plot .pending{fill:var(--pending)}
.mailout-plot .line{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}
.mailout-plot .point{fill:currentColor;opacity:0}.mailout-plot .point:hover{opacity:1}
.mailout-plot .key{fill:currentColor}.mailout-plot .line-0{color:var(--sent)}
.mailout-plot .line-1{color:var(--failed)}.mailout-plot .line-2{color:var(--unknown)}
.mailout-plot .line-3{color:var(--in_flight)}.mailout-plot .line-4{color:var(--suppressed)}
"""
"""A page that forbids inline styles puts it into its own style sheet."""


def plot(summary: Summary, *, width: int = WIDE, zone: tzinfo = UTC, styled: bool = True) -> str:
    """The same summary gives the same bytes. Not `styled`: the page has `STYLE`."""
    chart, below = _sent_over_time(summary.timeline, width, zone)
    bar, height = _ledger_bar(summary.mailout.ledger, width, below + 20)
    name = f"mailout-plot-{width}"
    return "".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="mailout-plot" viewBox="0 0 {width} {height}"'
            f' width="{width}" height="{height}" role="img" aria-labelledby="{name}-title {name}-desc">',
            f'<title id="{name}-title">Messages sent over time</title>',
            f'<desc id="{name}-desc">{escape(described(summary, zone))}</desc>',
            f"<style>{STYLE}</style>" if styled else "",
            f'<rect class="ground" width="{width}" height="{height}" rx="8"/>',
            *chart,
            *bar,
            "</svg>",
        )
    )


def described(summary: Summary, zone: tzinfo) -> str:
    """What the picture shows, for those who do not see it."""
    timeline, ledger = summary.timeline, summary.mailout.ledger
    numbers = ", ".join(f"{n:,} {name}" for _, name, n in _shares(ledger)) or "none"
    parts = f"Of {count(ledger.recipients, 'message')}: {numbers}."
    if timeline is None:
        return f"Nothing has been sent. {parts}"
    return f"From {spoken(timeline.start, zone)} to {spoken(timeline.end, zone)}. {parts}"


# ── sent over time ──


def _sent_over_time(timeline: Timeline | None, width: int, zone: tzinfo) -> tuple[Sequence[str], int]:
    """A rising line with as few marks as it takes to read it; and where it ends."""
    if timeline is None or timeline.start == timeline.end:
        return [text(PAD, PAD + 12, _in_one_sentence(timeline, zone), "head")], PAD + 16
    steps = ticks(timeline.total)
    left = PAD + round(max(len(f"{step:,}") for step in steps) * LETTER_PIXELS) + 8
    right, top = width - PAD, PAD + 28
    bottom, span = top + _CHART, timeline.end - timeline.start

    def y(sent: float) -> float:
        return bottom - sent / steps[-1] * _CHART

    points = " ".join(
        f"{left + (moment - timeline.start) / span * (right - left):.1f},{y(sent):.1f}"
        for moment, sent in timeline.edges()
    )
    marks = [text(PAD, PAD + 12, f"{timeline.total:,} sent in {lasting(span)}", "head")]
    for step in steps:
        marks.append(f'<path class="grid" d="M{left} {y(step):.1f}H{right}"/>')
        marks.append(text(left - 8, y(step) + 4, f"{step:,}", "soft", "end"))
    marks.append(f'<polygon class="area" points="{left},{bottom} {points} {right},{bottom}"/>')
    marks.append(f'<polyline class="curve" points="{points}"/>')
    marks.extend(_time_axis(timeline, left, right, bottom + 18, zone))
    return marks, bottom + 20


def _in_one_sentence(timeline: Timeline | None, zone: tzinfo) -> str:
    if timeline is None:
        return "Nothing has been sent yet"
    return f"{timeline.total:,} sent at {clock_time(timeline.start, zone, 0)}"


def _time_axis(timeline: Timeline, left: int, right: int, y: int, zone: tzinfo) -> Iterator[str]:
    span = timeline.end - timeline.start
    places = ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    for place, anchor in places:
        label = clock_time(timeline.start + place * span, zone, span)
        yield text(left + place * (right - left), y, label, "soft", anchor)


def ticks(highest: int) -> Sequence[int]:
    """From 0 to at least `highest` in three to six round steps: 1, 2 or 5 times a power of ten."""
    power = 10 ** max(0, math.floor(math.log10(max(1, highest))) - 1)
    step = next(s for s in (power * n for n in (1, 2, 5, 10, 20, 50)) if highest <= 5 * s)
    return range(0, step * max(1, math.ceil(highest / step)) + 1, step)


# ── the ledger ──


def _ledger_bar(ledger: Ledger, width: int, top: int) -> tuple[Sequence[str], int]:
    """One bar of all recipients, the legend with the numbers below; and how high the picture becomes."""
    shares, whole = _shares(ledger), width - 2 * PAD
    marks = [text(PAD, top + 12, count(ledger.recipients, "recipient"), "head")]
    x, scale = float(PAD), _scale([n for _, _, n in shares], whole)
    for column, _, n in shares:
        wide = max(_LEAST, n * scale)
        marks.append(_rect(x, top + 22, wide - (1 if len(shares) > 1 else 0), 14, column))
        x += wide
    x, y = float(PAD), top + 56
    for column, name, n in shares:
        words = f"{name} {n:,}"
        wide = 16 + len(words) * LETTER_PIXELS + 18
        if x + wide - 18 > width - PAD:
            x, y = float(PAD), y + 20
        marks.append(_rect(x, y - 9, 10, 10, column))
        marks.append(text(x + 16, y, words))
        x += wide
    return marks, y + PAD if shares else top + 28


def _shares(ledger: Ledger) -> Sequence[tuple[Column, str, int]]:
    """What there is any of, in the order in which it is shown."""
    return [share for share in ledger_numbers(ledger) if share[2]]


def _scale(numbers: Sequence[int], whole: float) -> float:
    """Pixels a message, so that with the least width of small shares the bar is as long as it should be."""
    large = list(numbers)
    while large:
        room = whole - _LEAST * (len(numbers) - len(large))
        scale = room / sum(large)
        visible = [n for n in large if n * scale >= _LEAST]
        if len(visible) == len(large):
            return scale
        large = visible
    return 0.0


def text(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _rect(x: float, y: float, width: float, height: float, column: Column) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"'
        f' class="{column.value}"/>'
    )
