"""`mailout doctor`, whole: a person who follows its lines gets from nothing to the first mailout."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from cli.commands.doctor import lines
from mailout.app.examination import examine
from mailout.base.settings import load_settings
from mailout.insight.doctor.checks import Check
from tests.e2e.conftest import Commands
from tests.environment import SENDER
from tests.producer.database import ProducerDatabase
from tests.stubs.dns import name_server
from tests.stubs.ses_control import SesStub, ses_stub
from tests.stubs.sns_sqs import QUEUE, QUEUE_URL, TOPIC, sns_and_sqs

COMPLETE = {
    **SENDER,
    "PUBLIC_URL": "https://mail.example.org",
}
SES = {
    "MAILOUT_TRANSPORT": "ses",
    "SES_CONFIGURATION_SET": "main",
    "SNS_TOPIC_ARNS": TOPIC,
    "SQS_QUEUE_URL": QUEUE_URL,
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
}
BOTH_WAYS = {"https": "https://mail.example.org/ses-events", "sqs": QUEUE}


@pytest.fixture(scope="module")
def ses() -> Iterator[SesStub]:
    with ses_stub() as stub:
        yield stub


def findings(
    settings: Mapping[str, str], dns_zone: Mapping[tuple[str, str], list[str]]
) -> dict[str, dict[str, str]]:
    """By part and name, the levels."""
    with name_server(dns_zone) as dns:
        parts = examine(load_settings(dict(settings)), dns=dns.records())
        return {part.name: {check.name: check.level for check in part.checks} for part in parts}


def test_ses_with_its_topic_its_queue_and_its_dns_is_examined_whole(ses: SesStub, tmp_path: Path) -> None:
    ses.reset()
    zone = {("TXT", "_dmarc.example.org"): ["v=DMARC1; p=none"]}
    with sns_and_sqs(BOTH_WAYS) as aws:
        endpoints = {f"AWS_ENDPOINT_URL_{one}": aws for one in ("SNS", "SQS")} | {
            "AWS_ENDPOINT_URL_SESV2": ses.url
        }
        home = {"MAILOUT_HOME": str(tmp_path / "home")}
        found = findings(COMPLETE | SES | endpoints | home, zone)
    assert set(found["Amazon SES"].values()) == {"ok"}
    assert {"SPF", "DKIM", "DMARC", "events", "sandbox", "quota", "identity"} <= set(found["Amazon SES"])
    assert found["SNS and SQS"] == {"topic mailout": "ok", "SQS_QUEUE_URL": "ok"}


def test_in_the_sandbox_doctor_and_send_say_the_same(ses: SesStub, mailout: Commands) -> None:
    """`doctor` called it ready to send, and `send` refused."""
    ses.reset()
    ses.script(account={"ProductionAccessEnabled": False})
    mailout.settings |= {**SES, "AWS_ENDPOINT_URL_SESV2": ses.url}
    mailout.people("ana@example.org")
    refused = mailout("send", mailout.letter(), "--direct", "--yes")
    assert refused.code == 2
    assert "this account is in the sandbox: only tests are sent. Ask for production access" in refused.err
    (found,) = [one for one in mailout("doctor", "--json").data["checks"] if one["name"] == "sandbox"]
    assert found["level"] == "fail"
    assert f"{found['message']}. {found['remedy']}" in refused.err
    assert mailout("send", mailout.letter(), "--direct", "--test").code == 0


def test_a_topic_that_tells_somebody_else_is_found(ses: SesStub, tmp_path: Path) -> None:
    ses.reset()
    with sns_and_sqs({"https": "https://elsewhere.example.org/"}, {"QueueArn": QUEUE}) as aws:
        endpoints = {f"AWS_ENDPOINT_URL_{one}": aws for one in ("SNS", "SQS")} | {
            "AWS_ENDPOINT_URL_SESV2": ses.url
        }
        home = {"MAILOUT_HOME": str(tmp_path / "home")}
        found = findings(COMPLETE | SES | endpoints | home, {})
    assert found["SNS and SQS"] == {"topic mailout": "fail", "SQS_QUEUE_URL": "fail"}


def test_json_has_every_line_and_the_exit_code_says_whether_one_failed(mailout: Commands) -> None:
    mailout.people("ana@example.org")
    well = mailout("doctor", "--json", **COMPLETE)
    assert (well.code, well.data["ok"], well.data["counts"]["fail"]) == (0, True, 0)
    parts = list(dict.fromkeys(check["part"] for check in well.data["checks"]))
    assert parts == ["Settings", "Store", "Transport", "Notion", "Prefect"]
    assert all(set(check) == {"part", "name", "level", "message", "remedy"} for check in well.data["checks"])
    ill = mailout("doctor", "--json", **COMPLETE | {"ORG_NAME": ""})
    assert (ill.code, ill.data["ok"], ill.data["counts"]["fail"]) == (1, False, 1)
    assert sum(ill.data["counts"].values()) == len(ill.data["checks"])
    assert all(check["remedy"] for check in ill.data["checks"] if check["level"] != "ok")


def test_wrong_settings_are_lines_like_the_others(mailout: Commands) -> None:
    """Whoever runs doctor wants the list, not a refusal to make one."""
    ended = mailout("doctor", "--json", SEND_RATE_PER_SEC="fast", BATCH_SIZE="0")
    wrong = {one["name"]: one for one in ended.data["checks"] if one["part"] == "Settings"}
    assert ended.code == 1
    assert set(wrong) == {"SEND_RATE_PER_SEC", "BATCH_SIZE"}
    assert wrong["SEND_RATE_PER_SEC"]["message"] == "must be a number, not 'fast'"
    assert wrong["SEND_RATE_PER_SEC"]["remedy"].startswith("Set it like SEND_RATE_PER_SEC=5")


def test_the_settings_of_notifications_are_examined(mailout: Commands) -> None:
    ProducerDatabase(mailout.folder / "seats.db").one()
    given = {"NOTIFY_DB": "seats.db", "NOTIFY_SOURCE": "seats", "NOTIFY_BASE_URL": "https://app.example.org"}

    def found(**changed: str) -> list[tuple[str, str]]:
        checks = mailout("doctor", "--json", **given | changed).data["checks"]
        return [(one["level"], one["message"]) for one in checks if one["part"] == "Notifications"]

    assert found() == [("ok", "open-seat v1 en-US is there"), ("ok", "can be read; 1 pending")]
    assert found(NOTIFY_LOCALE="de-DE") == [
        ("fail", "NOTIFY_LOCALE: the template open-seat v1 has no de-DE.")
    ]
    assert found(NOTIFY_SOURCE="") == [("fail", "NOTIFY_SOURCE: is missing.")]
    ours = mailout.home / "templates" / "open-seat" / "v2" / "de-DE"
    ours.mkdir(parents=True)
    (ours / "subject.txt.j2").write_text("News", encoding="utf-8")
    lacks = "open-seat v2 has no en-US: subscriptions that name no locale get nothing"
    assert found(NOTIFY_TEMPLATE_VERSION="v2")[0] == ("warn", lacks)


def test_a_home_that_cannot_be_written_to_is_named(mailout: Commands) -> None:
    (mailout.folder / "taken").write_text("a file", encoding="utf-8")
    ended = mailout("doctor", "--json", **COMPLETE, MAILOUT_HOME=str(mailout.folder / "taken" / "home"))
    found = {one["name"]: one["level"] for one in ended.data["checks"]}
    assert (ended.code, found["MAILOUT_HOME"], found["store"]) == (1, "fail", "fail")


LONG = Check(
    "topic mailout",
    "fail",
    "the subscription of https://mail.example.org/ses-events is not confirmed",
    "Start the gateway where SNS reaches it, then request confirmation in the SNS console.",
)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_lines_fold_to_the_terminal_and_addresses_stay_whole(width: int) -> None:
    """An address that is cut in two cannot be copied."""
    shown = lines(LONG, width)
    assert "https://mail.example.org/ses-events" in "\n".join(shown)
    assert all(len(line) <= width or " " not in line.strip() for line in shown)
    assert shown[0].startswith("  fail  topic mailout: ")
    assert all(line.startswith(" " * 8) for line in shown[1:])


def test_in_a_file_a_line_is_a_line() -> None:
    """So that grep finds it."""
    assert len(lines(LONG)) == 2
    assert len(lines(LONG._replace(level="ok"))) == 1


def test_a_narrow_terminal_gets_narrow_lines(mailout: Commands) -> None:
    ours, theirs = pty.openpty()
    env = {**mailout.environment, "COLUMNS": "60", "LINES": "40", "TERM": "dumb"}
    command = [sys.executable, "-m", "cli", "doctor"]
    with subprocess.Popen(command, cwd=mailout.folder, env=env, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        while chunk := _read(ours):
            said += chunk
        assert process.wait() == 0
    os.close(ours)
    shown = [line for line in said.decode().splitlines() if "://" not in line]
    assert "Settings" in shown
    assert max(map(len, shown)) <= 60


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux's way to say that nobody writes any more
        return b""
