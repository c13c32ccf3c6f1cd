"""The parts fit together, whoever puts them together."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from mailout.adapters.journals.files import FileJournals
from mailout.adapters.sqlite import SqliteStore
from mailout.app import wiring
from mailout.base.clock import SystemClock
from mailout.base.errors import StoreRolledBack
from mailout.base.settings import load_settings
from mailout.insight.history.history_rows import keep_journal_folder
from mailout.outbox.delivery.recovery import reap
from mailout.store import Store
from tests.clocks import FakeClock
from tests.contract.scenes import Sender


@pytest.fixture
def aws_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose region stands in AWS's own files, where only boto3 finds it."""
    config = tmp_path / "aws-config"
    config.write_text("[default]\nregion = eu-north-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("aws_config")
@pytest.mark.parametrize("settings", [{}, {"AWS_REGION": "eu-west-3"}, {"MAILOUT_TRANSPORT": "folder"}])
def test_who_does_not_send_reads_the_quota_that_the_sender_writes(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    env = {"MAILOUT_HOME": str(tmp_path), "MAILOUT_TRANSPORT": "ses", "FROM_EMAIL": "news@example.org"}
    chosen = load_settings(env=env | settings)
    transport = wiring.make_transport(chosen, SystemClock())
    store = wiring.open_store(chosen)
    try:
        assert wiring.queue_forecast(chosen, store).scope == transport.scope
    finally:
        transport.close()
        store.close()


# ── which journals are a store's ──


@dataclass
class Project:
    """A Supabase project under an address (over SQLite here: what is asked of it is the same)."""

    home: Path
    store: Store
    host: str

    def journals(self) -> FileJournals:
        env = {"SUPABASE_URL": f"https://{self.host}", "SUPABASE_SERVICE_ROLE_KEY": "sb_secret_key"}
        settings = load_settings(env=env | {"MAILOUT_HOME": str(self.home)})
        return wiring.journals_of(settings, self.store)

    def send(self) -> None:
        journals = self.journals()
        reap(self.store, journals, 0.0, check_closed=True)
        sender = Sender(self.store, None)
        sender.step(close=True)
        journals.open(sender.session).close(sender.n)


Projects = Callable[[str, str], Project]


@pytest.fixture
def projects(tmp_path: Path) -> Iterator[Projects]:
    """By the name of their file, and their address."""
    stores: dict[str, SqliteStore] = {}

    def project(name: str, host: str) -> Project:
        if name not in stores:
            stores[name] = SqliteStore(tmp_path / name, FakeClock())
        return Project(tmp_path, stores[name], host)

    yield project
    for store in stores.values():
        store.close()


def back_up(tmp_path: Path, name: str, to: str) -> None:
    with closing(sqlite3.connect(tmp_path / name)) as store:
        store.execute("VACUUM INTO ?", (str(tmp_path / to),))


def test_a_backup_restored_under_another_address_is_noticed(tmp_path: Path, projects: Projects) -> None:
    old = projects("old", "old.supabase.co")
    old.send()
    back_up(tmp_path, "old", "backup")
    old.send()
    with pytest.raises(StoreRolledBack):
        projects("backup", "new.supabase.co").send()
    projects("old", "mail.example.org").send()  # the same store under its own domain
    old.send()


def test_projects_that_one_machine_sends_for_in_turn_do_not_refuse_each_other(projects: Projects) -> None:
    for host in ("one.supabase.co", "two.supabase.co") * 2:
        projects(host, host).send()


def test_the_journals_from_before_a_store_said_which_are_its_own_still_count(
    tmp_path: Path, projects: Projects
) -> None:
    """They lie in a folder that is named after the host."""
    old = projects("old", "old.supabase.co")
    sender = Sender(old.store, None)
    sender.step(close=True)
    FileJournals(tmp_path / "journal" / "old.supabase.co").open(sender.session).close(sender.n)
    back_up(tmp_path, "old", "backup")
    old.send()
    assert len(old.journals().look()) == 2
    with pytest.raises(StoreRolledBack):  # it does not say either, and knows one of the two
        projects("backup", "new.supabase.co").send()


def test_a_store_that_does_not_say_may_be_an_old_backup_and_a_person_decides(projects: Projects) -> None:
    projects("old", "old.supabase.co").send()
    unknown = projects("unknown", "new.supabase.co")
    Sender(unknown.store, None).step(close=True)  # it was sent from, by whomever
    with pytest.raises(StoreRolledBack, match="mkdir") as refused:
        unknown.send()
    Path(str(refused.value).split("'")[-2]).mkdir()
    unknown.send()
    unknown.send()


def test_what_a_dead_sender_left_in_the_folder_of_this_host_is_cleared_there(
    tmp_path: Path, projects: Projects
) -> None:
    """Another machine, which has another address for the store, was first to say which folder it is."""
    here = projects("one", "mail.example.org")
    sender = Sender(here.store, None)
    FileJournals(tmp_path / "journal" / "mail.example.org").open(sender.session).abandon()
    keep_journal_folder(here.store, "one.supabase.co")
    here.send()
    (old,) = FileJournals(tmp_path / "journal" / "mail.example.org").look()
    assert old.closed_at_step is not None
    assert len(FileJournals(tmp_path / "journal" / "one.supabase.co").look()) == 1
