"""`mailout init`: a few questions, and a `.env` with which a first letter can be tried."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.output import Json, Yes, note, print_json, say, stop_at_ctrl_c
from mailout.base.addresses import parse_address_list
from mailout.base.dotenv_file import DOTENV, dotenv, write_settings
from mailout.base.errors import SettingsError, UsageError
from mailout.base.settings import load_settings

app = typer.Typer(rich_markup_mode=None, add_completion=False)

TRIAL_ADDRESS = "http://127.0.0.1:8080/unsubscribe"
"""Works on this machine while the gateway runs: enough to try it, and never sent to people."""
FOR_TRIAL = (
    "# How people unsubscribe. The address is for trying things out; before real letters set the\n"
    "# gateway's own: docs/feedback.md says how. Keep the secret: links in letters are signed with it."
)
MACHINE_ZONE = Path("/etc/localtime")
PASSWORD_BYTES = 15
HEADING = "# Written by `mailout init`. Every setting, with what it does: docs/settings.md"


@dataclass(frozen=True)
class SetupQuestion:
    setting: str
    option: str
    words: str
    like: str = ""
    """A setting whose answer is offered as the default."""
    offers: Callable[[], str] | None = None
    """What is offered as the default instead."""


def machine_zone() -> str:
    """As this machine's clock is set; UTC where that cannot be told."""
    zone = os.environ.get("TZ", "").strip() or str(MACHINE_ZONE.resolve()).partition("zoneinfo/")[2]
    try:
        _check("SEND_TIMEZONE", zone)
    except SettingsError:
        return "UTC"
    return zone or "UTC"


QUESTIONS = (
    SetupQuestion("ORG_NAME", "--org-name", "Your organisation's name (shown below every letter)"),
    SetupQuestion(
        "ORG_ADDRESS", "--org-address", "Its postal address (the law asks for one under every letter)"
    ),
    SetupQuestion("FROM_EMAIL", "--from-email", "The address that letters come from"),
    SetupQuestion("FROM_NAME", "--from-name", "The name beside it", like="ORG_NAME"),
    SetupQuestion(
        "TEST_EMAILS", "--test-emails", "Who gets test letters (several: with commas)", like="FROM_EMAIL"
    ),
    SetupQuestion(
        "SEND_TIMEZONE", "--timezone", "Your time zone (times are shown and read in it)", offers=machine_zone
    ),
)


@app.command(epilog='Example: mailout init --org-name "Harbour Club" --from-email news@example.org --yes')
def init(
    context: typer.Context,
    org_name: Annotated[str | None, typer.Option(help="Your organisation's name.")] = None,
    org_address: Annotated[str | None, typer.Option(help="Its postal address.")] = None,
    from_email: Annotated[str | None, typer.Option(help="The address that letters come from.")] = None,
    from_name: Annotated[str | None, typer.Option(help="The name beside it.")] = None,
    test_emails: Annotated[
        str | None, typer.Option(help="Who gets test letters, separated by commas.")
    ] = None,
    send_timezone: Annotated[
        str | None, typer.Option("--timezone", help="Your time zone, like Europe/Lisbon.")
    ] = None,
    dashboard: Annotated[
        bool, typer.Option("--dashboard/--no-dashboard", help="Set a password for the dashboard.")
    ] = True,
    yes: Annotated[bool, Yes] = False,
    json: Json = False,
) -> None:
    """Write a .env for this folder: who you are, who gets tests, and a password for the dashboard.

    What .env says already stays, unless an option says otherwise. Nothing is sent to anybody until you set
    MAILOUT_TRANSPORT=ses.
    """
    known = dotenv()
    given = {question.setting: context.params[question.setting.lower()] for question in QUESTIONS}
    answers = {name: value.strip() for name, value in given.items() if value and value.strip()}
    for name, value in answers.items():
        _check(name, value)
    asking = not yes and not json
    _ask(answers, known, asking=asking)
    made_up = _made_up(known)
    if dashboard and not known.get("ADMIN_PASSWORD"):
        ask = asking and sys.stdin.isatty()
        if not ask or typer.confirm("Make a password for the dashboard?", default=True, err=True):
            made_up["ADMIN_PASSWORD"] = secrets.token_urlsafe(PASSWORD_BYTES)
    if answers:
        write_settings(DOTENV, answers, heading=HEADING)
    if made_up:
        write_settings(DOTENV, made_up, heading=FOR_TRIAL if "UNSUBSCRIBE_BASE_URL" in made_up else "")
    written = answers | made_up
    open_ = [q.setting for q in QUESTIONS if not (known.get(q.setting) or answers.get(q.setting))]
    if json:
        print_json({"file": str(DOTENV), "written": list(written), "missing": open_})
    else:
        _tell(list(written), open_, {**known, **written})


def _ask(answers: dict[str, str], known: Mapping[str, str], *, asking: bool) -> None:
    open_ = [q for q in QUESTIONS if not (known.get(q.setting) or answers.get(q.setting))]
    unknown = [q.option for q in open_ if not (q.like or q.offers)]
    if asking and unknown and not sys.stdin.isatty():
        raise UsageError(
            f"No terminal to ask on, and some settings are unknown: {', '.join(unknown)}.",
            remedy="Give these options, or --yes to fill them in later.",
        )
    for question in open_:
        offered = answers.get(question.like) or known.get(question.like)
        offered = question.offers() if question.offers else offered
        if asking and sys.stdin.isatty():
            answers[question.setting] = _answer(question, offered)
        elif offered:
            answers[question.setting] = offered


def _answer(question: SetupQuestion, offered: str | None) -> str:
    """Asked again until it can be used."""
    while True:
        stop_at_ctrl_c()
        answer: str = typer.prompt(question.words, default=offered, err=True).strip()
        try:
            _check(question.setting, answer)
        except SettingsError as error:
            note(error.message.partition(". ")[0].rstrip(".") + ".")
        else:
            return answer


def _check(name: str, value: str) -> None:
    load_settings({name: value})
    if name == "TEST_EMAILS":
        rejected = parse_address_list(value).rejected
        if rejected:
            raise SettingsError(
                f"{', '.join(written for written, _ in rejected)}: not an address.",
                remedy="Write them like ana@example.org, ben@example.org.",
            )


def _made_up(known: Mapping[str, str]) -> dict[str, str]:
    """What a person need not be asked."""
    made = {
        "UNSUBSCRIBE_SECRET": secrets.token_hex(32),
        "UNSUBSCRIBE_BASE_URL": TRIAL_ADDRESS,
        "MAILOUT_TRANSPORT": "folder",
    }
    return {name: value for name, value in made.items() if not known.get(name)}


def _tell(written: list[str], open_: list[str], settings: Mapping[str, str]) -> None:
    if not written:
        say(f"{DOTENV} has everything already; nothing was changed.")
    else:
        say(f"Written to {DOTENV}: {', '.join(written)}.")
    if "UNSUBSCRIBE_BASE_URL" in written:
        say("The unsubscribe address is for trying things out: it works on this machine only.")
    if open_:
        say(f"Still to fill in, in {DOTENV}: {', '.join(open_)}.")
        return
    say("\nNext, import your people (it shows what it understood, and asks first):", style="bold")
    say("  mailout subscribers import list.csv")
    say("\nThen write letter.md:", style="bold")
    say("  ---\n  subject: Hello\n  ---\n  Dear friends, …")
    say(f"\nSend it as a test to {settings['TEST_EMAILS']}:", style="bold")
    say("  mailout send letter.md --test")
    if settings.get("ADMIN_PASSWORD"):
        say(f"\nSee it all on the dashboard (its password: ADMIN_PASSWORD in {DOTENV}):", style="bold")
        say("  mailout up")
    home = os.environ.get("MAILOUT_HOME") or ".mailout"
    say(f"\nUntil you set MAILOUT_TRANSPORT=ses, letters become files in {home}/outbox; nobody gets one.")
