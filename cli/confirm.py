"""Asking before what cannot be undone."""

from __future__ import annotations

import sys

import typer

from cli.output import note
from mailout.base.errors import UsageError

Yes = typer.Option("--yes", help="Do not ask.")


def confirm(question: str, yes: bool) -> None:
    """Go on after a yes. Where nobody can be asked, only `--yes` will do."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} There is no terminal to ask on.", remedy="Say --yes if you are sure.")
    said, last = question.rpartition(". ")[::2]  # what is long is folded before the question itself
    if said:
        note(f"{said}.")
    if not typer.confirm(last, default=False, err=True):
        note("Nothing was done.")
        raise typer.Exit(1)
