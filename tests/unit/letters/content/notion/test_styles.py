"""Colours that can be read, by day and by night."""

from __future__ import annotations

import pytest

from mailout.letters.content.notion.styles import ON_DARK, ON_LIGHT, TONES, color_class

PAGE, DARK_PAGE = "#ffffff", "#1f1f1f"


def luminance(color: str) -> float:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", TONES)
def test_every_colour_has_the_contrast_that_wcag_asks_for(name: str) -> None:
    tone = TONES[name]
    assert contrast(tone.text, PAGE) >= 4.5
    assert contrast(tone.text_dark, DARK_PAGE) >= 4.5
    assert contrast(ON_LIGHT, tone.background) >= 4.5
    assert contrast(ON_DARK, tone.background_dark) >= 4.5


@pytest.mark.parametrize(
    "color", ["default", "default_background", "", "red_backgroundx", "x", 'red" onclick="']
)
def test_only_notions_colours_become_classes(color: str) -> None:
    assert color_class(color) is None
