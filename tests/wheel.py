"""`make test-wheel`: the package as people install it, used in a folder that has nothing of the project.

It is installed into an environment of its own. The packages that it needs are lent by this one, so that it
takes a minute; `ARGS=--install` installs those of the lock, too, as a fresh machine would.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.environment import SENDER
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[1]
OURS = ("cli", "mailout", "flows", "tasks", "gateway", "deployments")
PATIENCE = 300.0
SETTINGS = {
    **SENDER,
    "API_TOKEN": "a token for the test, long enough",
    "DO_NOT_TRACK": "1",
}


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="mailout-wheel-") as place:
        folder = Path(place)
        python = install(folder, whole="--install" in arguments)
        work = folder / "work"
        work.mkdir()
        env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ} | SETTINGS
        comes_from_the_wheel(python, work, env)
        mailout = python.with_name("mailout")
        example = [str(python), "-P", "-c", "import deployments; print(deployments.EXAMPLES)"]
        letter = Path(run(example, work, env).strip()) / "newsletter.md"
        with up(mailout, work, env) as is_up:  # the others while it starts, which takes half a minute
            demo = run([str(mailout), "demo"], work, env)
            assert "Nothing was sent to anybody." in demo, demo
            run([str(mailout), "preview", str(letter), "--out", "seen"], work, env)
            assert list((work / "seen").glob("*.html")), "the preview is missing"
            sends(work, is_up())
            assert "store: sqlite answers" in run([str(mailout), "doctor"], work, env, codes=(0, 1))
    print("The installed package works: demo, preview, doctor, up.")


def install(folder: Path, *, whole: bool) -> Path:
    """Its Python."""
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], ROOT)
    (wheel,) = folder.glob("mailout-*.whl")
    run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], folder)
    python = folder / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    pip += ["install", "--quiet", "--no-deps"]
    if whole:
        run([*pip, "--require-hashes", "-r", str(ROOT / "requirements.lock")], folder)
    else:
        where = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        # A path alone: what is installed here to be edited is not found by it.
        lent = Path(run(where, folder).strip()) / "lent.pth"
        lent.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    run([*pip, str(wheel)], folder)
    return python


def comes_from_the_wheel(python: Path, work: Path, env: dict[str, str]) -> None:
    told = f"import {', '.join(OURS)}; print({', '.join(f'{name}.__file__' for name in OURS)})"
    for path in run([str(python), "-P", "-c", told], work, env).split():
        assert Path(path).is_relative_to(python.parents[1]), f"{path} is not of the installed package"


@contextmanager
def up(mailout: Path, work: Path, env: dict[str, str]) -> Iterator[Callable[[], int]]:
    """Started and ended as a person would. It yields what waits until all is up, and says the port."""
    log = work / "up.log"
    port = free_port()
    command = [str(mailout), "up", "--port", str(port), "--prefect-port", str(free_port())]
    with log.open("wb") as written:
        process = subprocess.Popen(command, cwd=work, env=env, stdout=written, stderr=written)

    def is_up() -> int:
        until = time.monotonic() + PATIENCE
        while "mailout is up" not in log.read_text("utf-8"):
            assert process.poll() is None, log.read_text("utf-8")
            assert time.monotonic() < until, log.read_text("utf-8")
            time.sleep(0.2)
        return port

    try:
        yield is_up
    finally:
        process.send_signal(signal.SIGTERM)
        ended = process.wait(PATIENCE)
    assert ended == 0, log.read_text("utf-8")


def sends(work: Path, port: int) -> None:
    """A worker of it runs a flow of it."""
    letter = work / "letter.md"
    letter.write_text("---\nid: letter\nsubject: Hello\n---\n\nHow are you?\n", encoding="utf-8")
    httpx.post(
        f"http://127.0.0.1:{port}/send-mailout",
        json={"ref": str(letter), "test": True},
        headers={"Authorization": f"Bearer {SETTINGS['API_TOKEN']}"},
        trust_env=False,
        timeout=PATIENCE,
    ).raise_for_status()
    until = time.monotonic() + PATIENCE
    while not list(work.glob(".mailout/outbox/*/editor@example.org--*.eml")):
        logs = "".join(path.read_text("utf-8") for path in work.glob(".mailout/logs/worker-*.log"))
        assert time.monotonic() < until, f"nothing was sent:\n{logs}"
        time.sleep(0.5)


def run(
    command: list[str], folder: Path, env: dict[str, str] | None = None, codes: tuple[int, ...] = (0,)
) -> str:
    ended = subprocess.run(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    said = f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}\n{ended.stderr}"
    assert ended.returncode in codes, said
    assert "Traceback" not in ended.stderr, said
    return ended.stdout


if __name__ == "__main__":
    main(sys.argv[1:])
