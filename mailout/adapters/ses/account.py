"""The SES account: its quota and whether it may send."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError, ConnectionError

from mailout.adapters.ses import error_map
from mailout.adapters.ses.answers import answered, plain
from mailout.base.clock import Clock
from mailout.base.errors import CheckSkipped, MailoutError, ProviderUnreachable
from mailout.base.retries import retried
from mailout.outbox.delivery import error_codes
from mailout.outbox.delivery.port import Allowance

UNLIMITED = -1.0
ASK_AGAIN = (1.0, 2.0)
"""SES takes about one question a second, of all who share the account: pauses before the next try."""
TOO_FAST = (error_codes.THROTTLING.code, error_codes.MAX_SEND_RATE.code)


@dataclass(frozen=True, slots=True)
class Account:
    """`get_account`, in our words. −1: unlimited."""

    max_24h: float
    sent_24h: float
    max_rate: float
    sending_enabled: bool
    production: bool  # False: the sandbox
    enforcement: str  # HEALTHY, PROBATION, SHUTDOWN

    @property
    def available(self) -> float | None:
        """How many may still go out; None: no limit."""
        return None if self.max_24h == UNLIMITED else max(0.0, self.max_24h - self.sent_24h)

    @property
    def paused(self) -> bool:
        return not self.sending_enabled or self.enforcement == "SHUTDOWN"


def read(client: Any) -> Account:
    """Raises `MailoutError` with a remedy, `CheckSkipped` if we may not know: no mail hangs on it."""
    try:
        answer = client.get_account()
    except Exception as error:  # whatever it was, botocore could not make an answer of it
        raise no_answer(error, "ses:GetAccount") from error
    quota = answer.get("SendQuota")
    if not quota or "SendingEnabled" not in answer:  # read as an answer, it would say: paused, and no quota
        raise MailoutError(
            "SES: the account's standing was asked for, and something else came back.",
            remedy=error_codes.NOT_SES.remedy,
        )
    return Account(
        max_24h=float(quota.get("Max24HourSend", 0.0)),
        sent_24h=float(quota.get("SentLast24Hours", 0.0)),
        max_rate=float(quota.get("MaxSendRate", 0.0)),
        sending_enabled=bool(answer["SendingEnabled"]),
        production=bool(answer.get("ProductionAccessEnabled", False)),
        enforcement=str(answer.get("EnforcementStatus", "")),
    )


def read_with_retries(client: Any, clock: Clock) -> Account:
    """Asked too fast, it asks again: whoever does not know the account's rate may well exceed it."""
    return retried(lambda: read(client), _pause_after, clock)


def _pause_after(error: Exception, attempts: int) -> float | None:
    too_fast = isinstance(error, MailoutError) and _our_code(error.__cause__) in TOO_FAST
    return ASK_AGAIN[attempts - 1] if too_fast and attempts <= len(ASK_AGAIN) else None


def allowance(account: Account) -> Allowance:
    """What of the account's state matters to a sender."""
    paused = error_map.classify("AccountSendingPausedException", "Sending is paused.", 400, True)
    return Allowance(
        available=None if account.available is None else int(account.available),
        max_rate=account.max_rate if account.max_rate > 0 else None,
        refused=paused if account.paused else None,
        most=None if account.max_24h == UNLIMITED else int(account.max_24h),
    )


def no_answer(error: Exception, right: str) -> MailoutError:
    """Why SES did not say what was asked. Whoever may send need not be allowed to ask: `right` is missing."""
    if isinstance(error, ConnectionError):
        return ProviderUnreachable.named("SES", plain(str(error)))
    code, said = _our_code(error), plain(f"SES: {error}")
    if code == error_codes.ACCESS.code:
        return CheckSkipped(said, remedy=f"Allow {right} to these AWS credentials.")
    return MailoutError(said, remedy=error_codes.remedy_for(code) or None)


def _our_code(error: BaseException | None) -> str:
    """As for a mail that was refused: the same codes, the same remedies."""
    if isinstance(error, ClientError):
        return answered(error.response).code or ""
    return error_map.classify(type(error).__name__, str(error), None, False).code or ""
