"""Pictures, as SVG built by hand: one of a mailout (sent over time, and the ledger as one bar), and a small
chart of lines over time.

That of a mailout carries its own background and follows the reader's light or dark mode, so that it can be
read wherever it is put: inside a page, or as an image in a Prefect artifact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
_CHART, _LINES = 150, 130  # heights
_LETTER_PIXELS = 6.7  # mean width of a letter at 12 px, on the generous side
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
    if timeline is None:
        return [text(PAD, PAD + 12, "Nothing has been sent yet", "head")], PAD + 16
    if timeline.start == timeline.end:
        said = f"{timeline.total:,} sent at {clock_time(timeline.start, zone, 0)}"
        return [text(PAD, PAD + 12, said, "head")], PAD + 16
    right, top = width - PAD, PAD + 28
    bottom, span = top + _CHART, timeline.end - timeline.start
    left, y, grid = _grid(timeline.total, bottom, _CHART, right)
    points = " ".join(
        f"{left + (moment - timeline.start) / span * (right - left):.1f},{y(sent):.1f}"
        for moment, sent in timeline.edges()
    )
    marks = [text(PAD, PAD + 12, f"{timeline.total:,} sent in {lasting(span)}", "head"), *grid]
    marks.append(f'<polygon class="area" points="{left},{bottom} {points} {right},{bottom}"/>')
    marks.append(f'<polyline class="curve" points="{points}"/>')
    for place, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        label = clock_time(timeline.start + place * span, zone, span)
        marks.append(text(left + place * (right - left), bottom + 18, label, "soft", anchor))
    return marks, bottom + 20


# ── the ledger ──


def _ledger_bar(ledger: Ledger, width: int, top: int) -> tuple[Sequence[str], int]:
    """One bar of all recipients, the legend with the numbers below; and how high the picture becomes."""
    shares, whole = _shares(ledger), width - 2 * PAD
    marks = [text(PAD, top + 12, count(ledger.recipients, "recipient"), "head")]
    x, scale = float(PAD), _scale([n for _, _, n in shares], whole)
    for column, _, n in shares:
        wide = max(_LEAST, n * scale)
        marks.append(_rect(x, top + 22, wide - (1 if len(shares) > 1 else 0), 14, column.value))
        x += wide
    keys, last = _legend([(c.value, f"{name} {n:,}") for c, name, n in shares], PAD, top + 56, width - PAD)
    return [*marks, *keys], last + PAD if shares else top + 28


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


# ── lines over time ──


MOST_ROWS = 30
"""Of the table beside a chart: a person reads no more."""


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    points: Sequence[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Chart:
    """In two widths, with its numbers for a table beside it. The page has its style: `STYLE`."""

    wide: str
    narrow: str
    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[int]]]  # a moment, and what each line says then


def chart(name: str, title: str, lines: Sequence[Line], *, label: Callable[[float], str]) -> Chart:
    """All lines have their points at the same moments."""
    moments = [at for at, _ in lines[0].points]
    step = max(1, -(-len(moments) // MOST_ROWS))
    shown = sorted({*range(0, len(moments), step), len(moments) - 1})
    return Chart(
        wide=_lines(name, title, lines, WIDE, label),
        narrow=_lines(name, title, lines, NARROW, label),
        title=title,
        columns=[line.name for line in lines],
        rows=[(label(moments[n]), [line.points[n][1] for line in lines]) for n in reversed(shown)],
    )


def _lines(name: str, title: str, lines: Sequence[Line], width: int, label: Callable[[float], str]) -> str:
    moments = [at for at, _ in lines[0].points]
    start, span = moments[0], max(moments[-1] - moments[0], 1e-9)
    right, bottom = width - PAD, PAD + _LINES
    left, y, marks = _grid(max(n for line in lines for _, n in line.points), bottom, _LINES, right)
    for number, line in enumerate(lines):
        places = [(left + (at - start) / span * (right - left), y(n)) for at, n in line.points]
        path = " ".join(f"{x:.1f},{high:.1f}" for x, high in places)
        marks.append(f'<polyline class="line line-{number}" points="{path}"/>')
        for (x, high), (at, n) in zip(places, line.points, strict=True):
            said = escape(f"{label(at)}: {n:,} {line.name}")
            marks.append(f'<circle class="point line-{number}" cx="{x:.1f}" cy="{high:.1f}" r="5">')
            marks.append(f"<title>{said}</title></circle>")
    marks.append(text(left, bottom + 18, label(moments[0]), "soft"))
    marks.append(text(right, bottom + 18, label(moments[-1]), "soft", "end"))
    height = bottom + 30
    if len(lines) > 1:
        named = [(f"key line-{number}", line.name) for number, line in enumerate(lines)]
        keys, last = _legend(named, left, bottom + 42, right)
        marks.extend(keys)
        height = last + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mailout-plot" viewBox="0 0 {width} {height}"'
        f' role="img" aria-labelledby="{name}-{width}"><title id="{name}-{width}">{escape(title)}</title>'
        + "".join(marks)
        + "</svg>"
    )


# ── what both have ──


def _grid(
    highest: int, bottom: int, height: int, right: int
) -> tuple[int, Callable[[float], float], list[str]]:
    """Where a curve begins, how high each number stands, and the lines behind it with their numbers."""
    steps = ticks(highest)
    left = PAD + round(max(len(f"{step:,}") for step in steps) * _LETTER_PIXELS) + 8

    def y(n: float) -> float:
        return bottom - n / steps[-1] * height

    marks = []
    for step in steps:
        marks.append(f'<path class="grid" d="M{left} {y(step):.1f}H{right}"/>')
        marks.append(text(left - 8, y(step) + 4, f"{step:,}", "soft", "end"))
    return left, y, marks


def ticks(highest: int) -> Sequence[int]:
    """From 0 to at least `highest` in three to six round steps: 1, 2 or 5 times a power of ten."""
    power = 10 ** max(0, math.floor(math.log10(max(1, highest))) - 1)
    step = next(s for s in (power * n for n in (1, 2, 5, 10, 20, 50)) if highest <= 5 * s)
    return range(0, step * max(1, math.ceil(highest / step)) + 1, step)


def _legend(named: Sequence[tuple[str, str]], left: int, y: int, right: int) -> tuple[list[str], int]:
    """A mark of this class before each of the words, in as many rows as it takes; where the last one is."""
    marks, x = list[str](), float(left)
    for style, words in named:
        wide = 16 + len(words) * _LETTER_PIXELS
        if x > left and x + wide > right:
            x, y = float(left), y + 20
        marks += [_rect(x, y - 9, 10, 10, style), text(x + 16, y, words)]
        x += wide + 18
    return marks, y


def text(x: float, y: float, words: str, style: str = "", anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _rect(x: float, y: float, width: float, height: float, style: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2" class="{style}"/>'
