"""What the commands print: data on stdout, as text or (with `--json`) as JSON; everything else on stderr."""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
from codecs import lookup
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console

from mailout.base.errors import UsageError


class OutputError(OSError):
    """Not what a command works on, but what it says cannot be written: stdout is on a full disk, say."""


@contextmanager
def writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from error


class Terminal(Console):
    """rich's console, which would turn a broken pipe into exit code 1; `main` knows better."""

    def on_broken_pipe(self) -> None:
        raise

    def print(self, *objects: Any, **how: Any) -> None:
        with writing():
            super().print(*objects, **how)


out = Terminal(highlight=False, soft_wrap=True, markup=False, emoji=False)
err = Terminal(highlight=False, soft_wrap=True, markup=False, emoji=False, stderr=True)

_as_json = False


def choose_json(value: bool) -> bool:
    """Known before a command is: what is mistyped is said in JSON, too."""
    global _as_json
    _as_json = value
    return value


def print_in_any_alphabet() -> None:
    """What stdout has no letters for is escaped, as it is on stderr: a subject ends no command."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def open_closed_streams() -> None:
    """Whoever closed one (`>&-`) wants nothing of it. Its number must not become the store's, either."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - for good


Json = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of text.", is_eager=True, callback=choose_json)
]


Yes = typer.Option("--yes", help="Do not ask.")


def say(text: str = "", style: str | None = None) -> None:
    out.print(folded(text, out), style=style)


def item(text: str) -> None:
    """A sentence in a list: indented, and its further lines a little more."""
    out.print(wrapped(text, out.width if out.is_terminal else None, "  ", "    "))


def note(text: str) -> None:
    """Beside the data: a warning, or what goes on meanwhile. A full disk under stderr ends no work."""
    with suppress(OSError):
        err.print(folded(text, err))


def folded(text: str, console: Console) -> str:
    """On a terminal, sentences end between words; elsewhere a line is as long as it is.

    What is indented is there to be copied, a path or a command, and stays whole.
    """
    if not console.is_terminal:
        return text
    lines = text.split("\n")
    return "\n".join(line if line[:1] in ("", " ") else wrapped(line, console.width) for line in lines)


def wrapped(text: str, width: int | None, first: str = "", rest: str = "") -> str:
    """None: as long as it is. What is long without a space stays whole: a path, an address."""
    fold = textwrap.TextWrapper(max(40, width or 10_000_000), first, rest)
    fold.break_long_words = fold.break_on_hyphens = False
    return fold.fill(text)


def print_json(data: Any) -> None:
    with writing():
        _write_json(data, sys.stdout, indent=2)


def _write_json(data: Any, stream: TextIO, indent: int | None = None) -> None:
    """In ASCII unless the stream is UTF-8: a letter that another encoding lacks would make it no JSON."""
    utf8 = lookup(stream.encoding or "ascii").name == "utf-8"
    stream.write(json.dumps(data, ensure_ascii=not utf8, indent=indent, default=str) + "\n")


def answer(json: bool, data: Any, text: str) -> None:
    """What came of it: for a program, or for a person."""
    if json:
        print_json(data)
    else:
        say(text)


def stop_at_ctrl_c() -> None:
    """Before every question: polars, once imported, has a terminal wait on as if nothing had been pressed."""
    signal.siginterrupt(signal.SIGINT, True)


def confirm(question: str, yes: bool) -> None:
    """Before what cannot be undone. Where nobody can be asked, only `--yes` will do."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to ask on.", remedy="Say --yes if you are sure.")
    said, last = question.rpartition(". ")[::2]  # what is long is folded before the question itself
    if said:
        note(f"{said}.")
    stop_at_ctrl_c()
    if not typer.confirm(last, default=False, err=True):
        note("Nothing was done.")
        raise typer.Exit(1)


def say_error(message: str, code: str, exit_code: int) -> None:
    if _as_json:
        _write_json({"error": message, "code": str(code), "exit_code": exit_code}, sys.stderr)
        return
    for line in message.splitlines():
        note(f"mailout: {line}")


def aside(text: str) -> None:
    """One dim line on stderr, for a person; whoever asked for JSON gets JSON alone."""
    if not _as_json:
        with suppress(OSError):
            err.print(folded(text, err), style="dim")
