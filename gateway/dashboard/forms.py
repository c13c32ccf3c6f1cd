"""What a form sends: fields, and at most one file."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from gateway.answers import read_body

MOST = 64 * 1024
MOST_FIELDS = 500


@dataclass(frozen=True, slots=True)
class Form:
    fields: list[tuple[str, str]] = field(default_factory=list)
    file_name: str = ""
    file: bytes = b""

    def get(self, name: str) -> str:
        return next((value for one, value in self.fields if one == name), "")

    def beginning(self, prefix: str) -> dict[str, str]:
        """Fields whose names begin so, by the rest of their names."""
        return {name.removeprefix(prefix): value for name, value in self.fields if name.startswith(prefix)}


async def read_form(request: Request, most: int = MOST) -> Form:
    kind = request.headers.get("content-type", "")
    raw = await read_body(request, most)
    if kind.startswith("multipart/form-data"):
        return _parts(kind, raw)
    try:
        fields = parse_qsl(raw.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except (UnicodeDecodeError, ValueError):
        raise HTTPException(400) from None
    return Form(fields)


def _parts(kind: str, raw: bytes) -> Form:
    message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + raw)
    fields, name, data = [], "", b""
    for part in message.iter_parts() if message.is_multipart() else ():
        payload = part.get_payload(decode=True)
        content = payload if isinstance(payload, bytes) else b""
        called = str(part.get_param("name", "", header="content-disposition"))
        if part.get_filename() is not None:
            name, data = part.get_filename() or "", content
        else:
            fields.append((called, content.decode("utf-8", "replace")))
    return Form(fields, name, data)
