"""`mailout doctor`: would a mailout go through, and if not, what is to be done?"""

from __future__ import annotations

from itertools import chain

import typer

from cli.output import Json, print_json, say
from cli.prefect_api import prefect_checks
from mailout import wiring
from mailout.doctor import checked
from mailout.settings import load_settings

app = typer.Typer()

STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


@app.command(epilog="Example: mailout doctor --json")
def doctor(json: Json = False) -> None:
    """Ask the settings, the store, the transport, Notion and Prefect; say what is wrong and how to mend it.

    Nothing is sent. Exit codes: 0 nothing stands in the way, 1 something does.
    """
    checks = []
    for check in chain(wiring.examine(load_settings()), checked("Prefect", prefect_checks)):
        checks.append(check)
        if not json:
            say(f"{check.level:<4}  {check.name}: {check.message.rstrip('.')}.", style=STYLES[check.level])
            if check.remedy and check.level != "ok":
                say(f"      {check.remedy}")
    failed = sum(check.level == "fail" for check in checks)
    if json:
        print_json({"ok": not failed, "checks": [check._asdict() for check in checks]})
    else:
        say()
        say("Nothing stands in the way." if not failed else f"To mend before the first mailout: {failed}.")
    raise typer.Exit(1 if failed else 0)
