"""Several processes on one store: what one of them begins is nobody else's."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from mailout.outbox.delivery import outbox_rows
from mailout.outbox.queue.mailout import MailoutOutcome
from mailout.store import Store
from tests.contract.scenes import assert_ledger, mailout
from tests.contract.stores import StoreFactory

ROOT = Path(__file__).parents[2]
PEOPLE = [f"p{number:03}@example.org" for number in range(400)]


def test_three_senders_send_everything_once(store: Store, factory: StoreFactory) -> None:
    """With real processes: a message begun by two is a letter sent twice."""
    id = mailout(store, *PEOPLE)
    command = [sys.executable, "-m", "tests.contract.stepper", factory.address(), id]
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    ends = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], [errors for _, errors in ends]
    sent = Counter(line for output, _ in ends for line in output.split())
    assert sent == {row["id"]: 1 for row in outbox_rows.messages(store, id)}
    assert {row["attempts"] for row in outbox_rows.messages(store, id)} == {1}
    assert_ledger(store, id)
    done = store.complete(id)
    assert (done.outcome, done.ledger.sent) == (MailoutOutcome.SENT, len(PEOPLE))
