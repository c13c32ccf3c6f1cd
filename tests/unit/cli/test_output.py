"""What is said fits the terminal, and breaks between words."""

from __future__ import annotations

from rich.console import Console

from cli.output import folded

TERMINAL, FILE = Console(force_terminal=True, width=80), Console(force_terminal=False, width=80)
LONG = "  a sentence that goes on, " * 5


def test_a_long_line_is_broken_between_words_and_keeps_its_indent() -> None:
    lines = folded(f"Head\n\n{LONG}", TERMINAL).split("\n")
    assert lines[:2] == ["Head", ""]
    assert all(len(line) <= 80 and line.startswith("  ") for line in lines[2:])
    assert " ".join(" ".join(lines[2:]).split()) == " ".join(LONG.split())


def test_what_can_be_copied_is_not_cut() -> None:
    path = "/".join(["a-long-folder"] * 12)
    assert path in folded(f"It is in {path}.", TERMINAL)


def test_a_line_of_a_file_is_as_long_as_it_is() -> None:
    assert folded(LONG, FILE) == LONG
