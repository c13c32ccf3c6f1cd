"""Equations: readers see signs where there are signs for it, and the source where there are none."""

import pytest

from mailout.letters.content.notion.equations import readable


@pytest.mark.parametrize(
    ("latex", "said"),
    [
        ("E = mc^2", "E = mc²"),
        (r"\int_0^1 x^2\,dx = \frac{1}{3}", "∫₀¹ x²\u2009dx = 1/3"),
        (r"a_{n+1} \leq \sqrt{2} \cdot a_n", "aₙ₊₁ ≤ √2 · aₙ"),
        (r"\frac{a+b}{2}", "(a+b)/2"),
        (r"\alpha \to \infty, x \in \mathbb{R}", "α → ∞, x ∈ ℝ"),
        (r"90^\circ", "90°"),
        (r"\left( x \right)", "( x )"),
        (r"\text{speed} = 3 \%", "speed = 3 %"),
    ],
)
def test_what_unicode_can_say_is_said(latex: str, said: str) -> None:
    assert readable(latex) == said


@pytest.mark.parametrize(
    "latex",
    [
        r"\begin{matrix} a & b \end{matrix}",
        r"x^{\Q}",
        r"x_{q}",
        r"{x",
        r"x}",
        "\\",
        r"\unknown",
        "^",
        "x" * 401,
        "",
    ],
)
def test_what_it_cannot_say_stays_source(latex: str) -> None:
    assert readable(latex) is None
