"""`mailout lists`: what people can subscribe to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from cli.engine import command_group, open_store, read_settings
from cli.output import Json, note, print_json, say
from cli.tables import TextTable
from mailout.base.errors import UsageError
from mailout.letters.audience.list_changes import add_list, edit_list
from mailout.letters.audience.list_rows import List, by_key_or_name, lists
from mailout.letters.content.languages import FALLBACK
from mailout.letters.content.languages import language as words_of
from mailout.letters.content.signup_form import signup_form
from mailout.store import Store

app = command_group("The lists that people can be on: add, edit, look, the form to join one.")

Key = Annotated[str, typer.Argument(metavar="KEY", help="The list's key, or its name.")]


def _changing(change: Callable[[Store, str, Mapping[str, Any]], List]) -> Callable[..., None]:
    """`add` and `edit` take the same."""

    def command(
        context: typer.Context,
        key: Key,
        name: Annotated[str | None, typer.Option(help="What people read.")] = None,
        description: Annotated[str | None, typer.Option(help="A sentence about it.")] = None,
        public: Annotated[
            bool | None,
            typer.Option("--public/--private", help="Whether anybody may join it on the sign-up page."),
        ] = None,
        from_name: Annotated[str | None, typer.Option(help="Who its letters come from.")] = None,
        reply_to: Annotated[str | None, typer.Option(help="Where answers go.")] = None,
        footer: Annotated[str | None, typer.Option(help="Why people get it, above the footer.")] = None,
        logo: Annotated[str | None, typer.Option(help="The address of its logo.")] = None,
        logo_dark: Annotated[str | None, typer.Option(help="The same for dark screens.")] = None,
        color: Annotated[str | None, typer.Option(help="Its colour, such as #0b5c8a.")] = None,
        links: Annotated[str | None, typer.Option(help="Website=https://example.org, …")] = None,
        language: Annotated[str | None, typer.Option(help="The language of its letters.")] = None,
        archive: Annotated[
            bool | None,
            typer.Option("--archive/--no-archive", help="Whether its letters are public on the web."),
        ] = None,
        welcome_ref: Annotated[
            str | None,
            typer.Option("--welcome", metavar="REF", help="The letter that a new reader gets once."),
        ] = None,
        json: Json = False,
    ) -> None:
        options = (one for one in context.params.items() if one[0] not in ("key", "json"))
        with open_store() as store:
            one = change(store, key, {field: value for field, value in options if value is not None})
            _show(store, one, json)

    return command


app.command(
    "add",
    help="Add a list. People come onto it by an import, the sign-up page or their own choice.",
    epilog="Example: mailout lists add weekly --name 'Weekly news' --public",
)(_changing(add_list))
app.command(
    "edit",
    help="Change a list. What is not named stays; '' takes a value away.",
    epilog="Example: mailout lists edit weekly --reply-to news@example.org",
)(_changing(edit_list))


@app.command(epilog="Example: mailout lists show weekly")
def show(key: Key, json: Json = False) -> None:
    """One list, and how many people its next letter would reach."""
    with open_store() as store:
        _show(store, by_key_or_name(store, key), json)


@app.command("list", epilog="Example: mailout lists list")
def list_(json: Json = False) -> None:
    """Every list with the people on it."""
    with open_store() as store:
        found = [(one, store.audience_size(one.key)) for one in lists(store)]
    if json:
        print_json([_as_data(one, people) for one, people in found])
        return
    table = TextTable(("key", "name", "people", "joining"), right=frozenset({"people"}), gives_way="name")
    for one, people in found:
        table.add(one.key, one.name, f"{people:,}", "public" if one.public else "private")
    table.show()


@app.command(epilog="Example: mailout lists form weekly > form.html")
def form(
    key: Key,
    language: Annotated[
        str | None, typer.Option(help="Of its words; else the list's, else LANGUAGE.")
    ] = None,
) -> None:
    """Print the HTML form by which people join, for any web page."""
    settings = read_settings()
    with open_store(settings) as store:
        one = by_key_or_name(store, key)
    if not one.public:
        raise UsageError(
            f"{one.name} is private: nobody may join it by a form.",
            remedy=f"mailout lists edit {one.key} --public",
        )
    if settings.public_url is None:
        raise UsageError("PUBLIC_URL: is missing.", remedy="Set it to the gateway's address.")
    if not settings.signup:
        note("SIGNUP is false: the gateway takes no sign-ups until it is true (docs/growing.md).")
    words = words_of(language or one.brand.get("language") or settings.language or FALLBACK)
    say(signup_form(one.key, settings.public_url, words).rstrip("\n"))


def _show(store: Store, one: List, json: bool) -> None:
    people = store.audience_size(one.key)
    if json:
        print_json(_as_data(one, people))
        return
    say(one.name, style="bold")
    facts = {
        "key": one.key,
        "about": one.description,
        "joining": "public" if one.public else "private",
        "people": f"{people:,}",
        "from name": one.from_name,
        "reply-to": one.reply_to,
        "footer": one.footer,
        **{name.replace("_", " "): value for name, value in one.brand.items()},
        "archive": "its letters are public" if one.archive else None,
        "welcome": one.welcome_ref,
    }
    for name, value in facts.items():
        if value:
            say(f"  {name:<10}  {_written(value)}")


def _written(value: Any) -> str:
    return value if isinstance(value, str) else ", ".join(f"{label}={address}" for label, address in value)


def _as_data(one: List, people: int) -> dict[str, Any]:
    return asdict(one) | {"people": people}
