"""`mailout article` and `mailout dead-letters` as a person types them."""

from __future__ import annotations

import email
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.warm_commands import run_command

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "article"
BATCH = "7c2cd1a2-5d0b-4b43-9a4e-2f7c53b0f1aa"


def mailout(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {
        "PATH": os.environ["PATH"],
        "MAILOUT_HOME": str(home),
        "FROM_EMAIL": "news@example.org",
        "ORG_NAME": "The Ledger",
        "ORG_ADDRESS": "1 Main Street",
        "UNSUBSCRIBE_BASE_URL": "https://mail.example.org/unsubscribe",
        "UNSUBSCRIBE_SECRET": "a secret of some length",
        "SEND_RATE_PER_SEC": "0",
    }
    return run_command(arguments, env=env, cwd=Path.cwd())


def data(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_example_from_its_files_to_the_letters(tmp_path: Path) -> None:
    key = ("--article-key", "where-the-rain-goes")
    assert mailout(tmp_path, "subscribers", "import", str(EXAMPLE / "people.csv"), "--yes").returncode == 0
    assert data(mailout(tmp_path, "article", "import", str(EXAMPLE / "slices.csv"), "--json"))["added"] == 6
    census = data(mailout(tmp_path, "article", "census", *key, "--filter", "state=OH", "--json"))
    assert (census["recipients"], len(census["variants"])) == (8, 3)
    out = tmp_path / "preview"
    preview = mailout(
        tmp_path, "article", "preview", *key, "--email", "ada.birch@example.org", "--out", str(out)
    )
    assert preview.returncode == 0
    assert "In Franklin County" in (out / "message.txt").read_text()
    send = ("article", "send", "--campaign-tag", "rain", *key, "--send-batch-id", BATCH, "--direct", "--json")
    assert data(mailout(tmp_path, *send))["ledger"]["recipients"] == 11
    assert len(list(tmp_path.glob("outbox/*/*.eml"))) == 11
    (sent,) = tmp_path.glob("outbox/*/ada.birch@*.eml")
    shown, got = (email.message_from_bytes(one.read_bytes()) for one in (out / "message.eml", sent))
    for header in ("From", "Subject", "List-Id"):
        assert shown[header] == got[header], header
    data(mailout(tmp_path, *send))
    assert len(list(tmp_path.glob("outbox/*/*.eml"))) == 11
    assert data(mailout(tmp_path, "dead-letters", "list", "--json")) == []


def test_a_file_with_mistakes_keeps_what_is_right_and_says_the_rest_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "slices.csv"
    file.write_text("article_key,section_order,publish_status,title\na,1,published,T\na,0,published,T\n")
    done = mailout(tmp_path, "article", "import", str(file))
    assert (done.returncode, "1 added" in done.stdout) == (1, True)
    assert "VALIDATION_ERROR" in (tmp_path / "slices.errors.csv").read_text()
    wrong = mailout(tmp_path, "article", "census", "--article-key", "a", "--filter", "colour=red")
    assert (wrong.returncode, "colour" in wrong.stderr) == (2, True)


def test_a_preview_says_that_a_slice_asks_for_what_articles_do_not_have(tmp_path: Path) -> None:
    file, out = tmp_path / "slices.csv", tmp_path / "preview"
    file.write_text(
        "article_key,section_order,publish_status,title,body_md\na,1,published,{{ name }},Dear.\n"
    )
    assert mailout(tmp_path, "article", "import", str(file)).returncode == 0
    place = ("--ocd", "ocd-division/country:us", "--out", str(out))
    preview = mailout(tmp_path, "article", "preview", "--article-key", "a", *place)
    assert "It would not be sent: The slice in section 1 for everybody asks for {{ name }}" in preview.stdout
