"""Colours that can be read: how far apart two are, and the nearest one that is far enough."""

from __future__ import annotations

READABLE = 4.5
"""The least contrast of words, by WCAG's count."""
SEEN = 3.0
"""The least of a button or a bar."""


def contrast(one: str, other: str) -> float:
    """Between two `#rrggbb`: from 1 (the same) to 21 (black on white)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def readable_on(background: str, color: str, least: float = READABLE) -> str:
    """The colour itself, or as little darker or lighter as words (or less) need on this background."""
    target = 0 if _luminance(background) > 0.18 else 255
    for step in range(21):
        mixed = "#" + "".join(f"{round(c + (target - c) * step / 20):02x}" for c in _rgb(color))
        if contrast(mixed, background) >= least:
            return mixed
    return "#000000" if target == 0 else "#ffffff"


def words_on(background: str) -> str:
    """White where that can be read, else black, which then can."""
    return "#ffffff" if contrast("#ffffff", background) >= READABLE else "#000000"


def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _luminance(color: str) -> float:
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in _rgb(color))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
