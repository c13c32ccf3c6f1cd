"""`mailout tokens`: who may hand in single mails over HTTP."""

from __future__ import annotations

from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from cli.commands.companies import company_name
from cli.engine import command_group, open_store, read_settings
from cli.output import Json, answer, note, print_json, say
from cli.tables import TextTable
from mailout.base.errors import NotFound, UsageError
from mailout.base.time_format import day, iso
from mailout.kinds.single_mails import companies
from mailout.kinds.single_mails.companies import LARGEST_LIMIT, Scope, Token, add_token, new_token

app = command_group("Tokens for programs that hand in single mails: create, list, revoke.")


@app.command(epilog="Example: mailout tokens create --company shop --limit-per-minute 600")
def create(
    company: Annotated[str, typer.Option(help="Whose it is; made if it is new.")],
    limit_per_minute: Annotated[
        int | None, typer.Option(min=1, max=LARGEST_LIMIT, help="Mails a minute; without it, no limit.")
    ] = None,
    scopes: Annotated[str, typer.Option(help="What it may do: send, read, or both.")] = "send,read",
    json: Json = False,
) -> None:
    """Make a token. It is shown once: only a hash of it is kept."""
    text, token = new_token(company_name(company), _scopes(scopes), limit_per_minute)
    with open_store() as store:
        add_token(store, token)
    if json:
        print_json({"token": text, **_as_data(token)})
        return
    say(text)
    note(f"Shown this once. It is known as {token.id}; to end it: mailout tokens revoke {token.id}")


@app.command("list", epilog="Example: mailout tokens list --json")
def list_tokens(json: Json = False) -> None:
    """Every token: whose it is and what it may do."""
    settings = read_settings()
    with open_store(settings) as store:
        tokens = companies.tokens(store)
    if json:
        print_json(
            [
                _as_data(one) | {"created_at": iso(one.created_at), "revoked_at": iso(one.revoked_at)}
                for one in tokens
            ]
        )
        return
    if not tokens:
        say("No tokens yet. The first one: mailout tokens create --company NAME")
        return
    table = TextTable(
        ("id", "made on", "state", "may", "a minute", "company"),
        right=frozenset({"a minute"}),
        coloured="state",
    )
    for token in tokens:
        state, style = ("revoked", "red") if token.revoked_at else ("valid", "green")
        limit = f"{token.limit_per_minute:,}" if token.limit_per_minute else "no limit"
        made = day(token.created_at, ZoneInfo(settings.send_timezone))
        table.add(token.id, made, state, ", ".join(token.scopes), limit, token.company_id, style=style)
    table.show()


@app.command(epilog="Example: mailout tokens revoke mo_Ab3dEf9h")
def revoke(
    id: Annotated[str, typer.Argument(metavar="ID", help="As `mailout tokens list` shows it.")],
    json: Json = False,
) -> None:
    """Revoke a token. The gateway may accept it for another five seconds."""
    with open_store() as store:
        if not store.revoke_token(id):
            raise NotFound(f"There is no token {id} to revoke.", remedy="`mailout tokens list` shows them.")
    answer(json, {"id": id, "revoked": True}, f"{id} is revoked.")


def _as_data(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "company": token.company_id,
        "scopes": list(token.scopes),
        "limit_per_minute": token.limit_per_minute,
    }


def _scopes(written: str) -> list[Scope]:
    names = [name.strip() for name in written.split(",") if name.strip()]
    unknown = [name for name in names if name not in set(Scope)]
    if unknown or not names:
        raise UsageError(f"--scopes: {written!r} is not known.", remedy="Give send, read, or send,read.")
    return [Scope(name) for name in dict.fromkeys(names)]
