"""A real gateway process, and what one request costs it: bytes in, the answer and its CPU seconds out."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port

PATIENCE = 300.0
API_TOKEN = "the token of these tests"
ADMIN = "the administrator's words"
SETTINGS = {
    "API_TOKEN": API_TOKEN,
    "ADMIN_PASSWORD": ADMIN,
    "EDITOR_PASSWORD": "the editor's own words",
    "NOTION_WEBHOOK_TOKEN": "secret_of_notion_for_tests",
    "NOTION_AUTOMATION_SECRET": "the automation's secret",
    "UNSUBSCRIBE_SECRET": "the secret of these tests",
    "SNS_TOPIC_ARNS": "arn:aws:sns:eu-west-1:123456789012:events",
    "TRUSTED_PROXIES": "127.0.0.1",  # so that each request can come from an address of its own
}


@dataclass
class Answer:
    status: int  # 0: the connection was closed without one
    text: str
    cpu_seconds: float


class Gateway:
    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self._log = log
        self._addresses = 0

    @property
    def log(self) -> str:
        return self._log.read_text()

    def next_address(self) -> bytes:
        """Each as far from the others as /64 networks are: no limit by address hides what comes after it."""
        self._addresses += 1
        return b"X-Forwarded-For: 2001:db8:%x:%x::1\r\n" % divmod(self._addresses, 65536)

    def exchange(self, raw: bytes) -> bytes:
        told = b""
        with (
            suppress(ConnectionError),
            socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as connection,
        ):
            with suppress(ConnectionError):  # it may have refused by now: its answer can still be read
                connection.sendall(raw)
            while part := connection.recv(65536):
                told += part
                if b"content-type: text/event-stream" in told:
                    break  # it has no end
        return told

    def ask(
        self, method: str, target: str, headers: bytes = b"", body: bytes = b"", *, address: bytes = b""
    ) -> Answer:
        first = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".encode("latin-1")
        length = b"Content-Length: %d\r\n" % len(body) if body else b""
        before = self.cpu_seconds()
        told = self.exchange(first + (address or self.next_address()) + length + headers + b"\r\n" + body)
        spent = self.cpu_seconds() - before
        found = re.match(rb"HTTP/1\.1 (\d{3})", told)
        return Answer(int(found[1]) if found else 0, told.decode("latin-1"), spent)

    def cpu_seconds(self) -> float:
        """Of the process itself: a busy machine makes nothing dearer."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        if stat.exists():
            fields = stat.read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        told = subprocess.check_output(["ps", "-o", "time=", "-p", str(self.process.pid)], text=True)
        minutes, seconds = told.strip().split(":")[-2:]
        return 60 * float(minutes) + float(seconds)


@contextmanager
def running_gateway(home: Path) -> Iterator[Gateway]:
    port, log = free_port(), home / "log"
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "MAILOUT_HOME": str(home / "mailout"), **SETTINGS}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", "gateway", "--port", str(port)],
            stdout=file,
            stderr=file,
            env=env,
            cwd=Path(__file__).parents[2],
        )
        try:
            gateway = Gateway(process, port, log)
            ends = time.monotonic() + PATIENCE
            while gateway.ask("GET", "/health").status != 200:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < ends, log.read_text()
                time.sleep(0.1)
            yield gateway
        finally:
            process.terminate()
            process.wait()
