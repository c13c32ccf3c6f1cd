"""Two machines by mistake or by design."""

from __future__ import annotations

import bisect
import signal
from pathlib import Path

from mailout.outbox.queue.mailout import MailoutOutcome
from tests.chaos.senders import PATIENCE, make_home, nobody_twice_and_nobody_lost, wait_for


def test_two_senders_share_one_mailout_and_one_rate(tmp_path: Path) -> None:
    """Two machines by mistake or by design: every message once, and no faster than agreed."""
    rate = 50
    home = make_home(tmp_path / "home", 200, SEND_RATE_PER_SEC=str(rate), LOCK_SECONDS="60")
    both = [home.send()]
    assert wait_for(lambda: home.senders() == 1, both[0])
    home.freeze(both[0])  # however long the other takes to start
    both.append(home.send())
    assert wait_for(lambda: home.senders() == 2, both[1])
    both[0].send_signal(signal.SIGCONT)
    for process in both:
        process.communicate(timeout=PATIENCE)
    assert [process.returncode for process in both] == [0, 0]
    nobody_twice_and_nobody_lost(home, home.accepted(), unknown=0)
    assert home.mailout().outcome is MailoutOutcome.SENT
    store = home.store()
    workers = store.db.read("SELECT count(DISTINCT session_id) AS n FROM email_outbox")[0]["n"]
    store.close()
    assert workers == 2
    moments = sorted(path.stat().st_mtime for path in home.files())
    fullest = max(bisect.bisect_left(moments, start + 1) - i for i, start in enumerate(moments))
    # Starts are exact (test_sender); a file appears a little after its start: one more for each process.
    assert fullest <= rate + 1 + len(both)
