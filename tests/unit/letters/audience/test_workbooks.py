"""People in a workbook: its first sheet or a named one, numbers and dates as text, a header below a title."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from mailout.base.errors import UsageError
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


def test_a_text_has_no_sheets(tmp_path: Path) -> None:
    text = tmp_path / "people.csv"
    text.write_text("email\na@example.org\n", encoding="utf-8")
    with pytest.raises(UsageError, match="has no sheets"):
        read_people(text, Answers(sheet="People"))


def test_an_empty_workbook_is_empty(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is empty"):
        read_people(write_workbook(tmp_path / "people.xlsx", People=[]))


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
    for files in (["photo.jpg"], []):
        with zipfile.ZipFile(path, "w") as packed:
            for name in files:
                packed.writestr(name, b"x")
        with pytest.raises(UsageError, match="holds no tables"):
            read_people(path)
