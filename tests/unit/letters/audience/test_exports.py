"""Other products' exports: everybody who wants mail is found, and nobody who does not becomes active."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailout.base.errors import UsageError
from mailout.letters.audience import export_words as words
from mailout.letters.audience.csv_import import Choices, read_subscribers
from mailout.letters.audience.marks import Meaning
from tests.unit.letters.audience.exports import SERVICES, Export
from tests.unit.letters.audience.exports_elsewhere import ELSEWHERE


@pytest.mark.parametrize("export", [*SERVICES, *ELSEWHERE], ids=lambda export: export.product)
def test_an_export_is_understood(tmp_path: Path, export: Export) -> None:
    path = tmp_path / export.file
    path.write_bytes(export.text.encode(export.encoding))
    found = read_subscribers(path)
    people: dict[str, set[str]] = {"active": set(), "unsubscribed": set(), "bounced": set()}
    for row in (row for batch in found.batches() for row in batch):
        people[row.status].add(row.email.partition("@")[0])
    assert people == {
        "active": set(export.active.split()),
        "unsubscribed": set(export.gone.split()),
        "bounced": set(export.bounced.split()),
    }
    assert sum(found.plan.left_out.values()) == export.out
    recognised = {one.column: one.field for one in found.plan.columns}
    assert recognised == recognised | export.fields


# ── The law: a mark against mail is never overheard ──

AGAINST = st.one_of(
    st.tuples(
        st.sampled_from([name for field in ("status", "opted_in") for name in words.HEADERS[field]]),
        st.sampled_from([*words.STATUS_WORDS["unsubscribed"], *words.STATUS_WORDS["bounced"]]),
    ),
    st.tuples(
        st.sampled_from(words.HEADERS["opted_in"]),
        st.sampled_from(["no", "FALSE", "0", "нет", "não", "nein", "non"]),
    ),
    st.tuples(
        st.sampled_from([name for field in ("opted_out", "bounced") for name in words.HEADERS[field]]),
        st.sampled_from(["yes", "TRUE", "1", "да", "sim", "ja", "sí", "oui", "2024-02-02", "too many mails"]),
    ),
    st.tuples(
        st.sampled_from([*words.HEADERS["everybody_unsubscribed"], *words.HEADERS["everybody_bounced"]]),
        st.sampled_from(["", "2024-02-02"]),
    ),
)
IN_FAVOUR = st.sampled_from(
    [
        ("status", "active"),
        ("Subscribed", "yes"),
        ("confirmed", "1"),
        ("Unsubscribed at", ""),
        ("Статус", "активен"),
    ]
)


SPELLINGS: list[Callable[[str], str]] = [str, str.upper, str.title, lambda text: text.replace(" ", "_")]


def _written(header: str, draw: st.DataObject) -> str:
    """The same header as another product would write it."""
    return draw.draw(st.sampled_from(SPELLINGS))(header)


@given(AGAINST, st.lists(IN_FAVOUR, max_size=3, unique=True), st.data())
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_nobody_with_a_mark_against_mail_becomes_active(
    tmp_path: Path, against: tuple[str, str], others: list[tuple[str, str]], data: st.DataObject
) -> None:
    """Among other columns in favour, in any order, in any spelling, and again in a row that says nothing."""
    columns = data.draw(st.permutations([against, *others, ("Email", "ana@example.org")]))
    header = [_written(name, data) for name, _ in columns]
    nothing = ["Ana@Example.org" if name == "Email" else "" for name, _ in columns]
    rows = data.draw(st.permutations([[cell for _, cell in columns], nothing]))
    path = tmp_path / "people.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    found = read_subscribers(path)
    assert "active" not in found.plan.people
    assert found.plan.people or found.plan.unknown


@given(
    st.sampled_from(["status", "Subscribed", "confirmed", "Email Status"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), min_size=1, max_size=12),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_nobody_becomes_active_by_not_being_understood(tmp_path: Path, column: str, word: str) -> None:
    path = tmp_path / "people.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("email", column), ("ana@example.org", word)])
    found = read_subscribers(path)
    assert len(found.plan.words) == 1
    if found.plan.unknown:
        assert found.plan.people == {}
        with pytest.raises(UsageError, match="--map-status"):
            next(found.batches())


# ── What a person says goes before what was recognised ──


def file(tmp_path: Path, text: str | bytes, name: str = "people.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_an_unknown_status_stops_the_import_with_its_counts_and_the_way_out(tmp_path: Path) -> None:
    path = file(tmp_path, "email,Status\na@example.org,vip\nb@example.org,vip\nc@example.org,active\n")
    found = read_subscribers(path)
    with pytest.raises(UsageError) as raised:
        next(found.batches())
    assert "“vip” (2)" in str(raised.value)
    assert '--map-status "vip=unsubscribed"' in str(raised.value)
    assert '--map "Status=attribute"' in str(raised.value)
    told = read_subscribers(path, Choices(statuses={"VIP": Meaning.ACTIVE}))
    assert told.plan.people == {"active": 3}
    left = read_subscribers(path, Choices(statuses={"vip": Meaning.SKIPPED}))
    assert (left.plan.people, sum(left.plan.left_out.values())) == ({"active": 1}, 2)
    other = read_subscribers(path, Choices(fields={"status": "attribute"}))
    assert next(other.batches())[0].attributes == {"Status": "vip"}


def test_a_column_can_be_mapped(tmp_path: Path) -> None:
    path = file(tmp_path, "Mail,Reachable,Who\na@example.org,no,Ana\nb@example.org,yes,Bo\n")
    found = read_subscribers(path, Choices(fields={"Reachable": "opted_in", "who": "name"}))
    assert found.plan.people == {"active": 1, "unsubscribed": 1}
    assert found.plan.summary() == (
        "Mail → email, Reachable → opted_in, Who → name: 1 active, 1 unsubscribed"
    )
    with pytest.raises(UsageError, match="no column Nobody"):
        read_subscribers(path, Choices(fields={"Nobody": "email"}))
    with pytest.raises(UsageError, match="no field `mail`"):
        read_subscribers(path, Choices(fields={"Mail": "mail"}))


def test_of_two_columns_of_addresses_a_person_chooses(tmp_path: Path) -> None:
    path = file(tmp_path, "one,two\na@example.org,b@example.org\n")
    with pytest.raises(UsageError, match='--map "one=email"'):
        read_subscribers(path)
    found = read_subscribers(path, Choices(fields={"two": "email"}))
    assert [row.email for batch in found.batches() for row in batch] == ["b@example.org"]


def test_what_the_name_of_the_file_says_can_be_overruled(tmp_path: Path) -> None:
    path = file(tmp_path, "email\na@example.org\n", "unsubscribed_members_export.csv")
    assert read_subscribers(path).plan.people == {"unsubscribed": 1}
    ignored = read_subscribers(path, Choices(fields={"file name": "ignore"}))
    assert ignored.plan.people == {"active": 1}


def test_a_row_whose_cells_have_slipped_still_counts_if_it_says_no(tmp_path: Path) -> None:
    path = file(
        tmp_path,
        "email,status\na@example.org,unsubscribed,more\nA@example.org,active\nb@example.org,active,more\n",
    )
    found = read_subscribers(path)
    assert found.plan.people == {"unsubscribed": 1}


# ── What a name and a plan keep ──


def test_names_are_kept_whatever_the_file_calls_them(tmp_path: Path) -> None:
    path = file(
        tmp_path, 'Email;Vorname;Nachname;Vorname;Note;Note\n"Li, Ana <a@example.org>";Ana;Li;Anna;x;y\n'
    )
    [row] = [row for batch in read_subscribers(path).batches() for row in batch]
    assert row.email == "a@example.org"
    assert row.from_name is None  # that is a sender's name
    assert row.attributes == {
        "first_name": "Ana",
        "last_name": "Li",
        "Vorname": "Anna",
        "Note": "x",
        "Note 2": "y",
        "name": "Li, Ana",
    }


def test_a_plan_shows_how_the_file_was_read(tmp_path: Path) -> None:
    path = file(tmp_path, "email;имя;статус\na@example.org;Анна;активен\nb;Борис;\n".encode("cp1251"))
    plan = read_subscribers(path).plan
    assert plan.encoding == "Windows-1251"
    assert plan.details() == [
        "Read as Windows-1251; for instance: email;имя;статус",
        "Statuses: (empty) → active (1), активен → active (1)",
        "1 left out: no @ in the address",
    ]
    data = plan.as_data()
    assert data["columns"][2] == {"column": "статус", "field": "status"}
    assert (data["people"], data["left_out"], data["rows"]) == ({"active": 1}, {"no_at": 1}, 2)


def test_an_encoding_can_be_named(tmp_path: Path) -> None:
    path = file(tmp_path, "email,name\na@example.org,ÄÖÜ\n".encode("cp1252"))
    assert read_subscribers(path, Choices(encoding="windows-1252")).plan.sample == "a@example.org,ÄÖÜ"
    with pytest.raises(UsageError, match="no encoding klingon"):
        read_subscribers(path, Choices(encoding="klingon"))
    with pytest.raises(UsageError, match="is not utf-8"):
        read_subscribers(path, Choices(encoding="utf-8"))
