from __future__ import annotations

import csv
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.base.errors import StoreUnavailable
from mailout.insight.reporting import rows
from mailout.insight.reporting.files import csv_path, parts_directory
from mailout.insight.reporting.rows import COLUMNS, CsvPart, safe, write_csv
from mailout.outbox.delivery.protocol import Attempt, Claimed, Result
from mailout.outbox.delivery.states import State
from tests.unit.insight.reporting.conftest import START, Office, SetClock

REFUSED = Result(Attempt("", 0), State.FAILED, code="MESSAGE_REJECTED", message="=HYPERLINK(1)\nsecond line")


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def told(
    email: str, state: State, *, mailout_id: str | None = "m1", message: str | None = None
) -> tuple[Claimed, Result]:
    attempt = Attempt(email, 1)
    claimed = Claimed(attempt, 1, 1, email, "content", mailout_id, "default", None, {}, None)
    return claimed, Result(
        attempt, state, provider_message_id="abc" if state is State.SENT else None, message=message
    )


def test_the_file_lists_every_recipient_once_in_sending_order(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else somebody is missing from the record of a mailout, or is in it twice."""
    monkeypatch.setattr("mailout.base.select.SELECT_LIMIT", 3)
    emails = [f"p{i:02}@example.org" for i in range(10)]
    mailout = office.mailout(emails)
    office.send(mailout.id)
    path = csv_path(tmp_path, mailout.id)
    write_csv(office.store, mailout.id, path)
    lines = read(path)
    assert [line["email"] for line in lines] == emails
    assert {line["status"] for line in lines} == {"sent"}
    assert tuple(lines[0]) == COLUMNS == ("email", "status", "error_message", "message_id", "sent_at")
    assert lines[0]["message_id"] == "id-1"
    assert lines[0]["sent_at"] == "2026-11-15T09:00:01.000Z"


def test_every_end_has_its_word(office: Office, tmp_path: Path) -> None:
    mailout = office.mailout([f"{name}@example.org" for name in "abcd"])
    office.send(mailout.id, {"a@example.org": REFUSED, "b@example.org": State.UNKNOWN}, batch=3)
    office.store.settle(mailout.id, State.PENDING, wait=0)
    office.store.cancel(mailout.id)
    path = csv_path(tmp_path, mailout.id)
    write_csv(office.store, mailout.id, path)
    assert [line["status"] for line in read(path)] == ["failed", "suppressed", "sent", "sent"]
    assert read(path)[0]["error_message"] == "'=HYPERLINK(1)\nsecond line"
    assert read(path)[0]["sent_at"] == ""


def test_what_waits_and_what_is_in_flight_is_pending(office: Office, tmp_path: Path) -> None:
    mailout = office.mailout(["a@example.org"])
    path = csv_path(tmp_path, mailout.id)
    write_csv(office.store, mailout.id, path)
    assert read(path)[0]["status"] == "pending"
    assert rows.status_of(State.SENT_ATTEMPT) == "pending"


def test_a_settled_message_is_settled_in_the_file_made_anew(office: Office, tmp_path: Path) -> None:
    """Else the CSV would call unknown for ever what a person has settled."""
    mailout = office.mailout(["a@example.org"])
    office.send(mailout.id, {"a@example.org": State.UNKNOWN})
    path = csv_path(tmp_path, mailout.id)
    write_csv(office.store, mailout.id, path)
    assert read(path)[0]["status"] == "unknown"
    office.store.settle(mailout.id, State.SENT, wait=0)
    write_csv(office.store, mailout.id, path)
    assert read(path)[0]["status"] == "sent"


def test_parts_go_only_when_the_mailout_is_over(office: Office, tmp_path: Path, clock: SetClock) -> None:
    """Else a report made half-way would delete what a worker has just written."""
    mailout = office.mailout(["a@example.org"])
    CsvPart(tmp_path, "w", clock).recorded([told("a@example.org", State.SENT, mailout_id=mailout.id)], None)
    path, parts = csv_path(tmp_path, mailout.id), parts_directory(tmp_path, mailout.id)
    write_csv(office.store, mailout.id, path)
    assert [part.name for part in parts.iterdir()] == ["w.part.csv"]
    office.send(mailout.id)
    write_csv(office.store, mailout.id, path)
    assert not parts.exists()


def test_a_file_that_cannot_be_finished_leaves_the_old_one(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a store that goes away during a report costs the report there was."""
    mailout = office.mailout(["a@example.org"])
    path = csv_path(tmp_path / "reports", mailout.id)
    write_csv(office.store, mailout.id, path)
    before = path.read_bytes()

    def gone(*_: object, **__: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(office.store, "select", gone)
    with pytest.raises(StoreUnavailable, match="gone"):
        write_csv(office.store, mailout.id, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_part_holds_each_final_result_as_soon_as_it_is_told(tmp_path: Path, clock: SetClock) -> None:
    """Else whoever looks while it is being sent, or after the machine died, finds nothing."""
    part = CsvPart(tmp_path, "host:12/../x", clock)
    part.recorded([told("a@example.org", State.SENT), told("b@example.org", State.RETRY_SCHEDULED)], None)
    clock.moment = START + 60
    part.recorded(
        [told("c@example.org", State.FAILED, message="no"), told("d@example.org", State.UNKNOWN)], None
    )
    part.recorded([told("e@example.org", State.SENT, mailout_id=None)], None)
    (path,) = (tmp_path / "m1").iterdir()
    assert path.name == "host-12-x.part.csv"
    assert [tuple(line.values()) for line in read(path)] == [
        ("a@example.org", "sent", "", "abc", "2026-11-15T09:00:00.000Z"),
        ("c@example.org", "failed", "no", "", ""),
        ("d@example.org", "unknown", "", "", ""),
    ]


def test_a_full_disk_does_not_stop_the_sender(
    tmp_path: Path, clock: SetClock, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "m1").write_text("a file where the directory should be")
    with caplog.at_level(logging.WARNING):
        CsvPart(tmp_path, "w", clock).recorded([told("a@example.org", State.SENT)], None)
    assert "misses 1 lines" in caplog.text


@given(st.text())
def test_no_value_is_a_formula_and_none_is_lost(value: str) -> None:
    """Else opening the CSV runs what a stranger wrote into an address or a server's answer."""
    written = safe(value)
    assert not written.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert written in (value, f"'{value}")
