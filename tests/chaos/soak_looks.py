"""How much there is at one moment: memory, open files, files, and whether any of it grows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median

from mailout.adapters.journals.files import KEEP_CLOSED
from tests.chaos.up import PARTS as KILLED
from tests.e2e.processes import processes_of

PARTS = {**KILLED, "supervisor": "cli up"}
"""What lives as long as `mailout up`, by its command; runs come and go."""
SETTLE_SECONDS = 120.0
"""After a process has begun, before its memory is compared."""
GROWTH_ALLOWED = 1.15
LEAST_LOOKS = 20
"""Fewer at one process tell nothing of growth: ten minutes."""
FILES_ALLOWED = KEEP_CLOSED + 15
"""More files than before that belong to no letter: journals of senders that have ended are kept, others
are in use, logs are rotated, and what Prefect leaves behind is dropped after a quarter of an hour."""
WAL_MB_ALLOWED = 64.0


@dataclass(frozen=True)
class Part:
    """Its processes; after a kill it has others."""

    pids: tuple[int, ...]
    memory_mb: float
    open_files: Counter[str]  # by what they are


@dataclass(frozen=True)
class Look:
    at: float
    parts: Mapping[str, Part]
    files: int  # in its home
    own_files: Counter[str]  # of these, what belongs to no letter, by folder
    disk_mb: float
    wal_mb: float


def look(home: Path, at: float) -> Look:
    living = processes_of(home)
    of = {name: tuple(pid for pid, said in living.items() if does in said) for name, does in PARTS.items()}
    sizes = {file: _size(file) for file in home.rglob("*") if file.is_file()}
    return Look(
        at,
        {
            name: Part(pids, sum(map(_memory_mb, pids)), sum(map(_open_files, pids), Counter()))
            for name, pids in of.items()
        },
        len(sizes),
        Counter(
            _folder(file.relative_to(home)) for file in sizes if not _is_of_a_letter(file.relative_to(home))
        ),
        sum(sizes.values()) / 1e6,
        sum(size for file, size in sizes.items() if file.name.endswith("-wal")) / 1e6,
    )


def _is_of_a_letter(file: Path) -> bool:
    return file.parts[0] == "reports" or file.name.startswith("letter-")


def _folder(file: Path) -> str:
    return "/".join(file.parts[:2]) if len(file.parts) > 2 else file.parts[0]


def _memory_mb(pid: int) -> float:
    """Its own: files that it has mapped count less the more others on the machine have them, too."""
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    found = re.search(r"^Pss_Anon:\s+(\d+) kB", told, re.MULTILINE)
    return int(found[1]) / 1000 if found else 0.0


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def _open_files(pid: int) -> Counter[str]:
    found = Counter[str]()
    with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
        for one in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # it has closed that one
                found[one.readlink().name.partition(":")[0]] += 1
    return found


def settled(looks: Sequence[Look]) -> Sequence[Look]:
    """Since everything was there; all of them, if it never was for long."""
    return [one for one in looks if one.at > SETTLE_SECONDS] or looks


def growing(looks: Sequence[Look]) -> Sequence[str]:
    """What is more at the end than it should be; of each part, within the longest life of one process."""
    found = []
    for name in PARTS:
        life = _longest_life(looks, name)
        if (growth := growth_of([one.memory_mb for one in life])) > GROWTH_ALLOWED:
            found.append(f"memory of the {name} grew by {growth - 1:.0%}")
        # Each run in hand has some open: at rest there are no more than at the busiest of the first third.
        before = max((one.open_files.total() for one in life[: len(life) // 3]), default=0)
        enough = before and len(life) >= LEAST_LOOKS
        if enough and (growth := life[-1].open_files.total() / before) > GROWTH_ALLOWED:
            more = _told(life[-1].open_files - life[0].open_files)
            found.append(f"open files of the {name} grew by {growth - 1:.0%} ({more})")
    first, last = settled(looks)[0], looks[-1]
    if (n := last.own_files.total() - first.own_files.total()) > FILES_ALLOWED:
        found.append(f"{n} more files, of no letter ({_told(last.own_files - first.own_files)})")
    if last.wal_mb > WAL_MB_ALLOWED:
        found.append(f"{last.wal_mb:.0f} MB in write-ahead logs")
    return found


def _told(more: Counter[str]) -> str:
    return ", ".join(f"{what} +{n}" for what, n in more.most_common())


def _longest_life(looks: Sequence[Look], name: str) -> Sequence[Part]:
    lives = [list(life) for _, life in groupby(looks, lambda one: one.parts[name].pids)]
    longest = max(lives, key=len)
    return [one.parts[name] for one in longest if one.at > longest[0].at + SETTLE_SECONDS]


def growth_of(values: Sequence[float]) -> float:
    """The last third against the first: a kill makes single values jump."""
    third = len(values) // 3
    return median(values[-third:]) / median(values[:third]) if len(values) >= LEAST_LOOKS else 1.0
