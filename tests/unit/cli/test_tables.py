"""Tables fit the terminal; what goes to a file is whole."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from cli import tables
from cli.tables import TextTable


def shown(monkeypatch: pytest.MonkeyPatch, table: TextTable, *, width: int | None) -> list[str]:
    file = io.StringIO()
    console = Console(
        file=file, force_terminal=width is not None, width=width, soft_wrap=True, color_system=None
    )
    monkeypatch.setattr(tables, "out", console)
    table.show()
    return file.getvalue().splitlines()


@given(
    st.lists(st.tuples(st.text(), st.text(max_size=20), st.text()), min_size=1, max_size=5),
    st.integers(60, 200),
)
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[str, str, str]], width: int) -> None:
    table = TextTable(("id", "state", "subject"), coloured="state")
    for subject, state, more in rows:
        table.add("3f2a1b00", state, subject, more=more, style="red")
    with pytest.MonkeyPatch.context() as patch:
        lines = shown(patch, table, width=width)
    assert max(map(cell_len, lines)) <= width


def test_what_goes_to_a_file_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    table = TextTable(("email", "sent"), right=frozenset({"sent"}), gives_way="email")
    table.add("a" * 200, "1", more="It waits " * 40)
    head, row, more = shown(monkeypatch, table, width=None)
    assert head.split() == ["email", "sent"]
    assert row == "a" * 200 + "     1"
    assert more.count("It waits") == 40


def test_a_cell_cannot_move_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    table = TextTable(("subject",))
    table.add("Hi\x1b[2J\nthere")
    assert shown(monkeypatch, table, width=None)[1:] == ["Hi [2J there"]
