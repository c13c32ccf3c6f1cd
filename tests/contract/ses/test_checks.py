"""What `doctor` finds out from SES, over HTTP and through the client it really uses; and from a real DNS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mailout.adapters.aws import AwsAccess
from mailout.adapters.ses.checks import examine
from mailout.insight.doctor.checks import Check
from mailout.outbox.delivery.error_codes import remedy_for
from tests.stubs.dns import name_server
from tests.stubs.ses import EVERY_EVENT, TOPIC
from tests.stubs.ses_control import SesStub

TOKENS = ("one", "two", "three")
SIGNED = {
    "DkimAttributes": {"Status": "SUCCESS", "SigningEnabled": True, "Tokens": TOKENS},
    "MailFromAttributes": {"MailFromDomain": "bounce.example.org", "MailFromDomainStatus": "SUCCESS"},
}
ZONE = {
    ("TXT", "bounce.example.org"): ["v=spf1 include:amazonses.com ~all"],
    ("TXT", "_dmarc.example.org"): ["v=DMARC1; p=none"],
    **{("CNAME", f"{one}._domainkey.example.org"): [f"{one}.dkim.amazonses.com."] for one in TOKENS},
}
Doctor = Callable[..., dict[str, Check]]


@pytest.fixture
def doctor(stub: SesStub) -> Iterator[Doctor]:
    client = AwsAccess().client("sesv2", endpoint_url=stub.url)
    with name_server(ZONE) as dns:

        def look(
            from_email: str = "news@example.org", set: str | None = "main", **more: Any
        ) -> dict[str, Check]:
            topics = more.get("topics", (TOPIC["TopicArn"],))
            own = more.get("transactional_from_email")
            return {one.name: one for one in examine(client, from_email, set, topics, dns.records(), own)}

        yield look
    client.close()


def test_an_account_in_order_passes(stub: SesStub, doctor: Doctor) -> None:
    stub.script(identities={"example.org": SIGNED})
    assert {name: check.level for name, check in doctor().items()} == dict.fromkeys(
        ["access", "account", "sandbox", "quota", "identity", "SPF", "DKIM", "DMARC", "events"], "ok"
    )


def sns(**changes: Any) -> dict[str, Any]:
    told = {"Name": "sns", "Enabled": True, "MatchingEventTypes": EVERY_EVENT, "SnsDestination": TOPIC}
    return told | changes


COUNTED_ONLY = {"Name": "cw", "Enabled": True, "MatchingEventTypes": ["SEND"], "CloudWatchDestination": {}}
BUS = {
    "Name": "eb",
    "Enabled": True,
    "MatchingEventTypes": EVERY_EVENT,
    "EventBridgeDestination": {"EventBusArn": "b"},
}
FOREIGN = {"TopicArn": "arn:aws:sns:us-east-1:000000000000:other"}
UNSIGNED = {"DkimAttributes": {"Status": "PENDING", "Tokens": ["four"]}}


@pytest.mark.parametrize(
    ("world", "name", "level"),
    [
        ({"account": {"SendingEnabled": False}}, "account", "fail"),
        ({"account": {"EnforcementStatus": "SHUTDOWN"}}, "account", "fail"),
        ({"account": {"EnforcementStatus": "PROBATION"}}, "account", "warn"),
        ({"account": {"ProductionAccessEnabled": False}}, "sandbox", "fail"),
        ({"quota": 0}, "quota", "warn"),
        ({"identities": {}}, "identity", "fail"),
        ({"identities": {"example.org": False}}, "identity", "fail"),
        ({"identities": {"news@example.org": True}}, "identity", "ok"),
        ({"identities": {"example.org": UNSIGNED}}, "DKIM", "warn"),
        ({"configuration_sets": {}}, "events", "fail"),
        ({"configuration_sets": {"main": []}}, "events", "fail"),
        ({"configuration_sets": {"main": [COUNTED_ONLY]}}, "events", "fail"),
        ({"configuration_sets": {"main": [sns(Enabled=False)]}}, "events", "fail"),
        ({"configuration_sets": {"main": [sns(SnsDestination=FOREIGN)]}}, "events", "fail"),
        ({"configuration_sets": {"main": [sns(MatchingEventTypes=["BOUNCE"])]}}, "events", "warn"),
        ({"configuration_sets": {"main": [BUS]}}, "events", "warn"),
        ({"denied": ["account"]}, "access", "warn"),
        ({"denied": ["identities"]}, "identity", "warn"),
        ({"denied": ["configuration-sets"]}, "events", "warn"),
    ],
)
def test_what_would_hold_up_a_mailout_is_named(
    world: dict[str, Any], name: str, level: str, stub: SesStub, doctor: Doctor
) -> None:
    stub.script(**world)
    check = doctor()[name]
    assert check.level == level
    assert bool(check.remedy) == (level != "ok")


def test_without_a_configuration_set_doubts_would_never_settle(doctor: Doctor) -> None:
    assert doctor(set=None)["events"].level == "fail"


def test_events_of_a_topic_that_is_not_believed_are_refused_so_doctor_names_it(
    stub: SesStub, doctor: Doctor
) -> None:
    stub.script(configuration_sets={"main": [sns(SnsDestination=FOREIGN)]})
    assert FOREIGN["TopicArn"] in doctor()["events"].remedy
    assert doctor(topics=())["events"].level == "ok"  # a queue alone: its own policy says who may write


def test_a_right_that_is_missing_hides_nothing_else(stub: SesStub, doctor: Doctor) -> None:
    """Keys that may only send are good practice; doctor says which right it lacks, and goes on."""
    stub.script(denied=["account", "identities"])
    found = doctor()
    assert "ses:GetAccount" in found["access"].remedy
    assert "ses:GetEmailIdentity" in found["identity"].remedy
    assert found["events"].level == "ok"


def test_a_domain_below_a_verified_one_may_send(stub: SesStub, doctor: Doctor) -> None:
    """SES lets it; a doctor who does not would send people to verify what needs no verifying."""
    stub.script(identities={"example.org": SIGNED})
    found = doctor("letters@news.example.org")
    assert (found["identity"].level, found["DKIM"].level) == ("ok", "ok")
    assert found["identity"].message == "example.org is verified"


OWN_FROM = "TRANSACTIONAL_FROM_EMAIL: identity"


def test_receipts_from_an_address_that_ses_does_not_know_are_found_before_the_first_is_sent(
    stub: SesStub, doctor: Doctor
) -> None:
    """The letters' own identity is in order, so nothing else would tell."""
    stub.script(identities={"news@example.org": True})
    found = doctor(transactional_from_email="receipts@example.org")
    assert (found["identity"].level, found[OWN_FROM].level) == ("ok", "fail")
    assert "receipts@example.org" in found[OWN_FROM].message
    assert found[OWN_FROM].remedy


def test_the_domain_that_receipts_come_from_is_looked_up_in_the_dns_too(
    stub: SesStub, doctor: Doctor
) -> None:
    stub.script(identities={"example.org": SIGNED, "shop.example.net": UNSIGNED})
    found = doctor(transactional_from_email="receipts@shop.example.net")
    assert (found["DKIM"].level, found["DMARC"].level) == ("ok", "ok")
    own = {name: found[f"TRANSACTIONAL_FROM_EMAIL: {name}"].level for name in ("identity", "DKIM", "DMARC")}
    assert own == {"identity": "ok", "DKIM": "warn", "DMARC": "warn"}


def test_one_domain_for_both_is_looked_up_once(stub: SesStub, doctor: Doctor) -> None:
    stub.script(identities={"example.org": SIGNED})
    found = doctor(transactional_from_email="receipts@example.org")
    assert [name for name in found if name.startswith("TRANSACTIONAL_FROM_EMAIL")] == [OWN_FROM]
    assert found[OWN_FROM].level == "ok"


def test_ses_answers_one_question_a_second_and_doctor_asks_again(stub: SesStub, doctor: Doctor) -> None:
    stub.script(busy=1)
    assert doctor()["access"].level == "ok"


def test_without_credentials_there_is_one_line_and_it_says_what_to_set(
    stub: SesStub, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    client = AwsAccess().client("sesv2", endpoint_url=stub.url)
    with name_server() as dns:
        (check,) = examine(client, "news@example.org", "main", (), dns.records())
    client.close()
    assert (check.level, check.remedy) == ("fail", remedy_for("SES_CREDENTIALS_MISSING"))
