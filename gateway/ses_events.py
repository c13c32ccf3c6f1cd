"""`POST /ses-events`: SNS's messages, verified, into the inbox, answered. Applying them is a flow's work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Annotated, Protocol

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from gateway.answers import MAX_BODY, Ok, errors, read_body, refusal
from gateway.group_commit import GroupCommit
from gateway.parts import own
from gateway.prefect_events import Emitter, ThrottledEvent
from mailout.base.error_log import ERROR_TABLE, ErrorRecord
from mailout.base.errors import MailoutError
from mailout.base.settings import Settings
from mailout.outbox.feedback import sns
from mailout.outbox.feedback.ingest import SNS
from mailout.outbox.feedback.port import FeedbackStore, Received

log = logging.getLogger("mailout.gateway")

EMIT_EVERY = 5.0

SIGNED = ("Type", "MessageId", "TopicArn", "Message", "Timestamp")
SIGNATURE = ("Signature", "SignatureVersion", "SigningCertURL")
_SCHEMA = {
    "type": "object",
    "required": [*SIGNED, *SIGNATURE],
    "properties": {name: {"type": "string"} for name in (*SIGNED, *SIGNATURE, "Subject", "Token")},
}
DESCRIPTION = {
    "requestBody": {
        "required": True,
        "description": "An SNS message: JSON, although SNS calls it text/plain. `Message` is an SES event.",
        "content": {"text/plain": {"schema": _SCHEMA}},
    }
}


class Certificates(Protocol):
    """Public keys of SNS's certificates, by address."""

    def known(self, url: str) -> RSAPublicKey | None:
        """At once."""

    def key(self, url: str) -> RSAPublicKey | None:
        """May take a while; None: it cannot be had just now."""


class SesEvents:
    def __init__(
        self,
        settings: Settings,
        store: FeedbackStore,
        certificates: Certificates,
        confirm: Callable[[str, str], None],
        emitter: Emitter | None,
    ) -> None:
        self._topics = settings.sns_topic_arns
        self._store = store
        self._inbox = GroupCommit(store.receive_events)
        self._keys = _Keys(certificates)
        self._confirm = confirm
        self._received = ThrottledEvent(emitter, "ses.events.received", EMIT_EVERY)

    async def ses_events(self: Own, request: Request) -> JSONResponse:
        """Take a message from an SNS topic in `SNS_TOPIC_ARNS`. It is in the store when this answers 200."""
        message = sns.read(await read_body(request, MAX_BODY), self._topics)
        if not isinstance(message, sns.SnsRefused):
            key = await self._keys.of(message.certificate_url)
            if key is None:  # SNS tries again after a 503, and never after a 403
                request.state.why = f"{message.certificate_url} cannot be had"
                return refusal(503, headers={"Retry-After": "10"})
            message = sns.check(message, key)
        if isinstance(message, sns.SnsRefused):
            request.state.why = message.reason
            return refusal(403)
        if message.kind is sns.SnsKind.NOTIFICATION:
            await self._inbox.put(Received(message.id, SNS, message.message))
            self._received.emit()
        elif message.kind is sns.SnsKind.SUBSCRIPTION:
            return await _confirm(self._confirm, message)
        else:
            await run_in_threadpool(_note_the_end, self._store, message)
        return JSONResponse({"ok": True})


Own = Annotated[SesEvents, own(SesEvents)]
routes = APIRouter(tags=["feedback"])
routes.post("/ses-events", response_model=Ok, responses=errors(403, 413, 503), openapi_extra=DESCRIPTION)(
    SesEvents.ses_events
)


class _Keys:
    """One fetch for all who wait for the same certificate: a thread each would leave none for the store."""

    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates
        self._fetching: dict[str, asyncio.Future[RSAPublicKey | None]] = {}

    async def of(self, url: str) -> RSAPublicKey | None:
        known = self._certificates.known(url)
        if known is not None:
            return known
        if url not in self._fetching:
            task = asyncio.ensure_future(run_in_threadpool(self._certificates.key, url))
            self._fetching[url] = task
            task.add_done_callback(lambda _: self._fetching.pop(url))
        return await asyncio.shield(self._fetching[url])  # who goes away must not take the others along


async def _confirm(confirm: Callable[[str, str], None], message: sns.SnsMessage) -> JSONResponse:
    try:
        await run_in_threadpool(confirm, message.topic, message.token or "")
    except MailoutError as error:
        log.error("%s", error)
        return refusal(503)
    log.info("The subscription of %s is confirmed.", message.topic)
    return JSONResponse({"ok": True})


def _note_the_end(store: FeedbackStore, message: sns.SnsMessage) -> None:
    """Somebody ended the subscription. That may be meant, so it is not undone; but it must be seen."""
    note = f"{message.topic} no longer sends its events here: its subscription was ended."
    log.warning("%s", note)
    store.put(ERROR_TABLE, [ErrorRecord("sns_subscription_ended", note, stage="feedback", provider="sns")])
