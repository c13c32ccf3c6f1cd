"""What programs send and get, as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AliasChoices,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

from gateway.answers import body_of, schema_of
from mailout.kinds.single_mails.single_mails import (
    MAX_HEADERS,
    MAX_NAME,
    MAX_TEXT,
    MAX_TO,
    Code,
    Fault,
    Faulty,
    MailRequest,
)
from mailout.letters.content.checks import MAX_HTML, MAX_SUBJECT
from mailout.outbox.delivery.single_mails import Category

BATCH_MOST = 500
EARLIEST, TOO_LATE = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
"""Beyond these a moment of another time zone may have no date in UTC, and could not be shown again."""
_Id = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME)]
_Name = Annotated[str, StringConstraints(max_length=MAX_NAME)]
_Address = Annotated[str, StringConstraints(max_length=MAX_TO)]
_Key = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[\x20-\x7e]+$")]


def _either(camel: str) -> AliasChoices:
    """`fromName`; programs written for an earlier version say `from_name`."""
    return AliasChoices(camel, re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", camel))


class Given(BaseModel):
    """What is not known is refused: a misspelt field would be lost without a word."""

    model_config = ConfigDict(extra="forbid", strict=True)


class RecipientGiven(Given):
    recipientId: UUID | None = Field(None, description="A recipient's id here")
    externalId: _Id | None = Field(None, description="Your own name for the recipient; made if it is new")
    name: _Name | None = None
    email: _Address | None = Field(None, description="If given, the same as `to`")


class NewMail(Given):
    """One e-mail to one person."""

    to: _Address = Field(examples=["ana@example.org"])
    subject: Annotated[str, StringConstraints(max_length=MAX_SUBJECT)]
    html: Annotated[str, StringConstraints(max_length=MAX_HTML)]
    text: Annotated[str, StringConstraints(max_length=MAX_TEXT)] | None = Field(
        None, description="Derived from `html` when absent"
    )
    recipient: RecipientGiven | None = None
    from_name: _Name | None = Field(None, validation_alias=_either("fromName"))
    reply_to: _Address | None = Field(None, validation_alias=_either("replyTo"))
    headers: dict[str, str] = Field(
        default_factory=dict, max_length=MAX_HEADERS, description="X-*, References, In-Reply-To"
    )
    category: Literal["transactional", "marketing"] = Field(  # plain texts: an error shows them to callers
        "transactional",
        description="`marketing` gets a link to leave by, and does not go to who has unsubscribed",
    )
    layout: bool = Field(
        True, description="Around HTML that is no whole document; `false` sends the fragment bare"
    )
    send_at: AwareDatetime | None = Field(
        None,
        validation_alias=_either("sendAt"),
        ge=EARLIEST,
        lt=TOO_LATE,
        description="Not before this moment",
    )

    def to_request(self) -> MailRequest:
        given = self.model_dump(exclude={"recipient", "send_at", "category", "idempotency_key"})
        whom = self.recipient or RecipientGiven()
        return MailRequest(
            **given,
            category=Category(self.category),
            recipient_id=str(whom.recipientId) if whom.recipientId else None,
            external_id=whom.externalId,
            recipient_name=whom.name,
            recipient_email=whom.email,
            names_recipient=self.recipient is not None,
            send_at=self.send_at.timestamp() if self.send_at else None,
        )


class MailInBatch(NewMail):
    idempotency_key: _Key | None = Field(None, validation_alias=_either("idempotencyKey"))


def _items(schema: dict[str, Any]) -> None:
    """Each is checked by itself: one that is wrong costs the others nothing."""
    schema["items"] = schema_of(MailInBatch)


class Batch(Given):
    messages: list[Any] = Field(min_length=1, max_length=BATCH_MOST, json_schema_extra=_items)


class RecipientBody(Given):
    email: _Address
    name: _Name | None = None


class MailAccepted(BaseModel):
    outboxId: UUID
    requestId: str
    status: str = Field(examples=["PENDING"])


class BatchResult(BaseModel):
    """One mail's own verdict: `outboxId` when it was taken in, else `code` and `detail`."""

    index: int
    status: int = Field(description="As a request of its own would be answered: 202, 400, 409 or 503")
    outboxId: UUID | None = None
    state: str | None = None
    code: str | None = None
    detail: str | None = None
    errors: list[dict[str, str]] = Field(default_factory=list)


class BatchAccepted(BaseModel):
    requestId: str
    accepted: int
    refused: int
    results: list[BatchResult]


class HistoryEntry(BaseModel):
    type: str
    createdAt: str
    metadata: dict[str, Any]


class SesEvent(BaseModel):
    type: str
    createdAt: str | None
    detail: dict[str, Any]


class Story(BaseModel):
    outboxId: UUID
    requestId: str
    recipientId: str | None
    to: str
    subject: str | None
    category: str | None
    status: str
    attempts: int
    sesMessageId: str | None
    errorCode: str | None
    errorReason: str | None
    durationMs: int | None
    createdAt: str | None
    sentAt: str | None
    failedAt: str | None
    nextAttemptAt: str | None
    history: list[HistoryEntry]
    events: list[SesEvent]


class RecipientAnswer(BaseModel):
    recipientId: UUID
    externalId: str
    email: str
    name: str | None
    createdAt: str | None
    updatedAt: str | None


def faults_of(error: ValidationError) -> Faulty:
    """What pydantic found, with our codes: sizes of subject and HTML are the template's."""
    return Faulty([_fault(one) for one in error.errors(include_url=False, include_context=False)])


def _fault(found: Mapping[str, Any]) -> Fault:
    place = ".".join(str(part) for part in found["loc"]) or "body"
    too_long = found["type"] == "string_too_long"
    code = Code.INVALID_TEMPLATE if too_long and place in ("subject", "html") else Code.INVALID_PAYLOAD
    message = str(found["msg"])
    return Fault(code, place, message[:1].lower() + message[1:])


_TEXT = {"type": "string"}
TOKENS = {
    "CompanyToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "A company's token: `mailout tokens create`",
    }
}
_REQUEST_ID = ("X-Request-Id", "header", "Yours, or one is made; always returned")
KEY = (
    "Idempotency-Key",
    "header",
    "The same key with the same mail is one mail; with another, it is refused",
)
OUTBOX_ID = ("outboxId", "path", "As POST /v1/email/send answered")
EXTERNAL_ID = ("externalId", "path", "Your own name for the recipient")


def described(*parameters: tuple[str, str, str], body: type[BaseModel] | None = None) -> dict[str, Any]:
    """For an operation that reads its request itself: the framework would take longer than all the rest."""
    told = [
        {"name": name, "in": place, "description": said, "required": place == "path", "schema": _TEXT}
        for name, place, said in (_REQUEST_ID, *parameters)
    ]
    needed: list[dict[str, list[str]]] = [{name: []} for name in TOKENS]
    return {"parameters": told, "security": needed, **(body_of(body) if body else {})}
