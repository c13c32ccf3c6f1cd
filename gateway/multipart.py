"""Forms with parts: a browser's with a file, a script's `FormData`, and some one-click unsubscribes."""

from __future__ import annotations

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import Request

MULTIPART = b"multipart/form-data"
MOST_FIELDS = 500
MOST_CONTENT_TYPE_CHARACTERS = 300
"""A boundary has at most 70."""
MOST_PART_HEADERS, MOST_PART_HEADER_BYTES = 4, 2048


def kind_of(request: Request) -> tuple[bytes, bytes]:
    """The content type that a body says it has, and its boundary."""
    written = request.headers.get("content-type", "")
    if len(written) > MOST_CONTENT_TYPE_CHARACTERS:
        raise HTTPException(415)
    kind, options = parse_options_header(written)
    return kind, options.get(b"boundary", b"")


class Parts:
    """Collects the parts. A part in a part is not looked into: its text is the part's."""

    def __init__(self) -> None:
        self.fields: list[tuple[str, str]] = []
        self.files: list[tuple[str, bytes]] = []
        self._header, self._value, self._data = bytearray(), bytearray(), bytearray()
        self._options: dict[bytes, bytes] = {}

    @classmethod
    def read(cls, boundary: bytes, raw: bytes) -> Parts:
        """ValueError: these are no parts."""
        if not boundary:
            raise FormParserError("no boundary")
        parts = cls()
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": parts._begin,
                "on_header_field": lambda data, start, end: parts._header.extend(data[start:end]),
                "on_header_value": lambda data, start, end: parts._value.extend(data[start:end]),
                "on_header_end": parts._end_header,
                "on_part_data": lambda data, start, end: parts._data.extend(data[start:end]),
                "on_part_end": parts._end,
            },
            max_header_count=MOST_PART_HEADERS,
            max_header_size=MOST_PART_HEADER_BYTES,
        )
        parser.write(raw)
        parser.finalize()
        return parts

    def _begin(self) -> None:
        if len(self.fields) + len(self.files) >= MOST_FIELDS:
            raise FormParserError("too many parts")
        self._options = {}
        self._data = bytearray()

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._options = parse_options_header(bytes(self._value))[1]
        self._header, self._value = bytearray(), bytearray()

    def _end(self) -> None:
        name = self._options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" in self._options:
            self.files.append((self._options[b"filename"].decode("utf-8", "replace"), bytes(self._data)))
        else:
            self.fields.append((name, self._data.decode("utf-8", "replace")))
