"""The SES transport against a stub of SES over HTTP, through the real boto3 client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import botocore.session
import pytest

from mailout.adapters.ses import SesConfig, SesMode, SesTransport
from tests.stubs.ses_control import SesStub, ses_stub

Open = Callable[..., SesTransport]


@pytest.fixture(scope="module")
def running() -> Iterator[SesStub]:
    with ses_stub() as stub:
        yield stub


@pytest.fixture
def stub(running: SesStub) -> SesStub:
    running.reset()
    return running


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.fixture(autouse=True, scope="session")
def models_read_once() -> Iterator[None]:
    """boto3 reads SES's model for each session anew, which takes longer than most of these tests."""
    read: dict[Any, Any] = {}
    create = botocore.session.create_loader

    def with_what_was_read(search_path: str | None = None) -> Any:
        loader = create(search_path)
        loader._cache = read  # type: ignore[attr-defined]
        return loader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.session, "create_loader", with_what_was_read)
        yield


@pytest.fixture
def open_transport(running: SesStub) -> Iterator[Open]:
    opened: list[SesTransport] = []

    def open_one(mode: SesMode = SesMode.SINGLE, **changes: Any) -> SesTransport:
        settings = {"endpoint_url": running.url, **changes}
        opened.append(SesTransport(SesConfig(mode=mode, **settings)))
        return opened[-1]

    yield open_one
    for transport in opened:
        transport.close()


@pytest.fixture(scope="module")
def shared(running: SesStub) -> Iterator[dict[SesMode, SesTransport]]:
    """One transport a mode, for tests that need no settings of their own: making a client takes longer."""
    made: dict[SesMode, SesTransport] = {}
    yield made
    for transport in made.values():
        transport.close()


@pytest.fixture
def transport(mode: SesMode, shared: dict[SesMode, SesTransport], stub: SesStub) -> SesTransport:
    if mode not in shared:
        shared[mode] = SesTransport(SesConfig(mode=mode, endpoint_url=stub.url))
    return shared[mode]
