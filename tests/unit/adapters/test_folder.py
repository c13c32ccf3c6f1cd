"""The folder transport: every accept is a file, whole and never overwritten."""

import errno
import os
from dataclasses import replace
from email import message_from_bytes
from email.policy import default

import pytest

from mailout.adapters.folder import FolderTransport, mails_to, safe_name
from mailout.base.clock import SystemClock
from mailout.letters.content.model import Content, mark
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Attempt, OutcomeKind

MAIL = Mail(
    attempt=Attempt("8f14e45f-ceea-867a-9a36-dedd4bea2543", 1),
    mailout_id="c1",
    to="ann@example.org",
    from_email="news@example.org",
    from_name="News",
    reply_to=None,
    content=Content("Hello", f"<p>{mark('name')}</p>", mark("name")),
    values={"name": "Анна"},
    unsubscribe_url=None,
)


@pytest.fixture
def transport(tmp_path):
    return FolderTransport(tmp_path / "outbox", SystemClock())


def files(tmp_path):
    return sorted(
        path.relative_to(tmp_path / "outbox").as_posix() for path in tmp_path.rglob("*") if path.is_file()
    )


def test_a_mail_becomes_a_file_that_a_mail_program_opens(transport, tmp_path):
    (outcome,) = transport.send([MAIL])
    assert outcome.kind is OutcomeKind.SENT
    assert outcome.provider_message_id == "folder-8f14e45f-ceea-867a-9a36-dedd4bea2543-1"
    assert files(tmp_path) == ["c1/ann@example.org--8f14e45f.eml"]
    message = message_from_bytes(next(tmp_path.rglob("*.eml")).read_bytes(), policy=default)
    assert message.get_body(("plain",)).get_content().strip() == "Анна"


def test_a_mail_accepted_twice_shows_as_two_files(transport, tmp_path):
    """Overwriting would hide the very fault that the protocol exists to prevent."""
    transport.send([MAIL, replace(MAIL, attempt=Attempt(MAIL.attempt.id, 2))])
    FolderTransport(tmp_path / "outbox", SystemClock()).send([replace(MAIL, values={"name": "Bob"})])
    stem = "c1/ann@example.org--8f14e45f"
    assert files(tmp_path) == [f"{stem}.2.eml", f"{stem}.3.eml", f"{stem}.eml"]
    first = message_from_bytes((tmp_path / "outbox" / f"{stem}.eml").read_bytes(), policy=default)
    assert first["X-Mailout-Epoch"] == "1"


@pytest.mark.parametrize("email", ["ann@example.org", "o'hara@example.org", "*@example.org"])
def test_the_mails_to_one_person_are_found_whatever_his_address_is_made_of(transport, tmp_path, email):
    """Who asks to be forgotten is told which files still carry the address: all of theirs, nobody else's."""
    transport.send([replace(MAIL, to=email), replace(MAIL, to="bob@example.org")])
    (found,) = mails_to(tmp_path / "outbox", email)
    assert email in message_from_bytes(found.read_bytes(), policy=default)["To"]


def test_single_mails_have_a_folder_of_their_own(transport, tmp_path):
    transport.send([replace(MAIL, mailout_id=None)])
    assert files(tmp_path) == ["single/ann@example.org--8f14e45f.eml"]


@pytest.mark.parametrize("to", ["../../etc/x@y.z", "a/b@c.d", "..", "я@x.y", "x" * 500, "a\0b@c.d"])
def test_no_address_leads_out_of_the_folder(transport, tmp_path, to):
    (outcome,) = transport.send([replace(MAIL, to=to, mailout_id=f"../{to}")])
    assert outcome.kind is OutcomeKind.SENT
    (path,) = tmp_path.rglob("*.eml")
    assert path.parent.parent == tmp_path / "outbox"


def test_a_full_disk_stops_the_run_and_counts_nothing_as_sent(transport, tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    (outcome,) = transport.send([MAIL])
    assert outcome.kind is OutcomeKind.STOP
    assert (outcome.code, outcome.category, outcome.original_code) == (
        "FOLDER_FULL",
        "CONFIGURATION_ERROR",
        "ENOSPC",
    )
    assert "Free some space" in outcome.message
    assert files(tmp_path) == []


def test_a_folder_that_cannot_be_made_stops_the_run(tmp_path):
    (tmp_path / "outbox").write_text("a file where the folder should be")
    (outcome,) = FolderTransport(tmp_path / "outbox", SystemClock()).send([MAIL])
    assert (outcome.kind, outcome.code) == (OutcomeKind.STOP, "FOLDER_UNWRITABLE")


def test_a_mail_that_is_in_stays_sent_though_its_leftover_cannot_be_removed(transport, tmp_path, monkeypatch):
    """Else it would be sent a second time."""

    def refuse(self, missing_ok=False):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    (outcome,) = transport.send([MAIL])
    assert outcome.kind is OutcomeKind.SENT


def test_a_missing_value_is_that_mails_fault_alone(transport, tmp_path):
    outcomes = transport.send([replace(MAIL, values={}), MAIL])
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.INVALID, OutcomeKind.SENT]
    assert "name" in outcomes[0].message


def test_names_stay_legible():
    assert safe_name("ann+news@example.org") == "ann+news@example.org"
    assert safe_name("") == "_"
