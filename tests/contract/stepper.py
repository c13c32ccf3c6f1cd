"""One sender in a process of its own: `python -m tests.contract.stepper ADDRESS MAILOUT`.

Steps until nothing is left, sometimes withdrawing, and prints the messages it has "sent", one a line.
"""

from __future__ import annotations

import sys

from mailout.outbox.delivery.states import State
from tests.contract.scenes import Sender, buckets, result
from tests.contract.stores import open_address


def main(address: str, mailout_id: str) -> None:
    store = open_address(address)
    sender = Sender(store, mailout_id)
    while True:
        reply = sender.step(want=7, buckets=buckets(store.now()))
        if not reply.rows and reply.next_due_at is None:
            break
        never_left = [row.attempt for row in reply.rows[5:]] if sender.n % 3 == 0 else []
        sent = [row.attempt for row in reply.rows if row.attempt not in never_left]
        sender.step(results=[result(attempt, State.SENT) for attempt in sent], withdraw=never_left)
        for attempt in sent:
            print(attempt.id, flush=True)
    sender.step(close=True)
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
