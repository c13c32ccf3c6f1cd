"""A disk that fills up while mail goes out: it stops with words, nobody gets it twice, and it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.disks import can_mount, fill, tmpfs
from tests.chaos.senders import PATIENCE, Home, nobody_twice_and_nobody_lost, wait_for
from tests.chaos.test_ses import accepted, ses_home
from tests.stubs.ses_control import SesStub, ses_stub


@pytest.fixture
def stub() -> Iterator[SesStub]:
    with ses_stub("--no-bodies") as running:
        yield running


def stopped_with_words(home: Home) -> str:
    process = home.send()
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1, output
    return output


@pytest.mark.skipif(not can_mount(), reason="this user may not mount a file system")
def test_it_stops_with_words_and_goes_on_when_there_is_space(tmp_path: Path, stub: SesStub) -> None:
    with tmpfs(tmp_path / "small") as disk:
        stopped_and_finished(disk, stub)


def stopped_and_finished(disk: Path, stub: SesStub) -> None:
    stub.script(latency_ms=5)
    home = ses_home(disk / "home", stub, 200)
    process = home.send()
    assert wait_for(lambda: len(accepted(stub)) >= 20, process), process.communicate()
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
