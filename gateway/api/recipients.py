"""`/v1/recipients/{externalId}`: whom a company writes to, under the company's own names for them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from gateway.answers import MAX_BODY, read_body
from gateway.api.callers import Callers
from gateway.api.models import EXTERNAL_ID, RecipientAnswer, RecipientBody, described, faults_of
from gateway.api.problems import ApiProblem, of_faults, problems
from gateway.api.single_mails import headers_for
from gateway.parts import own
from mailout.base.addresses import Dropped, normalise
from mailout.base.time_format import iso
from mailout.kinds.single_mails import companies
from mailout.kinds.single_mails.companies import KnownRecipient, Scope, recipient_id
from mailout.kinds.single_mails.single_mails import SHOWABLE, Code, Fault, external_id_fault
from mailout.store import Store

PATH = "/v1/recipients/{externalId}"
NEW: dict[int | str, dict[str, Any]] = {201: {"model": RecipientAnswer, "description": "It is new"}}


class RecipientApi:
    def __init__(self, store: Store, callers: Callers) -> None:
        self._store = store
        self._callers = callers

    async def put(self: Own, request: Request, response: Response) -> Any:
        """Make a recipient, or change its address and name. One that was deleted is made again."""
        company = (await self._callers.company(request, Scope.SEND)).company_id
        name = _external_id(request)
        email, called = _given(await read_body(request, MAX_BODY))
        known = KnownRecipient(company, recipient_id(company, name), name, email, called)
        if await run_in_threadpool(self._store.put_recipient, known):
            response.status_code = 201
        return await self._answer(request, response, company, name)

    async def get(self: Own, request: Request, response: Response) -> Any:
        """One recipient of this company."""
        token = await self._callers.company(request, Scope.READ)
        return await self._answer(request, response, token.company_id, _external_id(request))

    async def delete(self: Own, request: Request, response: Response) -> None:
        """Nothing more goes to this recipient, also what is in the outbox already."""
        token = await self._callers.company(request, Scope.SEND)
        name = _external_id(request)
        if not await run_in_threadpool(self._store.delete_recipient, token.company_id, name):
            raise _not_found()
        response.headers.update(headers_for(request))

    async def _answer(
        self, request: Request, response: Response, company: str, external_id: str
    ) -> dict[str, Any]:
        found = await run_in_threadpool(companies.recipient, self._store, company, external_id)
        if found is None:
            raise _not_found()
        response.headers.update(headers_for(request))
        return {
            "recipientId": found.id,
            "externalId": external_id,
            "email": found.email,
            "name": found.name,
            "createdAt": iso(found.created_at),
            "updatedAt": iso(found.updated_at),
        }


Own = Annotated[RecipientApi, own(RecipientApi)]
routes = APIRouter(tags=["recipients"])
routes.put(
    PATH,
    response_model=RecipientAnswer,
    responses=problems(400, 401, 403, 413, 429, 503) | NEW,
    openapi_extra=described(EXTERNAL_ID, body=RecipientBody),
)(RecipientApi.put)
routes.get(
    PATH,
    response_model=RecipientAnswer,
    responses=problems(400, 401, 403, 404, 429, 503),
    openapi_extra=described(EXTERNAL_ID),
)(RecipientApi.get)
routes.delete(
    PATH,
    status_code=204,
    responses=problems(400, 401, 403, 404, 429, 503),
    openapi_extra=described(EXTERNAL_ID),
)(RecipientApi.delete)


def _external_id(request: Request) -> str:
    given = str(request.path_params["externalId"])
    if fault := external_id_fault(given):
        raise of_faults([Fault(Code.INVALID_PAYLOAD, "externalId", fault)])
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
    if body.name is not None and (not body.name or not SHOWABLE.fullmatch(body.name)):
        raise of_faults([Fault(Code.INVALID_PAYLOAD, "name", "is empty, or holds a control character")])
    return email, body.name


def _not_found() -> ApiProblem:
    return ApiProblem(404, Code.RECIPIENT_NOT_FOUND, "This company has no such recipient.")
