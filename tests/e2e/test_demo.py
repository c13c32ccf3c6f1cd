"""The demo on a hostile machine: it is the first thing that anybody runs, so nothing around may change it."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from cli.commands.demo import MARK
from tests.e2e.conftest import Commands, Ended
from tests.prefect_server import DATABASE, prepare_database
from tests.stubs.ses_control import ses_stub

HOSTILE = {
    "MAILOUT_TRANSPORT": "ses",
    "MAILOUT_HOME": "/proc/nowhere",
    "SUPABASE_URL": "https://nobody.example.org",
    "SEND_RATE_PER_SEC": "never",
    "PREFECT_API_URL": "http://127.0.0.1:9/api",
    "PREFECT_HOME": "/proc/nowhere",
    "PREFECT_LOGGING_LEVEL": "NONSENSE",
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    folder = tmp_path_factory.mktemp("demo")
    (folder / ".env").write_text(
        "MAILOUT_TRANSPORT=ses\nPREFECT_API_URL=http://127.0.0.1:9/api\nnonsense\n", "utf-8"
    )
    (folder / "prefect.toml").write_text("[api]\nurl = 'http://127.0.0.1:9/api'\n", "utf-8")
    return Commands(folder, HOSTILE)


@pytest.fixture(scope="module")
def first(demo: Commands) -> Ended:
    return demo("demo", "--fresh")


def test_it_sends_to_every_active_subscriber_and_says_where_to_look(demo: Commands, first: Ended) -> None:
    assert first.code == 0, first.err
    home = demo.folder / ".mailout-demo"
    mails = list(home.glob("outbox/*/*.eml"))
    (report,) = home.glob("reports/*.csv")
    with report.open(encoding="utf-8") as file:
        assert [row["status"] for row in csv.DictReader(file)] == ["sent"] * len(mails)
    assert f"{len(mails)} letters. Written to a folder. Nothing was sent to anybody." in first.out
    assert "left out: no @ in the address" in first.out
    shown = [Path(line.strip()) for line in first.out.splitlines() if line.startswith("  .mailout-demo/")]
    assert {path.suffix for path in shown} == {".eml", ".csv", ".html"}
    assert all((demo.folder / path).is_file() for path in shown)


def test_its_run_is_kept_where_prefect_finds_it(demo: Commands, first: Ended) -> None:
    assert "PREFECT_HOME=.mailout-demo/prefect " in first.out
    assert re.search(r"/runs/flow-run/[0-9a-f-]{36}", first.out)
    database = demo.folder / ".mailout-demo" / "prefect" / "prefect.db"
    assert database.stat().st_mode & 0o777 == 0o600, "it holds what every run has said"


def test_make_demo_ses_reaches_everybody_once(demo: Commands) -> None:
    home = demo.folder / "through-ses"
    prepare_database(home / "prefect" / DATABASE)
    (home / MARK).touch()
    with ses_stub() as stub:
        ended = demo("demo", "--home", home, "--ses", stub.url)
        accepted = stub.accepted()
    assert ended.code == 0, ended.err
    assert len(accepted["by_address"]) > 200
    assert accepted["twice"] == []


@pytest.mark.usefixtures("first")
def test_a_second_run_sends_nothing(demo: Commands) -> None:
    mails = sorted(demo.folder.glob(".mailout-demo/outbox/*/*.eml"))
    again = demo("demo")
    assert again.code == 1
    assert "mailout_already_sent" in again.one_line
    assert sorted(demo.folder.glob(".mailout-demo/outbox/*/*.eml")) == mails


@pytest.mark.parametrize("arguments", [[], ["--fresh"]])
def test_it_neither_uses_nor_removes_a_folder_that_is_not_its_own(
    demo: Commands, arguments: list[str]
) -> None:
    mine = demo.folder / "mine"
    mine.mkdir(exist_ok=True)
    (mine / "thesis.txt").write_text("years of work", "utf-8")
    ended = demo("demo", "--home", mine, *arguments)
    assert ended.code == 2
    assert "is not a demo's folder" in ended.one_line
    assert (mine / "thesis.txt").read_text("utf-8") == "years of work"


@pytest.mark.usefixtures("first")
def test_fresh_does_not_remove_what_somebody_put_into_its_folder(demo: Commands) -> None:
    stray = demo.folder / ".mailout-demo" / "thesis.txt"
    stray.write_text("years of work", "utf-8")
    ended = demo("demo", "--fresh")
    assert ended.code == 2
    assert "thesis.txt" in ended.one_line
    assert stray.exists()
    stray.unlink()
