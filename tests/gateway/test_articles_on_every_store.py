"""`POST /articles/send` over every store: a wrong password is 401, and what the right one gets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mailout.base import ids
from mailout.outbox.queue import queue_rows
from mailout.store import Store
from tests.clocks import FakeClock
from tests.contract.articles import BATCH, settle_in
from tests.contract.stores import FACTORIES
from tests.gateway.conftest import Open

PASSWORD = "a password for these tests"
WANTED = {"campaign_tag": "spring", "article_key": "budget", "send_batch_id": BATCH}


@pytest.fixture(params=list(FACTORIES))
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    made = FACTORIES[request.param](tmp_path)
    yield made.make(clock)
    made.close()


def test_a_wrong_admin_password_is_401_and_the_right_one_is_heard(open_gateway: Open, store: Store) -> None:
    settle_in(store)
    gateway = open_gateway(admin_password=PASSWORD, mailout_transport="ses")

    def post(password: str, **more: object) -> tuple[int, object]:
        answer = gateway.post(
            "/articles/send", json=WANTED | more, headers={"Authorization": f"Bearer {password}"}
        )
        return answer.status_code, answer.json().get("data") or answer.json()["code"]

    assert post("wrong") == (401, "UNAUTHORIZED")
    nobody = {"audience_filter": {"state": "TX"}}
    assert post(PASSWORD, **nobody) == (200, {"sent": 0, "skipped": "NO_RECIPIENTS"})
    assert queue_rows.asked(store, 0) == []
    id = ids.article_id("spring", BATCH)
    assert post(PASSWORD) == (202, {"mailout_id": id, "new": True})
    assert post(PASSWORD) == (202, {"mailout_id": id, "new": False})
    assert len(queue_rows.asked(store, 0)) == 1
