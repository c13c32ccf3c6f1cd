"""Disks that fill up or lose their power, as real file systems: for a user who may mount them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.chaos.places import PATIENCE, Place, Stage, kill

IMAGE_BYTES = 48_000_000


@contextmanager
def ext4(folder: Path, size: int = IMAGE_BYTES) -> Iterator[Path]:
    """A file system in a file: the file is what has reached the disk, and no more."""
    image, where = folder / "disk.image", folder / "disk"
    where.mkdir(parents=True)
    with image.open("wb") as file:
        file.truncate(size)
    _run("mkfs.ext4", "-q", "-b", "4096", str(image))
    _run("mount", "-o", "loop", str(image), str(where))
    try:
        yield where
    finally:
        _run("umount", str(where))
        shutil.rmtree(folder)


@contextmanager
def tmpfs(folder: Path, size: int = 24_000_000) -> Iterator[Path]:
    where = folder / "disk"
    where.mkdir(parents=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(where))
    try:
        yield where
    finally:
        _run("umount", str(where))
        shutil.rmtree(folder)


@cache
def can_mount() -> bool:
    return shutil.which("mkfs.ext4") is not None and _may_mount()


def _may_mount() -> bool:
    import tempfile

    try:
        with tempfile.TemporaryDirectory() as folder, tmpfs(Path(folder) / "try"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def on_ext4(stage: Stage, mode: str, store: str, people: int) -> Iterator[Place]:
    """Home and, with SQLite, the store are on a disk whose power can be cut."""
    with ext4(stage.folder / f"{stage.name}-ext4") as disk:
        place = stage.place(mode, store, people, disk / "home")
        place.job = replace(place.job, boot="start-0")
        _lose_nothing(disk)
        yield place


@contextmanager
def on_tmpfs(stage: Stage, mode: str, store: str, people: int) -> Iterator[Place]:
    with tmpfs(stage.folder / f"{stage.name}-tmpfs") as disk:
        yield stage.place(mode, store, people, disk / "home")


def power_cut(place: Place, dose: int) -> int:
    """All that was not synced is gone, of journal, SQLite and the producer's file; then a new start."""
    for hits in range(dose):
        process = place.start()
        if not place.reach(place.chance.randint(1, 15), process):
            kill(process)
            return hits
        _cut(place, process)
        place.job = replace(place.job, boot=f"start-{hits + 1}")
        place.free_locks()
    return dose


def _cut(place: Place, process: BaseProcess) -> None:
    """What the disk's file holds at this moment is what the next start finds."""
    place.stop(process)
    disk = place.job.home.parent
    image = disk.parent / "disk.image"
    kept = image.with_suffix(".kept")
    shutil.copyfile(image, kept)
    kill(process)
    _run("umount", str(disk))
    kept.replace(image)
    _run("mount", "-o", "loop", str(image), str(disk))


def _lose_nothing(disk: Path) -> None:
    """What was made before the first sender began has long been on the disk."""
    _run("umount", str(disk))
    _run("mount", "-o", "loop", str(disk.parent / "disk.image"), str(disk))


def disk_full(place: Place, dose: int) -> int:
    """To the last byte in mid-send: it stops; the next one stops, too; with space again it goes on."""
    process = place.start()
    if not place.reach(place.chance.randint(5, 30), process):
        return 0
    ballast = place.job.home.parent / "ballast"
    fill(ballast)
    process.join(PATIENCE)
    again = place.start()
    again.join(PATIENCE)
    ballast.unlink()
    kill(process)
    kill(again)
    return 1


def fill(ballast: Path) -> None:
    """To the last byte."""
    with ballast.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while file.write(bytes(size)) == size:
                    continue
            except OSError:
                continue
