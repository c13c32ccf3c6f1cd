"""What a contributor is told to run is what the gate runs."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def test_a_commit_is_checked_by_the_tools_of_make_check() -> None:
    """A hook that forgets one lets a commit pass that the gate refuses."""
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    gate = re.findall(r"@\$\(BIN\)/(.*)", recipe[1])
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]]
    assert [entry.removeprefix(".venv/bin/").replace(" --force-exclude", "") for entry in hooks] == [
        command.removesuffix(" .") for command in gate
    ]


def test_every_path_that_contributing_names_is_there() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", page) + re.findall(r"\]\(([\w./]+\.md)\)", page)
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []
