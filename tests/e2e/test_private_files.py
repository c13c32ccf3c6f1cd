"""Nobody else on the machine may read addresses and mails: not what is written now, nor what was there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailout.base.private_files import close_to_others, open_to_others
from tests.e2e.conftest import Commands


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o077 for path in folder.rglob("*")}


def earlier_home(home: Path) -> None:
    (home / "reports").mkdir(parents=True)
    (home / "outbox" / "letter").mkdir(parents=True)
    for name in ("mailout.db", "reports/letter.csv", "outbox/letter/ana.eml"):
        (home / name).write_text("ana@example.org")


def test_what_a_command_writes_is_for_its_user_alone(mailout: Commands) -> None:
    mailout("subscribers", "import", people(mailout.folder), "--yes")
    assert mailout("send", mailout.letter(), "--direct").code == 0
    assert mailout("subscribers", "export", "--out", mailout.folder / "export.csv").code == 0
    assert mailout.mails()
    assert mailout.home.stat().st_mode & 0o777 == 0o700
    assert set(modes(mailout.home).values()) == {0}
    assert (mailout.folder / "export.csv").stat().st_mode & 0o777 == 0o600


def people(folder: Path) -> Path:
    path = folder / "people.csv"
    path.write_text("email\nana@example.org\n", encoding="utf-8")
    return path


def test_what_was_open_is_closed_and_doctor_says_so(mailout: Commands) -> None:
    mailout.people("ana@example.org")
    mailout.home.chmod(0o755)
    (mailout.home / "reports").mkdir()
    (mailout.home / "reports" / "letter.csv").write_text("ana@example.org")

    def said() -> str:
        checks = mailout("doctor", "--json").data["checks"]
        return next(str(one["message"]) for one in checks if one["name"] == "privacy")

    assert "could read mailout.db" in said()
    assert mailout.home.stat().st_mode & 0o777 == 0o700
    assert set(modes(mailout.home).values()) == {0}
    assert said().startswith("nobody else")


def test_uploaded_tables_of_people_are_ours(tmp_path: Path) -> None:
    earlier_home(tmp_path / "home")
    table = tmp_path / "home" / "imports" / "0" / "people.csv"
    table.parent.mkdir(parents=True)
    table.write_text("ana@example.org")
    close_to_others(tmp_path / "home")
    assert (tmp_path / "home").stat().st_mode & 0o077 == 0
    assert set(modes(tmp_path / "home").values()) == {0}


def test_of_a_folder_that_holds_other_things_only_ours_is_closed(tmp_path: Path) -> None:
    """MAILOUT_HOME may be somebody's home, or a folder that a web server reads."""
    earlier_home(tmp_path)
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "index.html").write_text("hello")
    elsewhere = tmp_path / "public" / "index.html"
    (tmp_path / "outbox" / "link").symlink_to(elsewhere)
    tmp_path.chmod(0o755)
    assert [path.name for path in open_to_others(tmp_path)] == ["mailout.db", "outbox", "reports"]
    close_to_others(tmp_path)
    assert open_to_others(tmp_path) == []
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    assert elsewhere.stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "outbox" / "letter" / "ana.eml").stat().st_mode & 0o777 == 0o600


def test_a_home_that_holds_nothing_else_is_closed_itself(tmp_path: Path) -> None:
    home = tmp_path / "home"
    earlier_home(home)
    close_to_others(home)
    assert home.stat().st_mode & 0o777 == 0o700
    assert set(modes(home).values()) == {0}
