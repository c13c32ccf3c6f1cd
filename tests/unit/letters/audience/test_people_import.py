"""Importing a file: every row is either a subscriber or a reject with its line and reason."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailout.base.addresses import Dropped
from mailout.base.errors import UsageError
from mailout.letters.audience import people_import
from mailout.letters.audience.encodings import _told_apart
from mailout.letters.audience.people_import import PeopleImport, read_people
from mailout.letters.audience.people_rows import Reject
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.audience.wishes import Answers


@pytest.fixture
def read(tmp_path: Path):
    def read(content: str | bytes, **said: Any) -> PeopleImport:
        path = tmp_path / "files" / "subscribers.csv"  # pytest names its own folders after the test
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_people(path, Answers.from_options(**said))

    return read


def people(found: PeopleImport) -> list[SubscriberRow]:
    return [row for batch in found.batches(size=2) for row in batch]


def test_every_column_finds_its_place(read) -> None:
    found = read(
        "City,email,status,from_name,bounce_type,bounce_subtype,ocd_ids,lists\n"
        "Lima,Ana@Example.org,bounced,Bo  Li,Permanent,General,"
        "ocd-division/country:us|ocd-division/country:br,news; events |news\n"
    )
    assert people(found) == [
        SubscriberRow(
            email="Ana@Example.org",
            email_norm="ana@example.org",
            status="bounced",
            from_name="Bo Li",
            bounce_type="Permanent",
            bounce_subtype="General",
            ocd_ids=("ocd-division/country:us", "ocd-division/country:br"),
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
        'note,email,status\n"two\nlines",a@example.org,active\n,nobody,active\n,b@example.org,pending\n\n'
        "x,c@example.org,active,extra\n",
        mail_if=[("status", "active")],
    )
    assert [row.email for row in people(found)] == ["a@example.org"]
    assert list(found.rejects) == [
        Reject(4, "nobody", Dropped.NO_AT),
        Reject(5, "b@example.org", Dropped.UNCONFIRMED),
        Reject(7, "c@example.org", Dropped.BAD_ROW),
    ]
    assert found.dropped == {Dropped.NO_AT: 1, Dropped.BAD_ROW: 1, Dropped.UNCONFIRMED: 1}
    assert found.plan.rows == 4


def test_short_rows_and_trailing_separators_are_fine(read) -> None:
    found = read("email,street,city\na@example.org\nb@example.org,,,,,\n")
    assert [row.status for row in people(found)] == ["active", "active"]


def test_duplicates_are_one_subscriber_with_the_highest_status(read, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mail to somebody who unsubscribed is the worst an import can cause."""
    monkeypatch.setattr(people_import, "FRAME_ROWS", 1)
    found = read(
        "email,status,from_name,lists,city\n"
        "a@example.org,gone,,news,\n"
        "b@example.org,active,,,\n"
        "A@example.org,active,Ana,events|news,Lima\n",
        mail_if=[("status", "active")],
        no_mail_if=[("status", "gone")],
    )
    first, second = people(found)
    assert (first.email, first.status, first.from_name) == ("a@example.org", "unsubscribed", "Ana")
    assert (first.lists, first.attributes) == (("news", "events"), {"city": "Lima"})
    assert second.email == "b@example.org"
    assert (found.plan.rows, found.people, found.dropped) == (3, 2, {Dropped.DUPLICATE: 1})
    assert list(found.rejects) == []


def test_a_row_whose_cells_have_slipped_still_counts_if_it_says_no(read) -> None:
    found = read(
        "email,status\na@example.org,gone,more\nA@example.org,active\nb@example.org,active,more\n",
        mail_if=[("status", "active")],
        no_mail_if=[("status", "gone")],
    )
    assert found.plan.people == {"unsubscribed": 1}


def test_columns_named_like_our_own_words_are_attributes(read) -> None:
    [row] = people(read("email,line,reason,email_norm,ragged,meaning,\na@example.org,a,b,c,d,e,q\n"))
    assert row.attributes == {
        "line": "a",
        "reason": "b",
        "email_norm": "c",
        "ragged": "d",
        "meaning": "e",
        "column 7": "q",
    }


def test_a_header_alone_is_nobody(read) -> None:
    found = read("email,city\n")
    assert (found.plan.rows, people(found), list(found.rejects)) == (0, [], [])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is empty"),
        ("\ufeff\n \n", "is empty"),
        ("post,city\nx,y\n", "has no column `email`. It has: post, city."),
        ("one,two\na@example.org,b@example.org\n", '--map "one=email"'),
        ("BEGIN:VCARD\nEMAIL:a@example.org\nEND:VCARD\n", "is a vCard"),
        ("<html><table><tr><td>email</td></tr></table></html>", "web page, whatever its name says"),
        ("email,list,lists\na@x.org,b,c\n", "more than one column lists"),
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
        read_people(tmp_path / "nowhere.csv")
    with pytest.raises(UsageError, match="is a folder"):
        read_people(tmp_path)


# ── Nobody is lost ──


def emails(found: PeopleImport) -> list[str]:
    return [row.email for row in people(found)]


def test_a_second_address_stands_in_where_the_first_is_empty(read) -> None:
    found = read("Name,Email,Work email\nAna,,a@work.example.org\nBo,b@example.org,b@work.example.org\n")
    assert emails(found) == ["a@work.example.org", "b@example.org"]
    assert people(found)[1].attributes == {"name": "Bo", "Work email": "b@work.example.org"}
    assert ("Work email", "email if empty") in found.plan.columns


@pytest.mark.parametrize(
    "cell",
    [
        "a@example.org; b@example.org",
        "a@example.org,b@example.org",
        "a@example.org b@example.org",
        "a@example.org ::: b@example.org",
        "Ana <a@example.org>; Bo <b@example.org>",
        '"Li, Ana" <a@example.org>, Bo <b@example.org>',
    ],
)
def test_several_addresses_in_a_cell_are_all_imported_and_it_is_said(read, cell: str) -> None:
    quoted = cell.replace('"', '""')
    found = read(f'Email,City\n"{quoted}",Lima\n')
    assert emails(found) == ["a@example.org", "b@example.org"]
    assert {row.attributes["City"] for row in people(found)} == {"Lima"}
    assert "1 more addresses shared a cell" in "\n".join(found.plan.details())
    assert (found.plan.rows, found.people) == (1, 2)


def test_an_address_is_found_in_what_people_put_around_it(read) -> None:
    found = read(
        'email\n"Li, Ana <a@example.org>"\nBo <mailto:b@example.org>\nmailto:c@example.org?subject=Hi\n'
        "<d@example.org>\n'e@example.org'\nf@example.org;\n\u200eg@example.org\u200f\n\u00adh@example.org\ufeff\n"
    )
    assert emails(found) == [f"{name}@example.org" for name in "abcdefgh"]
    assert people(found)[0].attributes == {"name": "Li, Ana"}


def test_a_list_without_a_header_is_read_from_its_first_line(read) -> None:
    found = read("a@example.org,Ana\nb@example.org,Bo\n")
    assert [(row.email, row.attributes) for row in people(found)] == [
        ("a@example.org", {"column 2": "Ana"}),
        ("b@example.org", {"column 2": "Bo"}),
    ]


def test_a_header_that_comes_again_is_no_person(read) -> None:
    """Two exports put into one file."""
    found = read("Email,City\na@example.org,Lima\nEmail,City\nb@example.org,Oslo\n")
    assert (emails(found), found.dropped) == (["a@example.org", "b@example.org"], {})


def test_a_quote_within_quotes_that_is_not_doubled_is_read(read) -> None:
    found = read('email,name\n"a@example.org","Ana "the boss" Li"\n"b@example.org","Bo"\n')
    assert [row.attributes["name"] for row in people(found)] == ['Ana "the boss" Li', "Bo"]


def test_names_are_kept_whatever_the_file_calls_them(read) -> None:
    found = read('Email;Vorname;Nachname;Vorname;Note;Note\n"Li, Ana <a@example.org>";Ana;Li;Anna;z;w\n')
    [row] = people(found)
    assert row.from_name is None  # that is a sender's name
    assert row.attributes == {
        "first_name": "Ana",
        "last_name": "Li",
        "Vorname 2": "Anna",
        "Note": "z",
        "Note 2": "w",
        "name": "Li, Ana",
    }


def test_a_column_can_be_mapped_and_one_can_be_dropped(read) -> None:
    found = read(
        "Wohin,Wer,Pass\na@example.org,Ana,secret\n",
        fields={"wohin": "email", "Wer": "name", "Pass": "drop"},
    )
    [row] = people(found)
    assert (row.email, row.attributes) == ("a@example.org", {"name": "Ana"})
    assert found.plan.summary() == "Wohin → email, Wer → name: 1 active"


US, OH = "ocd-division/country:us", "ocd-division/country:us/state:oh"


@pytest.mark.parametrize(
    "cell",
    [
        f"{US},{OH}",
        f"{{{US},{OH}}}",
        f'["{US}", "{OH}"]',
        f"{US}|{OH}",
        f"{US};{OH}",
        f"{US} {OH}",
        f"{US}\n{OH}",
    ],
)
def test_places_are_split_however_a_file_joins_them(read, cell: str) -> None:
    quoted = cell.replace('"', '""')
    [row] = people(read(f'email,ocd_ids\na@example.org,"{quoted}"\n'))
    assert row.ocd_ids == (US, OH)


def test_what_is_no_place_is_reported_with_its_row_and_the_person_is_kept(read) -> None:
    found = read(
        f"email,ocd_ids\na@example.org,{US}\nb@example.org,Ohio|{OH}\nc@example.org,{US}/state:OH!\n"
    )
    assert [row.ocd_ids for row in people(found)] == [(US,), (OH,), ()]
    assert list(found.rejects) == [
        Reject(3, "b@example.org", "bad_place", "Ohio"),
        Reject(4, "c@example.org", "bad_place", f"{US}/state:OH!"),
    ]
    assert "2 places are no OCD id: not imported (line 3: Ohio)" in found.plan.details()


# ── Encodings ──


@pytest.mark.parametrize(
    ("encoding", "name", "line"),
    [
        ("shift_jis", "CP932", "a@example.org,山田太郎"),
        ("cp1250", "Windows-1250", "a@example.org,Žluťoučký kůň"),
        ("mac_roman", "MAC-ROMAN", "a@example.org,José Núñez"),
        ("cp1251", "Windows-1251", "a@example.org,Анна Иванова"),
        ("cp1252", "Windows-1252", "a@example.org,Jürgen Müller"),
    ],
)
def test_an_encoding_that_cannot_be_told_for_sure_is_asked(read, encoding: str, name: str, line: str) -> None:
    """Names would be garbled for good, and a no may become unreadable."""
    data = f"email,who\n{line}\n".encode(encoding)
    found = read(data)
    assert (name, line) in found.plan.readings
    with pytest.raises(UsageError, match="--encoding"):
        next(found.batches())
    told = read(data, encoding=encoding)
    assert people(told)[0].attributes == {"who": line.partition(",")[2]}


def test_encodings_that_differ_only_further_down_are_all_offered_with_where_they_differ(read) -> None:
    """Windows-1250 and 1252 agree on é, and the one that was left out was right."""
    data = b"email,name\nana2@example.org,Jos\xe9\nb@example.org,Mu\xf1oz\n"
    readings = dict(read(data).plan.readings)
    assert readings["Windows-1252"].endswith("b@example.org,Muñoz")
    assert readings["Windows-1250"].endswith("b@example.org,Muńoz")
    assert len(set(readings.values())) == len(readings)
    with pytest.raises(UsageError, match=r"Windows-1252: .*Muñoz"):
        read(data).plan.require_answered()


def test_encodings_that_differ_at_the_end_of_a_long_line_or_file_are_told_apart(read) -> None:
    for between in ("x" * 500, "\nc@example.org,Bo" * 3000):
        data = f"email,name\na@example.org,José{between}\nb@example.org,José {between[:300]} Muñoz\n"
        readings = dict(read(data.encode("cp1252")).plan.readings)
        assert (readings["Windows-1252"].endswith("Muñoz"), len(readings["Windows-1252"]) < 350) == (
            True,
            True,
        )
        assert len(set(readings.values())) == len(readings)


def test_what_reads_one_way_only_is_shown_by_its_first_line_that_is_not_ascii() -> None:
    assert _told_apart("email\nJosé\nMuñoz\n".encode("cp1252"), ["cp1252"]) == ["José"]


@pytest.mark.parametrize("data", [b"x", b"ab", b"abc"])
def test_a_file_of_three_bytes_is_no_utf_16(read, data: bytes) -> None:
    with pytest.raises(UsageError, match="has no column `email`"):
        read(data)


def test_unicode_is_told_for_sure(read) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        found = read("email,who\na@example.org,Анна\n".encode(encoding))
        assert (found.plan.readings, people(found)[0].attributes) == ((), {"who": "Анна"})
    with pytest.raises(UsageError, match="no encoding klingon"):
        read("email\n", encoding="klingon")
    with pytest.raises(UsageError, match="is not utf-8"):
        read("email,who\na@example.org,ÄÖÜ\n".encode("cp1252"), encoding="utf-8")


cells = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
rows_ = st.lists(
    st.tuples(st.sampled_from(["a@example.org", "B@example.org", "bad"]) | cells, cells), max_size=8
)


@given(rows_)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_the_csv_module_writes_is_accounted_for(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    """Rows = people + dropped: no row vanishes between the two lists."""
    (tmp_path / "files").mkdir(exist_ok=True)
    path = tmp_path / "files" / "any.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("email", "city"), *rows])
    found = read_people(path, Answers.from_options(ignored=["city"]))
    header = ["email", "city"]
    assert found.plan.rows == sum(1 for row in rows if any(row) and list(row) != header)
    assert len(people(found)) == found.people
    rejected = sum(count for reason, count in found.dropped.items() if reason is not Dropped.DUPLICATE)
    assert len(list(found.rejects)) == rejected


def test_the_shipped_example_shows_every_case() -> None:
    """`make demo` lives from this file: about 300 people, and one of everything that is dropped."""
    found = read_people(Path(__file__).parents[4] / "examples" / "subscribers.csv")
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
