"""`/v1/recipients/{externalId}`: whom a company writes to, under the company's own names for them."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from gateway.answers import MAX_BODY
from gateway.api.callers import Callers
from gateway.api.models import RecipientAnswer, RecipientBody, body_of, faults_of, moment
from gateway.api.problems import Problem, of_faults, problems
from gateway.api.single_mails import Authorization, RequestId, _add_headers, _body
from mailout.audience.addresses import Dropped, normalise
from mailout.intake.companies import KnownRecipient, Scope, recipient_id
from mailout.intake.single_mails import MAX_NAME, Code, Fault
from mailout.store import Store

_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f/\u2028\u2029\ud800-\udfff]+")
ExternalId = Annotated[str, Path(description="Your own name for the recipient", max_length=MAX_NAME)]
PATH = "/v1/recipients/{externalId}"
NEW: dict[int | str, dict[str, Any]] = {201: {"model": RecipientAnswer, "description": "It is new"}}


def router(store: Store, callers: Callers) -> APIRouter:
    routes = APIRouter(tags=["recipients"])

    @routes.put(
        PATH,
        response_model=RecipientAnswer,
        responses=problems(400, 401, 403, 413, 429, 503) | NEW,
        openapi_extra=body_of(RecipientBody),
    )
    async def put(
        request: Request,
        response: Response,
        externalId: ExternalId,
        authorization: Authorization = None,
        x_request_id: RequestId = None,
    ) -> Any:
        """Make a recipient, or change its address and name. One that was deleted is made again."""
        token = await callers.company(request, Scope.SEND)
        external_id = _external_id(externalId)
        given = _given(await _body(request, MAX_BODY))
        known = KnownRecipient(
            token.company_id, recipient_id(token.company_id, external_id), external_id, given[0], given[1]
        )
        if await run_in_threadpool(store.put_recipient, known):
            response.status_code = 201
        return await _answer(request, response, token.company_id, external_id)

    @routes.get(PATH, response_model=RecipientAnswer, responses=problems(400, 401, 403, 404, 429, 503))
    async def get(
        request: Request,
        response: Response,
        externalId: ExternalId,
        authorization: Authorization = None,
        x_request_id: RequestId = None,
    ) -> Any:
        """One recipient of this company."""
        token = await callers.company(request, Scope.READ)
        return await _answer(request, response, token.company_id, _external_id(externalId))

    @routes.delete(PATH, status_code=204, responses=problems(400, 401, 403, 404, 429, 503))
    async def delete(
        request: Request,
        response: Response,
        externalId: ExternalId,
        authorization: Authorization = None,
        x_request_id: RequestId = None,
    ) -> None:
        """Nothing more goes to this recipient, also what is in the outbox already."""
        token = await callers.company(request, Scope.SEND)
        name = _external_id(externalId)
        if not await run_in_threadpool(store.delete_recipient, token.company_id, name):
            raise _not_found()
        _add_headers(request, response)

    async def _answer(request: Request, response: Response, company: str, external_id: str) -> dict[str, Any]:
        found = await run_in_threadpool(store.recipient, company, external_id)
        if found is None:
            raise _not_found()
        _add_headers(request, response)
        return {
            "recipientId": found.id,
            "externalId": external_id,
            "email": found.email,
            "name": found.name,
            "createdAt": moment(found.created_at),
            "updatedAt": moment(found.updated_at),
        }

    return routes


def _external_id(given: str) -> str:
    if not 1 <= len(given) <= MAX_NAME or not _NAME.fullmatch(given):
        raise of_faults(
            [Fault(Code.INVALID_PAYLOAD, "externalId", f"has 1 to {MAX_NAME} visible characters")]
        )
    return given


def _given(raw: bytes) -> tuple[str, str | None]:
    """The normalised address, and the name."""
    try:
        body = RecipientBody.model_validate_json(raw)
    except ValidationError as error:
        raise of_faults(faults_of(error).faults) from None
    email = normalise(body.email)
    if isinstance(email, Dropped):
        said = f"is no address that mail can be sent to ({email})"
        raise of_faults([Fault(Code.INVALID_EMAIL, "email", said)])
    if body.name is not None and (not body.name or not _NAME.fullmatch(body.name.replace("/", ""))):
        raise of_faults([Fault(Code.INVALID_PAYLOAD, "name", "is empty, or holds a control character")])
    return email, body.name


def _not_found() -> Problem:
    return Problem(404, Code.RECIPIENT_NOT_FOUND, "This company has no such recipient.")
