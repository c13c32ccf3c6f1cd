"""How much there is at one moment: memory, open files, files, and whether any of it grows."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.up import PARTS as KILLED
from tests.e2e.processes import processes_of

PARTS = {**KILLED, "supervisor": "cli up"}
"""What lives as long as `mailout up`, by its command; runs come and go."""
SETTLE_SECONDS = 120.0
"""After the beginning, or after the gateway's or the server's end, before memory is compared."""
GROWTH_ALLOWED = 1.15
FILES_ALLOWED = 15
"""More files than before that belong to no letter: a log that was rotated, a journal that is in use."""
WAL_MB_ALLOWED = 64.0


@dataclass(frozen=True)
class Look:
    at: float
    memory_mb: Mapping[str, float]  # by part
    open_files: int
    files: int  # in its home
    own_files: int  # of these, what belongs to no letter
    disk_mb: float
    wal_mb: float

    @property
    def memory(self) -> float:
        return sum(self.memory_mb.values())


def look(home: Path, at: float) -> Look:
    living = processes_of(home)
    of = {name: [pid for pid, said in living.items() if does in said] for name, does in PARTS.items()}
    sizes = {file: _size(file) for file in home.rglob("*") if file.is_file()}
    return Look(
        at,
        {name: sum(map(_memory_mb, pids)) for name, pids in of.items()},
        sum(_open_files(pid) for pids in of.values() for pid in pids),
        len(sizes),
        sum(not _is_of_a_letter(file.relative_to(home)) for file in sizes),
        sum(sizes.values()) / 1e6,
        sum(size for file, size in sizes.items() if file.name.endswith("-wal")) / 1e6,
    )


def _is_of_a_letter(file: Path) -> bool:
    return file.parts[0] == "reports" or file.name.startswith("letter-")


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


def _open_files(pid: int) -> int:
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return 0


def growing(looks: Sequence[Look], settled_at: float) -> Sequence[str]:
    """What is more at the end than it should be."""
    settled = [one for one in looks if one.at > settled_at]
    found = []
    for part in PARTS:
        growth = growth_of([one.memory_mb[part] for one in settled if one.memory_mb[part]])
        if growth > GROWTH_ALLOWED:
            found.append(f"memory of the {part} grew by {growth - 1:.0%}")
    if growth_of([one.open_files for one in settled]) > GROWTH_ALLOWED:
        found.append("open files grew")
    if settled and settled[-1].own_files > settled[0].own_files + FILES_ALLOWED:
        found.append(f"{settled[-1].own_files - settled[0].own_files} more files, of no letter")
    if settled and settled[-1].wal_mb > WAL_MB_ALLOWED:
        found.append(f"{settled[-1].wal_mb:.0f} MB in write-ahead logs")
    return found


def growth_of(values: Sequence[float]) -> float:
    """The last third against the first: a kill makes single values jump."""
    third = len(values) // 3
    if not third:
        return 1.0
    return statistics.median(values[-third:]) / statistics.median(values[:third])
