"""People in a workbook: its first sheet or a named one, numbers and dates as text, a header below a title."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from mailout.base.errors import UsageError
from mailout.letters.audience import workbook_size
from mailout.letters.audience.people_import import read_people
from mailout.letters.audience.wishes import Answers
from tests.unit.letters.audience import exports

_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def write_workbook(path: Path, **sheets: Sequence[Sequence[str | int | bool]]) -> Path:
    """The least that is a workbook: cells are inline strings, numbers, or booleans."""
    numbered = list(enumerate(sheets, start=1))
    with zipfile.ZipFile(path, "w") as book:
        book.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_TYPES}"><Default Extension="rels"'
            ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/></Types>',
        )
        book.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_LINKS}"><Relationship Id="r1" Type="{_OFFICE}/officeDocument"'
            ' Target="xl/workbook.xml"/></Relationships>',
        )
        names = "".join(f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in numbered)
        book.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{names}</sheets></workbook>',
        )
        links = "".join(
            f'<Relationship Id="r{n}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n, _ in numbered
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{_LINKS}">{links}</Relationships>'
        )
        for n, name in numbered:
            rows = "".join(_row(at, cells) for at, cells in enumerate(sheets[name], start=1))
            book.writestr(
                f"xl/worksheets/sheet{n}.xml",
                f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>',
            )
    return path


def _row(at: int, cells: Sequence[str | int | bool]) -> str:
    return f'<row r="{at}">{"".join(_cell(f"{chr(65 + n)}{at}", cell) for n, cell in enumerate(cells))}</row>'


def _cell(place: str, value: str | int | bool) -> str:
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int):
        return f'<c r="{place}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>' if value else ""


def folder(tmp_path: Path) -> Path:
    """pytest names its own folders after the test, and such a name may be asked about."""
    (tmp_path / "files").mkdir(exist_ok=True)
    return tmp_path / "files"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    return write_workbook(
        folder(tmp_path) / "people.xlsx",
        Cover=[["Everybody we know"], ["as of November"]],
        People=[
            ["Our readers"],
            [],
            ["Почта", "Имя", "Подписан", "Unsubscribed at", "Number"],
            ["ana@example.org", "Анна", True, "", 7],
            ["bo@example.org", "", False, "", 8],
            ["cy@example.org", "", True, 45000, 9],
            ["nobody", "", True, "", 10],
        ],
        Old=[["E-mail"], ["di@example.org"]],
    )


def test_every_sheet_with_people_is_read_and_which_of_them_want_mail_is_asked(book: Path) -> None:
    """A cover sheet has nobody; a second sheet may be those who unsubscribed."""
    asked = read_people(book).plan.open
    assert [(one.column, dict(one.values)) for one in asked] == [
        ("sheet name", {"People": 4, "Old": 1}),
        ("Подписан", {"true": 3, "false": 1}),
        ("Unsubscribed at", {"": 3, "45000": 1}),
    ]
    said = Answers.from_options(
        mail_if=[("sheet name", "People"), ("Подписан", "true"), ("Unsubscribed at", "")],
        no_mail_if=[("Подписан", "false"), ("Unsubscribed at", "*")],
    )
    found = read_people(book, said)
    people = {row.email: row for batch in found.batches() for row in batch}
    assert {email: row.status for email, row in people.items()} == {
        "ana@example.org": "active",
        "bo@example.org": "unsubscribed",
        "cy@example.org": "unsubscribed",
    }
    assert people["ana@example.org"].attributes == {"first_name": "Анна", "Number": "7"}
    assert [(reject.line, reject.email) for reject in found.rejects] == [
        (2, "di@example.org"),
        (7, "nobody"),
    ]


def test_one_sheet_is_read_if_it_is_named(book: Path) -> None:
    found = read_people(book, Answers(sheet="Old"))
    assert [one.column for one in found.plan.open] == ["sheet name"]  # its name may tell that they left
    with pytest.raises(UsageError, match="It has: Cover, People, Old"):
        read_people(book, Answers(sheet="New"))


def test_what_is_no_workbook_is_said_to_be_none(tmp_path: Path) -> None:
    broken = tmp_path / "people.xlsx"
    broken.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(UsageError, match="cannot be read as a workbook"):
        read_people(broken)
    text = tmp_path / "people.csv"
    text.write_text("email\na@example.org\n", encoding="utf-8")
    with pytest.raises(UsageError, match="has no sheets"):
        read_people(text, Answers(sheet="People"))


def test_an_empty_workbook_is_empty(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is empty"):
        read_people(write_workbook(tmp_path / "people.xlsx", People=[]))


def test_a_small_file_that_unpacks_to_more_than_a_machine_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload of a few kilobytes must not end the gateway, whatever the file says of its own size."""
    monkeypatch.setattr(workbook_size, "MAX_UNPACKED_BYTES", 100_000)
    path = write_workbook(tmp_path / "people.xlsx", People=[["email"], ["a@example.org"]])
    assert read_people(path).people == 1
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/media/more.xml", b" " * 120_000)
    with pytest.raises(UsageError, match="too large once it is unpacked"):
        read_people(path)
    said = path.read_bytes().replace((120_000).to_bytes(4, "little"), (12).to_bytes(4, "little"))
    path.write_bytes(said)
    with pytest.raises(UsageError, match="too large once it is unpacked"):
        read_people(path)


def test_a_sheet_with_its_last_cell_at_the_end_of_the_world_is_refused(tmp_path: Path) -> None:
    """Room would be made for seventeen milliards of cells."""
    path = write_workbook(tmp_path / "people.xlsx", People=[["email"], ["a@example.org"]])
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    far = b'<row r="1048576"><c s="1" r="XFD1048576"><v>1</v></c></row></sheetData>'
    parts[sheet] = parts[sheet].replace(b"</sheetData>", far)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, data in parts.items():
            book.writestr(name, data)
    with pytest.raises(UsageError, match="too large once it is unpacked"):
        read_people(path)


def write_ods(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """The least that LibreOffice would open."""
    office = "urn:oasis:names:tc:opendocument:xmlns:"
    cells = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{escape(cell)}</text:p></table:table-cell>'
            for cell in row
        )
        + "</table:table-row>"
        for row in rows
    )
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr(
            "META-INF/manifest.xml",
            f'<manifest:manifest xmlns:manifest="{office}manifest:1.0"/>',
        )
        book.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{office}office:1.0" xmlns:table="{office}table:1.0"'
            f' xmlns:text="{office}text:1.0"><office:body><office:spreadsheet>'
            f'<table:table table:name="People">{cells}</table:table>'
            "</office:spreadsheet></office:body></office:document-content>",
        )
    return path


def test_a_workbook_of_libreoffice_is_read(tmp_path: Path) -> None:
    path = write_ods(folder(tmp_path) / "people.ods", [["E-mail", "City"], ["ana@example.org", "Lima"]])
    found = read_people(path)
    assert [(row.email, row.attributes) for batch in found.batches() for row in batch] == [
        ("ana@example.org", {"City": "Lima"})
    ]


def test_mailchimps_archive_is_read_whole_each_file_with_its_meaning(tmp_path: Path) -> None:
    path = folder(tmp_path) / "audience_export_1a2b3c.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("subscribed_email_audience_export_1a2b3c.csv", exports.SUBSCRIBED)
        packed.writestr("unsubscribed_email_audience_export_1a2b3c.csv", exports.UNSUBSCRIBED)
        packed.writestr("cleaned_email_audience_export_1a2b3c.csv", exports.CLEANED)
        packed.writestr("__MACOSX/._cleaned_email_audience_export_1a2b3c.csv", b"\0\5\x16\7")
    found = read_people(path)
    assert found.plan.people == {"active": 2, "unsubscribed": 1, "bounced": 1}
    assert found.plan.open == ()
    assert found.plan.decisions()["exports"] == {
        f"{kind}_email_audience_export_1a2b3c.csv": f"Mailchimp ({kind})"
        for kind in ("subscribed", "unsubscribed", "cleaned")
    }


def test_an_archive_of_unknown_files_asks_which_of_them_want_mail(tmp_path: Path) -> None:
    path = folder(tmp_path) / "people.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.csv", "Email\na@example.org\nb@example.org\n")
        packed.writestr("b.csv", "Email\nb@example.org\n")
    assert [dict(one.values) for one in read_people(path).plan.open] == [{"a.csv": 2, "b.csv": 1}]
    found = read_people(path, Answers.from_options(mail_if=[("file name", "a.csv")]))
    assert [row.email for batch in found.batches() for row in batch] == ["a@example.org"]  # b stands in both
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("photo.jpg", b"x")
    with pytest.raises(UsageError, match="holds no tables"):
        read_people(path)


def test_a_damaged_workbook_is_refused_with_words_wherever_it_is_damaged() -> None:
    """Offsets, sizes and names in it are its own word: whatever zipfile stumbles over is said."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as packed:
        packed.writestr("xl/workbook.xml", "<workbook/>")
        packed.writestr("b.xml", "<b/>")
    data, said = whole.getvalue(), set()
    for place, value in product(range(len(data)), (0, 6, 0x7F, 0xFF)):
        damaged = data[:place] + bytes([value]) + data[place + 1 :]
        try:
            workbook_size.check_size("people.xlsx", damaged)
        except UsageError as error:
            said.add(str(error))
    assert len(said) > 5
    assert not any("workbook: ." in one for one in said)
