"""What never left is sent again; what may have left is not."""

from __future__ import annotations

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mailout.adapters.ses import SesMode
from mailout.base.errors import MailoutError, SettingsError
from mailout.outbox.delivery.error_codes import remedy_for
from mailout.outbox.delivery.protocol import OutcomeKind
from tests.contract.ses.letters import mail, one
from tests.ports import free_port

BOTH = pytest.mark.parametrize("mode", list(SesMode))


def test_a_refused_connection_is_surely_not_sent(open_transport):
    nobody = f"http://127.0.0.1:{free_port()}"
    outcome = one(open_transport(endpoint_url=nobody).send([mail()]))
    assert (outcome.kind, outcome.code) == (OutcomeKind.TRANSIENT, "NETWORK_ERROR")


def test_a_name_that_does_not_resolve_is_surely_not_sent(open_transport, monkeypatch):
    def no_such_name(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    transport = open_transport(endpoint_url="http://ses.invalid")
    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)
    outcome = one(transport.send([mail()]))
    assert (outcome.kind, outcome.code) == (OutcomeKind.TRANSIENT, "NETWORK_ERROR")


@pytest.mark.parametrize("reply", [b"HTTP/1.1 400 Speak plainly\r\n\r\n", b""])
def test_a_failed_tls_handshake_is_surely_not_sent(reply, open_transport):
    def answer_one(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(reply)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(answer_one, server)
        url = f"https://127.0.0.1:{server.getsockname()[1]}"
        outcome = one(open_transport(endpoint_url=url).send([mail()]))
    assert (outcome.kind, outcome.code) == (OutcomeKind.TRANSIENT, "NETWORK_ERROR")


def test_a_handshake_that_hangs_is_surely_not_sent(open_transport):
    """urllib3 calls it a read timeout, like a lost answer: what left decides, not the name."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        outcome = one(open_transport(endpoint_url=url, call_limit=0.6).send([mail()]))
    assert (outcome.kind, outcome.code) == (OutcomeKind.TRANSIENT, "NETWORK_ERROR")


@pytest.mark.parametrize("part", ["head", "body"])
def test_an_answer_that_trickles_is_not_waited_for_longer_than_the_call_may_take(open_transport, part):
    """Every byte in time, and the whole of it after the lease: the message may be another's then."""
    body = b'{"MessageId": "late"}'
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n"
    at_once, slowly = (b"", head + body) if part == "head" else (head, body)

    def trickle(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(at_once)
            for byte in slowly:
                time.sleep(0.1)
                try:
                    connection.send(bytes([byte]))
                except OSError:
                    return  # it was given up, as it should

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(trickle, server)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        outcome = one(open_transport(endpoint_url=url, call_limit=1.0).send([mail()]))
    assert (outcome.kind, outcome.code) == (OutcomeKind.UNKNOWN, "SES_TIMEOUT")


def test_a_call_that_connects_too_late_does_not_leave_at_all(stub, open_transport, monkeypatch):
    """The sender's lease counts on it: after the limit nobody may still be handing over a mail."""
    connect = socket.getaddrinfo

    def slowly(*args: Any, **kwargs: Any) -> Any:
        time.sleep(0.2)
        return connect(*args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", slowly)
    outcome = one(open_transport(call_limit=0.3).send([mail()]))
    monkeypatch.undo()
    assert (outcome.kind, outcome.code) == (OutcomeKind.TRANSIENT, "NETWORK_ERROR")
    assert stub.accepted()["accepted"] == 0


def test_missing_credentials_stop_the_run_and_say_what_to_set(stub, open_transport, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    transport = open_transport()
    outcome = one(transport.send([mail()]))
    assert (outcome.kind, outcome.code) == (OutcomeKind.STOP, "SES_CREDENTIALS_MISSING")
    assert "AWS_ACCESS_KEY_ID" in remedy_for("SES_CREDENTIALS_MISSING")
    assert stub.calls() == []
    with pytest.raises(MailoutError) as raised:
        transport.account()
    assert raised.value.remedy == remedy_for("SES_CREDENTIALS_MISSING")


def test_a_missing_region_is_named_before_anything_is_sent(open_transport, monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(SettingsError, match="AWS_DEFAULT_REGION"):
        open_transport(endpoint_url=None)


def test_a_connection_forgotten_on_the_way_is_not_used_again(stub, open_transport):
    """Balancers forget idle connections without a word; a mail sent into one would be in doubt."""
    stub.script(stale_after=0.2)
    careful, trusting = open_transport(max_idle=0.1), open_transport(max_idle=60)
    for transport in (careful, trusting):
        assert one(transport.send([mail()])).kind is OutcomeKind.SENT
    time.sleep(0.4)
    assert one(trusting.send([mail(1)])).kind is OutcomeKind.UNKNOWN
    assert one(careful.send([mail(2)])).kind is OutcomeKind.SENT


def test_a_connection_that_ses_closed_is_not_used_again(stub, open_transport):
    stub.script(close_after=0.05)
    transport = open_transport(max_idle=60)
    assert one(transport.send([mail()])).kind is OutcomeKind.SENT
    while stub.open():
        time.sleep(0.01)
    assert one(transport.send([mail(1)])).kind is OutcomeKind.SENT


def test_several_threads_share_one_transport_without_losing_or_doubling_a_mail(stub, open_transport):
    stub.script({"do": "delay", "seconds": 0.01})
    transport = open_transport()
    with ThreadPoolExecutor(6) as threads:
        outcomes = list(threads.map(lambda number: one(transport.send([mail(number)])), range(60)))
    by_id = {message["id"]: message["to"] for message in stub.messages()}
    assert [by_id[outcome.provider_message_id or ""] for outcome in outcomes] == [
        mail(n).to for n in range(60)
    ]
    assert len(by_id) == 60


def test_a_lost_answer_of_one_thread_does_not_colour_another(stub, open_transport):
    stub.script({"do": "drop", "accept": True, "to": "reader-1@"}, {"do": "delay", "seconds": 0.1})
    transport = open_transport()
    ready = threading.Barrier(2)

    def thread(number: int) -> OutcomeKind:
        ready.wait()
        return one(transport.send([mail(number)])).kind

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(thread, range(2))) == [OutcomeKind.SENT, OutcomeKind.UNKNOWN]
