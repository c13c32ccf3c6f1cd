"""From the first release on a migration is never edited: those who have it would never run it again.

Until CHANGELOG.md has a heading with a version, nothing is released and the files may still be reshaped.
Whoever releases adds the migrations that the release brings to the list, and never changes a line of it:

    sha256sum {supabase,mailout/adapters/sqlite}/migrations/*.sql >> tests/released_migrations.sha256
    sort -u -k 2 -o tests/released_migrations.sha256 tests/released_migrations.sha256
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIST = Path("tests/released_migrations.sha256")
FOLDERS = ("supabase/migrations", "mailout/adapters/sqlite/migrations")
UNRELEASED = "# Changelog\n\n## Unreleased\n"
RELEASED = UNRELEASED + "\n## 0.1.0 (2026-12-01)\n"


def faults(changelog: str, released: Mapping[str, str], files: Mapping[str, str]) -> list[str]:
    """What is wrong, in words; paths to hashes."""
    found = []
    if bool(re.search(r"^## \[?\d", changelog, re.MULTILINE)) != bool(released):
        found.append(f"{LIST} and CHANGELOG.md do not agree whether anything is released")
    for path, digest in released.items():
        if path not in files:
            found.append(f"{path} is released, and was deleted")
        elif files[path] != digest:
            found.append(f"{path} is released, and was edited: write a new migration instead")
    for path in files.keys() - released.keys():
        folder = path.rpartition("/")[0]
        if any(other.rpartition("/")[0] == folder and other > path for other in released):
            found.append(f"{path} sorts before a released one: who has that would never run it")
    return found


def _listed(text: str) -> dict[str, str]:
    pairs = (line.split() for line in text.splitlines() if line.strip())
    return {path: digest for digest, path in pairs}


def test_released_migrations_are_as_they_were() -> None:
    files = {
        path.relative_to(ROOT).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in FOLDERS
        for path in (ROOT / folder).glob("*.sql")
    }
    assert len(files) > 10
    listed = _listed((ROOT / LIST).read_text())
    assert faults((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), listed, files) == []


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="needs the history")
def test_the_list_only_grows() -> None:
    history = subprocess.run(
        ["git", "log", "--format=", "--patch", "--", str(LIST)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    had = {line[1:] for line in history.stdout.splitlines() if re.match(r"\+[0-9a-f]{64} ", line)}
    assert had <= set((ROOT / LIST).read_text().splitlines())


@pytest.mark.parametrize(
    ("changelog", "released", "files", "fault"),
    [
        (UNRELEASED, {}, {"m/1.sql": "a"}, None),
        (RELEASED, {"m/1.sql": "a"}, {"m/1.sql": "a", "m/2.sql": "b", "n/0.sql": "c"}, None),
        (RELEASED, {}, {"m/1.sql": "a"}, "do not agree"),
        (UNRELEASED, {"m/1.sql": "a"}, {"m/1.sql": "a"}, "do not agree"),
        (RELEASED, {"m/1.sql": "a"}, {"m/1.sql": "b"}, "was edited"),
        (RELEASED, {"m/1.sql": "a"}, {"m/2.sql": "b"}, "was deleted"),
        (RELEASED, {"m/2.sql": "a"}, {"m/1.sql": "b", "m/2.sql": "a"}, "sorts before"),
    ],
)
def test_the_rule(
    changelog: str, released: Mapping[str, str], files: Mapping[str, str], fault: str | None
) -> None:
    found = faults(changelog, released, files)
    assert len(found) == (fault is not None)
    assert fault is None or fault in found[0]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_two_migrations_have_one_version(folder: str) -> None:
    """Supabase keeps which version was applied: the second file of one would stop `supabase db push`."""
    versions = [path.name.split("_")[0] for path in (ROOT / folder).glob("*.sql")]
    assert len(set(versions)) == len(versions) > 0
