"""`mailout segments`: filters over subscribers, by name, that a letter may ask for."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.engine import command_group, open_store
from cli.output import Json, answer, item, note, print_json, say
from cli.tables import TextTable
from mailout.base.errors import UsageError
from mailout.base.time_format import iso
from mailout.letters.audience import list_rows
from mailout.letters.audience.segment_tree import Segment, Tree, whole
from mailout.letters.audience.segments import read_segment
from mailout.outbox.queue import segment_names
from mailout.store import Store

app = command_group("Who should get it: filters over your subscribers, by name.")
Name = Annotated[str, typer.Argument(metavar="NAME")]
List = Annotated[str | None, typer.Option("--list", help="Of this list only.")]
FILTER = 'city = "Porto" and joined after 2026-01-01'


@app.command(epilog=f"Example: mailout segments add porto '{FILTER}'")
def add(name: Name, filter: Annotated[str, typer.Argument(metavar="FILTER")], json: Json = False) -> None:
    """Add a segment, or change its filter.

    Letters whose recipients are fixed already stay as they are.
    """
    with open_store() as store:
        made, warnings = segment_names.save(store, name, filter)
        counted = _counted(store, None, made.tree)
    for warning in warnings:
        note(f"Check: {warning}")
    answer(json, _as_data(made) | counted | {"warnings": warnings}, f"{made.name}: {_reach(counted)}.")


@app.command("list", epilog="Example: mailout segments list")
def list_segments(json: Json = False) -> None:
    """Every segment with its filter."""
    with open_store() as store:
        known = segment_names.segments(store)
    if json:
        print_json([_as_data(one) for one in known])
    elif not known:
        say(f"No segments yet. Add one: mailout segments add porto '{FILTER}'")
    else:
        table = TextTable(("segment", "filter"), gives_way="filter")
        for one in known:
            table.add(one.name, one.filter)
        table.show()


@app.command(epilog="Example: mailout segments show porto")
def show(name: Name, json: Json = False) -> None:
    """One segment: its filter, and how many people it means."""
    with open_store() as store:
        found = segment_names.usable_segment(store, name)
        counted = _counted(store, None, found.tree)
        people = store.audience_sample(None, found.tree, segment_names.SAMPLE_PEOPLE)
        waiting = segment_names.waiting(store, name)
    if json:
        letters = [{"id": one["id"], "subject": one["subject"]} for one in waiting]
        print_json(_as_data(found) | counted | {"sample": list(people), "waiting": letters})
        return
    say(f"{found.name}: {found.filter}")
    say(f"{_reach(counted)}{', the first of them:' if people else '.'}")
    for email in people:
        item(email)
    for one in waiting:
        say(f"“{one['subject']}” waits and will go to it ({one['id']}).")


@app.command(epilog=f"Example: mailout segments count --filter '{FILTER}'")
def count(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]")] = None,
    filter: Annotated[str | None, typer.Option(help="A filter that has no name yet.")] = None,
    list_key: List = None,
    json: Json = False,
) -> None:
    """How many people a segment or a filter means. Nothing is written."""
    if (name is None) == (filter is None):
        raise UsageError(
            "Name a segment, or give --filter.", remedy=f"mailout segments count --filter '{FILTER}'"
        )
    with open_store() as store:
        if name is not None:
            tree = segment_names.usable_segment(store, name).tree
        else:
            tree = segment_names.bound(store, read_segment(filter or "").tree)
            for warning in segment_names.warnings(store, tree):
                note(f"Check: {warning}")
        key = list_rows.by_key_or_name(store, list_key).key if list_key else None
        counted = _counted(store, key, tree)
    answer(json, counted, f"{_reach(counted)}.")


@app.command(epilog="Example: mailout segments delete porto")
def delete(name: Name, json: Json = False) -> None:
    """Delete a segment that no letter waits for. What was sent to it keeps its filter."""
    with open_store() as store:
        segment_names.delete(store, name)
    answer(json, {"deleted": name}, f"The segment {name} is deleted.")


def _counted(store: Store, list_key: str | None, tree: Tree) -> dict[str, int]:
    return {
        "people": store.audience_size(list_key, tree),
        "of": store.audience_size(list_key, whole(list_key, tree)),
    }


def _reach(counted: dict[str, int]) -> str:
    return f"{counted['people']:,} of {counted['of']:,} people"


def _as_data(one: Segment) -> dict[str, Any]:
    data: dict[str, Any] = {"name": one.name, "filter": one.filter, "hash": one.hash}
    return data | ({"updated_at": iso(one.updated_at)} if one.updated_at else {})
