"""`mailout doctor`: would a mailout go through, and if not, what is to be done?"""

from __future__ import annotations

import typer

from cli.output import Json, print_json, say
from mailout import wiring
from mailout.settings import load_settings

app = typer.Typer()

STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


@app.command(epilog="Example: mailout doctor --json")
def doctor(json: Json = False) -> None:
    """Look at the settings, the store, the transport and Notion; say what is wrong and how to mend it.

    Nothing is sent. Exit codes: 0 nothing stands in the way, 1 something does.
    """
    checks = []
    for check in wiring.examine(load_settings()):
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
