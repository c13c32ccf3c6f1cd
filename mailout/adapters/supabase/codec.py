"""Between our words and jsonb: moments are timestamps there and seconds since the epoch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from typing import Any

from mailout.kinds.single_mails.companies import recipient_id
from mailout.letters.content.model import Content
from mailout.outbox.delivery.protocol import Attempt, Claimed, Halt, Ledger, Result, Step, StepReply
from mailout.outbox.delivery.single_mails import SingleMail
from mailout.outbox.feedback.port import Effect, EventReading
from mailout.outbox.queue.mailout import Mailout
from mailout.outbox.queue.port import Recipient

UNWRITTEN = ("content", "link", "values")
"""Parts of a mail that go to the store in another shape."""


def row(values: Mapping[str, Any]) -> dict[str, Any]:
    """A table's row. What is a moment is told by its name, as in the tables."""
    return {
        name: seconds(value) if isinstance(value, str) and _is_moment(name) else value
        for name, value in values.items()
    }


def _is_moment(name: str) -> bool:
    return name == "at" or name.endswith(("_at", "_until"))


def seconds(value: str) -> float:
    moment = datetime.fromisoformat(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def mailout(values: Mapping[str, Any]) -> Mailout:
    return Mailout.of(row(values))


def content(made: Content) -> dict[str, str]:
    return {"hash": made.hash, "subject": made.subject, "html": made.html, "plain": made.text}


def step_params(step: Step) -> dict[str, Any]:
    return asdict(replace(step, results=())) | {"results": [_result(result) for result in step.results]}


def _result(result: Result) -> dict[str, Any]:
    """By hand, and without what is not there: `asdict` takes longer than the database to record it."""
    known = {
        "id": result.attempt.id,
        "epoch": result.attempt.epoch,
        "state": result.state,
        "message_id": result.provider_message_id,
        "code": result.code,
        "category": result.category,
        "message": result.message,
        "original_code": result.original_code,
        "retry_in": result.retry_in,
        "age": result.age,
        "give_back": result.give_back or None,
        "uncharge": result.uncharge or None,
    }
    return {name: value for name, value in known.items() if value is not None}


def step_reply(values: Mapping[str, Any]) -> StepReply:
    halt, ledger = values.get("halt"), values.get("ledger")
    return StepReply(
        now=values["now"],
        fenced=values["fenced"],
        halt=Halt(halt) if halt else None,
        rows=[_claimed(claimed) for claimed in values["rows"]] if "rows" in values else (),
        recovered=[Attempt(begun["id"], begun["epoch"]) for begun in values.get("recovered", ())],
        limited=values.get("limited"),
        next_slot_at=values.get("next_slot_at"),
        next_due_at=values.get("next_due_at"),
        ledger=Ledger(**ledger) if ledger else None,
        suppressed=values.get("suppressed", 0),
        refused=values.get("refused", 0),
        missing=values.get("missing", ()),
    )


def _claimed(values: Sequence[Any]) -> Claimed:
    """In the order in which `mailout_claim` writes them; the last are a single mail's own, if it has any."""
    id, epoch, seq, number, email, content, mailout_id, company_id, from_name, variables, slot, own = values
    request_id, category, reply_to, headers, list_key = own or (None, None, None, None, None)
    return Claimed(
        attempt=Attempt(id, epoch),
        seq=seq,
        number=number,
        email=email,
        content_hash=content,
        mailout_id=mailout_id,
        company_id=company_id,
        from_name=from_name,
        variables=variables or {},
        slot=slot,
        request_id=request_id,
        category=category,
        reply_to=reply_to,
        headers=headers,
        list_key=list_key,
    )


def recipient(one: Recipient) -> dict[str, Any]:
    return {
        "email": one.email,
        "from_name": one.from_name,
        "content_id": one.content_hash,
        "variables": dict(one.variables) or None,
        "recipient_id": one.recipient_id,
    }


def reading(read: EventReading) -> dict[str, Any]:
    code, message = read.problem or (None, None)
    return {
        "inbox_id": read.inbox_id,
        "code": code,
        "message": message,
        "dead": read.dead,
        "effects": [_effect(effect) for effect in read.effects],
    }


def _effect(effect: Effect) -> dict[str, Any]:
    """Flat, with what our tables say of its type: the SQL need not know the words."""
    revoke_code, revoke_message = effect.revokes or (None, None)
    return {
        "id": effect.id,
        "type": effect.type.value,
        "at": effect.at,
        "email": effect.email,
        "ses_message_id": effect.provider_message_id,
        "attempt_id": effect.attempt.id if effect.attempt else None,
        "attempt_epoch": effect.attempt.epoch if effect.attempt else None,
        "campaign_id": effect.mailout_id,
        "heard": asdict(effect.change) if effect.change else None,
        "detail": dict(effect.detail),
        "recount": effect.recount,
        "metric": effect.metric,
        "revoke_code": revoke_code,
        "revoke_message": revoke_message,
    }


def mail(one: SingleMail) -> dict[str, Any]:
    return {
        **{part.name: getattr(one, part.name) for part in fields(one) if part.name not in UNWRITTEN},
        "variables": one.variables,
        **content(one.content),
        "headers": dict(one.headers) if one.headers else None,
        "new_recipient_id": recipient_id(one.company_id, one.external_id) if one.external_id else None,
    }
