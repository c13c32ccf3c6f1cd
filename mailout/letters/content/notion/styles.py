"""How Notion's blocks look in a mail, where HTML has no element for them that the layout could style.

Plain rules become `style` attributes; what stands under `@media` stays in the head, hence `!important`.
`.card` (the layout's sheet) makes each of them weigh more than the layout's own rules for elements.
Every colour comes with a partner for dark mode, and every background with the colour of the text on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Tone(NamedTuple):
    """One of Notion's colours: text and background, on a light page and on a dark one."""

    text: str
    text_dark: str
    background: str
    background_dark: str


TONES: Mapping[str, Tone] = {
    "gray": Tone("#6b6a66", "#a8a7a3", "#f1f1ef", "#3a3a38"),
    "brown": Tone("#8a5a44", "#d0a48c", "#f4eeee", "#4a3228"),
    "orange": Tone("#a84b08", "#f0a35e", "#fbecdd", "#5c3a1c"),
    "yellow": Tone("#856000", "#e3c05a", "#fbf3db", "#564328"),
    "green": Tone("#2f6f52", "#7cc29a", "#edf3ec", "#24402f"),
    "blue": Tone("#24619f", "#7ab8f0", "#e7f3f8", "#1f3f54"),
    "purple": Tone("#7645a0", "#c6a0e6", "#f4f0f7", "#3d2a4d"),
    "pink": Tone("#a8326f", "#f090bc", "#f9eef3", "#4e2c3c"),
    "red": Tone("#bb2d24", "#ff8a80", "#fdebec", "#552e2a"),
}
ON_LIGHT, ON_DARK = "#2b2a27", "#f2f1ee"
"""The text on a coloured background."""


def color_class(color: str) -> str | None:
    """The class for one of Notion's colours; None: as the surroundings."""
    name, background, rest = color.partition("_background")
    if name not in TONES or rest:
        return None
    return f"n-bg-{name}" if background else f"n-{name}"


_RULES = f"""\
.card .n-filled {{ padding: 8px 12px; border-radius: 4px; }}
.card .n-deep {{ padding-left: 14px; }}
.card .n-indent {{ margin: 0 0 0 22px; }}
.card .n-todos {{ margin: 0 0 18px; }}
.card .n-box {{ padding: 0 10px 6px 0; }}
.card .n-todo {{ padding: 0 0 6px; }}
.card .n-done {{ color: #6b6a66; text-decoration: line-through; }}
.card .n-callout {{
  margin: 0 0 18px; width: 100%; background-color: #f5f4f1; color: {ON_LIGHT}; border-radius: 6px;
}}
.card .n-icon {{ padding: 14px 0 14px 16px; width: 24px; }}
.card .n-said {{ padding: 14px 16px; }}
.card .n-equation {{ text-align: center; }}
.card .n-image {{ width: auto; }}
.card .n-emoji {{ display: inline; width: 1.15em; height: 1.15em; vertical-align: -0.2em; border-radius: 0; }}
.card .code + .caption {{ margin-top: -8px; }}
.card .n-card {{ margin: 0 0 18px; width: 100%; border: 1px solid #dcd8d0; border-radius: 6px; }}
.card .n-card-in {{ padding: 12px 16px; }}
.card .n-where {{ font-size: 14px; color: #6b6a66; }}
.card .n-columns {{ width: 100%; table-layout: fixed; margin: 0 0 18px; }}
.card .n-column {{ padding: 0 18px 0 0; vertical-align: top; }}
.card .n-last {{ padding-right: 0; }}
.card .n-column > :first-child {{ margin-top: 0; }}
.card .n-said > :last-child, .card .n-todo > :last-child {{ margin-bottom: 0; }}
.card .n-column > :last-child {{ margin-bottom: 0; }}
.card .n-day {{ white-space: nowrap; }}
.card .n-toc {{ color: #6b6a66; }}
"""

_DARK = f"""\
  .card .n-done, .card .n-where, .card .n-toc {{ color: #a8a7a3 !important; }}
  .card .n-callout {{ background-color: #33312c !important; color: {ON_DARK} !important; }}
  .card .n-card {{ border-color: #57524a !important; }}
  .card .n-emoji {{ background-color: transparent !important; color: inherit !important; }}
"""

_NARROW = """\
  .card .n-column { display: block !important; width: 100% !important; padding: 0 0 18px !important; }
  .card .n-columns { margin-bottom: 0 !important; }
"""


def _tones(*, dark: bool = False) -> str:
    rules, words = [], ON_DARK if dark else ON_LIGHT
    for name, tone in TONES.items():
        text, background = (tone.text_dark, tone.background_dark) if dark else (tone.text, tone.background)
        rules += [
            f".card .n-{name} {{ color: {text}; }}\n",
            f".card .n-bg-{name} {{ background-color: {background}; color: {words}; }}\n",
            f".card .quote-in.n-{name}, .card .quote-in.n-bg-{name} {{ border-left-color: {text}; }}\n",
        ]
    return "".join(f"  {rule.replace(';', ' !important;')}" if dark else rule for rule in rules)


STYLES = (
    f"{_RULES}{_tones()}"
    f"@media (max-width: 480px) {{\n{_NARROW}}}\n"
    f"@media (prefers-color-scheme: dark) {{\n{_DARK}{_tones(dark=True)}}}\n"
)
