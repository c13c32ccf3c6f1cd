"""`mailout doctor`: would a mailout go through, and if not, what is to be done?"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from functools import partial

import typer
from rich.text import Text

from cli.commands.init import QUESTIONS
from cli.engine import require_place, say_where
from cli.output import Json, out, print_json, say
from cli.processes.prefect_checks import prefect_checks
from mailout.app import examination
from mailout.base.errors import SettingsError, UsageError
from mailout.base.settings import load_settings
from mailout.insight.doctor.checks import Check, CheckGroup, checked

app = typer.Typer(rich_markup_mode=None, add_completion=False)

STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}
INDENT = " " * 8
ASKED_BY_INIT = {question.setting for question in QUESTIONS}


@app.command(epilog="Example: mailout doctor --json")
def doctor(json: Json = False) -> None:
    """Ask everything a mailout needs; say what is wrong and how to fix it.

    The settings, the store, SES with SNS, SQS and the DNS, Notion, Prefect.
    Nothing is sent. Exit codes: 0 ready to send, 1 something is wrong.
    """
    found = []
    for part in _parts():
        if not json:
            say(part.name, style="bold")
        for check in part.checks:
            found.append({"part": part.name, **check._asdict()})
            if not json:
                _show(check)
    levels = Counter(str(one["level"]) for one in found)
    failed = levels["fail"]
    if json:
        counts = {level: levels[level] for level in STYLES}
        print_json({"ok": not failed, "counts": counts, "checks": found})
    else:
        say()
        say(f"To fix before the first mailout: {failed}." if failed else _ready())
        if failed and ASKED_BY_INIT & {str(one["name"]) for one in found if one["level"] == "fail"}:
            say("`mailout init` asks for what is missing, and writes it to .env.")
    raise typer.Exit(1 if failed else 0)


def _ready() -> str:
    if load_settings().rehearses:
        return "Ready to rehearse. Letters become files until you set MAILOUT_TRANSPORT=ses."
    return "Ready to send."


def _parts() -> Iterator[CheckGroup]:
    """Settings that are wrong are shown as such; whom they lead to cannot be asked then."""
    home = None
    try:
        settings = load_settings()
        require_place(settings)
    except SettingsError as error:
        yield CheckGroup("Settings", _wrong(error))
    except UsageError as error:
        yield CheckGroup("Settings", [Check("folder", "fail", error.message, error.remedy or "")])
    else:
        say_where(settings)
        home = settings.mailout_home
        yield from examination.examine(settings)
    yield CheckGroup("Prefect", checked("server", partial(prefect_checks, home=home)))


def _wrong(error: SettingsError) -> Iterator[Check]:
    """One line a setting, with its remedy in it."""
    for line in error.message.splitlines():
        name, named, rest = line.partition(": ")
        problem, _, remedy = rest.partition(". ")
        if named:
            yield Check(name, "fail", problem, remedy or error.remedy or "")
        else:
            yield Check("settings", "fail", line, error.remedy or "")


def _show(check: Check) -> None:
    first, *more = lines(check, out.width if out.is_terminal else None)
    shown = Text(first)
    shown.stylize(STYLES[check.level], 2, 2 + len(check.level))
    out.print(shown)
    for line in more:
        say(line)


def lines(check: Check, width: int | None = None) -> list[str]:
    """As a person reads it; `width` None: whoever reads it (a file, grep) wants whole lines."""
    end = "" if check.message.endswith((".", "?")) else "."
    said = f"  {check.level:<4}  {check.name}: {check.message}{end}"
    remedy = check.remedy if check.level != "ok" else ""
    if width is None:
        return [said, INDENT + remedy] if remedy else [said]
    fold = textwrap.TextWrapper(max(width, 40), subsequent_indent=INDENT, break_on_hyphens=False)
    fold.break_long_words = False  # an address that is cut in two cannot be copied
    shown = fold.wrap(said)
    fold.initial_indent = INDENT
    return shown + fold.wrap(remedy)
