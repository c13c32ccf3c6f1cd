"""What users fear most: the same letter twice, or half the list left out after a crash."""

from __future__ import annotations

import bisect
import random
import signal
import time
from pathlib import Path

from mailout.queue.mailout import MailoutOutcome, Status
from tests.chaos.senders import PATIENCE, end, make_home, nobody_twice_and_nobody_lost, wait_for

RATE = 100


def test_killed_at_thirty_moments_nobody_gets_it_twice_and_nobody_is_lost(tmp_path: Path) -> None:
    """kill -9 at the start, while freezing, between messages and within them; then the same command."""
    chance = random.Random(20261115)
    homes = [make_home(tmp_path / "0", 300, SEND_RATE_PER_SEC=str(RATE))]
    kills = 0
    while kills < 30:
        home = homes[-1]
        process = home.send()
        if kills % 3 == 0:
            time.sleep(chance.uniform(0.3, 1.2))  # anywhere in its start
        else:
            target = len(home.files()) + chance.randint(1, 10)
            wait_for(lambda home=home, target=target: len(home.files()) >= target, process)
            time.sleep(chance.uniform(0, 0.02))
        if process.poll() is None:
            kills += 1
        else:  # this mailout was over before the kill: the next moments need another
            homes.append(make_home(tmp_path / str(len(homes)), 300, SEND_RATE_PER_SEC=str(RATE)))
        end(process, signal.SIGKILL)
    for home in homes:
        if home is homes[-1]:
            home.finish()
        nobody_twice_and_nobody_lost(home, home.accepted(), unknown=RATE)


def test_terminated_it_ends_cleanly_and_goes_on(tmp_path: Path) -> None:
    """A deploy or a reboot asks politely: nothing may be in doubt afterwards."""
    home = make_home(tmp_path / "home", 200, SEND_RATE_PER_SEC="50")
    for stop_at in (20, 60, 100):
        process = home.send()
        assert wait_for(lambda stop_at=stop_at: len(home.files()) >= stop_at, process)
        end(process, signal.SIGTERM)
        ledger = home.mailout().ledger
        assert (ledger.in_flight, ledger.unknown) == (0, 0)
        assert ledger.sent == len(home.files())
    home.settings = {**home.settings, "SEND_RATE_PER_SEC": "0"}
    assert home.finish() == 0
    nobody_twice_and_nobody_lost(home, home.accepted(), unknown=0)


def test_a_frozen_sender_that_wakes_after_it_was_given_up(tmp_path: Path) -> None:
    """SIGSTOP, as a suspended laptop does it: others take over; who wakes must not send stale mail."""
    home = make_home(tmp_path / "home", 120, SEND_RATE_PER_SEC="60", LOCK_SECONDS="3")
    frozen = home.send()
    assert wait_for(lambda: len(home.files()) >= 10, frozen)
    home.freeze(frozen)
    home.finish()
    assert home.mailout().status is Status.COMPLETED
    frozen.send_signal(signal.SIGCONT)
    frozen.communicate(timeout=PATIENCE)
    # What it held and had not called is withdrawn, however late; the same command sends it.
    if home.mailout().status is not Status.COMPLETED:
        home.finish()
    nobody_twice_and_nobody_lost(home, home.accepted(), unknown=1)


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


def test_a_sender_killed_for_good_elsewhere_leaves_its_messages_unknown(tmp_path: Path) -> None:
    """Its journal is on a machine that is gone: what it had begun is unknown, never sent again by itself."""
    home = make_home(tmp_path / "home", 100, SEND_RATE_PER_SEC="50", LOCK_SECONDS="3")
    process = home.send()
    assert wait_for(lambda: len(home.files()) >= 10, process)
    end(process, signal.SIGKILL)
    for journal in (tmp_path / "home" / "journal").rglob("*"):
        if journal.is_file():
            journal.unlink()
    assert home.finish() == 1  # completed, and not everybody is known to have it
    nobody_twice_and_nobody_lost(home, home.accepted(), unknown=51)
    assert home.mailout().ledger.unknown > 0
