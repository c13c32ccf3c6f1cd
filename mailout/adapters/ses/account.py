"""The SES account: its quota and standing, and what `doctor` wants to know before the first mail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mailout.delivery import error_map
from mailout.doctor import Check
from mailout.errors import MailoutError
from mailout.ports import Allowance

UNLIMITED = -1.0
NEEDED_EVENTS = frozenset({"SEND", "DELIVERY", "BOUNCE", "COMPLAINT", "REJECT", "RENDERING_FAILURE"})


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


def read(client: Any) -> Account:
    """Raises `MailoutError` with a remedy: no mail hangs on it."""
    try:
        answer = client.get_account()
    except (ClientError, BotoCoreError) as error:
        code = _our_code(error)
        raise MailoutError(f"SES: {error}", remedy=error_map.remedy_for(code) or None) from error
    quota = answer.get("SendQuota", {})
    return Account(
        max_24h=float(quota.get("Max24HourSend", 0.0)),
        sent_24h=float(quota.get("SentLast24Hours", 0.0)),
        max_rate=float(quota.get("MaxSendRate", 0.0)),
        sending_enabled=bool(answer.get("SendingEnabled", False)),
        production=bool(answer.get("ProductionAccessEnabled", False)),
        enforcement=str(answer.get("EnforcementStatus", "")),
    )


def allowance(account: Account) -> Allowance:
    """The account's standing as the sender heeds it."""
    paused = not account.sending_enabled or account.enforcement == "SHUTDOWN"
    return Allowance(
        available=None if account.available is None else int(account.available),
        max_rate=account.max_rate if account.max_rate > 0 else None,
        refused=error_map.classify("AccountSendingPausedException", "Sending is paused.", 400, True)
        if paused
        else None,
        most=None if account.max_24h == UNLIMITED else int(account.max_24h),
    )


def check(client: Any, from_email: str, configuration_set: str | None) -> list[Check]:
    try:
        account = read(client)
    except MailoutError as error:
        return [Check("ses access", "fail", error.message, error.remedy or "")]
    return [
        Check("ses access", "ok", "SES answers."),
        *_standing(account),
        _identity(client, from_email),
        *_configuration_set(client, configuration_set),
    ]


def _standing(account: Account) -> list[Check]:
    checks = []
    if not account.sending_enabled or account.enforcement == "SHUTDOWN":
        remedy = error_map.remedy_for(error_map.ACCOUNT_PAUSED.code)
        checks.append(Check("ses account", "fail", "Sending is paused for this account.", remedy))
    elif account.enforcement == "PROBATION":
        remedy = error_map.remedy_for(error_map.ACCOUNT_SUSPENDED.code)
        checks.append(Check("ses account", "warn", "AWS is reviewing this account.", remedy))
    else:
        checks.append(Check("ses account", "ok", "Sending is enabled."))
    if account.production:
        checks.append(Check("ses sandbox", "ok", "Production access is granted."))
    else:
        remedy = "Ask for production access in the SES console; until then every recipient must be verified."
        checks.append(Check("ses sandbox", "warn", "This account is in the sandbox.", remedy))
    checks.append(_quota(account))
    return checks


def _quota(account: Account) -> Check:
    if account.available is None:
        return Check("ses quota", "ok", f"No daily limit, {account.max_rate:g} a second.")
    message = (
        f"{account.available:,.0f} of {account.max_24h:,.0f} left in this 24 hours, "
        f"{account.max_rate:g} a second."
    )
    if account.available:
        return Check("ses quota", "ok", message)
    return Check("ses quota", "warn", message, error_map.remedy_for(error_map.DAILY_QUOTA.code))


def _identity(client: Any, from_email: str) -> Check:
    """The domain, or else the address alone, must be verified in this region."""
    name, remedy = "ses identity", error_map.remedy_for(error_map.IDENTITY.code)
    domain = from_email.rpartition("@")[2]
    for identity in (domain, from_email):
        found = _ask(partial(client.get_email_identity, EmailIdentity=identity))
        if isinstance(found, Check):
            return found._replace(name=name)
        if found is None or not found.get("VerifiedForSendingStatus"):
            continue
        if found.get("DkimAttributes", {}).get("Status") != "SUCCESS":
            message = f"{identity} is verified, without DKIM: Gmail and Yahoo ask for it."
            return Check(name, "warn", message, "Publish the DKIM records that SES shows for this identity.")
        return Check(name, "ok", f"{identity} is verified.")
    return Check(name, "fail", f"Neither {domain} nor {from_email} is verified.", remedy)


def _configuration_set(client: Any, configuration_set: str | None) -> list[Check]:
    """Without events that come back, a message in doubt stays in doubt."""
    name = "ses events"
    if not configuration_set:
        remedy = "Create a configuration set with an event destination and set SES_CONFIGURATION_SET."
        return [Check(name, "fail", "No configuration set: SES would report no events.", remedy)]
    destinations_of = client.get_configuration_set_event_destinations
    found = _ask(partial(destinations_of, ConfigurationSetName=configuration_set))
    if isinstance(found, Check):
        return [found._replace(name=name)]
    if found is None:
        remedy = error_map.remedy_for(error_map.SET_MISSING.code)
        return [Check(name, "fail", f"There is no configuration set {configuration_set}.", remedy)]
    return [_destinations(name, configuration_set, found.get("EventDestinations") or [])]


def _destinations(name: str, configuration_set: str, destinations: list[Mapping[str, Any]]) -> Check:
    told = {
        event
        for destination in destinations
        if destination.get("Enabled") and _comes_back(destination)
        for event in destination.get("MatchingEventTypes", [])
    }
    if not told:
        remedy = "Add an event destination to an SNS topic that reaches /ses-events or SQS_QUEUE_URL."
        return Check(
            name, "fail", f"{configuration_set} has no event destination: doubts never settle.", remedy
        )
    missing = sorted(NEEDED_EVENTS - told)
    if missing:
        remedy = "Add these event types to the event destination."
        return Check(name, "warn", f"{configuration_set} does not report {', '.join(missing)}.", remedy)
    return Check(name, "ok", f"{configuration_set} reports its events.")


def _comes_back(destination: Mapping[str, Any]) -> bool:
    """To a topic or a bus, from where events can reach us; CloudWatch only counts."""
    return bool(destination.get("SnsDestination") or destination.get("EventBridgeDestination"))


def _ask(question: Callable[[], Any]) -> Mapping[str, Any] | Check | None:
    """The answer; None where SES knows no such thing; a failed check where it does not answer."""
    try:
        answer: Mapping[str, Any] = question()
    except (ClientError, BotoCoreError) as error:
        if isinstance(error, ClientError) and error.response["Error"].get("Code") == "NotFoundException":
            return None
        return Check("", "fail", str(error), error_map.remedy_for(_our_code(error)))
    return answer


def _our_code(error: ClientError | BotoCoreError) -> str:
    if not isinstance(error, ClientError):
        return error_map.classify(type(error).__name__, str(error), None, False).code or ""
    told, about = error.response["Error"], error.response["ResponseMetadata"]
    from_ses = bool(about.get("RequestId"))
    status = about.get("HTTPStatusCode")
    return error_map.classify(told.get("Code", ""), told.get("Message", ""), status, from_ses).code or ""
