"""LaTeX in signs that people can read, where Unicode has them; else it is shown as code."""

from __future__ import annotations

import re
from collections.abc import Mapping

_GREEK = (
    "alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ"
    " lambda λ mu μ nu ν xi ξ pi π rho ρ sigma σ tau τ upsilon υ phi φ varphi φ chi χ psi ψ omega ω Gamma Γ"
    " Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Phi Φ Psi Ψ Omega Ω"
)
_SIGNS = (
    "cdot · times × div ÷ pm ± mp ∓ leq ≤ le ≤ geq ≥ ge ≥ neq ≠ ne ≠ approx ≈ equiv ≡ sim ∼ propto ∝ infty ∞"
    " partial ∂ nabla ∇ sum ∑ prod ∏ int ∫ oint ∮ to → rightarrow → leftarrow ← Rightarrow ⇒ Leftarrow ⇐"
    " leftrightarrow ↔ Leftrightarrow ⇔ iff ⇔ implies ⇒ mapsto ↦ in ∈ notin ∉ subset ⊂ subseteq ⊆ cup ∪ cap ∩"
    " emptyset ∅ forall ∀ exists ∃ neg ¬ land ∧ lor ∨ circ ∘ bullet • dots … ldots … cdots ⋯ degree ° prime ′"
    " langle ⟨ rangle ⟩ hbar ℏ ell ℓ Re ℜ Im ℑ angle ∠ perp ⊥ parallel ∥ star ⋆ oplus ⊕ otimes ⊗ ll ≪ gg ≫"
)
_WORDS = (
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln exp lim max min sup inf det gcd mod"
)
_SPACES = {",": "\u2009", ";": " ", ":": " ", " ": " ", "!": "", "quad": "  ", "qquad": "    "}
_PLAIN = frozenset({"text", "mathrm", "mathbf", "mathit", "operatorname", "textbf", "textit", "mathsf"})
_SETS = dict(zip("RNZQCP", "ℝℕℤℚℂℙ", strict=True))


def _pairs(words: str) -> dict[str, str]:
    parts = words.split()
    return dict(zip(parts[::2], parts[1::2], strict=True))


_COMMANDS: Mapping[str, str] = {
    **_pairs(_GREEK),
    **_pairs(_SIGNS),
    **{word: word for word in _WORDS.split()},
    **_SPACES,
    **{sign: sign for sign in "{}%$#&_"},
}
_RAISED = dict(
    zip("0123456789+-=()niabcdefghjklmoprstuvwxyz′", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵃᵇᶜᵈᵉᶠᵍʰʲᵏˡᵐᵒᵖʳˢᵗᵘᵛʷˣʸᶻ′", strict=True)
)
_LOWERED = dict(zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))
_TOKEN = re.compile(r"\\([A-Za-z]+|.)|([{}^_])|([^\\{}^_]+)", re.DOTALL)
MAX_EQUATION_CHARACTERS = 400


class _NoUnicode(Exception):
    """Unicode has no way to say it."""


def readable(latex: str) -> str | None:
    """`\\frac{1}{3} x^2` as `1/3 x²`; None: it needs more than a line of text."""
    if len(latex) > MAX_EQUATION_CHARACTERS:
        return None
    tokens = [(found[1], found[2], found[3]) for found in _TOKEN.finditer(latex)]
    tokens.reverse()
    try:
        said = _read(tokens, until=None)
    except (_NoUnicode, IndexError, RecursionError):
        return None
    return re.sub(r" {2,}", " ", said).strip() or None


Tokens = list[tuple[str | None, str | None, str | None]]


def _read(tokens: Tokens, until: str | None) -> str:
    said = ""
    while tokens:
        if tokens[-1][1] == "}":
            if until != "}":
                raise _NoUnicode
            tokens.pop()
            return said
        if (sign := tokens[-1][1]) in ("^", "_"):
            tokens.pop()
            said += _moved(_argument(tokens), _RAISED if sign == "^" else _LOWERED)
        else:
            said += _one(tokens)
    if until is not None:
        raise _NoUnicode
    return said


def _one(tokens: Tokens) -> str:
    command, sign, plain = tokens.pop()
    if plain is not None:
        return re.sub(r"\s+", " ", plain)
    if sign == "{":
        return _read(tokens, "}")
    if command is None:
        raise _NoUnicode
    if command in ("left", "right", "big", "Big", "bigl", "bigr", "displaystyle"):
        return ""
    if command == "frac":
        above, below = _argument(tokens), _argument(tokens)
        return f"{_grouped(above)}/{_grouped(below)}"
    if command == "sqrt":
        return f"√{_grouped(_argument(tokens))}"
    if command in _PLAIN:
        return _argument(tokens)
    if command == "mathbb":
        return _known(_argument(tokens), _SETS)
    return _known(command, _COMMANDS)


def _argument(tokens: Tokens) -> str:
    """What follows: a group, a command, or one character."""
    if tokens[-1][2] is not None:
        text = (tokens.pop()[2] or "").lstrip()
        if len(text) > 1:
            tokens.append((None, None, text[1:]))
        return text[:1] if text else _argument(tokens)
    return _one(tokens)


def _moved(text: str, signs: Mapping[str, str]) -> str:
    if text in ("°", "∘"):
        return "°"
    return "".join(_known(character, signs) for character in text.replace(" ", "").replace("−", "-"))


def _known(key: str, among: Mapping[str, str]) -> str:
    if key not in among:
        raise _NoUnicode
    return among[key]


def _grouped(text: str) -> str:
    text = text.strip()
    return text if re.fullmatch(r"\w+", text) else f"({text})"
