"""Versions: a package that breaks Prefect's server silently must not look well to `doctor`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cli import versions
from cli.versions import asked_for, version_checks
from mailout.errors import Unseen

ASKED = ["fastapi>=0.139,<0.151", "sqlalchemy[asyncio]>=2.0,<2.1", "tzdata>=2024; sys_platform == 'never'"]


def found(there: Mapping[str, str], asked: Sequence[str] = ASKED, python: str = "3.12.1") -> dict[str, str]:
    checks = version_checks(lambda: (">=3.11", asked), there.get, python)
    return {check.name: check.level for check in checks}


@pytest.mark.parametrize(
    ("there", "levels"),
    [
        ({"fastapi": "0.150.0", "sqlalchemy": "2.0.57"}, {"packages": "ok"}),
        ({"fastapi": "0.155.1", "sqlalchemy": "2.0.57"}, {"fastapi": "fail", "packages": "ok"}),
        ({"fastapi": "0.150.0", "sqlalchemy": "2.1.0b1"}, {"sqlalchemy": "fail", "packages": "ok"}),
        ({"fastapi": "0.150.0"}, {"sqlalchemy": "fail", "packages": "ok"}),
    ],
)
def test_what_is_out_of_its_range_has_failed(there: dict[str, str], levels: dict[str, str]) -> None:
    assert found(there) == {"Python": "ok", **levels}


def test_an_old_python_is_named() -> None:
    assert found({"fastapi": "0.150.0", "sqlalchemy": "2.0.57"}, python="3.10.4")["Python"] == "fail"


def test_the_remedy_can_be_typed() -> None:
    checks = version_checks(
        lambda: (">=3.11", ASKED), {"fastapi": "1.0", "sqlalchemy": "2.0.1"}.get, "3.12.1"
    )
    (failed,) = [check for check in checks if check.level == "fail"]
    assert "pip install 'fastapi<0.151,>=0.139'" in failed.remedy


def test_this_very_environment_is_as_pyproject_asks() -> None:
    """Else doctor fails on every machine that was installed from the lock."""
    assert {check.level for check in version_checks()} == {"ok"}


def test_without_the_source_the_installed_package_knows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(versions, "PYPROJECT", tmp_path / "none.toml")
    about = tmp_path / "mailout-9.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: mailout\nVersion: 9\nRequires-Python: >=3.11\nRequires-Dist: nh3>=0.2\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert asked_for() == (">=3.11", ["nh3>=0.2"])


def test_where_nobody_wrote_it_down_nothing_is_claimed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(versions, "PYPROJECT", tmp_path / "none.toml")
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(Unseen):
        asked_for()
