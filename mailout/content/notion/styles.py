"""How Notion's blocks look in a mail: class names, and the stylesheet that the layout puts inline.

Plain rules become `style` attributes; what stands under `@media` stays in the head, hence `!important`.
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
.n-page {{ overflow-wrap: anywhere; word-break: break-word; }}
.n-p {{ margin: 0 0 14px; line-height: 1.6; }}
.n-filled {{ padding: 8px 12px; border-radius: 4px; }}
.n-h1, .n-h2, .n-h3, .n-h4 {{ line-height: 1.3; font-weight: 700; }}
.n-h1 {{ margin: 32px 0 12px; font-size: 26px; }}
.n-h2 {{ margin: 28px 0 10px; font-size: 21px; }}
.n-h3 {{ margin: 24px 0 8px; font-size: 18px; }}
.n-h4 {{ margin: 20px 0 6px; font-size: 16px; }}
.n-list {{ margin: 0 0 14px; padding: 0 0 0 26px; line-height: 1.6; }}
.n-sub {{ margin: 4px 0 0; }}
.n-deep {{ padding-left: 14px; }}
.n-item {{ margin: 0 0 4px; padding: 0; }}
.n-indent {{ margin: 0 0 0 22px; }}
.n-todos {{ margin: 0 0 14px; line-height: 1.6; }}
.n-box {{ padding: 0 10px 4px 0; font-size: 17px; }}
.n-todo {{ padding: 0 0 4px; }}
.n-done {{ color: #6b6a66; text-decoration: line-through; }}
.n-quote {{ margin: 0 0 14px; padding: 2px 0 2px 16px; border-left: 3px solid #8f8d87; line-height: 1.6; }}
.n-callout {{
  margin: 0 0 14px; width: 100%; background-color: #f1f1ef; color: {ON_LIGHT}; border-radius: 6px;
}}
.n-icon {{ padding: 14px 0 14px 16px; width: 24px; font-size: 19px; line-height: 1.3; }}
.n-said {{ padding: 14px 16px; line-height: 1.6; }}
.n-code {{
  margin: 0 0 14px; width: 100%; table-layout: fixed; background-color: #f1f1ef; color: {ON_LIGHT};
  border-radius: 6px;
}}
.n-source {{ padding: 14px 16px; }}
.n-pre {{
  margin: 0; font-family: Menlo, Consolas, 'Courier New', monospace; font-size: 13px;
  line-height: 1.5; white-space: pre-wrap;
}}
.n-inline {{
  padding: 1px 5px; font-family: Menlo, Consolas, 'Courier New', monospace; font-size: 0.88em;
  background-color: #f1f1ef; color: #a8312a; border-radius: 4px;
}}
.n-equation {{ margin: 0 0 14px; text-align: center; }}
.n-rule {{ margin: 24px 0; border: 0; border-top: 1px solid #d6d4cf; height: 0; }}
.n-figure {{ margin: 0 0 14px; }}
.n-image {{ display: block; width: auto; max-width: 100%; height: auto; border: 0; }}
.n-emoji {{ width: 1.15em; height: 1.15em; vertical-align: -0.2em; border: 0; }}
.n-caption {{ margin: 6px 0 14px; font-size: 13px; line-height: 1.5; color: #6b6a66; }}
.n-card {{ margin: 0 0 14px; width: 100%; border: 1px solid #d6d4cf; border-radius: 6px; }}
.n-card-in {{ padding: 12px 16px; line-height: 1.5; }}
.n-where {{ font-size: 13px; color: #6b6a66; }}
.n-wide {{ margin: 0 0 14px; width: 100%; table-layout: fixed; }}
.n-scroll {{ overflow-x: auto; }}
.n-table {{ width: 100%; border-collapse: collapse; font-size: 15px; line-height: 1.5; }}
.n-cell {{
  padding: 7px 10px; border: 1px solid #d6d4cf; text-align: left; vertical-align: top;
  word-break: normal; overflow-wrap: break-word;
}}
.n-head {{ font-weight: 700; background-color: #f1f1ef; color: {ON_LIGHT}; }}
.n-columns {{ width: 100%; table-layout: fixed; }}
.n-column {{ padding: 0 14px 0 0; vertical-align: top; }}
.n-last {{ padding-right: 0; }}
.n-page > :first-child, .n-column > :first-child {{ margin-top: 0; }}
.n-quote > :last-child, .n-said > :last-child, .n-todo > :last-child {{ margin-bottom: 0; }}
.n-source > .n-caption {{ margin: 10px 0 0; }}
.n-toc {{ margin: 0 0 14px; line-height: 1.7; color: #6b6a66; }}
"""

_DARK = f"""\
  .n-done, .n-caption, .n-where, .n-toc {{ color: #a8a7a3 !important; }}
  .n-callout, .n-code, .n-head {{ background-color: #33322f !important; color: {ON_DARK} !important; }}
  .n-inline {{ background-color: #33322f !important; color: #ff9d94 !important; }}
  .n-rule, .n-card, .n-cell {{ border-color: #55534e !important; }}
"""

_NARROW = """\
  .n-column {
    display: block !important; width: 100% !important; padding-right: 0 !important;
    box-sizing: border-box;
  }
  .n-h1 { font-size: 23px !important; }
"""


def _tones() -> str:
    return "".join(
        f".n-{name} {{ color: {tone.text}; }}\n"
        f".n-bg-{name} {{ background-color: {tone.background}; color: {ON_LIGHT}; }}\n"
        for name, tone in TONES.items()
    )


def _tones_dark() -> str:
    return "".join(
        f"  .n-{name} {{ color: {tone.text_dark} !important; }}\n"
        f"  .n-bg-{name} {{ background-color: {tone.background_dark} !important;"
        f" color: {ON_DARK} !important; }}\n"
        for name, tone in TONES.items()
    )


INLINE_STYLES = _RULES + _tones()
"""What becomes `style` attributes and need not travel with the mail."""

HEAD_STYLES = (
    f"@media (prefers-color-scheme: dark) {{\n{_DARK}{_tones_dark()}}}\n"
    f"@media (max-width: 480px) {{\n{_NARROW}}}\n"
)
"""What must stay in the mail's head."""

STYLES = INLINE_STYLES + HEAD_STYLES
