"""`mailout status`: everything at a glance, one mailout, or one message."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from cli.engine import open_engine
from cli.interrupted import interruption
from cli.names import find_mailout, find_message
from cli.output import Json, print_json, say
from cli.show import mailout_json, message_dict, show_files, show_mailouts, show_requests
from cli.tables import TextTable
from mailout.app.engine import Engine
from mailout.base import error_log
from mailout.base.addresses import LEFT_OUT
from mailout.base.errors import UsageError
from mailout.base.time_format import iso, lasting, spoken
from mailout.insight.alerts.conditions import EVENTS_WAIT_SECONDS
from mailout.insight.history import notion_troubles
from mailout.insight.reporting.codes import remedy_of
from mailout.insight.reporting.phrases import ALL_PAUSED, count, single_mails_wait
from mailout.insight.reporting.plain import summary_lines
from mailout.insight.reporting.queue_json import request_dict, single_mails_dict
from mailout.insight.reporting.reports import Reports
from mailout.insight.reporting.summary import summarise
from mailout.letters.audience import subscriber_rows
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.states import WAITING, State
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.actions import require_here

app = typer.Typer(rich_markup_mode=None, add_completion=False)

RECENT_MAILOUTS = 10
SAID = ("sesMessageId", "checks")


@app.command(epilog="Example: mailout status newsletter.md --message ana@example.org")
def status(
    id: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="A mailout: its id or the beginning of it, its Markdown file or Notion page."
        ),
    ] = None,
    message: Annotated[
        str | None,
        typer.Option(help="One message: its id, its request's or SES's; of a mailout, its recipient."),
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Write the CSV and the report page of the mailout.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the status of everything, of one mailout, or of one message with all its steps."""
    engine = open_engine()
    mailout = find_mailout(engine, id) if id is not None else None
    if report and mailout is None:
        raise UsageError("--report needs a mailout.", remedy="For example: mailout status letter.md --report")
    if message is not None:
        if mailout:
            require_here(mailout)
        _message(engine, find_message(engine, mailout, message), json)
    elif mailout:
        if report:
            require_here(mailout)
        _mailout(engine, mailout.id, json, engine.report(mailout.id) if report else None)
    else:
        _overview(engine, json)


def _overview(engine: Engine, json: bool) -> None:
    people = subscriber_rows.subscriber_counts(engine.store)
    mailouts = queue_rows.mailouts(engine.store, limit=RECENT_MAILOUTS)
    paused = queue_rows.all_paused(engine.store)
    left_out = subscriber_rows.unreachable(engine.store)
    singles = engine.store.single_mails_waiting(rehearsal=engine.rehearses)
    planned = queue_rows.planned(engine.store)
    events = feedback_rows.inbox(engine.store)
    troubles = notion_troubles.lasting(engine.store)
    if json:
        forecasts = engine.queue_forecast.snapshot().forecasts
        print_json(
            {
                "subscribers": dict(people),
                "left_out": dict(left_out),
                "all_paused": paused,
                "single_mails": single_mails_dict(singles),
                "events_waiting": events["waiting"],
                "notion": [{"what": one.what, "why": one.why, "since": one.since} for one in troubles],
                "requests": [request_dict(one) for one in queue_rows.asked(engine.store, waiting=0.0)],
                "planned": [request_dict(one) for one in planned],
                "mailouts": [mailout_json(engine, m, forecasts.get(m.id)) for m in mailouts],
            }
        )
        return
    say("Subscribers: " + ", ".join(f"{n:,} {name}" for name, n in people.items()))
    for reason, n in left_out.items():
        say(f"  {count(n, 'active one gets', 'active ones get')} no mail: {LEFT_OUT[reason]}")
    if paused:
        say(ALL_PAUSED)
    if held := single_mails_wait(singles, engine.limits.timezone):
        say(held, style="bold yellow")
    show_requests(engine)
    waited = engine.store.now() - (events["oldest"] or math.inf)
    if waited > EVENTS_WAIT_SECONDS:
        many = count(events["waiting"], "SES event waits", "SES events wait")
        say(f"{many} to be applied, the oldest for {lasting(waited)}: mailout events", style="bold yellow")
    for trouble in troubles:
        since = spoken(trouble.since, engine.limits.timezone)
        say(f"{trouble.what} since {since}: {trouble.why}", style="bold yellow")
    for one in planned:
        say(f"Scheduled for {spoken(one.not_before or 0.0, engine.limits.timezone)}: {one.ref}")
    say()
    if mailouts:
        show_mailouts(engine, mailouts)
    else:
        say("No mailouts yet. The first one: mailout send FILE.md --test")


def _mailout(engine: Engine, id: str, json: bool, reports: Reports | None) -> None:
    found = engine.store.mailout(id)
    stopped = interruption(engine, found)
    forecast = engine.queue_forecast.forecast(id) if stopped is None else None
    summary = reports.summary if reports else summarise(engine.store, id, forecast=forecast)
    goes_on_by = found.goes_on_by(engine.store.now(), engine.settings.lock_seconds)
    summary = replace(summary, interrupted=stopped, goes_on_by=goes_on_by)
    errors = error_log.errors(engine.store, id, limit=20)
    if json:
        problems = {"problems": [{"code": e.code, "message": e.message} for e in errors]}
        files = {"csv": str(reports.csv), "html": str(reports.html)} if reports else {}
        print_json(summary.to_dict() | problems | files)
        return
    if queue_rows.all_paused(engine.store):
        say(f"{ALL_PAUSED}\n")
    say(f"Mailout {id}")
    say("\n".join(summary_lines(summary, engine.limits.timezone)))
    for code, text in dict.fromkeys((e.code, e.message) for e in errors):
        say(f"Check: {text} ({code})")
    if reports:
        say()
        show_files(reports)


def _message(engine: Engine, id: str, json: bool) -> None:
    row = outbox_rows.message(engine.store, id)
    events = outbox_rows.message_events(engine.store, id)
    reported = list(reversed(feedback_rows.delivery_events(engine.store, message_id=id)))
    if json:
        ses = [dict(one) | {"event_at": iso(one["event_at"])} for one in reported]
        print_json(message_dict(row, events) | {"ses_events": ses})
        return
    say(f"{row['state']} after {count(row['attempts'], 'attempt')}: {row['email']}", style="bold")
    known = {
        "message": id,
        "request": row["request_id"],
        "id at the provider": row["ses_message_id"],
        "company": row["company_id"],
        "next attempt": iso(row["next_attempt_at"]) if row["state"] in WAITING else None,
    }
    for name, value in known.items():
        if value:
            say(f"  {name:<18}  {value}")
    if row["error_message"]:
        code = f" ({row['error_code']})" if row["error_code"] else ""
        say(f"{row['error_message']}{code}")
        if remedy := remedy_of(row["error_code"] or "", failed=row["state"] == State.FAILED):
            say(f"  {remedy}")
    if row["campaign_id"] is None:
        waiting = engine.store.single_mails_waiting(rehearsal=row["is_rehearsal"])
        held = single_mails_wait(waiting, engine.limits.timezone) if waiting.due else None
        if row["state"] in WAITING and held:
            say(held)
        if act := _ACTS.get(row["state"]):
            say(act.format(id=id))
    say()
    table = TextTable(("time", "step", "more"), indent=4)
    for event in events:
        table.add(str(event["created_at"]), str(event["type"]), _about(event["metadata"]))
    for one in reported:
        table.add(str(iso(one["event_at"])), f"SES: {one['event_type']}", "")
    table.show()


_ACTS: Mapping[str, str] = {
    State.UNKNOWN: "To settle it: mailout queue settle --message {id} --as sent (or failed, or pending)",
    State.FAILED: "To send it again: mailout messages retry {id}",
    State.PENDING: "To cancel it: mailout messages cancel {id}",
    State.RETRY_SCHEDULED: "To cancel it: mailout messages cancel {id}",
}
"""Of a single mail. A mailout's messages are retried and cancelled together."""


def _about(metadata: Mapping[str, Any]) -> str:
    """What is not in the lines above it already."""
    said = {name: value for name, value in metadata.items() if name not in SAID and value is not None}
    return ", ".join(
        f"{name} {', '.join(value) if isinstance(value, list) else value}" for name, value in said.items()
    )
