"""Files that would end the process that reads them: another process does, and says what is wrong."""

from __future__ import annotations

import os
import random
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mailout.base.errors import UsageError
from mailout.letters.audience import table_file
from mailout.letters.audience.table_file import open_table
from tests.unit.letters.audience.test_workbooks import write_workbook

HEADERS = {"email"}
SHEET = "xl/worksheets/sheet1.xml"
ENTITIES = b"""<?xml version="1.0"?><!DOCTYPE w [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>"""


def _book(path: Path) -> Path:
    return write_workbook(path, People=[["email", "name"], ["a@example.org", "Ann"], ["b@example.org", ""]])


def change_sheet(path: Path, change: Callable[[bytes], bytes]) -> Path:
    """A workbook whose first sheet was changed by hand."""
    with zipfile.ZipFile(_book(path)) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    parts[SHEET] = change(parts[SHEET])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, data in parts.items():
            book.writestr(name, data)
    return path


def far_cell(sheet: bytes) -> bytes:
    """The last cell of all: room would be made for seventeen milliards of cells."""
    far = b'<row r="1048576"><c s="1" r="XFD1048576"><v>1</v></c></row>'
    return with_row(sheet, far)


def with_row(sheet: bytes, row: bytes) -> bytes:
    return sheet.replace(b"</sheetData>", row + b"</sheetData>")


def with_entity(sheet: bytes) -> bytes:
    return ENTITIES + sheet.replace(b"Ann", b"&b;")


def many_commas(path: Path) -> Path:
    path.write_text("email" + "," * 2_000_000 + "\na@example.org\n")
    return path


def test_the_rows_of_a_file_come_back_as_they_stand_in_it(tmp_path: Path) -> None:
    text = tmp_path / "people.csv"
    text.write_bytes('Our readers\nE-Mail;Имя\n"a@example.org";"Анна\nБ"\nb@example.org\n'.encode("cp1251"))
    table = open_table(text, HEADERS)
    assert (table.header, table.encoding) == (["E-Mail", "Имя"], "Windows-1251")
    assert list(table.rows) == [(4, ["a@example.org", "Анна\nБ"]), (5, ["b@example.org"])]
    book = open_table(_book(tmp_path / "people.xlsx"), HEADERS)
    assert (book.header, book.sheet) == (["email", "name"], "People")
    assert list(book.rows) == [(2, ["a@example.org", "Ann"]), (3, ["b@example.org", ""])]


def test_a_workbook_that_asks_for_more_memory_than_there_is_ends_no_process_but_its_own(
    tmp_path: Path,
) -> None:
    """1.4 KB ended the gateway, and with it everybody's unsubscribe page."""
    path = change_sheet(tmp_path / "people.xlsx", far_cell)
    assert path.stat().st_size < 2_000
    with pytest.raises(UsageError, match="more memory or time"):
        open_table(path, HEADERS)


def test_an_archive_that_unpacks_to_more_than_a_machine_holds_is_refused(tmp_path: Path) -> None:
    """An upload of a few kilobytes must not fill the memory, whatever the file says of its own size."""
    path, most = tmp_path / "people.zip", 1_000_000_000
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("people.csv", "email\na@example.org\n")
    honest = path.read_bytes()
    path.write_bytes(honest.replace((20).to_bytes(4, "little"), (most + 1).to_bytes(4, "little")))
    with pytest.raises(UsageError, match="too large once it is unpacked"):
        open_table(path, HEADERS)
    path.write_bytes(honest.replace((20).to_bytes(4, "little"), (most - 1).to_bytes(4, "little")))
    with pytest.raises(UsageError, match="cannot be read"):
        open_table(path, HEADERS)


def test_a_header_of_two_million_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2,000,001 columns in line 1"):
        open_table(many_commas(tmp_path / "people.csv"), HEADERS)


def test_short_rows_below_a_wide_header_are_counted_as_they_will_be_filled_up(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("email" + "," * 1_999 + "\n" + "a\n" * 31_000)
    with pytest.raises(UsageError, match="more than 60,000,000 cells"):
        open_table(path, HEADERS)


def test_a_file_that_is_never_read_to_its_end_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody imports from a pipe that nobody writes into: the dashboard's thread must not wait for ever."""
    monkeypatch.setattr(table_file, "MOST_WAIT_SECONDS", 1)
    pipe = tmp_path / "people.csv"
    os.mkfifo(pipe)
    with subprocess.Popen(["sleep", "60"], stdout=os.open(pipe, os.O_RDWR)) as writer:
        try:
            with pytest.raises(UsageError, match="more memory or time"):
                open_table(pipe, HEADERS)
        finally:
            writer.kill()


def test_the_process_that_reads_a_strangers_file_knows_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = dict[str, Any]()

    class Seen(subprocess.Popen[bytes]):
        def __init__(self, *args: object, **options: object) -> None:
            given.update(options["env"])  # type: ignore[call-overload]
            super().__init__(*args, **options)  # type: ignore[call-overload]

    monkeypatch.setenv("API_TOKEN", "secret")
    monkeypatch.setattr(subprocess, "Popen", Seen)
    path = tmp_path / "people.csv"
    path.write_text("email\na@example.org\n")
    assert len(list(open_table(path, HEADERS).rows)) == 1
    assert set(given) == {"PATH", "PYTHONPATH", "POLARS_MAX_THREADS"}


def _wild_files(folder: Path, seed: int) -> Iterator[Path]:
    """Workbooks with wild references, entities and sizes; pieces of files; noise with a file's beginning."""
    dice = random.Random(seed)
    cells = [
        "XFD1048576",
        "A1048577",
        "AAAAAA1",
        "A0",
        "A-1",
        "A99999999999999999999",
        "1A",
        "",
        "é1",
        "XFE1",
    ]
    for n, cell in enumerate(dice.sample(cells, 6)):
        hidden = " " * dice.choice([1, 120, 5_000])
        one = f'<row r="{dice.choice([1, 0, -7, 2**40])}"><c{hidden}r="{cell}"><v>1</v></c></row>'
        yield change_sheet(folder / f"cell{n}.xlsx", partial(with_row, row=one.encode()))
    yield change_sheet(folder / "entity.xlsx", with_entity)
    yield change_sheet(folder / "far.xlsx", far_cell)
    yield change_sheet(folder / "deep.xlsx", lambda sheet: sheet.replace(b"Ann", b"<is>" * 20_000))
    whole = _book(folder / "whole.xlsx").read_bytes()
    for n in range(4):
        piece = bytearray(whole[: dice.randrange(4, len(whole))] if n % 2 else whole)
        for _ in range(dice.randrange(1, 20)):
            piece[dice.randrange(4, len(piece))] = dice.randrange(256)
        (folder / f"piece{n}.xlsx").write_bytes(piece)
        yield folder / f"piece{n}.xlsx"
    begin = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"email,name\n", b'email\n"')
    for n, start in enumerate(begin):
        (folder / f"noise{n}.csv").write_bytes(start + dice.randbytes(dice.randrange(1, 40_000)))
        yield folder / f"noise{n}.csv"
    yield many_commas(folder / "commas.csv")


def test_whatever_a_file_holds_it_is_read_or_refused_with_words(tmp_path: Path) -> None:
    refused, read = [], 0
    for path in _wild_files(tmp_path, seed=26):
        try:
            read += len(list(open_table(path, HEADERS).rows)) >= 0
        except UsageError as error:
            refused.append((path.name in error.message, bool(error.remedy)))
    assert len(refused) + read == 18
    assert len(refused) > 8
    assert set(refused) == {(True, True)}
