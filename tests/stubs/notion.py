"""A Notion over HTTP, in a process of its own: `python -m tests.stubs.notion [WORKSPACE.json]`.

It prints its address, serves what the workspace holds, and keeps every write. The workspace:

    {"databases": {id: {"data_source": id, "properties": {name: {"type": …}}}},
     "pages": {id: {"database": id, "properties": {…}}},
     "blocks": {parent id: [block with its `children` inside, …]},
     "refused": {block id: status},     children that cannot be asked for
     "files": {name: {"type": …, "base64": …}}}

`POST /control/script` takes a list of faults, each used up in order by the calls it matches:
{"method"?, "path"? (a part of it), "status"?, "headers"?, "body"?, "delay"?, "drop"?, "times"?}.
`POST /control/load` takes another workspace and forgets everything else; `POST /control/expire` ends the
hour of all file addresses; `POST /control/edit` is a person who edits a page; `GET /control/calls` lists
every call, `GET /control/comments` what stands beside each page.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.stubs.notion_content import Json, Refused, Workspace

TOKEN = "secret_for_tests"
API_VERSION = "2026-03-11"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # 40 ms a call otherwise
    workspace: Workspace

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PATCH = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the tests ask for the calls."""

    def _serve(self) -> None:
        address = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        parts = [part for part in address.path.split("/") if part]
        if parts[:1] == ["control"]:
            self._control(parts[1], raw)
        elif parts[:1] == ["files"]:
            self._file(parts[-1], parse_qs(address.query))
        else:
            self._api(parts, parse_qs(address.query), json.loads(raw or b"{}"))

    def _api(self, parts: list[str], query: dict[str, list[str]], body: Json) -> None:
        call = {"method": self.command, "path": self.path, "body": body}
        with self.workspace.lock:
            self.workspace.calls.append(call)
            fault = self._fault()
        if fault:
            time.sleep(fault.get("delay", 0))
            if fault.get("drop"):
                self.close_connection = True
                return
            if "status" in fault:
                self._send(fault["status"], str(fault.get("body", "")).encode(), fault.get("headers", {}))
                return
        try:
            self._authorise()
            if parts[:1] != ["v1"]:
                raise Refused(400, "invalid_request_url", "Invalid request URL.")
            with self.workspace.lock:
                answer = json.dumps(self.workspace.answer(self.command, parts[1:], query, body))
                answer = self.workspace.with_files(answer)
        except Refused as refused:
            error = {
                "object": "error",
                "status": refused.status,
                "code": refused.code,
                "message": str(refused),
            }
            self._send(refused.status, json.dumps(error).encode())
        else:
            self._send(200, answer.encode())

    def _authorise(self) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise Refused(401, "unauthorized", "API token is invalid.")
        if self.headers.get("Notion-Version") != API_VERSION:
            raise Refused(400, "missing_version", "Notion-Version header is not the one expected.")

    def _fault(self) -> Json | None:
        for fault in self.workspace.faults:
            fits = fault.get("method", self.command) == self.command and fault.get("path", "") in self.path
            if fits and fault.setdefault("times", 1) > 0:
                fault["times"] -= 1
                return fault
        return None

    def _control(self, verb: str, raw: bytes) -> None:
        with self.workspace.lock:
            if verb == "load":
                self.workspace.load(json.loads(raw))
            elif verb == "script":
                self.workspace.faults = json.loads(raw)
            elif verb == "expire":
                self.workspace.hour += 1
            elif verb == "edit":
                self.workspace.edit(**json.loads(raw))
            told = {"calls": self.workspace.calls, "comments": self.workspace.comments}
            answer = json.dumps(told.get(verb, {}))
        self._send(200, answer.encode())

    def _file(self, name: str, query: dict[str, list[str]]) -> None:
        file = self.workspace.files.get(name)
        if file is None:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        if query.get("X-Amz-Hour") != [str(self.workspace.hour)]:
            self._send(403, b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>")
            return
        self._send(200, base64.b64decode(file["base64"]), {"Content-Type": file["type"]})

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | (headers or {})).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    workspace = Workspace()
    if len(sys.argv) > 1:
        workspace.load(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    handler = type("WorkspaceHandler", (Handler,), {"workspace": workspace})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        workspace.address = f"http://127.0.0.1:{server.server_address[1]}"
        print(workspace.address, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
