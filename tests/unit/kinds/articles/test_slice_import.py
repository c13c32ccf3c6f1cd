"""Slices from files: what is good is kept, what is bad is written beside the file with its reason."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from mailout.base.errors import UsageError
from mailout.kinds.articles.slice_import import COLUMNS, RowErrorCode, SliceFile, read_slices, write_errors
from mailout.letters.content.slices import PublishStatus, Slice
from tests.unit.letters.audience.test_workbooks import write_workbook

GOOD = {"article_key": "budget", "section_order": "1", "publish_status": "published"}


def slices_file(folder: Path, *rows: dict[str, str], name: str = "slices.csv") -> Path:
    path = folder / name
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    return path


def read_one(folder: Path, **fields: str) -> SliceFile:
    return read_slices(slices_file(folder, GOOD | fields))


def test_a_row_is_read_whole(tmp_path: Path) -> None:
    (one,) = read_one(
        tmp_path,
        is_headline="TRUE",
        title="Roads, roads",
        dek="A line",
        body_md=r"First.\n\nSecond.",
        link_url="https://example.org/roads",
        scope_ocd_id="ocd-division/country:us/state:oh",
        publish_at="2026-11-15",
        expires_at="2026-11-16T12:00:00+02:00",
        sort_index="3",
        tags="{funding,oh-03}",
    ).slices
    assert one == Slice(
        article_key="budget",
        section_order=1,
        is_headline=True,
        title="Roads, roads",
        dek="A line",
        body_md="First.\n\nSecond.",
        link_url="https://example.org/roads",
        scope_ocd_id="ocd-division/country:us/state:oh",
        tags=("funding", "oh-03"),
        publish_status=PublishStatus.PUBLISHED,
        publish_at=1_794_700_800.0,  # midnight, UTC
        expires_at=1_794_823_200.0,
        sort_index=3,
        id=one.id,
    )


@pytest.mark.parametrize("written", ["a;b", "{a,b}", " a ; b ", '{"a","b"}', "a,b", "a|b", '["a", "b"]'])
def test_tags_are_written_as_places_are_in_a_file_of_people(written: str, tmp_path: Path) -> None:
    assert read_one(tmp_path, tags=written).slices[0].tags == ("a", "b")


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        ({"article_key": "Spring Budget"}, RowErrorCode.VALIDATION_ERROR, "article_key"),
        ({"article_key": ""}, RowErrorCode.VALIDATION_ERROR, "article_key"),
        ({"section_order": "0"}, RowErrorCode.VALIDATION_ERROR, "section_order"),
        ({"section_order": "first"}, RowErrorCode.PARSE_ERROR, "section_order"),
        ({"section_order": ""}, RowErrorCode.PARSE_ERROR, "section_order"),
        ({"section_order": "9999999999"}, RowErrorCode.PARSE_ERROR, "section_order"),
        ({"is_headline": "perhaps"}, RowErrorCode.PARSE_ERROR, "is_headline"),
        ({"publish_status": "live"}, RowErrorCode.VALIDATION_ERROR, "publish_status"),
        ({"scope_ocd_id": "state:oh"}, RowErrorCode.VALIDATION_ERROR, "scope_ocd_id"),
        ({"title": "x" * 181}, RowErrorCode.VALIDATION_ERROR, "title: 181"),
        ({"dek": "x" * 281}, RowErrorCode.VALIDATION_ERROR, "dek: 281"),
        ({"body_md": "x" * 10_001}, RowErrorCode.VALIDATION_ERROR, "body_md: 10,001"),
        ({"publish_at": "15.11.2026"}, RowErrorCode.PARSE_ERROR, "publish_at"),
        (
            {"publish_at": "2026-11-15", "expires_at": "2026-11-15"},
            RowErrorCode.VALIDATION_ERROR,
            "expires_at",
        ),
        ({"link_url": "javascript:alert(1)"}, RowErrorCode.VALIDATION_ERROR, "link_url"),
    ],
)
def test_a_bad_row_is_named_with_its_reason(
    fields: dict[str, str], code: RowErrorCode, said: str, tmp_path: Path
) -> None:
    found = read_slices(slices_file(tmp_path, GOOD | fields, GOOD | {"sort_index": "7"}))
    (error,) = found.errors
    assert (error.row_number, error.code) == (2, code)
    assert error.message.startswith(said)
    assert [one.sort_index for one in found.slices] == [7]


@pytest.mark.parametrize("variable", ["{{email}}", "{{ email }}", "{{ from_name | us }}"])
def test_a_link_may_hold_a_variable_however_it_is_written(variable: str, tmp_path: Path) -> None:
    assert not read_one(tmp_path, link_url=f"https://example.org/?a={variable}").errors


@pytest.mark.parametrize(("name", "length"), [("title", 180), ("dek", 280), ("body_md", 10_000)])
def test_the_longest_is_allowed(name: str, length: int, tmp_path: Path) -> None:
    assert not read_one(tmp_path, **{name: "x" * length}).errors


def test_a_row_with_too_many_values_is_left_out(tmp_path: Path) -> None:
    path = slices_file(tmp_path)
    path.write_text("article_key,section_order,publish_status\nbudget,1,published,what is this\n")
    assert [error.code for error in read_slices(path).errors] == [RowErrorCode.PARSE_ERROR]


def test_two_slices_cannot_be_in_one_place_but_a_later_row_may_archive_it(tmp_path: Path) -> None:
    found = read_slices(slices_file(tmp_path, GOOD, GOOD | {"title": "Again"}))
    assert [error.row_number for error in found.errors] == [3]
    assert "Row 2" in found.errors[0].message
    found = read_slices(slices_file(tmp_path, GOOD, GOOD | {"publish_status": "archived"}))
    assert [one.publish_status for one in found.slices] == [PublishStatus.ARCHIVED]
    assert not found.errors


def test_the_errors_stand_beside_the_file_until_they_are_gone(tmp_path: Path) -> None:
    path = slices_file(tmp_path, GOOD, GOOD | {"section_order": "0", "title": 'Said "no"'})
    beside = write_errors(path, read_slices(path).errors)
    assert beside == tmp_path / "slices.errors.csv"
    with beside.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["row_number"] == "3"
    assert row["error_code"] == "VALIDATION_ERROR"
    assert json.loads(row["raw_row_json"])["title"] == 'Said "no"'
    assert write_errors(path, []) is None
    assert not beside.exists()


def test_a_workbook_is_read_too(tmp_path: Path) -> None:
    header = ["article_key", "section_order", "is_headline", "publish_status", "title"]
    path = write_workbook(
        tmp_path / "slices.xlsx", budget=[header, ["budget", 2, True, "published", "Roads"]]
    )
    (one,) = read_slices(path).slices
    assert (one.section_order, one.is_headline, one.title) == (2, True, "Roads")


def test_a_file_without_the_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("email,name\nann@example.org,Ann\n")
    with pytest.raises(UsageError, match="article_key"):
        read_slices(path)
