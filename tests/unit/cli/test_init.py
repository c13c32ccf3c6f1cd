"""`mailout init`: a new user's first command leaves settings that work, and destroys none."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from mailout.base.dotenv_file import quoted, write_settings
from mailout.base.settings import load_settings
from tests.unit.cli.conftest import Run

ANSWERS = (
    *("--org-name", "Harbour Club", "--org-address", "1 Quay, X"),
    *("--from-email", "news@example.org"),
)


def test_after_init_a_first_test_letter_goes_into_the_folder(run: Run, folder: Path) -> None:
    assert run("init", *ANSWERS, "--yes").code == 0
    (folder / "letter.md").write_text("---\nsubject: Hello\n---\nHow are you?\n", encoding="utf-8")
    sent = run("send", "letter.md", "--test", "--direct")
    assert sent.code == 0
    (mail,) = (folder / ".mailout/outbox").glob("*/*.eml")
    assert "To: <news@example.org>" in mail.read_text(encoding="utf-8")
    assert "127.0.0.1" in mail.read_text(encoding="utf-8"), "the trial address, to leave by"


def test_nobody_else_can_read_the_settings_and_each_has_a_secret_of_its_own(run: Run, folder: Path) -> None:
    secrets = set()
    for _ in range(2):
        run("init", *ANSWERS, "--yes")
        assert (folder / ".env").stat().st_mode & 0o077 == 0
        settings = load_settings({}, folder / ".env")
        secret = settings.unsubscribe_secret
        assert secret is not None
        secrets.add(secret.get_secret_value())
        (folder / ".env").unlink()
    assert len(secrets) == 2
    assert min(map(len, secrets)) >= 32


def test_what_env_says_already_stays(run: Run, folder: Path) -> None:
    before = "# mine\nUNSUBSCRIBE_SECRET=kept\nORG_NAME=Kept\nLIMIT_PER_DAY=7"
    (folder / ".env").write_text(before, encoding="utf-8")
    ended = run("init", "--yes", "--from-email", "news@example.org")
    assert "Still to fill in, in .env: ORG_ADDRESS" in ended.out
    after = (folder / ".env").read_text(encoding="utf-8")
    assert after.startswith(before)
    settings = load_settings({}, folder / ".env")
    assert (settings.org_name, settings.from_name, settings.limit_per_day) == ("Kept", "Kept", 7)
    again = run("init", "--yes", "--org-address", "1 Quay", "--json")
    assert again.data == {"file": ".env", "written": ["ORG_ADDRESS"], "missing": []}


def test_where_nobody_can_be_asked_it_names_the_options(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    ended = run("init", "--org-name", "Club")
    assert (ended.code, "--org-address, --from-email" in ended.err) == (2, True)
    assert not (folder / ".env").exists()


def test_a_wrong_answer_is_asked_for_again(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [
        "Club",
        "1 Quay",
        "nobody",
        "news@example.org",
        "Club",
        "1 Quay, Porto",
        "me@example.org",
        "Lisbon",
        "Europe/Lisbon",
    ]
    given = iter(answers)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "prompt", lambda *_, **__: next(given))
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: True)
    ended = run("init")
    assert "FROM_EMAIL: must be an e-mail address" in ended.err
    assert "1, Quay, Porto: not an address.\n" in ended.err
    assert "SEND_TIMEZONE: " in ended.err
    settings = load_settings({}, folder / ".env")
    assert (settings.test_emails, settings.send_timezone) == ("me@example.org", "Europe/Lisbon")


def test_the_dashboard_has_a_password_unless_somebody_says_no(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without one its first page shows nothing, and a new user does not know why."""
    ended = run("init", *ANSWERS, "--yes")
    assert "ADMIN_PASSWORD" in ended.out
    password = load_settings({}, folder / ".env").admin_password
    assert password is not None
    assert password.get_secret_value() not in ended.out
    (folder / ".env").unlink()
    assert run("init", *ANSWERS, "--yes", "--no-dashboard").code == 0
    assert load_settings({}, folder / ".env").admin_password is None
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: False)
    assert "dashboard" not in run("init").out


@pytest.mark.parametrize(("machine", "zone"), [("Europe/Lisbon", "Europe/Lisbon"), (":/etc/x", "UTC")])
def test_the_machines_time_zone_is_offered(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, machine: str, zone: str
) -> None:
    monkeypatch.setenv("TZ", machine)
    run("init", *ANSWERS, "--yes")
    assert load_settings({}, folder / ".env").send_timezone == zone


def test_the_first_thing_to_do_after_init_is_the_import(run: Run) -> None:
    said = run("init", *ANSWERS, "--yes").out
    steps = ("subscribers import", "letter.md", "--test", "mailout up")
    places = [said.index(step) for step in steps]
    assert places == sorted(places)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1))
def test_every_value_is_read_as_it_was_written(value: str) -> None:
    from io import StringIO

    from dotenv.parser import parse_stream

    (read,) = parse_stream(StringIO(f"NAME={quoted(value)}\n"))
    assert (read.key, read.value) == ("NAME", value)


def test_a_value_is_changed_where_it_stands(folder: Path) -> None:
    path = folder / ".env"
    path.write_text("#A=1\nexport A = old # note\nB=2\n", encoding="utf-8")
    write_settings(path, {"A": "new one", "C": "3"})
    assert path.read_text(encoding="utf-8") == "#A=1\nA='new one'\nB=2\nC=3\n"
