"""The folder that `mailout up` gives to Prefect's server."""

from __future__ import annotations

from pathlib import Path

from cli.processes.prefect_home import drop_unread_events


def test_events_that_prefect_could_not_read_do_not_pile_up(tmp_path: Path) -> None:
    env = {"PREFECT_HOME": str(tmp_path)}
    drop_unread_events(env)  # there may be none
    (tmp_path / "dlq").mkdir()
    (tmp_path / "dlq" / "580d031d337b4c66bb121e5bc2698d65").write_text("{}")
    drop_unread_events(env)
    assert list((tmp_path / "dlq").iterdir()) == []
