"""Importing a file: every row is either a subscriber or a reject with its line and reason."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailout.base.addresses import Dropped
from mailout.base.errors import UsageError
from mailout.letters.audience import csv_import
from mailout.letters.audience.csv_import import CsvImport, Reject, read_subscribers
from mailout.letters.audience.port import SubscriberRow


@pytest.fixture
def read(tmp_path: Path):
    def read(content: str | bytes) -> CsvImport:
        path = tmp_path / "subscribers.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_subscribers(path)

    return read


def people(found: CsvImport) -> list[SubscriberRow]:
    return [row for batch in found.batches(size=2) for row in batch]


def test_every_column_finds_its_place(read) -> None:
    found = read(
        "City,EMAIL,Status,from_name,bounce_type,bounce_subtype,ocd_ids,list\n"
        "Lima,Ana@Example.org,bounced,Bo  Li,Permanent,General,ocd/a|ocd/b,news; events |news\n"
    )
    assert people(found) == [
        SubscriberRow(
            email="Ana@Example.org",
            email_norm="ana@example.org",
            status="bounced",
            from_name="Bo Li",
            bounce_type="Permanent",
            bounce_subtype="General",
            ocd_ids=("ocd/a", "ocd/b"),
            lists=("news", "events"),
            attributes={"City": "Lima"},
        )
    ]
    assert (found.plan.rows, found.people, found.dropped) == (1, 1, {})


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_files_as_office_programs_save_them(read, separator: str, bom: str, newline: str) -> None:
    lines = [separator.join(row) for row in (("email", "city"), ("a@example.org", "São Paulo"), ("", ""))]
    [row] = people(read(bom + newline.join(lines) + newline))
    assert (row.email, row.attributes) == ("a@example.org", {"city": "São Paulo"})


def test_a_comma_inside_quotes_does_not_decide_the_separator(read) -> None:
    [row] = people(read('"name, first, last";email\n"Li, Bo";a@example.org\n'))
    assert row.attributes == {"name, first, last": "Li, Bo"}


def test_rejects_carry_line_and_reason_even_after_fields_with_line_breaks(read) -> None:
    """Else people would search the wrong line of a long file."""
    found = read(
        'note,email,status\n"two\nlines",a@example.org,\n,nobody,\n,b@example.org,pending\n\nx,c@example.org,active,extra\n'
    )
    assert [row.email for row in people(found)] == ["a@example.org"]
    assert list(found.rejects()) == [
        Reject(4, "nobody", Dropped.NO_AT),
        Reject(5, "b@example.org", Dropped.UNCONFIRMED),
        Reject(7, "c@example.org", Dropped.BAD_ROW),
    ]
    assert found.dropped == {Dropped.NO_AT: 1, Dropped.BAD_ROW: 1, Dropped.UNCONFIRMED: 1}
    assert found.plan.rows == 4


def test_short_rows_and_trailing_separators_are_fine(read) -> None:
    found = read("email,status,city\na@example.org\nb@example.org,,,,,\n")
    assert [row.status for row in people(found)] == ["active", "active"]


def test_duplicates_are_one_subscriber_with_the_highest_status(read, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mail to somebody who left is the worst an import can cause."""
    monkeypatch.setattr(csv_import, "BATCH", 1)
    found = read(
        "email,status,from_name,lists,city\n"
        "a@example.org,unsubscribed,,news,\n"
        "b@example.org,,,,\n"
        "A@example.org,active,Ana,events|news,Lima\n"
    )
    first, second = people(found)
    assert (first.email, first.status, first.from_name) == ("a@example.org", "unsubscribed", "Ana")
    assert (first.lists, first.attributes) == (("news", "events"), {"city": "Lima"})
    assert second.email == "b@example.org"
    assert (found.plan.rows, found.people, found.dropped) == (3, 2, {Dropped.DUPLICATE: 1})
    assert list(found.rejects()) == []


def test_columns_named_like_our_own_words_are_attributes(read) -> None:
    [row] = people(read("email,line,reason,email_norm,ragged,\na@example.org,1,2,3,4,5\n"))
    assert row.attributes == {"line": "1", "reason": "2", "email_norm": "3", "ragged": "4", "column 6": "5"}


def test_a_header_alone_is_nobody(read) -> None:
    found = read("email,city\n")
    assert (found.plan.rows, people(found), list(found.rejects())) == (0, [], [])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is empty"),
        ("\ufeff\n \n", "is empty"),
        ("post,city\nx,y\n", "has no column `email`. It has: post, city."),
        ("a@example.org\nb@example.org\n", "put a header above it"),
        ("email,Email\na,b\n", "more than one column email"),
        ("email,list,lists\na,b,c\n", "more than one column lists"),
        (b"email,note\na@example.org,a\0b\n", "NUL"),
        ('email,"city\n', "not closed"),
        ('email,city\na@example.org,"Lima\nb@example.org,Oslo\n', "not closed"),
    ],
)
def test_an_unusable_file_says_what_to_do(read, content: str | bytes, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        read(content)
    assert told in str(raised.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no file"):
        read_subscribers(tmp_path / "nowhere.csv")
    with pytest.raises(UsageError, match="is a folder"):
        read_subscribers(tmp_path)


cells = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
rows_ = st.lists(
    st.tuples(st.sampled_from(["a@example.org", "B@example.org", "bad"]) | cells, cells), max_size=8
)


@given(rows_)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_the_csv_module_writes_is_accounted_for(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    """Rows = people + dropped: no row vanishes between the two lists."""
    path = tmp_path / "any.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("email", "city"), *rows])
    found = read_subscribers(path)
    assert found.plan.rows == sum(1 for row in rows if any(row))
    assert len(people(found)) == found.people
    rejected = sum(count for reason, count in found.dropped.items() if reason is not Dropped.DUPLICATE)
    assert len(list(found.rejects())) == rejected


def test_the_shipped_example_shows_every_case() -> None:
    """`make demo` lives from this file: about 300 people, and one of everything that is dropped."""
    found = read_subscribers(Path(__file__).parents[4] / "examples" / "subscribers.csv")
    everybody = people(found)
    assert 280 <= found.people <= 320
    assert {row.status for row in everybody} == {"active", "unsubscribed", "bounced"}
    assert found.dropped[Dropped.DUPLICATE] >= 3
    assert {Dropped.NO_AT, Dropped.NON_ASCII_LOCAL, Dropped.BAD_DOMAIN} <= set(found.dropped)
    assert any("xn--" in row.email_norm for row in everybody)
    assert any(row.from_name for row in everybody)
    assert any(row.lists for row in everybody)
    assert any(row.attributes for row in everybody)
    reserved = {"example.org", "example.com", "example.net", "xn--bcher-kva.example"}
    assert {row.email_norm.partition("@")[2] for row in everybody} == reserved
