"""`mailout events`: what SES has reported, applied now; and SES's list of addresses it no longer serves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer

from cli.engine import command_group, open_engine
from cli.output import Json, answer, print_json, say
from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.addresses import address_of
from mailout.base.errors import NotFound, UsageError
from mailout.insight.reporting.phrases import count
from mailout.letters.audience import subscriber_rows
from mailout.outbox.feedback import ingest, suppression

QUEUE_WAIT_SECONDS = 3
"""Seconds that a person at a terminal waits for the queue; the flow waits longer."""

app = typer.Typer(rich_markup_mode=None, add_completion=False)
suppressed = command_group("SES's own list of addresses that it no longer delivers to.")
app.add_typer(suppressed, name="suppression")


@app.callback(invoke_without_command=True, epilog="Example: mailout events --json")
def events(context: typer.Context, json: Json = False) -> None:
    """Apply what SES has reported; sync its suppression list.

    The events are taken from SQS and from the gateway's inbox.
    """
    if context.invoked_subcommand is not None:
        return
    engine = open_engine()
    queue = wiring.event_queue(engine.settings)
    topics = engine.settings.sns_topic_arns
    applied, taken = engine.sending.apply_events(), 0  # first: the queue may be out of reach
    if queue is not None:
        taken = ingest.poll(engine.store, queue, topics, wait=QUEUE_WAIT_SECONDS)
        applied += engine.sending.apply_events()
    if json:
        print_json({"from_queue": taken, **asdict(applied)})
        return
    if queue is not None:
        say(f"{count(taken, 'message')} from the queue.")
    if not applied.events and not applied.problems:
        say("Nothing waits.")
        return
    say(f"{count(applied.events, 'event')} applied, {count(applied.statuses, 'subscriber')} changed.")
    if applied.confirmed or applied.revoked:
        say(
            f"{count(applied.confirmed, 'message')} proved to be sent,"
            f" {applied.revoked:,} rejected after all."
        )
    if applied.strangers:
        say(f"{count(applied.strangers, 'event')} of mail that is not ours.")
    if applied.problems:
        dead = count(applied.dead, "is a dead letter", "are dead letters")
        say(f"{count(applied.problems, 'message')} could not be used; {dead}.")


@suppressed.command("pull", epilog="Example: mailout events suppression pull")
def pull(json: Json = False) -> None:
    """Take over from SES who has bounced or complained."""
    engine = open_engine()
    listed, changed = suppression.pull(engine.store, wiring.suppression_list(engine.settings))
    text = f"{count(listed, 'address', 'addresses')} on SES's list, {count(changed, 'subscriber')} changed."
    answer(json, {"listed": listed, "changed": changed}, text)


@suppressed.command("push", epilog="Example: mailout events suppression push ana@example.org")
def push(
    emails: Annotated[
        list[str] | None, typer.Argument(help="Addresses; default: all that complained or bounced for good.")
    ] = None,
    json: Json = False,
) -> None:
    """Add addresses to SES's suppression list. SES allows about one a second."""
    engine = open_engine()
    there = wiring.suppression_list(engine.settings)
    put = 0
    for email, reason in _named(engine, emails) if emails else suppression.to_push(engine.store):
        there.put(email, reason)
        put += 1
    answer(json, {"told": put}, f"SES now knows {count(put, 'address', 'addresses')}.")


def _named(engine: Engine, emails: list[str]) -> Iterator[tuple[str, suppression.Reason]]:
    """Those that a person named, known to us or not: SES has two reasons only, and they want no mail."""
    addresses = {email: address_of(email) for email in emails}
    if wrong := [email for email, address in addresses.items() if address is None]:
        raise UsageError(f"{wrong[0]} is not an address.", remedy="Correct it; nothing was sent so far.")
    for address in filter(None, addresses.values()):
        try:
            known = suppression.reason_for(subscriber_rows.subscriber(engine.store, address))
        except NotFound:
            known = None
        yield address, known or suppression.Reason.COMPLAINT
