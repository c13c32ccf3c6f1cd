"""Python and the packages, as installed, against what `pyproject.toml` asks for."""

from __future__ import annotations

import platform
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from mailout.doctor.checks import Check
from mailout.errors import Unseen

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
INSTALL = "Run `make install`: it brings what the lock names."
NAMED = ("prefect", "fastapi", "sqlalchemy", "boto3", "notion-client", "supabase", "polars", "jinja2")
"""Those that a person who asks for help is asked for."""


def asked_for() -> tuple[str, Sequence[str]]:
    """Which Python and which packages: the source's own word, or that of the installed package."""
    if PYPROJECT.is_file():
        project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
        return project["requires-python"], project["dependencies"]
    try:
        return metadata.metadata("mailout")["Requires-Python"], metadata.requires("mailout") or ()
    except metadata.PackageNotFoundError:
        raise Unseen("what mailout needs is not written down here", remedy=INSTALL) from None


def installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def version_checks(
    asked: Callable[[], tuple[str, Sequence[str]]] = asked_for,
    found: Callable[[str], str | None] = installed,
    python: str = platform.python_version(),
) -> Iterator[Check]:
    """A version outside its range is a failure: something is known to break there, or is missing."""
    wanted_python, wanted = asked()
    if SpecifierSet(wanted_python).contains(python, prereleases=True):
        yield Check("Python", "ok", python)
    else:
        remedy = f"Use Python {wanted_python}: make PYTHON=python3.12 install, in a fresh .venv."
        yield Check("Python", "fail", f"{python}, and mailout needs {wanted_python}", remedy)
    sound = []
    for one in map(Requirement, wanted):
        if one.marker is not None and not one.marker.evaluate():
            continue
        version = found(one.name)
        if version is None:
            yield Check(one.name, "fail", "is not installed", INSTALL)
        elif not one.specifier.contains(version, prereleases=True):
            remedy = f"{INSTALL} By hand: pip install '{one.name}{one.specifier}'"
            yield Check(one.name, "fail", f"{version} is installed, {one.specifier} is needed", remedy)
        else:
            sound.append((one.name, version))
    told = ", ".join(f"{name} {version}" for name, version in sound if name in NAMED)
    yield Check("packages", "ok", f"{len(sound)} are as they should be: {told}")
