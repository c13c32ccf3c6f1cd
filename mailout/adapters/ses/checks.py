"""What `doctor` asks of SES: may we send, as whom, how much, and do events come back?"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from mailout.adapters.ses.account import Account, no_answer, read
from mailout.base.errors import CheckSkipped, MailoutError
from mailout.insight.doctor.checks import Check, checked
from mailout.insight.doctor.mail_domain import MailDomain, Names, domain_checks, with_parents
from mailout.outbox.delivery import error_codes

NEEDED_EVENTS = frozenset({"SEND", "DELIVERY", "BOUNCE", "COMPLAINT", "REJECT", "RENDERING_FAILURE"})
PROVIDER = "amazonses.com"
OWN_KEY = "EXTERNAL"  # a DKIM key that you made yourself

Answer = Mapping[str, Any]


def examine(
    client: Any,
    from_email: str,
    configuration_set: str | None,
    topics: Collection[str],
    dns: Names | None,
    transactional_from_email: str | None = None,
) -> Iterator[Check]:
    """`topics`: those whose messages we believe. Without `dns` the domain's own records are not looked at."""
    try:
        account = read(client)
    except CheckSkipped as error:
        yield Check("access", "warn", error.message, error.remedy or "")
    except MailoutError as error:
        yield Check("access", "fail", error.message, error.remedy or "")
        return
    else:
        yield Check("access", "ok", "SES answers")
        yield from _account_status(account)
    yield from checked("identity", partial(_sender, client, from_email, dns))
    if transactional_from_email and transactional_from_email != from_email:
        same_domain = _domain_name(transactional_from_email) == _domain_name(from_email)
        own_dns = None if same_domain else dns
        for check in checked("identity", partial(_sender, client, transactional_from_email, own_dns)):
            yield check._replace(name=f"TRANSACTIONAL_FROM_EMAIL: {check.name}")
    yield from checked("events", partial(_events, client, configuration_set, topics))


# ── The account ──────────────────────────────────────────────────────────────────────────────────


def _account_status(account: Account) -> Iterator[Check]:
    if account.paused:
        remedy = error_codes.ACCOUNT_PAUSED.remedy
        yield Check("account", "fail", "sending is paused for this account", remedy)
    elif account.enforcement == "PROBATION":
        remedy = error_codes.ACCOUNT_SUSPENDED.remedy
        yield Check("account", "warn", "AWS is reviewing this account", remedy)
    else:
        yield Check("account", "ok", "sending is enabled")
    if account.production:
        yield Check("sandbox", "ok", "production access is granted")
    else:
        remedy = (
            "Ask for production access in the SES console. Until then, use --test, and verify the addresses"
            " in TEST_EMAILS there."
        )
        yield Check("sandbox", "fail", "this account is in the sandbox: only tests are sent", remedy)
    yield _quota(account)


def _quota(account: Account) -> Check:
    if account.available is None:
        return Check("quota", "ok", f"no daily limit, {account.max_rate:g} a second")
    left = f"{account.available:,.0f} of {account.max_24h:,.0f} left in this 24 hours"
    message = f"{left}, {account.max_rate:g} a second"
    if account.available:
        return Check("quota", "ok", message)
    return Check("quota", "warn", message, error_codes.DAILY_QUOTA.remedy)


# ── Who sends ────────────────────────────────────────────────────────────────────────────────────


def _sender(client: Any, from_email: str, dns: Names | None) -> Iterator[Check]:
    """The domain, one above it, or the address alone must be verified in this region."""
    name = _domain_name(from_email)
    for identity in (name, from_email, *with_parents(name)[1:]):
        found = _ask(client, "get_email_identity", "ses:GetEmailIdentity", EmailIdentity=identity)
        if found and found.get("VerifiedForSendingStatus"):
            yield Check("identity", "ok", f"{identity} is verified")
            if dns is not None:
                yield from domain_checks(_domain(name, identity, found), dns)
            return
    remedy = error_codes.IDENTITY.remedy
    yield Check("identity", "fail", f"neither {name} nor {from_email} is verified", remedy)


def _domain_name(address: str) -> str:
    return address.rpartition("@")[2]


def _domain(name: str, identity: str, found: Answer) -> MailDomain:
    dkim = found.get("DkimAttributes") or {}
    zone = dkim.get("SigningHostedZone") or f"dkim.{PROVIDER}"
    own_key = dkim.get("SigningAttributesOrigin") == OWN_KEY
    signed_as = _domain_name(identity)
    return MailDomain(
        name=name,
        provider=PROVIDER,
        signed_as=signed_as,
        signing=dkim.get("Status") == "SUCCESS" and dkim.get("SigningEnabled", True),
        keys={
            f"{token}._domainkey.{signed_as}": None if own_key else f"{token}.{zone}".lower()
            for token in dkim.get("Tokens") or ()
        },
        mail_from=(found.get("MailFromAttributes") or {}).get("MailFromDomain") or None,
    )


# ── What comes back ──────────────────────────────────────────────────────────────────────────────


def _events(client: Any, configuration_set: str | None, topics: Collection[str]) -> Iterator[Check]:
    """Without events that come back, a message in doubt stays in doubt."""
    if not configuration_set:
        remedy = "Create a configuration set with an event destination and set SES_CONFIGURATION_SET."
        yield Check("events", "fail", "no configuration set: SES would report no events", remedy)
        return
    found = _ask(
        client,
        "get_configuration_set_event_destinations",
        "ses:GetConfigurationSetEventDestinations",
        ConfigurationSetName=configuration_set,
    )
    if found is None:
        remedy = error_codes.SET_MISSING.remedy
        yield Check("events", "fail", f"there is no configuration set {configuration_set}", remedy)
    else:
        enabled = [one for one in found.get("EventDestinations") or [] if one.get("Enabled")]
        yield _destinations(configuration_set, enabled, topics)


def _destinations(configuration_set: str, enabled: Sequence[Answer], topics: Collection[str]) -> Check:
    to_topics = [one for one in enabled if _topic(one)]
    if not to_topics and any(one.get("EventBridgeDestination") for one in enabled):
        message = f"{configuration_set} tells EventBridge alone"
        remedy = "See that a rule takes the event's `detail` to SQS_QUEUE_URL; or use an SNS topic."
        return Check("events", "warn", message, remedy)
    if not to_topics:
        remedy = "Add an event destination to an SNS topic that reaches /ses-events or SQS_QUEUE_URL."
        message = f"{configuration_set} has no event destination: doubts never settle"
        return Check("events", "fail", message, remedy)
    believed = [one for one in to_topics if not topics or _topic(one) in topics]
    if not believed:
        told = ", ".join(sorted(map(_topic, to_topics)))
        message = f"{configuration_set} tells {told}, which is not in SNS_TOPIC_ARNS: we refuse its messages"
        return Check("events", "fail", message, f"Add {told} to SNS_TOPIC_ARNS.")
    missing = NEEDED_EVENTS.difference(*(one.get("MatchingEventTypes", ()) for one in believed))
    if missing:
        remedy = "Add these event types to the event destination."
        message = f"{configuration_set} does not report {', '.join(sorted(missing))}"
        return Check("events", "warn", message, remedy)
    return Check("events", "ok", f"{configuration_set} reports its events")


def _topic(destination: Answer) -> str:
    """Empty: somewhere else. CloudWatch only counts."""
    return str((destination.get("SnsDestination") or {}).get("TopicArn", ""))


# ── Asking ───────────────────────────────────────────────────────────────────────────────────────


def _ask(client: Any, operation: str, right: str, **about: str) -> Answer | None:
    """The answer; None where SES knows no such thing. `CheckSkipped` if we may not know."""
    try:
        answer: Answer = getattr(client, operation)(**about)
    except (ClientError, BotoCoreError) as error:
        if isinstance(error, ClientError) and error.response["Error"].get("Code") == "NotFoundException":
            return None
        raise no_answer(error, right) from error
    return answer
