"""A small chart of lines over time: SVG built by hand in two widths, and its numbers for a table beside it.

It has no style of its own: `plot.STYLE` in the page's style sheet gives it its colours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from mailout.insight.reporting.plot import LETTER_PIXELS, NARROW, PAD, WIDE, text, ticks

HEIGHT = 130
MOST_ROWS = 30
"""Of the table: a person reads no more."""


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    points: Sequence[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Chart:
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
        wide=_svg(name, title, lines, WIDE, label),
        narrow=_svg(name, title, lines, NARROW, label),
        title=title,
        columns=[line.name for line in lines],
        rows=[(label(moments[n]), [line.points[n][1] for line in lines]) for n in reversed(shown)],
    )


def _svg(name: str, title: str, lines: Sequence[Line], width: int, label: Callable[[float], str]) -> str:
    moments = [at for at, _ in lines[0].points]
    start, span = moments[0], max(moments[-1] - moments[0], 1e-9)
    steps = ticks(max(n for line in lines for _, n in line.points))
    left = PAD + round(max(len(f"{step:,}") for step in steps) * LETTER_PIXELS) + 8
    right, top = width - PAD, PAD
    bottom = top + HEIGHT

    def place(at: float, n: int) -> tuple[float, float]:
        return left + (at - start) / span * (right - left), bottom - n / steps[-1] * HEIGHT

    marks = []
    for step in steps:
        y = place(start, step)[1]
        marks.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        marks.append(text(left - 8, y + 4, f"{step:,}", "soft", "end"))
    for number, line in enumerate(lines):
        places = [place(at, n) for at, n in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        marks.append(f'<polyline class="line line-{number}" points="{path}"/>')
        for (x, y), (at, n) in zip(places, line.points, strict=True):
            said = escape(f"{label(at)}: {n:,} {line.name}")
            marks.append(f'<circle class="point line-{number}" cx="{x:.1f}" cy="{y:.1f}" r="5">')
            marks.append(f"<title>{said}</title></circle>")
    marks.append(text(left, bottom + 18, label(moments[0]), "soft"))
    marks.append(text(right, bottom + 18, label(moments[-1]), "soft", "end"))
    height = bottom + 30
    if len(lines) > 1:
        keys, rows = _legend(lines, left, bottom + 42, right)
        marks.extend(keys)
        height += 20 * rows
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mailout-plot" viewBox="0 0 {width} {height}"'
        f' role="img" aria-labelledby="{name}-{width}"><title id="{name}-{width}">{escape(title)}</title>'
        + "".join(marks)
        + "</svg>"
    )


def _legend(lines: Sequence[Line], left: float, y: float, right: float) -> tuple[Sequence[str], int]:
    """The names, and how many rows they take."""
    marks, x, rows = list[str](), left, 1
    for number, line in enumerate(lines):
        if x > left and x + 16 + len(line.name) * LETTER_PIXELS > right:
            x, y, rows = left, y + 20, rows + 1
        marks.append(f'<circle class="key line-{number}" cx="{x + 5:.1f}" cy="{y - 4:.1f}" r="5"/>')
        marks.append(text(x + 16, y, line.name))
        x += 16 + len(line.name) * LETTER_PIXELS + 16
    return marks, rows
