"""The command line inside this process: in an empty folder, with nothing set."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli import main
from mailout.base.settings import Settings


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ended]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty, and the current one."""
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("queue", "list")`: its exit code, and what it said."""
    monkeypatch.setattr(main, "keep_private", lambda: None)  # the umask is the whole process's

    def ran(*arguments: str | Path) -> Ended:
        code = main.main([str(one) for one in arguments])
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return ran
