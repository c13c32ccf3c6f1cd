"""`mailout subscribers`: the list of people, in and out."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from cli import subscriber_import
from cli.engine import command_group, open_engine
from cli.output import Json, Yes, answer, confirm, note, print_json, say
from cli.subscriber_import import writing
from cli.tables import TextTable
from mailout.app import forgetting
from mailout.base.addresses import IN_WORDS, TRIM, Dropped, address_of, normalise
from mailout.base.errors import UsageError
from mailout.base.select import every
from mailout.base.time_format import day, iso, spoken
from mailout.insight.reporting.phrases import count
from mailout.insight.reporting.rows import people_lines, safe
from mailout.letters.audience import list_rows, subscriber_rows
from mailout.letters.audience.list_changes import list_for
from mailout.letters.audience.list_rows import GENERAL
from mailout.letters.audience.places import split_places
from mailout.letters.audience.port import PRIORITY, SubscriberRow
from mailout.store import Store

app = command_group("The people on your list: import, export, add one, look one up.")

STYLES = {"active": "green", "unsubscribed": "yellow", "bounced": "red"}
CONSENT_COLUMNS = ("email", "list_key", "at", "wording", "source")


@app.command("export", epilog="Example: mailout subscribers export --out people.csv")
def export(
    out: Annotated[Path | None, typer.Option(help="The file to write; without it, to the terminal.")] = None,
    consents: Annotated[
        bool,
        typer.Option("--consents", help="Instead: who agreed to which list, when, to which words and where."),
    ] = False,
) -> None:
    """Write everybody as CSV, in the form that `import` reads."""
    store = open_engine().store
    if consents:
        _export_consents(store, out)
        return
    with writing(out) as file:
        file.writelines(people_lines(store, subscriber_rows.Wanted()))
    if out is not None:
        written = sum(subscriber_rows.subscriber_counts(store).values())
        note(f"{count(written, 'person', 'people')} written to {out}.")


def _export_consents(store: Store, out: Path | None) -> None:
    written = 0
    with writing(out) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CONSENT_COLUMNS)
        for row in every(store, subscriber_rows.CONSENTS):
            shown = {**row, "at": iso(row["at"])}
            writer.writerow(safe(str(shown[name])) for name in CONSENT_COLUMNS)
            written += 1
    if out is not None:
        note(f"{count(written, 'consent')} written to {out}.")


@app.command("list", epilog="Example: mailout subscribers list --status unsubscribed --search shop")
def list_(
    status: Annotated[str | None, typer.Option(help="Only these: active, unsubscribed or bounced.")] = None,
    search: Annotated[str | None, typer.Option(help="A part of the address or of the name.")] = None,
    limit: Annotated[int, typer.Option(help="How many at most.", min=1)] = 100,
    json: Json = False,
) -> None:
    """Who is on the list, by address."""
    if status is not None and status not in PRIORITY:
        raise UsageError(f"There is no status {status}.", remedy=f"There are: {', '.join(PRIORITY)}.")
    engine = open_engine()
    found = subscriber_rows.subscribers(engine.store, limit=limit + 1, status=status, search=search)
    if json:
        print_json([_with_times(person) for person in found[:limit]])
        return
    table = TextTable(("email", "status", "since", "name"), coloured="status", gives_way="email")
    for person in found[:limit]:
        since = person["status_updated_at"] or person["created_at"]
        shown = day(since, engine.limits.timezone) if since else ""
        stands = person["status"] or "unknown"  # others may write into the same table
        table.add(
            person["email"], stands, shown, subscriber_rows.name_of(person), style=STYLES.get(stands, "")
        )
    if found:
        table.show()
    else:
        note("Nobody.")
    if len(found) > limit:
        note(f"There are more than these {limit:,}: --limit shows more, --search fewer.")


@app.command("add", epilog="Example: mailout subscribers add ana@example.org --name Ana --list newsletter")
def add(
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="The address.")],
    name: Annotated[str | None, typer.Option(help="The person's name.")] = None,
    list_key: Annotated[str | None, typer.Option("--list", help="Put the person on this list, too.")] = None,
    places: Annotated[
        list[str] | None,
        typer.Option(
            "--place", metavar="OCD_ID", help="Where the person lives; several, or one with commas."
        ),
    ] = None,
    signed_up: Annotated[
        bool,
        typer.Option(
            "--signed-up", help="They asked for it themselves: also after an unsubscribe or being forgotten."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Add one person. People who unsubscribed or bounced stay that way."""
    norm = _address(email)
    ocd_ids, wrong = split_places(" ".join(places or ()))
    if wrong:
        raise UsageError(
            f"{wrong[0]} is not an OCD id.",
            remedy="One looks like ocd-division/country:us/state:oh/county:franklin.",
        )
    store = open_engine().store
    key, is_new_list = list_for(store, list_key) if list_key else (None, False)
    row = SubscriberRow(
        email.strip(TRIM),
        norm,
        ocd_ids=ocd_ids,
        attributes={"name": name} if name else {},
        lists=[key] if key else [],
    )
    counts = store.import_subscribers([row], own_sign_up=signed_up)
    if counts.forgotten:
        raise UsageError(
            f"{norm} asked to be forgotten.", remedy="If they have signed up again themselves: --signed-up."
        )
    person = _with_times(subscriber_rows.subscriber(store, norm))
    stands = "added" if counts.added else "on the list"
    if person["status"] != "active":
        stands = f"{person['status']} and stays so"
    elif (key or GENERAL) in {one["list_key"] for one in person["lists"] if one["unsubscribed_at"]}:
        stands = f"off the list {key or GENERAL} and stays off it"
    text = f"{norm} is {stands}."
    if is_new_list:
        text += f" The list {key} is new; `mailout lists edit {key}` names it."
    answer(json, person, text)


@app.command("unsubscribe", epilog="Example: mailout subscribers unsubscribe ana@example.org")
def unsubscribe(
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="The address, in capitals or not.")],
    list_key: Annotated[
        str | None, typer.Option("--list", help="From this list only; without it, from everything.")
    ] = None,
    json: Json = False,
) -> None:
    """Take a person off the list, as their own unsubscribe would. Imports do not bring them back."""
    norm = _address(email)
    store = open_engine().store
    store.normalise_addresses()
    key = list_rows.by_key_or_name(store, list_key).key if list_key else None
    is_known = subscriber_rows.is_known(store, norm)
    store.unsubscribe(norm, key)
    text = f"{norm} gets no more mail{f' of the list {key}' if key else ''}."
    if not is_known:
        text = f"{norm} was not known. No import will subscribe them{f' to {key}' if key else ''}."
    answer(json, {"email": norm, "list": key}, text)


@app.command("show", epilog="Example: mailout subscribers show ana@example.org")
def show(
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="The address, in capitals or not.")],
    json: Json = False,
) -> None:
    """One person: status, lists, and everything the import knew."""
    norm = _address(email)
    engine = open_engine()
    engine.store.normalise_addresses()
    person = subscriber_rows.subscriber(engine.store, norm)
    consents = subscriber_rows.consents(engine.store, norm)
    if json:
        told = [{**one, "at": iso(one["at"])} for one in consents]
        print_json(_with_times(person) | {"consents": told})
        return
    zone = engine.limits.timezone
    say(person["email"], style="bold")
    since = f", since {spoken(person['status_updated_at'], zone)}" if person["status_updated_at"] else ""
    facts: list[tuple[str, object]] = [("status", f"{person['status']}{since}")]
    facts += [(name, value) for name in FACTS if (value := person.get(name))]
    times = {"known since": person["created_at"], "unsubscribed": person["left_at"]}
    times |= {"complained": person["complained_at"], "pause until": person["snoozed_until"]}
    facts += [(words, spoken(at, zone)) for words, at in times.items() if at]
    if person["email_norm"] != person["email"]:
        facts.append(("written to", person["email_norm"]))
    for entry in person["lists"]:
        since = f" (joined {spoken(entry['joined_at'], zone)})" if entry["joined_at"] else ""
        if entry["unsubscribed_at"]:
            since = f" (off since {spoken(entry['unsubscribed_at'], zone)})"
        facts.append(("list", f"{entry['list_key']}{since}"))
    for one in consents:
        said = f"{one['list_key']}, {spoken(one['at'], zone)}, on {one['source']}: {one['wording']}"
        facts.append(("agreed to", said))
    facts += [("ocd_id", ocd_id) for ocd_id in person["ocd_ids"]]
    for name, value in [*facts, *person["attributes"].items()]:
        say(f"  {name:<14}  {value}")


@app.command("forget", epilog="Example: mailout subscribers forget ana@example.org")
def forget(
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="The address, in capitals or not.")],
    yes: Annotated[bool, Yes] = False,
    json: Json = False,
) -> None:
    """Erase a person, and keep the counts.

    From the list, the messages, the events, the reports, and the archives on this machine.
    """
    address = address_of(email)  # also one that we would not send to
    if address is None:
        raise UsageError(f"{email} is not an address.", remedy="Write it like ana@example.org.")
    engine = open_engine()
    confirm(f"Erase {address} from the list, the messages, the reports and the archives?", yes)
    erased = forgetting.forget(engine, address)
    done, files = erased.done, erased.mail_files
    if json:
        print_json(
            {
                **asdict(done),
                "reports": sorted(erased.reports),
                "mail_files": [str(file) for file in files],
                "archives": erased.archives,
                "archives_out_of_reach": erased.missing,
                "store_copies": [str(copy) for copy in erased.copies],
            }
        )
        return
    say(
        f"{address} is forgotten: {count(done.subscribers, 'subscriber')}, {count(done.messages, 'message')},"
        f" {count(done.events, 'event')}, {count(done.errors, 'error')};"
        f" {count(len(erased.reports), 'report')} written again."
    )
    if erased.archives:
        say(f"Erased from {count(len(erased.archives), 'archive')} as well.")
    if erased.out_of_reach:
        note(erased.out_of_reach)
    if files:
        carry = "still carries" if len(files) == 1 else "still carry"
        note(f"{count(len(files), 'mail file')} in {files[0].parent.parent} {carry} the address.")
    note("Imports leave the address out from now on; the person may sign up again.")


FACTS = ("from_name", "bounce_type", "bounce_subtype")
TIMES = ("created_at", "status_updated_at", "left_at", "complained_at", "snoozed_until")


def _with_times(person: Mapping[str, Any]) -> dict[str, Any]:
    return dict(person) | {name: iso(person[name]) for name in TIMES}


def _address(email: str) -> str:
    norm = normalise(email)
    if isinstance(norm, Dropped):
        raise UsageError(
            f"{email} is not an address: {IN_WORDS[norm]}.", remedy="Write it like ana@example.org."
        )
    return norm


app.command("import", epilog=subscriber_import.EXAMPLE)(subscriber_import.import_)
app.command("undo-import", epilog=subscriber_import.UNDO_EXAMPLE)(subscriber_import.undo)
