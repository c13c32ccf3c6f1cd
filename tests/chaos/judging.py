"""How a scene is judged: by the receiver's own record, not by a sender's belief."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from mailout.insight.page_status import report_rows
from mailout.outbox.delivery.states import COLUMN_OF, Column, State
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue import queue_rows
from tests.chaos.places import Place, still_open
from tests.chaos.verdict import Verdict, balances, is_told_rightly

MESSAGES = "select id, campaign_id, email, state, error_code from email_outbox"
NO_CODE = "no code"
ATTEMPTS = 3
"""Of a notification, at most."""


def judge(place: Place, hits: int) -> Verdict:
    states, accepted, failed = place.states(), place.accepted(), _failures(place)
    with closing(place.store()) as store:
        mailouts, drift, untold = (
            queue_rows.mailouts(store),
            list(feedback_rows.usage_drift(store)),
            report_rows.due_reports(store),
        )
    missing = [email for email in place.job.emails if email not in states]
    sent = [email for email, state in states.items() if state is State.SENT]
    return Verdict(
        scenes=1,
        hits=hits,
        accepted=accepted.total(),
        twice=sum(n - 1 for n in accepted.values() if n > 1),
        lost=len(missing) + sum(not accepted[email] for email in sent),
        unknown=sum(state is State.UNKNOWN for state in states.values()),
        failed=Counter(failed.values()),
        stuck=still_open(states.values()) + place.owed() + len(untold),
        misreported=sum(email in accepted or code == NO_CODE for email, code in failed.items())
        + sum(one.metrics.get("delivered", 0) != accepted.total() for one in mailouts if place.delivered)
        + len(_wrong_producer_rows(place, accepted)),
        unbalanced=sum(not balances(one, states) for one in mailouts) + len(drift) + _miscounted(place),
    )


def judge_messages(place: Place, hits: int) -> Verdict:
    """By message, where an address gets several; whoever calls it adds what should have been there."""
    rows = {str(row["id"]): row for row in place.rows(MESSAGES)}
    states = {id: State(row["state"]) for id, row in rows.items()}
    accepted = place.ses.by_message()
    failed = {id: row["error_code"] or NO_CODE for id, row in rows.items() if _has_failed(row)}
    with closing(place.store()) as store:
        mailouts, drift = queue_rows.mailouts(store), list(feedback_rows.usage_drift(store))
    of_each = {
        one.id: {id: states[id] for id, row in rows.items() if str(row["campaign_id"]) == one.id}
        for one in mailouts
    }
    return Verdict(
        scenes=1,
        hits=hits,
        accepted=accepted.total(),
        twice=sum(n - 1 for n in accepted.values()),
        lost=sum(not accepted[id] for id, state in states.items() if state is State.SENT),
        unknown=sum(state is State.UNKNOWN for state in states.values()),
        failed=Counter(failed.values()),
        stuck=still_open(states.values()),
        misreported=sum(id in accepted or code == NO_CODE for id, code in failed.items())
        + sum(id not in rows for id in accepted),
        unbalanced=sum(not balances(one, of_each[one.id]) for one in mailouts)
        + len(drift)
        + _miscounted(place),
    )


def _has_failed(row: Mapping[str, Any]) -> bool:
    return COLUMN_OF[State(row["state"])] is Column.FAILED


def _failures(place: Place) -> dict[str, str]:
    """Addresses whose message is recorded as not sent, and the code that says why."""
    failed = [row for row in place.rows(MESSAGES) if _has_failed(row)]
    return {row["email"]: row["error_code"] or NO_CODE for row in failed}


def _miscounted(place: Place) -> int:
    """Counters of the limits that are not the attempts that may have been sent: one of each message."""
    sql = "select count(charged_hour) as hour, count(charged_day) as day from email_outbox"
    (charged,) = place.rows(sql)
    counted = place.rows("select kind, sum(n) as n from usage where scope = 'all' group by kind")
    by_kind = {row["kind"]: int(row["n"]) for row in counted}
    return sum(by_kind.get(kind, 0) != charged[kind] for kind in ("hour", "day"))


def _wrong_producer_rows(place: Place, accepted: Mapping[str, int]) -> Sequence[Mapping[str, Any]]:
    """Those that ended and do not say what became of their mail."""
    if place.producer is None:
        return ()
    events = Counter(event["payload"].get("notificationId") for event in place.producer.events())
    return [
        row
        for row in place.producer.rows()
        if row["fanout_status"] != "pending"
        and not is_told_rightly(
            row,
            json.loads(row["error"] or "{}"),
            events[row["notification_id"]],
            accepted=bool(accepted.get(row["email"])),
            attempts=ATTEMPTS,
        )
    ]
