"""What a person at a terminal, or a script, relies on. Without Prefect (`--direct`), so that it is quick."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.main import app, main
from mailout.app import wiring
from mailout.base import ids
from mailout.base.settings import load_settings
from mailout.base.time_format import iso
from mailout.letters.content.model import Content
from mailout.outbox.delivery.protocol import Pace, Result, Step
from mailout.outbox.delivery.single_mails import SingleMail
from mailout.outbox.delivery.states import State
from mailout.outbox.queue.port import Request
from tests.clocks import zone_at_noon
from tests.contract.scenes import Sender, result
from tests.e2e.conftest import PROJECT, Commands


def the_mailout(mailout: Commands) -> str:
    (only,) = mailout.queue()
    return only.id


# ── What cannot be done: one clear line, the right exit code, nothing half-done ──


def test_a_wrong_setting_is_named_with_its_remedy_before_anything_happens(mailout: Commands) -> None:
    ended = mailout("send", mailout.letter(), "--direct", SEND_RATE_PER_SEC="fast")
    assert ended.code == 2
    assert "SEND_RATE_PER_SEC: must be a number, not 'fast'" in ended.one_line
    assert not mailout.home.exists()


@pytest.mark.parametrize(
    ("letter", "settings", "code", "said"),
    [
        ({"subject": "''"}, {}, 1, "subject_required"),
        ({"body": " "}, {}, 1, "empty_body"),
        ({"body": "![A boat](boat.png)"}, {}, 1, "media_unavailable"),
        ({}, {"ORG_NAME": ""}, 1, "footer_env_missing"),
        ({}, {"FROM_EMAIL": ""}, 2, "FROM_EMAIL"),
    ],
)
def test_a_letter_that_must_not_go_out_stops_before_the_queue_knows_of_it(
    mailout: Commands, letter: dict[str, str], settings: dict[str, str], code: int, said: str
) -> None:
    mailout.people("ana@example.org")
    ended = mailout("send", mailout.letter(**letter), "--direct", **settings)
    assert ended.code == code
    assert said in ended.one_line
    assert mailout.queue() == []
    assert mailout.mails() == []


def test_a_test_run_needs_somebody_to_go_to(mailout: Commands) -> None:
    ended = mailout("send", mailout.letter(), "--test", "--direct", TEST_EMAILS="nobody")
    assert ended.code == 1
    _where, logged, refused = ended.err.splitlines()
    assert "TEST_EMAILS" in logged, "each invalid address is reported, even when no valid one remains"
    assert "test_emails_empty" in refused
    assert mailout.queue() == []


def test_a_mailout_to_nobody_is_refused_since_it_could_never_be_repeated(mailout: Commands) -> None:
    ended = mailout("send", mailout.letter(), "--direct")
    assert ended.code == 2
    assert "nobody to send it to" in ended.one_line
    assert mailout.queue() == []


def test_a_list_that_nobody_is_on_stops_the_letter_instead_of_using_it_up(mailout: Commands) -> None:
    mailout.people("ana@example.org")
    letter = mailout.letter()
    letter.write_text(letter.read_text().replace("---\n\n", "list: weakly\n---\n\n"))
    ended = mailout("send", letter, "--direct")
    assert (ended.code, "no list is called weakly" in ended.one_line) == (2, True)
    assert mailout.queue() == []


@pytest.mark.parametrize("command", ["send", "preview", "status"])
def test_a_file_that_is_not_there_is_said_to_be_missing(mailout: Commands, command: str) -> None:
    more = {"send": ["--direct"], "preview": ["--out", "preview"], "status": []}[command]
    ended = mailout(command, "missing.md", *more)
    assert ended.code == 2
    assert "There is no file missing.md" in ended.one_line


def test_a_list_without_addresses_imports_nobody(mailout: Commands) -> None:
    (mailout.folder / "people.csv").write_text("name,city\nAna,Porto\n", encoding="utf-8")
    ended = mailout("subscribers", "import", "people.csv")
    assert ended.code == 2
    assert "has no column `email`" in ended.one_line
    assert mailout("status", "--json").data["subscribers"]["active"] == 0


def test_a_home_that_cannot_be_written_to_is_named(mailout: Commands) -> None:
    """A regular file stands where the folder should be: that stops root, too."""
    (mailout.folder / "file").write_text("", encoding="utf-8")
    ended = mailout("send", mailout.letter(), "--direct", MAILOUT_HOME=str(mailout.folder / "file" / "home"))
    assert ended.code == 2
    assert "MAILOUT_HOME" in ended.one_line


def test_a_prefect_server_that_is_away_is_named_and_nothing_is_queued(mailout: Commands) -> None:
    mailout.people("ana@example.org")
    ended = mailout("send", mailout.letter(), PREFECT_API_URL="http://127.0.0.1:9/api")
    assert ended.code == 2
    assert "PREFECT_API_URL" in ended.err.splitlines()[-1]
    assert "Traceback" not in ended.err
    assert mailout.queue() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sned"], "Did you mean `mailout send`?"),
        (["send"], "Missing argument"),
        (["queue", "settle", "abcd", "--as", "lost"], "lost"),
        (["queue", "pause"], "or use --all"),
        (["status", "ab"], "too short"),
        (["status", "abcd"], "There is no mailout abcd"),
        (["subscribers", "show", "ana"], "is not an address"),
        (["lists", "add", "weekly", "--name", "Weekly", "--welcome", "no.md"], "no file or Notion page no"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(mailout: Commands, arguments: list[str], said: str) -> None:
    ended = mailout(*arguments)
    assert ended.code == 2
    assert said in ended.one_line


def test_with_json_an_error_is_json_on_stderr_and_stdout_stays_empty(mailout: Commands) -> None:
    ended = mailout("status", "abcd", "--json")
    assert (ended.code, ended.out) == (2, "")
    assert json.loads(ended.err)["code"] == "not_found"


# ── Sending ──


def test_a_mailout_goes_out_once_however_often_it_is_asked_for(mailout: Commands) -> None:
    mailout.people("ana@example.org", "bo@example.org")
    letter = mailout.letter()
    sent = mailout("send", letter, "--direct", "--json")
    assert (sent.code, sent.data["status"], sent.data["ledger"]["sent"]) == (0, "COMPLETED", 2)
    assert len(mailout.mails()) == 2
    with Path(sent.data["csv"]).open(encoding="utf-8") as file:
        assert [row["status"] for row in csv.DictReader(file)] == ["sent", "sent"]
    again = mailout("send", letter, "--direct")
    assert again.code == 1
    assert "mailout_already_sent" in again.one_line
    assert len(mailout.mails()) == 2


def test_a_rehearsal_says_that_nobody_got_it_and_can_be_repeated(mailout: Commands) -> None:
    mailout.people("ana@example.org")
    letter = mailout.letter()
    assert "Written to a folder. Nothing was sent to anybody." in mailout("send", letter, "--direct").out
    assert mailout("send", letter, "--direct").code == 1
    assert mailout("send", letter, "--direct", "--again").code == 0
    mailout.letter(body="How are you now?")
    assert mailout("send", letter, "--direct").code == 0
    rehearsals = mailout.queue()
    assert (len(mailout.mails()), [one.is_rehearsal for one in rehearsals]) == (3, [True] * 3)
    assert ids.mailout_id("letter") not in {one.id for one in rehearsals}, "the real one is not used up"
    assert mailout("status", "letter", "--json").data["mode"] == "rehearsal", "by the id in its front matter"


def test_a_test_run_goes_to_the_testers_alone_and_blocks_nothing(mailout: Commands) -> None:
    mailout.people("ana@example.org")
    letter = mailout.letter()
    for runs in (1, 2):
        tested = mailout("send", letter, "--test", "--direct", "--json")
        assert (tested.code, tested.data["mode"], tested.data["ledger"]["sent"]) == (0, "test", 2)
        assert len(mailout.mails()) == 2 * runs
    assert mailout("send", letter, "--direct").code == 0
    assert sum(mail.name.startswith("ana@") for mail in mailout.mails()) == 1


def test_a_limit_defers_the_rest_and_says_until_when(mailout: Commands) -> None:
    mailout.people("ana@example.org", "bo@example.org", "cy@example.org")
    ended = mailout("send", mailout.letter(), "--direct", LIMIT_PER_DAY="2", SEND_TIMEZONE=zone_at_noon())
    assert ended.code == 75
    assert "today's limit is used up" in ended.out
    assert len(mailout.mails()) == 2


def test_a_limit_that_was_taken_away_says_how_its_mailout_goes_on(mailout: Commands) -> None:
    """It keeps its time, for a reason that is no longer true: whoever sends it again has to be told."""
    mailout.people("ana@example.org", "bo@example.org")
    letter, noon = mailout.letter(), {"SEND_TIMEZONE": zone_at_noon()}
    assert mailout("send", letter, "--direct", SEND_WINDOW="02:00-03:00", **noon).code == 75
    waits = mailout("send", letter, "--direct", **noon)
    assert waits.code == 75
    assert (
        f"If you have changed that limit since:\n  mailout queue resume {the_mailout(mailout)}" in waits.out
    )
    assert mailout("queue", "resume", the_mailout(mailout)).code == 0
    assert mailout("send", letter, "--direct", **noon).code == 0


def test_a_delay_is_time_to_see_to_whom_it_would_go_and_to_take_it_back(mailout: Commands) -> None:
    mailout.people("ana@example.org", "bo@example.org", "cy@example.org")
    planned = mailout("send", mailout.letter(), "--direct", SEND_DELAY="3600")
    assert planned.code == 75
    assert ", to 3 people." in planned.out
    assert "mailout queue cancel" in planned.out
    listed = mailout("status", SEND_DELAY="3600")
    assert "planned for" in listed.out
    assert "done by" in listed.out
    forecast = mailout("status", "letter.md", "--json", SEND_RATE_PER_SEC="5").data["forecast"]
    assert forecast["begins_at"] < forecast["ends_at"]
    asked = mailout("queue", "cancel", "letter.md")
    assert (asked.code, "--yes" in asked.one_line) == (2, True), "there is no terminal to ask on"
    assert mailout("queue", "cancel", "letter.md", "--yes").code == 0
    again = mailout("queue", "cancel", "letter.md")
    assert (again.code, "It was cancelled before anything was sent." in again.out) == (0, True)
    assert "will not get it" not in again.out + again.err
    assert mailout.mails() == []


def test_sigterm_finishes_what_is_in_hand_and_the_same_command_goes_on(mailout: Commands) -> None:
    mailout.people(*(f"reader{n:02}@example.org" for n in range(40)))
    command = [sys.executable, "-m", "cli", "send", str(mailout.letter()), "--direct"]
    environment = mailout.environment | {"SEND_RATE_PER_SEC": "8", "LOCK_SECONDS": "120"}
    with subprocess.Popen(command, env=environment, cwd=mailout.folder, stderr=subprocess.PIPE) as process:
        while not mailout.mails():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert b"Run the same command again" in said
    assert b"--report" in said
    assert not list((mailout.home / "reports").glob("*.csv"))  # at a million it takes a minute
    reported = mailout("status", "letter.md", "--report")
    assert reported.code == 0
    (csv,) = (mailout.home / "reports").glob("*.csv")
    assert csv.name in reported.out
    assert len(csv.read_text().splitlines()) == 41
    shown = mailout("queue", "show", "letter.md", "--json").data
    assert (shown["status"], shown["locked_by"]) == ("PENDING", None)  # nobody sends it any more
    ledger = shown["ledger"]
    assert (ledger["in_flight"], ledger["unknown"]) == (0, 0)
    assert 0 < ledger["sent"] == len(mailout.mails()) < 40
    assert mailout("send", "letter.md", "--direct").code == 0
    assert len(mailout.mails()) == 40


def test_after_a_restored_backup_every_command_says_why_nothing_is_sent(mailout: Commands) -> None:
    """The refusal is seen once; who looks later must not read that it is being sent, or goes on by itself."""
    mailout.people("ana@example.org", "bo@example.org")
    backup = (mailout.home / "mailout.db").read_bytes()
    assert mailout("send", mailout.letter("one.md"), "--direct").code == 0
    for file in mailout.home.glob("mailout.db*"):
        file.unlink()
    (mailout.home / "mailout.db").write_bytes(backup)
    (journal,) = mailout.home.glob("journal/sqlite/*")

    two = mailout.letter("two.md", body="Another letter.")
    refused = mailout("send", two, "--direct")
    assert refused.code == 1
    assert f"before you delete {journal}." in refused.err
    for command in (["status"], ["status", "two"], ["queue", "show", "two"], ["send", two, "--direct"]):
        said = " ".join(mailout(*command).out.split())
        assert "waits for a person: something has to be put right first" in said
        assert "being sent" not in said
        assert "by itself" not in said
        assert "looks like a restored backup" in said or command == ["status"]
    doctor = mailout("doctor", "--json")
    (line,) = [check for check in doctor.data["checks"] if check["name"] == "journals"]
    assert (doctor.code, line["level"], str(journal) in line["remedy"]) == (1, "fail", True)
    assert len(mailout.mails()) == 2

    journal.unlink()
    assert mailout("queue", "resume", "two").code == 0
    assert mailout("send", two, "--direct").code == 0
    assert "the store knows all that this machine has sent" in mailout("doctor").out


def test_a_preview_sends_nothing(mailout: Commands) -> None:
    ended = mailout("preview", mailout.letter(), "--out", "preview", "--json")
    assert (ended.code, ended.data["subject"]) == (0, "Hello")
    assert (mailout.folder / "preview" / "message.eml").read_bytes().startswith(b"From:")
    assert mailout.queue() == []
    assert mailout.mails() == []


# ── The queue ──


def begun(mailout: Commands, count: int, then: State | None) -> list[str]:
    """Begin some messages as a sender would, and end them so; None: the sender disappears."""
    with closing(mailout.store()) as store:
        session = store.open_session(the_mailout(mailout), worker="test", transport="folder", lease=0.01)
        step = Step(session=session, n=1, lease=0.01, pace=Pace("folder", 0), want=count)
        rows = store.step(step).rows
        if then is None:
            time.sleep(0.02)
            store.reap(0.0)
        else:
            results = [Result(row.attempt, then, code="MESSAGE_REJECTED", message="No.") for row in rows]
            store.step(Step(session=session, n=2, lease=0.01, pace=step.pace, results=results, close=True))
        return [row.attempt.id for row in rows]


@pytest.fixture
def waiting(mailout: Commands) -> Commands:
    """A mailout to three people, started, of which nothing was sent."""
    mailout.people("ana@example.org", "bo@example.org", "cy@example.org")
    engine = wiring.build(load_settings(env=mailout.settings))
    id = engine.intake.enqueue(str(mailout.letter())).id
    engine.sending.freeze(id)
    engine.sending.start(id)
    engine.store.close()
    return mailout


def test_what_failed_is_tried_again_and_nobody_else_gets_it_twice(waiting: Commands) -> None:
    begun(waiting, 1, State.FAILED)
    ended = waiting("send", "letter.md", "--direct")
    assert ended.code == 1
    assert "MESSAGE_REJECTED" in ended.out
    id = the_mailout(waiting)
    assert f"mailout queue retry {id}" in ended.out
    assert waiting("queue", "retry", id[:4]).code == 0
    assert waiting("send", "letter.md", "--direct").code == 0
    assert len(waiting.mails()) == 3
    assert waiting("queue", "retry", "letter.md").code == 2


def test_messages_in_doubt_are_settled_by_a_person_and_by_nobody_else(waiting: Commands) -> None:
    doubtful = begun(waiting, 2, None)
    ended = waiting("send", "letter.md", "--direct")
    assert ended.code == 1
    assert len(waiting.mails()) == 1
    asked = waiting("queue", "settle", "letter.md", "--as", "sent")
    assert asked.code == 2
    assert "--yes" in asked.one_line
    one = waiting("queue", "settle", "letter.md", "--as", "sent", "--message", doubtful[0], "--yes", "--json")
    assert (one.code, one.data["ledger"]["unknown"], one.data["ledger"]["sent"]) == (0, 1, 2)
    again = ("queue", "settle", the_mailout(waiting)[:6], "--as", "pending", "--yes")
    early = waiting(*again, LOCK_SECONDS="120")  # a quarter of an hour, however slow these commands are
    assert early.code == 1
    assert "Their outcome may still arrive" in early.one_line
    assert waiting(*again, LOCK_SECONDS="0.01").code == 0
    assert waiting("send", "letter.md", "--direct").code == 0
    assert len(waiting.mails()) == 2


def test_a_single_mail_in_doubt_is_settled_by_its_id(mailout: Commands) -> None:
    id = ids.transactional_id("acme", "receipt")
    content = Content("Your receipt", "<p>Thank you</p>", "Thank you")
    mailout.home.mkdir()
    with closing(mailout.store()) as store:
        who: dict[str, Any] = {"company_id": "acme", "request_id": "a request", "email": "ana@example.org"}
        store.accept_single_mails([SingleMail(id=id, **who, content=content, is_rehearsal=True)])
        sender = Sender(store, None)
        sender.step(results=[result(sender.begin_one(), State.UNKNOWN)])
    settle = ("queue", "settle", "--as", "sent")
    assert "a single mail: --message ID" in mailout(*settle, "--yes").one_line
    assert "--yes" in mailout(*settle, "--message", id).one_line
    settled = mailout(*settle, "--message", id, "--yes")
    assert (settled.code, f"Message {id} to ana@example.org: SENT" in settled.out) == (0, True)
    assert mailout(*settle, "--message", id, "--yes").code != 0  # it is in doubt no more


def test_everything_can_be_paused_at_once(waiting: Commands) -> None:
    assert waiting("queue", "pause", "--all").code == 0
    ended = waiting("send", "letter.md", "--direct")
    assert ended.code == 75
    assert "Everything is paused" in ended.err
    assert waiting.mails() == []
    assert waiting("queue", "resume", "--all", "--json").data == {"all_paused": False}
    assert waiting("send", "letter.md", "--direct").code == 0


def test_a_paused_mailout_waits_for_a_person(waiting: Commands) -> None:
    paused = waiting("queue", "pause", "letter.md", "--json")
    assert paused.data["defer_reason"] == "paused"
    assert waiting("send", "letter.md", "--direct").code == 75
    assert waiting.mails() == []
    assert waiting("queue", "resume", "letter.md").code == 0
    assert waiting("queue", "resume", "letter.md").code == 2
    assert waiting("send", "letter.md", "--direct").code == 0
    assert len(waiting.mails()) == 3


def test_a_cancelled_mailout_reaches_nobody_else(waiting: Commands) -> None:
    begun(waiting, 1, State.FAILED)
    cancelled = waiting("queue", "cancel", "letter.md", "--yes", "--json")
    assert (cancelled.data["status"], cancelled.data["ledger"]["suppressed"]) == ("CANCELLED", 2)
    assert waiting.mails() == []
    assert waiting("queue", "resume", "letter.md").code == 2
    assert waiting.mails() == []


def test_an_ambiguous_id_lists_the_candidates(mailout: Commands) -> None:
    """Two test runs whose ids begin alike, found by trying names."""
    names = ["letter"]
    while len({ids.test_run_id(name, 1)[:4] for name in names}) == len(names):
        names.append(f"letter{len(names)}")
    twins = [n for n in names if ids.test_run_id(n, 1)[:4] == ids.test_run_id(names[-1], 1)[:4]]
    for name in twins:
        assert mailout("send", mailout.letter(f"{name}.md"), "--test", "--direct").code == 0
    ended = mailout("status", ids.test_run_id(names[-1], 1)[:4])
    assert ended.code == 2
    assert all(ids.test_run_id(name, 1) in ended.one_line for name in twins)


# ── People ──


def test_an_export_can_be_imported_again_and_loses_nothing(mailout: Commands) -> None:
    people = PROJECT / "examples" / "subscribers.csv"
    imported = mailout(
        "subscribers", "import", people, "--list", "harbour", "--rejects", "left-out.csv", "--json"
    )
    assert imported.code == 0
    left_out = sum(imported.data["dropped"].values()) - imported.data["dropped"]["duplicate"]
    assert len((mailout.folder / "left-out.csv").read_text("utf-8").splitlines()) == 1 + left_out
    assert mailout("subscribers", "export", "--out", "everybody.csv").code == 0
    again = mailout("subscribers", "import", "everybody.csv", "--json").data
    assert (again["rows"], again["unchanged"]) == (imported.data["people"], imported.data["people"])


def test_no_spreadsheet_takes_a_value_for_a_formula_and_none_is_changed(mailout: Commands) -> None:
    """Whoever signs up chooses these values, and whoever opens the export runs them."""
    people = mailout.folder / "people.csv"
    people.write_text(
        "email,from_name,=cmd()\n+ana@example.org,=1+1,@SUM(A1)\n'+bob@example.org,-2,'=quoted\n=1+1,,\n-,,\n"
    )
    imported = mailout("subscribers", "import", people, "--rejects", "left-out.csv", "--yes", "--json")
    assert imported.data["people"] == 2
    assert mailout("subscribers", "export", "--out", "everybody.csv").code == 0
    for name in ("left-out.csv", "everybody.csv"):
        with (mailout.folder / name).open(encoding="utf-8", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert len(cells) > 6
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    again = mailout("subscribers", "import", "everybody.csv", "--json").data
    assert (again["rows"], again["unchanged"]) == (2, 2)


def test_one_person_can_be_looked_up_as_people_write_addresses(mailout: Commands) -> None:
    mailout.people("Ana@example.org")
    assert mailout("subscribers", "show", " ANA@example.org", "--json").data["status"] == "active"


@pytest.mark.parametrize("written", ["ana@example.org", " Ana@Example.org", "ana@bücher.org"])
def test_one_message_tells_all_its_steps(mailout: Commands, written: str) -> None:
    mailout.people("ana@example.org", "ana@xn--bcher-kva.org")
    mailout("send", mailout.letter(), "--direct")
    told = mailout("status", "letter.md", "--message", written, "--json").data
    assert [event["type"] for event in told["events"]][-2:] == ["SENT_ATTEMPT", "SENT"]


# ── Manners ──


def test_help_is_there_for_every_command_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    commands = [["send"], ["preview"], ["status"], ["demo"]]
    commands += [
        ["subscribers", name]
        for name in ("import", "undo-import", "export", "show", "list", "add", "unsubscribe", "forget")
    ]
    commands += [["queue", name] for name in ("list", "show", "cancel", "pause", "resume", "retry", "settle")]
    for command in commands:
        assert main([*command, "--help"]) == 0
        assert "Example: mailout" in capsys.readouterr().out


def test_help_and_the_quick_commands_do_not_load_prefect(mailout: Commands) -> None:
    """It takes two seconds, and a server, that somebody who asks for help does not want to wait for."""
    script = (
        "import sys; from cli.main import main; main(sys.argv[1:]);"
        " sys.exit('prefect' in sys.modules or ('polars' in sys.modules and '--help' in sys.argv))"
    )
    for arguments in (["--help"], ["status"], ["send", str(mailout.letter()), "--test"]):
        command = [sys.executable, "-c", script, *arguments]
        assert (
            subprocess.run(command, env=mailout.environment, capture_output=True, check=False).returncode == 0
        )


def test_a_reader_that_has_seen_enough_is_no_error(mailout: Commands) -> None:
    mailout.people(*(f"reader{n}-with-a-rather-long-name@example.org" for n in range(3000)))
    command = f"{sys.executable} -m cli subscribers export | head -n 1"
    ended = subprocess.run(
        ["bash", "-c", command], env=mailout.environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.startswith("email,")
    assert len(ended.stderr.splitlines()) == 1, "where it is at work, and nothing else"


# ── Every command explains itself, in a terminal of 80 columns ──


def all_commands() -> list[list[str]]:
    def below(command: Any, path: list[str]) -> Iterator[list[str]]:
        yield path
        context = typer.Context(command)
        for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
            yield from below(command.get_command(context, name), [*path, name])

    return list(below(typer.main.get_command(app), []))


@pytest.mark.parametrize("path", all_commands(), ids=" ".join)
def test_help_fits_a_terminal_and_cuts_nothing_short(
    path: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands that each explain themselves in another way, half of it cut off, teach nobody."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*path, "--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"Usage: {' '.join(['mailout', *path])} [OPTIONS]")
    assert max(map(len, said.splitlines())) <= 80
    assert "...\n" not in said.partition("\n")[2]
    assert bool(path) or "--install-completion" in said


def test_a_letter_that_was_scheduled_on_the_dashboard_is_in_the_status(mailout: Commands) -> None:
    """Nobody has to guess why a letter has not gone out yet."""
    with closing(mailout.store()) as store:
        store.ask(Request.of("spring.md", False, not_before=store.now() + 86_400), repeat=60.0)
    assert "Scheduled for " in (said := mailout("status").out)
    assert "spring.md" in said
    (planned,) = mailout("status", "--json").data["planned"]
    assert planned["ref"] == "spring.md"
    assert planned["not_before"] > iso(time.time())
