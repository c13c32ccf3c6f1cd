"""Exports of other products that are known: to the letter, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailout.letters.audience.exports import EXPORTS
from mailout.letters.audience.people_import import PeopleImport, read_people
from mailout.letters.audience.wishes import Answers
from tests.unit.letters.audience.exports import KNOWN, SUBSCRIBED, Known


def read(folder: Path, text: str, file: str = "people.csv", answers: Answers | None = None) -> PeopleImport:
    path = folder / "files" / file  # pytest names its own folders after the test
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return read_people(path, answers)


def people(found: PeopleImport) -> dict[str, str]:
    rows = [row for batch in found.batches() for row in batch]
    return {row.email.partition("@")[0]: row.status for row in rows}


@pytest.mark.parametrize("export", KNOWN, ids=lambda export: export.product)
def test_a_known_export_is_understood_without_a_question(tmp_path: Path, export: Known) -> None:
    found = read(tmp_path, export.text, export.file)
    assert people(found) == {
        name: status
        for status, names in (
            ("active", export.active),
            ("unsubscribed", export.gone),
            ("bounced", export.bounced),
        )
        for name in names.split()
    }
    assert sum(found.plan.left_out.values()) == export.out
    assert found.plan.says_so is export.says_so


def test_every_entry_of_the_table_is_tried_here() -> None:
    """One that nobody tried may activate people who said no."""
    tried = {one.product.partition(":")[0] for one in KNOWN}
    assert {export.name.partition(" (")[0] for export in EXPORTS} - {"listmonk"} == tried


@pytest.mark.parametrize("export", [one for one in KNOWN if one.active], ids=lambda export: export.product)
def test_a_known_export_with_one_column_renamed_is_not_known(tmp_path: Path, export: Known) -> None:
    """Whoever changed a column may have changed what it means, too."""
    header, _, rows = export.text.partition("\n")
    known = next(one for one in EXPORTS if one.headers <= set(header.split(",")))
    for column in sorted(known.says) or ["LEID"]:
        changed = header.replace(column, f"{column} of old", 1)
        found = read(tmp_path, f"{changed}\n{rows}", export.file)
        assert found.plan.open or not found.plan.says_so, column


@pytest.mark.parametrize(("word", "asked"), [("maybe", True), ("TRUE", False), ("", True)])
def test_a_value_that_a_known_export_never_has_asks_about_all_of_it(
    tmp_path: Path, word: str, asked: bool
) -> None:
    ghost = next(one for one in KNOWN if one.product == "Ghost")
    found = read(tmp_path, ghost.text.replace(",true,", f",{word},", 1))
    assert bool(found.plan.open) is asked
    assert ("active" in found.plan.people) is not asked


def test_a_column_that_an_export_may_lack_is_not_waited_for(tmp_path: Path) -> None:
    civi = next(one for one in KNOWN if one.product == "CiviCRM")
    lines = [line.split(",") for line in civi.text.splitlines() if "Di" not in line]
    text = "\n".join(",".join(cells[:-2] + cells[-1:]) for cells in lines)
    assert people(read(tmp_path, text)) == {"ana": "active", "bo": "unsubscribed", "cy": "unsubscribed"}


@pytest.mark.parametrize(
    ("header", "cells"),
    [
        ("On Hold", ("No", "On Hold Bounce", "On Hold Opt Out")),  # CiviCRM
        ("type", ("regular", "unactivated", "spammy")),  # Buttondown
        ("CLEAN_TIME", ("2024-01-02 03:04:05", "2024-01-03 03:04:05")),  # Mailchimp
    ],
)
def test_what_a_product_calls_a_no_is_asked_about(
    tmp_path: Path, header: str, cells: tuple[str, ...]
) -> None:
    rows = "".join(f"{n}@example.org,{cell}\n" for n, cell in enumerate(cells))
    found = read(tmp_path, f"Email,{header}\n{rows}")
    assert [one.column for one in found.plan.open] == [header]


def test_mailchimps_columns_under_another_name_ask_since_only_the_name_told_who_they_are(
    tmp_path: Path,
) -> None:
    """People who never subscribed have the very columns of those who did."""
    found = read(tmp_path, SUBSCRIBED, "audience.csv")
    assert found.plan.open or not found.plan.says_so
    assert {"OPTIN_TIME", "CONFIRM_TIME"} & {one.column for one in found.plan.questions}


def test_a_column_that_somebody_added_to_a_known_export_is_asked_about(tmp_path: Path) -> None:
    """Mailchimp's own columns say subscribed, a column of the account says no."""
    header, ana, bo = SUBSCRIBED.splitlines()
    text = f"{header},No newsletter\n{ana},\n{bo},x\n"
    found = read(tmp_path, text, "subscribed_email_audience_export_1a2b3c.csv")
    assert [one.column for one in found.plan.open] == ["No newsletter"]
    assert found.plan.people == {}


def test_of_listmonk_the_status_is_asked_about_since_enabled_says_too_little(tmp_path: Path) -> None:
    """Who has unsubscribed from a list is still enabled there."""
    text = (
        "uuid,email,name,attributes,status,created_at,updated_at\n"
        "1f,ana@example.org,Ana,{},enabled,2024-01-01,2024-01-01\n2f,bo@example.org,Bo,{},blocklisted,2024-01-01,2024-01-01\n"
    )
    (asked,) = read(tmp_path, text).plan.open
    assert (asked.column, "unsubscribed from a list" in asked.hint) == ("status", True)
    told = read(tmp_path, text, answers=Answers.from_options(mail_if=[("status", "enabled")]))
    assert people(told) == {"ana": "active"}
