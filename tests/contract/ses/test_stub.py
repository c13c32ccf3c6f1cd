"""The stub itself: it must not be what a failing test is about."""

from __future__ import annotations

import socket

import pytest

from mailout.adapters.ses import SesMode
from mailout.outbox.delivery.protocol import OutcomeKind
from tests.contract.ses.letters import mail, one

BOTH = pytest.mark.parametrize("mode", list(SesMode))


def test_the_stub_outlives_clients_that_die_in_the_middle_of_a_request(stub, open_transport):
    host, port = stub.url.removeprefix("http://").split(":")
    for part in (b"POST /v2/ema", b"POST /v2/email/outbound-emails HTTP/1.1\r\nContent-Length: 99\r\n\r\n{"):
        with socket.create_connection((host, int(port))) as client:
            client.sendall(part)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    assert one(open_transport().send([mail()])).kind is OutcomeKind.SENT
    assert len(stub.calls()) == 1


def test_the_stub_draws_the_same_misfortunes_from_the_same_seed(stub, open_transport):
    transport = open_transport()
    drawn = []
    for _ in range(2):
        stub.script({"do": "answer", "status": 500, "probability": 0.5}, seed=11)
        drawn.append([one(transport.send([mail(n)])).kind for n in range(20)])
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) == {OutcomeKind.SENT, OutcomeKind.UNKNOWN}
