"""The parts fit together, whoever puts them together."""

from __future__ import annotations

from pathlib import Path

import pytest

from mailout.app import wiring
from mailout.base.clock import SystemClock
from mailout.base.settings import load_settings


@pytest.fixture
def aws_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose region stands in AWS's own files, where only boto3 finds it."""
    config = tmp_path / "aws-config"
    config.write_text("[default]\nregion = eu-north-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("aws_config")
@pytest.mark.parametrize("settings", [{}, {"AWS_REGION": "eu-west-3"}, {"MAILOUT_TRANSPORT": "folder"}])
def test_who_does_not_send_reads_the_quota_that_the_sender_writes(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    env = {"MAILOUT_HOME": str(tmp_path), "MAILOUT_TRANSPORT": "ses", "FROM_EMAIL": "news@example.org"}
    chosen = load_settings(env=env | settings)
    transport = wiring.make_transport(chosen, SystemClock())
    store = wiring.open_store(chosen)
    try:
        assert wiring.queue_forecast(chosen, store).scope == transport.scope
    finally:
        transport.close()
        store.close()
