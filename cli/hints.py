"""What a mistyped command was meant to be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

_NO_SUCH = re.compile(r"No such command '(.*?)'")


def mistyped(message: str, context: Any) -> str | None:
    """The whole sentence for a command that is not there; None: something else is wrong."""
    found = _NO_SUCH.match(message)
    if found is None or context is None:
        return None
    typed, path = found[1], str(context.command_path)
    names: Sequence[str] = context.command.list_commands(context)
    meant = [f"{path} {name} {typed}" for name in names if typed in _below(context, name)]
    meant = meant or [f"{path} {name}" for name in get_close_matches(typed, names, n=3, cutoff=0.5)]
    if meant:
        return f"There is no command `{path} {typed}`. Did you mean {_either(meant)}?"
    return f"There is no command `{path} {typed}`. There are: {', '.join(names)}."


def _below(context: Any, name: str) -> Sequence[str]:
    return tuple(getattr(context.command.get_command(context, name), "commands", ()))


def _either(commands: Sequence[str]) -> str:
    quoted = [f"`{command}`" for command in commands]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
