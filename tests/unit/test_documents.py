"""README and docs/: what they say of commands, settings and codes is what the program has."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.exceptions import TyperException
from typer.main import get_command

from cli.main import COMMANDS, app
from docs.reference import WAITING, pages
from mailout.adapters.ses.checks import NEEDED_EVENTS
from mailout.base.settings import Settings
from mailout.insight.doctor.event_path import lets_write
from mailout.insight.reporting.codes import MESSAGES, NOTES, STOPPED
from mailout.outbox.delivery.error_codes import ANSWERS

ROOT = Path(__file__).parents[2]
PAGES = {path.name: text for path, text in pages().items()}
WRITTEN = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for folder, pattern in ((ROOT, "*.md"), (ROOT / "docs", "*.md"), (ROOT / "deployments", "*.md"))
    for path in folder.glob(pattern)
    if path.name != "CHANGELOG.md"
}
"""Every page for people, by its path."""


@pytest.mark.parametrize("path", sorted(pages()), ids=lambda path: path.name)
def test_the_reference_is_what_the_code_says(path: Path) -> None:
    """Whoever looks a setting or a code up must not read what was true last year."""
    assert path.read_text(encoding="utf-8") == pages()[path], "run `make docs`"


def test_every_setting_is_in_the_reference_with_its_default() -> None:
    page = PAGES["settings.md"]
    assert [name for name in Settings.model_fields if f"`{name.upper()}`" not in page] == []
    assert "| `SEND_RATE_PER_SEC` | `5` |" in page
    assert "change-me" not in page


def test_every_code_is_in_the_reference() -> None:
    page = PAGES["errors.md"]
    codes = [*WAITING, *STOPPED, *MESSAGES, *NOTES, *ANSWERS]
    assert [code for code in codes if f"| `{code}`" not in page] == []


def commands() -> Iterator[tuple[str, ...]]:
    """Every command that does something: `("queue", "pause")`."""
    group = get_command(app)
    with typer.Context(group) as context:
        for name in COMMANDS:
            yield from _leaves((name,), group.get_command(context, name))  # type: ignore[attr-defined]


def _leaves(path: tuple[str, ...], command: object) -> Iterator[tuple[str, ...]]:
    below = getattr(command, "commands", None)
    if not below:
        yield path
        return
    if getattr(command, "invoke_without_command", False):
        yield path
    for name, one in below.items():
        yield from _leaves((*path, name), one)


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_every_command_is_in_the_table_of_commands(path: tuple[str, ...]) -> None:
    """One that nobody can find is not there."""
    table = WRITTEN["docs/commands.md"].splitlines()
    rows = [line for line in table if line.startswith(f"| `mailout {path[0]}")]
    assert any(all(re.search(rf"\b{word}\b", row.split(" | ")[0]) for word in path) for row in rows)


def test_the_readme_is_short() -> None:
    """The first page is for the first hour; everything else is a link away."""
    assert len(WRITTEN["README.md"].split()) <= 900


def test_the_readme_leads_to_every_page() -> None:
    linked = set(re.findall(r"\]\((docs/[^)#]+\.md)", WRITTEN["README.md"]))
    assert {name for name in WRITTEN if name.startswith("docs/")} <= linked


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_every_command_on_a_page_is_understood_as_it_is_written(name: str) -> None:
    """Whoever copies it must not be told that there is no such option."""
    text = WRITTEN[name].replace("\\|", "|")
    in_line = re.findall(r"`(?:[A-Z_]+=\S+ )*mailout ([^`]+)`", text)
    in_blocks = re.findall(r"(?m)^(?:\$ )?mailout ([^\n]+)$", "\n".join(re.findall(r"(?s)```.*?```", text)))
    wrong = {line: why for line in (*in_line, *in_blocks) if (why := _misunderstood(line))}
    assert wrong == {}


def _misunderstood(line: str) -> str | None:
    """Why the command line does not take this; what is in brackets is given, too."""
    given = re.sub(r"\$\([^)]*\)", "WORD", re.sub(r"(--\S+ )?…", "", line.partition(" #")[0]))
    words = [word.partition("|")[0] for word in shlex.split(re.sub(r"[\[\]]", " ", given))]
    words = ["1" if word.isupper() else word for word in words]  # ID, N, EMAIL: to be filled in
    if not words or words[0].startswith("--") or tuple(words) in _paths():
        return None  # it is only named
    return _refusal(words)


@cache
def _paths() -> frozenset[tuple[str, ...]]:
    """Commands and the groups above them, `--help` and its like included."""
    leaves = set(commands())
    return frozenset(leaves | {leaf[:length] for leaf in leaves for length in (1, 2)})


def _refusal(words: list[str]) -> str | None:
    """What typer says of these words. Neither a missing file nor an argument left out is a page's fault."""
    command: Any = get_command(app)
    context, name = None, "mailout"
    try:
        while True:
            context = command.make_context(name, list(words), parent=context)
            rest = [*getattr(context, "_protected_args", ()), *context.args]
            if not hasattr(command, "resolve_command") or not rest:
                return None
            name, command, words = command.resolve_command(context, rest)
    except typer.Exit:
        return None  # --help
    except TyperException as error:
        said = error.format_message()
        return None if "does not exist" in said or said.startswith("Missing") else said


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_no_page_names_a_setting_that_is_not_there(name: str) -> None:
    """A misspelt setting is a setting that does nothing."""
    ours = "MAILOUT|NOTION|NOTIFY|SEND|SES|SUPABASE|UNSUBSCRIBE|MEDIA|SNS|SQS|LIMIT|MAX"
    found = re.findall(rf"`((?:{ours})_[A-Z_]+)(?:=[^`]*)?`", WRITTEN[name])
    named = {name for name in found if not name.endswith("_")}  # `NOTION_PROP_*` is many
    known = {name.upper() for name in Settings.model_fields} | set(ANSWERS)
    assert named <= known, named - known


@pytest.mark.parametrize("name", sorted(WRITTEN))
def test_links_lead_somewhere(name: str) -> None:
    for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", WRITTEN[name]):
        if "://" in link:
            continue
        page = (ROOT / name).parent / link if link else ROOT / name
        assert page.exists(), link
        if anchor:
            assert anchor in _anchors(page.read_text(encoding="utf-8")), f"{link}#{anchor}"


def _anchors(text: str) -> set[str]:
    """As GitHub makes them of headings."""
    heads = re.findall(r"(?m)^#+ (.+)$", text)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_the_queue_s_policy_in_the_aws_page_lets_the_topic_write() -> None:
    """People paste it; one brace too few, and no event ever arrives."""
    page = (ROOT / "docs/aws.md").read_text(encoding="utf-8")
    (written,) = re.findall(r"<<'END'\n(.*?)\n *END\n", page, re.DOTALL)
    policy = json.loads(json.loads(written.replace("\n", ""))["Policy"])
    assert lets_write(policy, "arn:aws:sns:REGION:ACCOUNT:ses-events")
    assert not lets_write(policy, "arn:aws:sns:REGION:ACCOUNT:other")


def test_the_aws_page_sets_up_every_event_that_doctor_asks_for() -> None:
    page = (ROOT / "docs/aws.md").read_text(encoding="utf-8")
    assert [event for event in NEEDED_EVENTS if f'"{event}"' not in page] == []


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/inside.md"])
def test_every_file_that_a_page_about_the_code_names_is_there(page: str) -> None:
    """Whoever follows one message through the code by these names must not end at a file that was moved."""
    named = set(re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", (ROOT / page).read_text(encoding="utf-8")))
    assert len(named) > 5
    assert [
        name for name in sorted(named) if not ((ROOT / name).exists() or (ROOT / "mailout" / name).exists())
    ] == []
