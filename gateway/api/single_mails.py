"""`/v1/email`: hand a mail in, one or many, and ask what became of it. Answered when it is durable."""

from __future__ import annotations

import json
import logging
import re
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from gateway.answers import MAX_BODY, read_body
from gateway.api.callers import Callers, only
from gateway.api.models import (
    KEY,
    OUTBOX_ID,
    Batch,
    BatchAccepted,
    BatchResult,
    MailAccepted,
    MailInBatch,
    NewMail,
    Story,
    described,
    faults_of,
)
from gateway.api.problems import ApiProblem, of_faults, problems
from gateway.group_commit import GroupCommit
from gateway.parts import own
from mailout.base.errors import Abort, StoreError
from mailout.base.time_format import iso
from mailout.insight.metrics.port import OTHER, VALIDATION_OF, Counter
from mailout.kinds.single_mails.companies import Scope, Token, why_they_wait
from mailout.kinds.single_mails.single_mails import Code, Fault, Faulty, SingleMailIntake
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.port import SingleMessage
from mailout.outbox.delivery.single_mails import Acceptance, SingleMail, Verdict
from mailout.outbox.delivery.states import WAITING, State
from mailout.outbox.feedback import feedback_rows
from mailout.outbox.queue.limits import Limits
from mailout.store import Store

log = logging.getLogger("mailout.gateway")

MAX_BATCH_BODY = 20 * 1024 * 1024
BATCH_SECONDS = 60.0
"""For an answer: 500 mails of 40 KB take 20 seconds of a processor, which others use as well."""
LONG = 20_000
"""Bytes of a body above which it is checked in a thread of its own: others should not wait for it."""
_KEY = re.compile(r"[\x20-\x7e]{1,255}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class SingleMailApi:
    def __init__(self, store: Store, callers: Callers, intake: SingleMailIntake, limits: Limits) -> None:
        self._store = store
        self._callers = callers
        self._intake = intake
        self._limits = limits
        self._outbox: GroupCommit[SingleMail] = GroupCommit(store.accept_single_mails)

    async def send(self: Own, request: Request) -> Response:
        """Hand in one e-mail. It is in the outbox when this answers 202, and leaves within seconds."""
        token = await self._callers.company(request, Scope.SEND)
        key = only(request, "idempotency-key")
        if key is not None and not _KEY.fullmatch(key):
            raise ApiProblem(400, Code.INVALID_PAYLOAD, "Idempotency-Key: 1 to 255 ASCII characters.")
        self._callers.charge(request, token, 1)
        raw = await read_body(request, MAX_BODY)

        def prepare() -> SingleMail:
            given = NewMail.model_validate_json(raw).to_request()
            request_id = request.state.request_id
            return self._intake.prepare(given, company=token.company_id, request_id=request_id, key=key)

        try:
            mail = prepare() if len(raw) <= LONG else await run_in_threadpool(prepare)
        except (ValidationError, Faulty) as error:
            raise await run_in_threadpool(_counted, self._store, error) from None
        except Abort as error:  # the footer's settings
            raise ApiProblem(503, "CONFIGURATION_ERROR", str(error), headers={"Retry-After": "60"}) from None
        _begin_to_store(request)
        acceptance: Acceptance = await self._outbox.put(mail)
        if refusal := _refusal(acceptance):
            raise refusal
        headers = headers_for(request)
        if acceptance.verdict is Verdict.REPEATED:
            headers["Idempotency-Replayed"] = "true"
        told = {
            "outboxId": acceptance.id,
            "requestId": acceptance.request_id or acceptance.id,  # forgotten with its recipient
            "status": acceptance.state.value,
        }
        return JSONResponse(told, 202, headers)

    async def send_batch(self: Own, request: Request, response: Response) -> Any:
        """Hand in up to 500 e-mails in one commit, each with its own key and its own verdict."""
        token = await self._callers.company(request, Scope.SEND)
        request.state.answer.wait(BATCH_SECONDS)
        raw = await read_body(request, MAX_BATCH_BODY)
        try:
            batch = await run_in_threadpool(Batch.model_validate_json, raw)
        except ValidationError as error:
            raise of_faults(faults_of(error).faults) from None
        self._callers.charge(request, token, len(batch.messages))
        request_id = request.state.request_id
        good, results = await run_in_threadpool(
            _prepared, self._store, self._intake, token, request_id, batch.messages
        )
        _begin_to_store(request)
        acceptances = await run_in_threadpool(self._store.accept_single_mails, list(good.values()))
        results |= {index: _result(index, one) for index, one in zip(good, acceptances, strict=True)}
        response.headers.update(headers_for(request))
        accepted = sum(1 for one in results.values() if one.status == 202)
        return BatchAccepted(
            requestId=request_id,
            accepted=accepted,
            refused=len(results) - accepted,
            results=[results[index] for index in range(len(results))],
        )

    async def story(self: Own, request: Request, response: Response) -> Any:
        """What became of a mail of this company: its state, every step, and what SES reported."""
        token = await self._callers.company(request, Scope.READ)
        found, id = None, request.path_params["outboxId"]
        if _UUID.fullmatch(id):
            found = await run_in_threadpool(_story, self._store, self._limits, token.company_id, id.lower())
        if found is None:
            raise ApiProblem(404, Code.OUTBOX_NOT_FOUND, "This company has no such message.")
        response.headers.update(headers_for(request))
        return found


Own = Annotated[SingleMailApi, own(SingleMailApi)]
routes = APIRouter(tags=["single mails"])
routes.post(
    "/v1/email/send",
    status_code=202,
    response_model=MailAccepted,
    responses=problems(400, 401, 403, 409, 413, 429, 503),
    openapi_extra=described(KEY, body=NewMail),
)(SingleMailApi.send)
routes.post(
    "/v1/email/send-batch",
    status_code=202,
    response_model=BatchAccepted,
    responses=problems(400, 401, 403, 413, 429, 503),
    openapi_extra=described(body=Batch),
)(SingleMailApi.send_batch)
routes.get(
    "/v1/email/{outboxId}",
    response_model=Story,
    responses=problems(400, 401, 403, 404, 429, 503),
    openapi_extra=described(OUTBOX_ID),
)(SingleMailApi.story)


def headers_for(request: Request) -> dict[str, str]:
    """Of every answer to a caller that was let in."""
    return {"X-Request-Id": request.state.request_id, **getattr(request.state, "limit_headers", {})}


def _refusal(acceptance: Acceptance) -> ApiProblem | None:
    if acceptance.verdict is Verdict.CONFLICT:
        return ApiProblem(409, "IDEMPOTENCY_CONFLICT", "This Idempotency-Key was used for another mail.")
    if acceptance.verdict is Verdict.NO_RECIPIENT:
        said = "is not there, was deleted, or has another address"
        return of_faults([Fault(Code.RECIPIENT_NOT_FOUND, "recipient", said)])
    return None


def _begin_to_store(request: Request) -> None:
    """Nothing of a mail is stored whose caller was told that it took too long: it will come again."""
    if not request.state.answer.wait(None):
        raise ApiProblem(503, "UNAVAILABLE", "It took too long.")  # nobody hears it


def _prepared(
    store: Store, intake: SingleMailIntake, token: Token, request_id: str, messages: list[Any]
) -> tuple[dict[int, SingleMail], dict[int, BatchResult]]:
    """What can be stored, and what is refused, each by its index."""
    good: dict[int, SingleMail] = {}
    refused: dict[int, BatchResult] = {}
    for index, one in enumerate(messages):
        try:
            mail = MailInBatch.model_validate_json(json.dumps(one)) if isinstance(one, dict) else None
            if mail is None:
                raise Faulty([Fault(Code.INVALID_PAYLOAD, "body", "is no object")])
            given, key = mail.to_request(), mail.idempotency_key
            good[index] = intake.prepare(given, company=token.company_id, request_id=request_id, key=key)
        except (ValidationError, Faulty) as error:
            refused[index] = _refused(index, _counted(store, error))
        except Abort as error:
            refused[index] = _refused(index, ApiProblem(503, "CONFIGURATION_ERROR", str(error)))
    return good, refused


def _result(index: int, acceptance: Acceptance) -> BatchResult:
    if refusal := _refusal(acceptance):
        return _refused(index, refusal)
    state = acceptance.state.value
    return BatchResult(index=index, status=202, outboxId=UUID(acceptance.id), state=state)


def _counted(store: Store, error: ValidationError | Faulty) -> ApiProblem:
    """What is wrong with a mail, counted by the check that it failed."""
    faults = (faults_of(error) if isinstance(error, ValidationError) else error).faults
    failed = {VALIDATION_OF.get(fault.code, OTHER) for fault in faults}
    try:
        store.add_counts({(Counter.VALIDATION_FAILURES.value, type): 1.0 for type in failed})
    except StoreError as away:  # the caller's mistake is told all the same
        log.warning("a refusal was not counted: %s", away)
    return of_faults(faults)


def _refused(index: int, problem: ApiProblem) -> BatchResult:
    status, code, detail = problem.status, problem.code, problem.detail
    return BatchResult(index=index, status=status, code=code, detail=detail, errors=problem.errors)


def _why_it_waits(store: Store, limits: Limits, row: SingleMessage) -> tuple[str | None, str | None]:
    waiting = store.single_mails_waiting(rehearsal=row["is_rehearsal"])
    if (row["next_attempt_at"] or 0.0) > waiting.now:
        return None, None  # for its time, which is told
    if why := why_they_wait(store, row["company_id"], limits, waiting.now, rehearsal=row["is_rehearsal"]):
        return why
    return (waiting.hold.code, waiting.hold.why) if waiting.hold and waiting.due else (None, None)


def _story(store: Store, limits: Limits, company: str, id: str) -> dict[str, Any] | None:
    row = outbox_rows.single_mail(store, company, id)
    if row is None:
        return None
    events = feedback_rows.delivery_events(store, message_id=id)
    # Why not is between the person and whoever they unsubscribed from: another company's mail, perhaps.
    is_told = row["state"] != State.SUPPRESSED
    code, reason = row["error_code"], row["error_message"]
    if row["state"] in WAITING and code is None:
        code, reason = _why_it_waits(store, limits, row)
    return {
        "outboxId": row["id"],
        "requestId": row["request_id"] or row["id"],
        "recipientId": row["recipient_id"],
        "to": row["email"],
        "subject": row["subject"],
        "category": row["category"],
        "status": row["state"],
        "attempts": row["attempts"],
        "sesMessageId": row["ses_message_id"],
        "errorCode": code if is_told else None,
        "errorReason": reason if is_told else None,
        "durationMs": row["duration_ms"],
        "createdAt": iso(row["created_at"]),
        "sentAt": iso(row["sent_at"]),
        "failedAt": iso(row["failed_at"]),
        "nextAttemptAt": iso(row["next_attempt_at"]),
        "history": [
            {"type": one["type"], "createdAt": one["created_at"], "metadata": one["metadata"]}
            for one in outbox_rows.message_events(store, id)
        ],
        "events": [
            {"type": one["event_type"], "createdAt": iso(one["event_at"]), "detail": one["detail"]}
            for one in reversed(events)
        ],
    }
