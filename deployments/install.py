"""`make install`: pip with the lock file, and a line that shows how far it is. It takes about two minutes."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

TERMINAL_SECONDS, LOG_SECONDS = 0.5, 15.0
"""Between two lines: on a terminal each is written over the one before."""


def install(lock: Path) -> int:
    """pip's exit code. What pip says is shown if it fails."""
    packages = len(re.findall(r"^[\w.-]+==", lock.read_text(encoding="utf-8"), re.MULTILINE))
    command = [sys.executable, "-m", "pip", "install", "--progress-bar", "off", "--no-deps"]
    pip = subprocess.Popen(
        [*command, "--require-hashes", "-r", str(lock)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    before, said = _installed(), list[str]()
    reader = threading.Thread(target=lambda: said.extend(pip.stdout or ()))
    reader.start()
    begun, in_place = time.monotonic(), sys.stdout.isatty()
    while reader.is_alive():
        reader.join(TERMINAL_SECONDS if in_place else LOG_SECONDS)
        seconds = time.monotonic() - begun
        line = f"  {_stage(said, before)} of {packages} packages, {seconds:.0f} s"
        print(f"\r{line:<60}" if in_place else line, end="" if in_place else "\n", flush=True)
    if in_place:
        print()
    pip.communicate()  # it has closed what it writes to
    if pip.returncode:
        print("".join(said[-40:]), end="", file=sys.stderr)
    return pip.returncode


def _stage(said: list[str], before: int) -> str:
    if any(line.startswith("Installing collected") for line in list(said)):
        return f"unpacked {_installed() - before}"
    return f"fetched {sum(line.startswith('Collecting') for line in list(said))}"


def _installed() -> int:
    return len(list(Path(sysconfig.get_path("purelib")).glob("*.dist-info")))


if __name__ == "__main__":
    sys.exit(install(Path(sys.argv[1])))
