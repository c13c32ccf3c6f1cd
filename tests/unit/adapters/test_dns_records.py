"""The DNS: what is there is read whole, what is not there is not there, and nobody waits for the dead."""

from __future__ import annotations

import socket

import dns.rcode
import dns.resolver
import pytest

from mailout.adapters.dns_records import DnsRecords
from mailout.base.errors import CheckSkipped
from tests.stubs.dns import name_server

LONG = "v=DKIM1; k=rsa; p=" + "A" * 600
ZONE = {
    ("TXT", "example.org"): ["v=spf1 include:amazonses.com ~all", "google-site-verification=x"],
    ("TXT", "key._domainkey.example.org"): [LONG],
    ("CNAME", "one._domainkey.example.org"): ["One.dkim.AmazonSES.com."],
}


def test_records_are_read_as_they_were_written() -> None:
    with name_server(ZONE) as server:
        dns_records = server.records()
        assert set(dns_records.txt("example.org")) == set(ZONE["TXT", "example.org"])
        assert dns_records.txt("key._domainkey.example.org") == [LONG]
        assert dns_records.cname("one._domainkey.example.org") == "one.dkim.amazonses.com"


def test_a_name_without_the_record_and_a_name_that_is_nowhere_have_none() -> None:
    with name_server(ZONE) as server:
        dns_records = server.records()
        assert dns_records.txt("one._domainkey.example.org") == []
        assert dns_records.txt("_dmarc.example.org") == []
        assert dns_records.cname("example.org") is None


def test_a_server_that_does_not_answer_is_asked_once() -> None:
    """`doctor` behind a firewall must not take a minute to say that it cannot ask."""
    with name_server(silent=True) as server:
        dns_records = server.records(seconds=0.2)
        for _ in range(3):
            with pytest.raises(CheckSkipped, match="could not be asked"):
                dns_records.txt("example.org")
        with pytest.raises(CheckSkipped):
            dns_records.cname("other.example.org")
    assert set(server.asked) == {("TXT", "example.org")}


@pytest.mark.parametrize("rcode", [dns.rcode.SERVFAIL, dns.rcode.REFUSED])
def test_a_server_that_refuses_has_said_nothing_of_the_records(rcode: dns.rcode.Rcode) -> None:
    """Else doctor would tell people to publish what is already there."""
    with name_server(ZONE, rcode) as server, pytest.raises(CheckSkipped, match="could not be asked"):
        server.records(seconds=2).txt("example.org")


def test_nobody_at_the_address_is_no_crash() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
    with pytest.raises(CheckSkipped):
        DnsRecords("127.0.0.1", port, seconds=0.5).txt("example.org")


def test_a_machine_that_knows_no_server_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def unconfigured(*_: object, **__: object) -> None:
        raise dns.resolver.NoResolverConfiguration

    monkeypatch.setattr(dns.resolver.Resolver, "read_resolv_conf", unconfigured)
    with pytest.raises(CheckSkipped, match="could not be asked"):
        DnsRecords().txt("example.org")
