"""S3 and Supabase Storage over HTTP, as far as keeping media goes: `python -m tests.stubs.objects`.

S3: `HEAD` and `PUT /BUCKET/KEY`. Supabase: `HEAD` and `POST /storage/v1/object/BUCKET/KEY`, and
`GET /storage/v1/object/public/BUCKET/KEY`. A bucket called `closed` refuses everything, `broken` fails.
`GET /control/objects` tells what is kept, `GET /control/calls` what was asked.
"""

from __future__ import annotations

import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STORAGE = "/storage/v1/object/"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    objects: dict[str, dict[str, Any]]
    calls: list[dict[str, Any]]

    def do_GET(self) -> None:
        if self.path == "/control/objects":
            self._answer(200, json.dumps(self.objects).encode())
        elif self.path == "/control/calls":
            self._answer(200, json.dumps(self.calls).encode())
        else:
            self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    do_PUT = do_POST = do_HEAD

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the tests ask for the calls."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        supabase = path.startswith(STORAGE)
        key = path.removeprefix(STORAGE).removeprefix("public/").lstrip("/")
        self.calls.append({"method": self.command, "key": key, "who": self.headers.get("Authorization")})
        if key.startswith("closed/"):
            self._answer(403, b'{"message": "new row violates row-level security policy"}')
        elif key.startswith("broken/"):
            self._answer(500, b"")
        elif self.command in ("HEAD", "GET"):
            self._answer(200 if key in self.objects else 404)
        elif supabase and key in self.objects:
            self._answer(400, b'{"statusCode": "409", "error": "Duplicate", "message": "It is there"}')
        else:
            self.objects[key] = {
                "type": self.headers.get("Content-Type"),
                "cache": self.headers.get("Cache-Control"),
                "sha256": hashlib.sha256(body).hexdigest(),
            }
            self._answer(200, b'{"Key": ""}' if supabase else b"")

    def _answer(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def main() -> None:
    handler = type("ObjectsHandler", (Handler,), {"objects": {}, "calls": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        print(json.dumps({"url": f"http://127.0.0.1:{server.server_address[1]}"}), flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
