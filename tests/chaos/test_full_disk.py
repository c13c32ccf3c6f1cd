"""A disk that fills up while mail goes out: it stops with words, nobody gets it twice, and it goes on."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailout.delivery.states import State
from tests.chaos.senders import PATIENCE, Home, end, nobody_twice_and_nobody_lost, wait_for
from tests.chaos.test_ses import accepted, ses_home
from tests.stubs.ses_control import SesStub, ses_stub


@pytest.fixture
def stub() -> Iterator[SesStub]:
    with ses_stub("--no-bodies") as running:
        yield running


@pytest.fixture
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A real file system of a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(place)]
    if request.param == "ext4":
        image = tmp_path / "image"
        with image.open("wb") as file:
            file.truncate(8_000_000)
        mount = ["mount", "-o", "loop", str(image), str(place)]
        if shutil.which("mkfs.ext4") is None:
            pytest.skip("there is no mkfs.ext4")
        subprocess.run(["mkfs.ext4", "-q", "-b", "4096", str(image)], check=True, capture_output=True)
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"this user may not mount a {request.param}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def fill(ballast: Path) -> None:
    """To the last byte."""
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(bytes(size)) == size:
                    continue
            except OSError:
                continue


def stopped_with_words(home: Home) -> str:
    process = home.send()
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, output
    return output


@pytest.mark.parametrize(("disk", "mode"), [("tmpfs", "single"), ("ext4", "bulk")], indirect=["disk"])
def test_it_stops_with_words_and_goes_on_when_there_is_space(disk: Path, stub: SesStub, mode: str) -> None:
    stub.script(latency_ms=5)
    home = ses_home(disk / "home", stub, 200, SES_MODE=mode)
    process = home.send()
    assert wait_for(lambda: len(accepted(stub)) >= 20, process)
    fill(disk / "ballast")
    output, _ = process.communicate(timeout=PATIENCE)
    said = [output, stopped_with_words(home)]  # and again, as long as there is no room
    (disk / "ballast").unlink()
    assert process.returncode == 1, output
    for words in said:
        assert "The disk is full" in words
        assert "Free some space" in words
        assert "Traceback" not in words
    assert len(accepted(stub)) < 200
    home.finish()
    nobody_twice_and_nobody_lost(home, accepted(stub), unknown=0)
    assert len(accepted(stub)) == 200


@pytest.mark.parametrize("disk", ["tmpfs"], indirect=True)
def test_killed_on_a_full_disk(disk: Path, stub: SesStub) -> None:
    """The journal has set its space aside: what was called is in it, and what was accepted, too."""
    stub.script(latency_ms=5)
    home = ses_home(disk / "home", stub, 200, SES_MODE="bulk")
    process = home.send()
    assert wait_for(lambda: len(accepted(stub)) >= 20, process)
    fill(disk / "ballast")
    end(process, signal.SIGKILL)
    (disk / "ballast").unlink()
    home.finish()
    nobody_twice_and_nobody_lost(home, accepted(stub), unknown=50)
    assert sum(state == State.SENT for state in home.states().values()) >= 150
