"""What a person at the terminal is asked before people are imported."""

from __future__ import annotations

import getpass
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import typer

from cli.output import confirm, note, stop_at_ctrl_c
from mailout.base.errors import UsageError
from mailout.insight.reporting.phrases import count
from mailout.letters.audience.columns import value_key
from mailout.letters.audience.people_import import PeopleImport, read_people
from mailout.letters.audience.plan import MEANS
from mailout.letters.audience.tables import key
from mailout.letters.audience.wishes import ImportQuestion, Verdicts, in_words, only, refused


def is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def asked(file: Path, found: PeopleImport) -> PeopleImport:
    """Each open question is put to the person at the terminal; then the file is read again."""
    answers = found.plan.answers
    if found.plan.readings:
        note(f"{file.name} does not say its encoding. Which of these lines looks right?")
        lines = [f"{line}  ({encoding})" for encoding, line in found.plan.readings]
        answers = replace(answers, encoding=found.plan.readings[_choose(lines)][0])
        return asked(file, read_people(file, answers))
    for question in found.plan.open:
        answers = answers.with_column(question.column, _ask(question))
    return read_people(file, answers) if found.plan.open else found


def _ask(question: ImportQuestion) -> Verdicts:
    note(f"“{question.column}”: {question.described()}. Who should get mail?")
    if question.hint:
        note(question.hint)
    choices = question.choices()
    at = _choose([words for words, _ in choices] + ["value by value"])
    if at < len(choices):
        return choices[at][1]
    return only([value for value in question.shown if _gets_mail(question, value)], question.shown)


def require_values(question: ImportQuestion, named: Sequence[tuple[str, str]]) -> None:
    """A value that is mistyped would decide about nobody, and the others would be taken for the rest."""
    values = [value for column, value in named if key(column) == key(question.column)]
    if not values:  # and there may be a million cells
        return
    cells = list(question.values)
    there = {value_key(one) for cell in cells for one in (cell, *re.split(r"[|;]", cell))} | {"", "*"}
    for value in values:
        if value_key(value.removeprefix("\\")) not in there:
            raise UsageError(
                f"No row has “{value}” in “{question.column}”. Nothing was imported.",
                remedy=f"It has: {question.described()}.",
            )


def _gets_mail(question: ImportQuestion, value: str) -> bool:
    no = MEANS[refused(value)]
    asked = f"“{in_words(value)}” ({question.shown[value]:,}): do they get mail? (n: {no})"
    stop_at_ctrl_c()
    return typer.confirm(asked, default=None, err=True)


def _choose(lines: Sequence[str]) -> int:
    for number, line in enumerate(lines, start=1):
        note(f"  {number}  {line}")
    stop_at_ctrl_c()
    numbers = [str(number) for number in range(1, len(lines) + 1)]
    while (said := typer.prompt("Number (Ctrl-C: stop)", err=True).strip()) not in numbers:
        note(f"One from 1 to {len(lines)}.")
    return int(said) - 1


def agreed_by(found: PeopleImport, yes: bool) -> str:
    """Who says that these people agreed, where the file does not. Asked on a terminal only."""
    question = found.plan.agreement()
    if not question:
        if not yes and found.people and is_terminal():
            confirm(f"Import {count(found.people, 'person', 'people')}?", yes)
        return ""
    if yes:
        return f"{who()}, by --yes"
    if not is_terminal():
        raise UsageError(question, remedy="If they did: --yes. Nothing was imported.")
    stop_at_ctrl_c()
    if not typer.confirm(question, default=False, err=True):
        note("Nothing was imported.")
        raise typer.Exit(1)
    return who()


def who() -> str:
    """By whom an import is, for its record."""
    with suppress(OSError, KeyError):  # a container may have no name for its user
        return f"{getpass.getuser()} (command line)"
    return "command line"
