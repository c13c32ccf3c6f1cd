"""SPF, DKIM and DMARC, asked of a real name server: what keeps letters out of the spam folder."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mailout.insight.doctor.checks import Check
from mailout.insight.doctor.mail_domain import MailDomain, domain_checks, with_parents
from tests.stubs.dns import Zone, name_server

SES = "amazonses.com"
DOMAIN = MailDomain(
    name="example.org",
    provider=SES,
    signed_as="example.org",
    signing=True,
    keys={f"{token}._domainkey.example.org": f"{token}.dkim.{SES}" for token in ("one", "two", "three")},
    mail_from="bounce.example.org",
)
GOOD = {
    ("TXT", "bounce.example.org"): [f"v=spf1 include:{SES} ~all"],
    ("TXT", "_dmarc.example.org"): ["v=DMARC1; p=reject; rua=mailto:dmarc@example.org"],
    **{("CNAME", name): [f"{target}."] for name, target in DOMAIN.keys.items()},
}


def found(zone: Zone, domain: MailDomain = DOMAIN) -> dict[str, Check]:
    with name_server(zone) as server:
        return {check.name: check for check in domain_checks(domain, server.records())}


def levels(zone: Zone, domain: MailDomain = DOMAIN) -> dict[str, str]:
    return {name: check.level for name, check in found(zone, domain).items()}


def test_a_domain_in_order_is_in_order() -> None:
    checks = found(GOOD)
    assert {name: check.level for name, check in checks.items()} == {"SPF": "ok", "DKIM": "ok", "DMARC": "ok"}
    assert "p=reject" in checks["DMARC"].message


def test_a_bare_domain_is_told_what_to_publish_and_where() -> None:
    checks = found({}, replace(DOMAIN, signing=False))
    assert {check.level for check in checks.values()} == {"warn"}
    assert f'bounce.example.org: "v=spf1 include:{SES} ~all"' in checks["SPF"].remedy
    assert "_dmarc.example.org" in checks["DMARC"].remedy
    assert "one._domainkey.example.org" in checks["DKIM"].message


@pytest.mark.parametrize(
    ("records", "level"),
    [
        ([f"v=spf1 +include:{SES} -all"], "ok"),
        ([f"V=SPF1 Include:{SES.upper()} -all"], "ok"),
        (["v=spf1 include:_spf.example.org -all"], "ok"),  # which includes it
        (["v=spf1 redirect=_spf.example.org"], "ok"),
        (["v=spf1 include:loop.example.org -all"], "warn"),
        (["v=spf1 mx -all"], "warn"),
        ([f"v=spf1 -include:{SES} ~all"], "warn"),
        ([f"v=spf10 include:{SES} -all"], "warn"),
        ([f"v=spf1 include:not{SES} -all"], "warn"),
        ([f"v=spf1 include:{SES} -all", "v=spf1 mx -all"], "warn"),  # two: none counts
    ],
)
def test_spf_is_read_as_those_who_receive_mail_read_it(records: list[str], level: str) -> None:
    others = {
        ("TXT", "_spf.example.org"): [f"v=spf1 include:{SES} -all"],
        ("TXT", "loop.example.org"): ["v=spf1 include:loop.example.org include:bounce.example.org -all"],
    }
    assert levels(GOOD | others | {("TXT", "bounce.example.org"): records})["SPF"] == level


def test_without_a_mail_from_domain_of_its_own_dmarc_rests_on_dkim() -> None:
    """SES's own then takes the bounces: no fault while the letters are signed."""
    plain = replace(DOMAIN, mail_from=None)
    assert levels(GOOD, plain)["SPF"] == "ok"
    assert levels(GOOD, replace(plain, signing=False))["SPF"] == "warn"
    mentioned = GOOD | {("TXT", "example.org"): [f"v=spf1 include:{SES} -all"]}
    assert levels(mentioned, replace(plain, signing=False))["SPF"] == "ok"


def test_keys_that_have_gone_are_noticed_before_ses_notices() -> None:
    (gone, *_) = DOMAIN.keys
    check = found({key: value for key, value in GOOD.items() if key[1] != gone})["DKIM"]
    assert check.level == "warn"
    assert gone in check.message
    pointing_elsewhere = GOOD | {("CNAME", gone): ["parked.example.net."]}
    assert levels(pointing_elsewhere)["DKIM"] == "warn"


def test_keys_that_ses_has_not_seen_yet_are_waited_for() -> None:
    check = found(GOOD, replace(DOMAIN, signing=False))["DKIM"]
    assert (check.level, check.remedy[:4]) == ("warn", "Wait")


@pytest.mark.parametrize(
    ("record", "level"), [("v=DKIM1; k=rsa; p=MIIB", "ok"), ("nothing of the kind", "warn")]
)
def test_a_key_of_ones_own_is_a_text(record: str, level: str) -> None:
    own = replace(DOMAIN, keys={"mine._domainkey.example.org": None})
    assert levels(GOOD | {("TXT", "mine._domainkey.example.org"): [record]}, own)["DKIM"] == level


@pytest.mark.parametrize("signing", [True, False])
def test_an_address_without_a_domain_has_ses_s_word_alone(signing: bool) -> None:
    check = found(GOOD, replace(DOMAIN, keys={}, signing=signing))["DKIM"]
    assert (check.level, bool(check.remedy)) == (("ok", False) if signing else ("warn", True))


@pytest.mark.parametrize(
    ("records", "level"),
    [
        (["v=DMARC1; p=none"], "ok"),
        (["v=DMARC1;p=Quarantine"], "ok"),
        (["v=DMARC1"], "warn"),
        (["v=DMARC1; p=maybe"], "warn"),
        (["v=DMARC1; p=none", "v=DMARC1; p=reject"], "warn"),
        (["something else"], "warn"),
    ],
)
def test_a_policy_that_nobody_understands_is_none(records: list[str], level: str) -> None:
    assert levels(GOOD | {("TXT", "_dmarc.example.org"): records})["DMARC"] == level


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("v=DMARC1; p=none; sp=reject", "p=reject at _dmarc.example.org"),
        ("v=DMARC1; p=none", "p=none at _dmarc.example.org"),
        ("v=DMARC1; p=none; adkim=s", "asks for a strict match"),
    ],
)
def test_a_domain_below_another_goes_by_the_other_s_policy(record: str, message: str) -> None:
    below = replace(DOMAIN, name="news.example.org")
    assert message in found(GOOD | {("TXT", "_dmarc.example.org"): [record]}, below)["DMARC"].message


def test_where_the_dns_cannot_be_asked_ses_s_word_on_dkim_stands() -> None:
    with name_server(silent=True) as server:
        checks = {one.name: one for one in domain_checks(DOMAIN, server.records(seconds=0.2))}
    assert {name: check.level for name, check in checks.items()} == {
        "SPF": "warn",
        "DKIM": "ok",
        "DMARC": "warn",
    }
    assert "could not be asked" in checks["SPF"].message
    with name_server(silent=True) as server:
        unsigned = {
            one.name: one for one in domain_checks(replace(DOMAIN, signing=False), server.records(0.2))
        }
    assert unsigned["DKIM"].level == "warn"


def test_names_above_a_name_end_where_nobody_owns_them() -> None:
    assert with_parents("a.b.example.org") == ["a.b.example.org", "b.example.org", "example.org"]
