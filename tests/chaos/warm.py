"""Imported by the fork server alone: boto3's descriptions of AWS are read once, not by each of a thousand."""

from __future__ import annotations

from typing import Any, cast

import boto3
from botocore.loaders import JSONFileLoader

_read = JSONFileLoader.load_file
_known: dict[str, Any] = {}


def _load_file(self: JSONFileLoader, file_path: str) -> Any:
    if file_path not in _known:
        _known[file_path] = _read(self, file_path)
    return _known[file_path]


cast(Any, JSONFileLoader).load_file = _load_file
boto3.client("sesv2", region_name="eu-west-1", aws_access_key_id="test", aws_secret_access_key="test").close()
