"""Real servers for the SES client: plain, with TLS, or behind a proxy that opens a tunnel."""

from __future__ import annotations

import datetime
import socket
import ssl
import threading
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BODY = b'{"MessageId": "1"}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


class Authority:
    """Issues certificates: its own file is the CA bundle."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        itself = self._builder(self._name, self._key, days=1)
        itself = itself.add_extension(x509.BasicConstraints(True, 0), True)
        self.bundle = folder / f"{name}.pem"
        certificate = itself.sign(self._key, hashes.SHA256())
        self.bundle.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def server_context(self, *hosts: str, days: int = 1) -> ssl.SSLContext:
        """For a server that these names are its own; negative `days`: its certificate has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [
            x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host) for host in hosts
        ]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0])])
        builder = self._builder(subject, key, days).add_extension(x509.SubjectAlternativeName(names), False)
        certificate = builder.sign(self._key, hashes.SHA256())
        file = self._folder / f"{certificate.serial_number}.pem"
        form, no_password = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        file.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(serialization.Encoding.PEM, form, no_password)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _builder(self, subject: x509.Name, key: Any, days: int) -> x509.CertificateBuilder:
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(end - datetime.timedelta(days=2))
            .not_valid_after(end)
        )


class Server:
    """Answers every request with a message id. As a proxy, it is itself what is behind the tunnel."""

    def __init__(
        self,
        tls: ssl.SSLContext | None = None,
        *,
        is_proxy: bool = False,
        proxy_tls: ssl.SSLContext | None = None,
        tunnel_answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n",
    ) -> None:
        self._tunnel_answer = tunnel_answer
        self._tls, self._is_proxy, self._proxy_tls = tls, is_proxy, proxy_tls
        self.tunnels: list[bytes] = []  # heads of CONNECT
        self.requests: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._talk, args=[connection], daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        connection.settimeout(30)
        try:
            if self._proxy_tls is not None:
                connection = self._proxy_tls.wrap_socket(connection, server_side=True)
            if self._is_proxy:
                self.tunnels.append(_head(connection))
                connection.sendall(self._tunnel_answer)
            if self._tls is not None and isinstance(connection, ssl.SSLSocket):
                connection = _inside(connection)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
            while True:
                self.requests.append(_request(connection))
                connection.sendall(ANSWER)
        except OSError:  # the other side has closed, or trusts nobody here
            connection.close()

    def close(self) -> None:
        with suppress(OSError):  # wakes `accept`: it would go on with whoever gets this number next
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


def _inside(outer: ssl.SSLSocket) -> socket.socket:
    """What comes through TLS, as a plain socket: Python can wrap no other in TLS again."""
    near, far = socket.socketpair()
    for source, target in ((outer, far), (far, outer)):
        threading.Thread(target=_copy, args=[source, target], daemon=True).start()
    return near


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError), source:
        while data := source.recv(65_536):
            target.sendall(data)


def _head(connection: Any) -> bytes:
    data = b""
    while not data.endswith(b"\r\n\r\n"):
        if not (more := connection.recv(1)):
            raise ConnectionError("closed")
        data += more
    return data


def _request(connection: Any) -> bytes:
    head = _head(connection)
    size = int(field(head, "Content-Length"))
    body = b""
    while len(body) < size:
        body += connection.recv(size - len(body))
    return head + body


def field(request: bytes, name: str) -> str:
    """A header's value; empty: it has none."""
    for line in request.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]:
        found, _, value = line.partition(": ")
        if found.lower() == name.lower():
            return value
    return ""
