"""Imported by the fork server alone: what mailout imports late and what boto3 reads of AWS is read once, not
by each of a thousand processes."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

import boto3
from botocore.loaders import JSONFileLoader

for _late in ("mailout.adapters.ses", "mailout.adapters.notion", "jsonschema"):
    import_module(_late)

_read = JSONFileLoader.load_file
_known: dict[str, Any] = {}


def _load_file(self: JSONFileLoader, file_path: str) -> Any:
    if file_path not in _known:
        _known[file_path] = _read(self, file_path)
    return _known[file_path]


cast(Any, JSONFileLoader).load_file = _load_file
boto3.client("sesv2", region_name="eu-west-1", aws_access_key_id="test", aws_secret_access_key="test").close()
