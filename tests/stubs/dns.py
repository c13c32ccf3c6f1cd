"""A real name server, one that knows a handful of records: UDP on this machine, in a thread of the test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from mailout.adapters.dns_records import DnsRecords

Zone = Mapping[tuple[str, str], Sequence[str]]
"""`{("TXT", "example.org"): ["v=spf1 -all"]}`; a name that is nowhere in it does not exist."""


class NameServer:
    def __init__(
        self, zone: Zone, rcode: dns.rcode.Rcode = dns.rcode.NOERROR, *, silent: bool = False
    ) -> None:
        self._zone, self._rcode, self._silent = zone, rcode, silent
        self.asked: list[tuple[str, str]] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    def records(self, seconds: float = 20.0) -> DnsRecords:
        """Our side of it. The patience is for slow machines; a silent server needs less."""
        return DnsRecords("127.0.0.1", self.port, seconds=seconds)

    def serve(self) -> None:
        while True:
            data, whence = self._socket.recvfrom(4096)
            if not data:
                return
            question = dns.message.from_wire(data)
            name = question.question[0].name.to_text(omit_final_dot=True).lower()
            kind = dns.rdatatype.to_text(question.question[0].rdtype)
            self.asked.append((kind, name))
            if not self._silent:
                self._socket.sendto(self._answer(question, kind, name).to_wire(), whence)

    def _answer(self, question: dns.message.Message, kind: str, name: str) -> dns.message.Message:
        answer = dns.message.make_response(question)
        answer.flags |= dns.flags.RA
        answer.set_rcode(self._rcode)
        if self._rcode == dns.rcode.NOERROR and not any(known == name for _, known in self._zone):
            answer.set_rcode(dns.rcode.NXDOMAIN)
        values = [_quoted(value) if kind == "TXT" else value for value in self._zone.get((kind, name), ())]
        if values:
            answer.answer.append(dns.rrset.from_text_list(f"{name}.", 60, "IN", kind, values))
        return answer

    def stop(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", ("127.0.0.1", self.port))

    def close(self) -> None:
        self._socket.close()


def _quoted(value: str) -> str:
    """As strings of at most 255 letters, which is how long records are written."""
    return " ".join(f'"{value[n : n + 255]}"' for n in range(0, len(value), 255))


@contextmanager
def name_server(
    zone: Zone | None = None, rcode: dns.rcode.Rcode = dns.rcode.NOERROR, *, silent: bool = False
) -> Iterator[NameServer]:
    server = NameServer(zone or {}, rcode, silent=silent)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
        server.close()
