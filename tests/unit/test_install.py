"""`make install` shows that it moves, and says what pip says when it fails."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from deployments.install import install


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package on this machine, and a place of its own to install it."""
    path = tmp_path / "tiny_package-1.0-py3-none-any.whl"
    info = "tiny_package-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("tiny_package.py", "")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-package\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(tmp_path), "TARGET": str(tmp_path / "at")}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return path


def locked(wheel: Path, digest: str) -> Path:
    lock = wheel.with_name("requirements.lock")
    lock.write_text(f"tiny-package==1.0 \\\n    --hash=sha256:{digest}\n", encoding="utf-8")
    return lock


def test_installing_shows_how_far_it_is(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert install(locked(wheel, hashlib.sha256(wheel.read_bytes()).hexdigest())) == 0
    assert (wheel.parent / "at/tiny_package.py").exists()
    assert "of 1 packages" in capsys.readouterr().out


def test_a_package_that_is_not_the_locked_one_is_refused_in_pips_own_words(
    wheel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert install(locked(wheel, "0" * 64)) != 0
    assert "DO NOT MATCH THE HASHES" in capsys.readouterr().err
