"""The whole job on Supabase, by the real commands: people in, a letter out, whatever is killed meanwhile."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from mailout.outbox.delivery.states import State
from mailout.outbox.queue.mailout import MailoutOutcome, Status
from tests.chaos.senders import PATIENCE, end, nobody_twice_and_nobody_lost, wait_for
from tests.contract.postgres import empty
from tests.e2e.supabase_lite.machines import Machine, accepted_by, fullest_second, machine
from tests.e2e.supabase_lite.server import Lite

RATE = 50

NewMachine = Callable[..., Machine]


@pytest.fixture
def new_machine(lite: Lite, tmp_path: Path) -> NewMachine:
    """Another machine on the same store."""
    empty(lite.database)
    return lambda name, recipients=0, **settings: machine(lite, tmp_path / name, recipients, **settings)


def test_people_in_a_letter_out_and_never_again(new_machine: NewMachine) -> None:
    """The first day of anybody who uses it for real; and the second, when the command is run once more."""
    here = new_machine("here", SEND_RATE_PER_SEC="0")
    people = here.path / "people.csv"
    people.write_text(
        "email,status,lists\nAna@Example.org,in,news\nbo@example.org,in,news|events\nleft@example.org,out,\n"
        "nobody,in,\n",
        encoding="utf-8",
    )
    told = ("--mail-if", "status=in", "--no-mail-if", "status=out")
    imported = here("subscribers", "import", people, *told, "--json")
    assert imported.code == 0, imported.err
    assert (imported.data["added"], imported.data["dropped"]) == (3, {"no_at": 1})
    sent = here("send", here.letter, "--direct", "--json")
    assert sent.code == 0, sent.err
    assert here.accepted() == {"ana@example.org": 1, "bo@example.org": 1}
    again = here("send", here.letter, "--direct")
    assert (again.code, "mailout_already_sent" in again.one_line) == (1, True)
    elsewhere = new_machine("elsewhere")
    assert elsewhere("send", elsewhere.letter, "--direct").code == 1
    assert accepted_by([here, elsewhere]) == {"ana@example.org": 1, "bo@example.org": 1}
    assert here.states() == {"ana@example.org": State.SENT, "bo@example.org": State.SENT}
    assert here("subscribers", "show", "ANA@example.org", "--json").data["lists"][0]["list_key"] == "news"


def test_people_whom_others_wrote_into_the_table_get_their_mail(lite: Lite, new_machine: NewMachine) -> None:
    """A form on a web site knows nothing of punycode or spelling; who is left out all the same is shown."""
    here = new_machine("here", SEND_RATE_PER_SEC="0")
    with psycopg.connect(lite.database) as website:
        website.execute(
            "insert into subscribers (email) values"
            " ('Eva@Bücher.de'), (' Ann@Example.org '), ('ann@example.org'), ('nobody')"
        )
    sent = here("send", here.letter, "--direct")
    assert sent.code == 0, sent.err
    assert here.states() == {"ann@example.org": State.SENT, "eva@xn--bcher-kva.de": State.SENT}
    assert len(here.files()) == 2
    assert "active subscribers who get no mail: 1 (what stands there is no address)" in sent.err
    status = here("status", "--json").data
    assert (status["subscribers"]["active"], status["left_out"]) == (2, {"invalid": 1, "duplicate": 1})


def test_killed_on_the_way_the_same_command_completes_it(new_machine: NewMachine) -> None:
    """kill -9, again and again: nobody gets it twice, nobody is forgotten."""
    here = new_machine("here", 150, SEND_RATE_PER_SEC=str(RATE))
    for more in (1, 20, 33):
        process = here.send()
        target = len(here.files()) + more
        assert wait_for(lambda target=target: len(here.files()) >= target, process)  # type: ignore[misc]
        end(process, signal.SIGKILL)
    here.finish()
    nobody_twice_and_nobody_lost(here, here.accepted(), unknown=3)  # at most the call that was killed


def test_two_machines_share_one_mailout_and_one_rate(new_machine: NewMachine) -> None:
    """By mistake or by design: every message once, and no faster than agreed with SES."""
    here, there = machines = [
        new_machine(name, 250, SEND_RATE_PER_SEC=str(RATE), LOCK_SECONDS="60") for name in ("here", "there")
    ]
    senders = [here.send()]
    assert wait_for(lambda: here.senders() == 1, senders[0])
    here.freeze(senders[0])  # however long the other takes to start
    senders.append(there.send())
    assert wait_for(lambda: here.senders() == 2, senders[1])
    senders[0].send_signal(signal.SIGCONT)
    for sender in senders:
        output, _ = sender.communicate(timeout=PATIENCE)
        assert sender.returncode == 0, output
    nobody_twice_and_nobody_lost(machines[0], accepted_by(machines), unknown=0)
    assert machines[0].mailout().outcome is MailoutOutcome.SENT
    assert all(one.files() for one in machines)
    # Starts are exact; a file appears a little after its start: one more for each process.
    assert fullest_second(machines) <= RATE + 1 + len(machines)


def test_what_a_lost_machine_had_begun_is_unknown_and_never_sent_by_another(new_machine: NewMachine) -> None:
    """Its journal is gone with it: only a person can say whether those people have the letter."""
    lost = new_machine("lost", 120, SEND_RATE_PER_SEC=str(RATE), LOCK_SECONDS="3")
    process = lost.send()
    assert wait_for(lambda: len(lost.files()) >= 10, process)
    end(process, signal.SIGKILL)
    other = new_machine("other", 120, SEND_RATE_PER_SEC=str(RATE), LOCK_SECONDS="15")  # is not lost, too
    assert other.finish() == 1  # completed, and not everybody is known to have it
    nobody_twice_and_nobody_lost(other, accepted_by([lost, other]), unknown=RATE + 1)
    unknown = [email for email, state in other.states().items() if state == State.UNKNOWN]
    assert unknown
    assert not set(unknown) & set(other.accepted())
    # The machine comes back after all, for whatever it sends next: its journal knows what had left.
    (lost.path / "next.md").write_text("---\nsubject: Next\n---\n\nA trial.\n", encoding="utf-8")
    assert lost("send", "next.md", "--test", "--direct", TEST_EMAILS="me@example.org").code == 0
    if other.mailout().status is not Status.COMPLETED:
        other.finish()  # what had never been called waited again
    accepted = accepted_by([lost, other]) - Counter({"me@example.org": 1})
    nobody_twice_and_nobody_lost(other, accepted, unknown=1)
