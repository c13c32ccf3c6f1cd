"""Retention as a person meets it: the command, and everything that still has to work afterwards."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import polars as pl

from mailout.outbox.queue import queue_rows
from tests.e2e.conftest import Commands


def sent_long_ago(mailout: Commands) -> str:
    """A letter to three, sent a hundred days ago."""
    mailout.people("ana@example.org", "bo@example.org", "cy@example.org")
    assert mailout("send", mailout.letter(), "--direct").code == 0
    store = mailout.store()
    (sent,) = queue_rows.mailouts(store)
    with store.db.write() as tx:
        tx.execute("UPDATE campaign_queue SET completed_at = ?", (time.time() - 100 * 86_400,))
    store.close()
    return sent.id


def test_an_archived_mailout_is_known_and_readable_and_never_sent_again(mailout: Commands) -> None:
    id = sent_long_ago(mailout)
    (mailout.home / "reports" / f"{id}.csv").unlink()  # made again while it still can be
    plan = mailout("retention", "--dry-run", "--json")
    assert [one["messages"] for one in plan.data["would_archive"]] == [3]
    assert not (mailout.home / "archive").exists()
    done = mailout("retention")
    assert done.code == 0
    assert re.search(r"Archived 1 mailout with 3 messages: [1-9][0-9.]* KB in ", done.out)
    assert (mailout.home / "reports" / f"{id}.csv").read_text().count("@example.org") == 3
    assert pl.read_parquet(mailout.home / "archive/*.parquet")["email"].len() == 3
    assert mailout("retention").out == "Nothing to archive.\n"

    said = mailout("status", id).out
    assert "Rehearsal: 3 letters." in said
    assert f"its messages are in {mailout('status', id, '--json').data['archived_to']}" in said
    assert "done; archived" in mailout("queue", "list").out
    again = mailout("send", mailout.letter(), "--direct")
    assert (again.code, "mailout_already_sent" in again.err) == (1, True)
    for arguments in (("queue", "retry", id), ("queue", "settle", id, "--as", "sent", "--yes")):
        refused = mailout(*arguments)
        assert refused.code == 2
        assert "It is archived" in refused.one_line
    assert "It is archived" in mailout("status", id, "--message", "ana@example.org").one_line
    assert len(mailout.mails()) == 3


def test_a_person_is_forgotten_in_the_archive_and_its_report_too(mailout: Commands) -> None:
    id = sent_long_ago(mailout)
    assert mailout("retention", "--out", "elsewhere", "--json").data["archived"][0]["messages"] == 3
    done = mailout("subscribers", "forget", "ana@example.org", "--json", "--yes")
    assert (done.data["messages"], len(done.data["archives"])) == (0, 1)
    assert done.data["archives_out_of_reach"] == []
    kept = pl.read_parquet(mailout.folder / "elsewhere/*.parquet")["email"].to_list()
    assert [email for email in kept if email.startswith("forgotten:")] == kept[:1]
    report = (mailout.home / "reports" / f"{id}.csv").read_text()
    assert ("ana@example.org" in report, "bo@example.org" in report) == (False, True)
    (mailout.folder / "elsewhere").rename(mailout.folder / "gone")
    said = mailout("subscribers", "forget", "bo@example.org", "--yes")
    assert "were not found here" in said.err


def test_in_a_copied_home_its_own_archive_is_changed_and_no_others(mailout: Commands) -> None:
    """The store knows where the archive was when it was made: that may be another home's now."""
    sent_long_ago(mailout)
    assert mailout("retention").code == 0
    copied = mailout.folder / "copied"
    shutil.copytree(mailout.home, copied)

    def emails(home: Path) -> list[str]:
        return sorted(pl.read_parquet(home / "archive/*.parquet")["email"].to_list())

    before = emails(mailout.home)
    done = mailout("subscribers", "forget", "ana@example.org", "--json", "--yes", MAILOUT_HOME=str(copied))
    assert (len(done.data["archives"]), done.data["archives_out_of_reach"]) == (1, [])
    assert "ana@example.org" not in emails(copied)
    assert emails(mailout.home) == before
    shutil.rmtree(copied / "archive")
    said = mailout("subscribers", "forget", "bo@example.org", "--yes", MAILOUT_HOME=str(copied))
    assert "were not found here" in said.err
    assert emails(mailout.home) == before


def test_too_young_is_named_with_its_remedy(mailout: Commands) -> None:
    ended = mailout("retention", "--older-than", "7")
    assert ended.code == 2
    assert "--older-than 30" in ended.one_line
