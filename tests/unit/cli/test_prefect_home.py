"""The folder that `mailout up` gives to Prefect's server."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.processes.prefect_home import LEFTOVER_SECONDS, drop_leftovers


def leave_two_files(folder: Path) -> tuple[Path, float]:
    """One of them, and when both are old enough to go."""
    (folder / "dlq").mkdir(parents=True)
    (folder / "storage").mkdir()
    (folder / "dlq" / "580d031d337b4c66bb121e5bc2698d65").write_text("{}")
    result = folder / "storage" / "8a0ee33e"
    result.write_text("{}")
    return result, result.stat().st_mtime + LEFTOVER_SECONDS + 1


def test_what_prefect_leaves_behind_does_not_pile_up(tmp_path: Path) -> None:
    env = {"MAILOUT_HOME": str(tmp_path), "PREFECT_HOME": str(tmp_path / "prefect")}
    drop_leftovers(env, 0.0)  # there may be none
    result, later = leave_two_files(tmp_path / "prefect")
    drop_leftovers(env, later - LEFTOVER_SECONDS)
    assert result.exists(), "somebody may just read it"
    drop_leftovers(env, later)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


@pytest.mark.parametrize("elsewhere", ["elsewhere", "home/deeper/prefect"])
def test_results_in_a_folder_that_is_somebodys_own_stay(tmp_path: Path, elsewhere: str) -> None:
    env = {"MAILOUT_HOME": str(tmp_path / "home"), "PREFECT_HOME": str(tmp_path / elsewhere)}
    result, later = leave_two_files(tmp_path / elsewhere)
    drop_leftovers(env, later)
    assert result.exists()
