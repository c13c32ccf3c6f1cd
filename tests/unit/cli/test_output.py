"""What is said fits the terminal, and breaks between words."""

from __future__ import annotations

from rich.console import Console

from cli.output import folded

TERMINAL, FILE = Console(force_terminal=True, width=80), Console(force_terminal=False, width=80)
LONG = "A sentence that goes on. " * 6
COMMAND = "  mailout queue settle 3f2a1b00-0000-0000-0000-000000000000 --as sent --message ana@example.org"


def test_a_long_sentence_is_broken_between_words() -> None:
    lines = folded(f"Head\n\n{LONG}", TERMINAL).split("\n")
    assert lines[:2] == ["Head", ""]
    assert all(len(line) <= 80 for line in lines)
    assert " ".join(lines[2:]).split() == LONG.split()


def test_what_is_there_to_be_copied_stays_whole() -> None:
    path = "/".join(["a-long-folder"] * 12)
    assert path in folded(f"It is in {path}.", TERMINAL)
    assert folded(COMMAND, TERMINAL) == COMMAND


def test_a_line_of_a_file_is_as_long_as_it_is() -> None:
    assert folded(LONG, FILE) == LONG
