"""`mailout article`: what is written on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run

OHIO = "ocd-division/country:us/state:oh"


@pytest.mark.parametrize("written", ["{{{},ocd-division/country:us}}", '["{}"]', "{}|x", "{}; Ohio"])
def test_places_to_preview_for_take_the_forms_of_a_file_and_a_mistake_is_named(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    """A place that is no OCD id would show what nobody gets."""
    monkeypatch.setenv("MAILOUT_HOME", str(folder / "home"))
    places = written.format(OHIO)
    ended = run("article", "preview", "--article-key", "vote", "--out", "out", "--ocd", places)
    assert ended.code == 2, ended.err
    wrong = {"{}|x": "No OCD id: x.", "{}; Ohio": "No OCD id: Ohio."}.get(written)
    assert (wrong or "vote") in ended.err, ended.err
    assert wrong or "No OCD id" not in ended.err
