"""`SesTransport`: check a mail, call SES once, say what became of each."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson
from botocore.exceptions import BotoCoreError, ClientError

from mailout.adapters.aws import AwsAccess
from mailout.adapters.ses import account as ses_account
from mailout.adapters.ses import error_map
from mailout.adapters.ses.answers import accepted, bulk_entries, refused, unanswered, without_credentials
from mailout.adapters.ses.client import SEND, SEND_BULK, SesClient
from mailout.adapters.ses.connections import Call
from mailout.adapters.ses.letters import BULK_ENTRIES, SesLetter, bulk_batches, letter_of
from mailout.base.clock import SystemClock, monotonic
from mailout.base.errors import SettingsError
from mailout.base.settings import Settings
from mailout.outbox.delivery import error_codes
from mailout.outbox.delivery.port import Allowance, Mail
from mailout.outbox.delivery.protocol import Outcome, OutcomeKind, Timing

HALTING = (OutcomeKind.STOP, OutcomeKind.QUOTA, OutcomeKind.THROTTLED)
"""The account's word, not a mail's: the next call would hear the same."""


REDIRECTS = 300
"""From this status on, an answer is no success."""


class SesMode(StrEnum):
    AUTO = "auto"  # SendBulkEmail for as many as are handed in together, SendEmail for one
    SINGLE = "single"  # SendEmail: one mail a call
    BULK = "bulk"  # SendBulkEmail: up to fifty


@dataclass(frozen=True, slots=True, kw_only=True)
class SesConfig:
    """`SES_*` and what the transport needs of the other settings. None: as boto3 finds it."""

    mode: SesMode = SesMode.SINGLE
    configuration_set: str | None = None
    aws: AwsAccess = field(default_factory=AwsAccess)
    endpoint_url: str | None = None
    call_limit: float = 30.0  # from the start of a call to its last possible answer
    max_idle: float = 20.0  # an older connection is not trusted

    @classmethod
    def of(cls, settings: Settings) -> SesConfig:
        return cls(
            mode=SesMode(settings.ses_mode),
            configuration_set=settings.ses_configuration_set,
            aws=AwsAccess.of(settings),
            endpoint_url=settings.aws_endpoint_url_sesv2,
            call_limit=Timing.of(settings.lock_seconds).call_limit,
        )


class SesTransport:
    """Safe to use from several threads: each call has a connection of its own."""

    name = "ses"

    def __init__(self, config: SesConfig) -> None:
        self.config = config
        self.max_batch = 1 if config.mode is SesMode.SINGLE else BULK_ENTRIES
        self._client = _client(config)
        self.scope = scope_of(self._client.boto.meta.region_name)

    def send(self, mails: Sequence[Mail]) -> Sequence[Outcome]:
        outcomes: dict[int, Outcome] = {}
        letters: list[SesLetter] = []
        for index, mail in enumerate(mails):
            letter = letter_of(index, mail)
            if isinstance(letter, Outcome):
                outcomes[index] = letter
            else:
                letters.append(letter)
        outcomes.update(self._deliver(self._batches(letters)))
        return [outcomes[index] for index in range(len(mails))]

    def _deliver(self, batches: Iterable[Sequence[SesLetter]]) -> Iterator[tuple[int, Outcome]]:
        """The calls of one `send`, within one time limit: each letter's index and outcome."""
        deadline = monotonic() + self.config.call_limit
        halt: Outcome | None = None
        waiting = deque(batches)
        while waiting:
            batch = waiting.popleft()
            results = halt or self._call(batch, deadline)
            if isinstance(results, Outcome):
                results = error_map.blame_recipient(results, batch[0].from_email)
                if results.kind is OutcomeKind.PERMANENT and len(batch) > 1:
                    # A refused call accepted nobody; one bad entry must not take the others with it.
                    middle = len(batch) // 2
                    waiting.extendleft((batch[middle:], batch[:middle]))
                    continue
                results = [results] * len(batch)
            for letter, told in zip(batch, results, strict=True):
                result = error_map.blame_recipient(told, letter.from_email)
                halt = result if result.kind in HALTING else halt
                yield letter.index, result

    def close(self) -> None:
        self._client.close()

    def allowance(self) -> Allowance:
        """What the account may still send, and how fast."""
        return ses_account.allowance(self.account())

    def account(self) -> ses_account.Account:
        """Quota and standing, fresh from SES."""
        return ses_account.read_with_retries(self._client.boto, SystemClock())

    def _call(self, batch: Sequence[SesLetter], deadline: float) -> Sequence[Outcome] | Outcome:
        """One request: an outcome for each letter, or one for the whole call."""
        if deadline - monotonic() < self.config.call_limit / 2:
            return error_map.classify("NotWritten", "There was not enough time for this call.", None, False)
        if len(batch) == 1 and (self.config.mode is not SesMode.BULK or not batch[0].fits_bulk):
            answer = self._ask(SEND, self._single(batch[0]), deadline)
            return answer if isinstance(answer, Outcome) else accepted(answer.get("MessageId"))
        answer = self._ask(SEND_BULK, self._bulk(batch), deadline)
        if isinstance(answer, Outcome):
            return answer
        return bulk_entries(answer.get("BulkEmailEntryResults"), len(batch))

    def _batches(self, letters: Sequence[SesLetter]) -> Iterable[list[SesLetter]]:
        if self.config.mode is SesMode.SINGLE:
            return ([letter] for letter in letters)
        return bulk_batches(letters)

    def _single(self, letter: SesLetter) -> dict[str, Any]:
        if letter.raw is not None:
            content: dict[str, Any] = {"Raw": {"Data": b64encode(letter.raw).decode()}}
        else:
            content = {"Simple": letter.prepared.simple(letter.values)}
            if letter.headers:
                content["Simple"]["Headers"] = letter.headers
        return {
            **self._envelope(letter),
            "Destination": {"ToAddresses": [letter.to]},
            "Content": content,
            "EmailTags": letter.tags,
        }

    def _bulk(self, batch: Sequence[SesLetter]) -> dict[str, Any]:
        template = batch[0].prepared.template
        return {
            **self._envelope(batch[0]),
            "DefaultContent": {
                "Template": {"TemplateContent": template.content, "TemplateData": template.default_data}
            },
            "BulkEmailEntries": [
                {
                    "Destination": {"ToAddresses": [letter.to]},
                    "ReplacementTags": letter.tags,
                    "ReplacementHeaders": letter.headers,
                    "ReplacementEmailContent": {
                        "ReplacementTemplate": {"ReplacementTemplateData": letter.data}
                    },
                }
                for letter in batch
            ],
        }

    def _envelope(self, letter: SesLetter) -> dict[str, Any]:
        envelope: dict[str, Any] = {"FromEmailAddress": letter.sender}
        if letter.reply_to:
            envelope["ReplyToAddresses"] = [letter.reply_to]
        if self.config.configuration_set:
            envelope["ConfigurationSetName"] = self.config.configuration_set
        return envelope

    def _ask(
        self, operation: str, request: Mapping[str, Any], deadline: float
    ) -> Mapping[str, Any] | Outcome:
        call = Call(deadline)
        try:
            answer = self._client.post(operation, _body(request), call)
            if answer.status >= REDIRECTS:
                return refused(answer)
            told = json.loads(answer.body)
            return told if isinstance(told, dict) else {}
        except ClientError as error:
            return without_credentials(error)
        except Exception as error:  # noqa: BLE001 - whatever it was, the call may have been accepted
            return unanswered(error, call)


def _body(request: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(request)
    except orjson.JSONEncodeError:  # half a character: UTF-8 cannot carry it, an escape can
        return json.dumps(request).encode()


def _client(config: SesConfig) -> SesClient:
    try:
        return SesClient(
            config.aws, config.endpoint_url, call_limit=config.call_limit, max_idle=config.max_idle
        )
    except (BotoCoreError, ValueError) as error:
        known = error_map.classify(type(error).__name__, str(error), None, False)
        raise SettingsError(f"SES: {error}", remedy=error_codes.remedy_for(known.code or "")) from error


def scope_of(region: str | None) -> str:
    """Whose pace and quota a sender shares: SES counts them for each region of the account."""
    return f"ses {region}"
