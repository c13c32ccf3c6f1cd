"""What a sender's letters look like: logo, colour, why people get them, the language around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from mailout.letters.content.colors import SEEN, readable_on, words_on

PAPER, DARK_PAPER = "#ffffff", "#211f1c"
LINK = "#0b5c8a"


@dataclass(frozen=True, slots=True)
class Brand:
    """`BRAND_*` and `LANGUAGE`; None: the plain look."""

    logo: str | None = None
    color: str | None = None
    footer: str | None = None
    language: str | None = None
    logo_dark: str | None = None
    links: tuple[tuple[str, str], ...] = ()  # (label, address); the logo leads to the first

    def with_own(self, own: Mapping[str, Any], footer: str | None = None) -> Brand:
        """With what one list has of its own. A logo comes with its dark twin, or without one."""
        if "logo" in own:
            own = {"logo_dark": None, **own}
        return replace(self, **own, footer=footer or self.footer)

    @property
    def styles(self) -> str:
        return _styles(self.color)


@lru_cache
def _styles(color: str | None) -> str:
    """Links, buttons and quotes in the sender's colour, as far as they can be read in it."""
    button = color or LINK
    lit = readable_on(DARK_PAPER, button, SEEN)
    rules = (
        f".card .button-in {{ background-color: {button}; }}\n"
        f".card .button-in a {{ color: {words_on(button)}; }}\n"
        "@media (prefers-color-scheme: dark) {\n"
        f"  .card .button-in {{ background-color: {lit} !important; }}\n"
        f"  .card .button-in a {{ color: {words_on(lit)} !important; }}\n}}\n"
    )
    if color is None:
        return rules
    return (
        f".card {{ border-top: 4px solid {color}; }}\n"
        f".card a {{ color: {readable_on(PAPER, color)}; }}\n"
        f".card .quote-in {{ border-left-color: {color}; }}\n"
        "@media (prefers-color-scheme: dark) {\n"
        f"  .card a {{ color: {readable_on(DARK_PAPER, color)} !important; }}\n"
        f"  .card {{ border-top-color: {lit} !important; }}\n"
        f"  .card .quote-in {{ border-left-color: {lit} !important; }}\n}}\n"
    ) + rules


BUTTON = (
    '<table role="presentation" class="button" cellpadding="0" cellspacing="0" border="0"><tr>'
    '<td class="button-in" align="center"><a href="{address}">{words}</a></td></tr></table>'
)
"""A link that stands alone, clickable as a whole; the cell is there for Outlook."""
