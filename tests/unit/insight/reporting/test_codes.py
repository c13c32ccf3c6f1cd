"""Codes: whoever meets one finds out what to do, in `status` and in docs/errors.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.reference import DOES, WAITING
from mailout.base.errors import AbortCode
from mailout.insight.reporting.codes import MESSAGES, NOTES, STOPPED, remedy_of
from mailout.insight.reporting.plain import summary_lines
from mailout.insight.reporting.summary import FailureGroup
from mailout.outbox.delivery.error_codes import ANSWERS
from mailout.outbox.delivery.protocol import OutcomeKind
from mailout.outbox.feedback.port import REVOKING
from mailout.outbox.queue.mailout import DeferReason
from tests.unit.insight.reporting.scenes import summary

ROOT = Path(__file__).parents[4]
SOURCES = [
    path for folder in ("mailout", "flows", "tasks", "gateway") for path in (ROOT / folder).rglob("*.py")
]
GIVE_A_CODE = {"ErrorRecord", "Problem", "NoEvent", "_invalid", "Outcome", "Result"}
KNOWN = {*AbortCode, *DeferReason, *MESSAGES, *NOTES, *ANSWERS}


def given(path: Path) -> Iterator[str]:
    """The codes that a file hands out: written there, or by a name that the file gives them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        for place in _places(node):
            for part in ast.walk(place):
                value = part.value if isinstance(part, ast.Constant) else names.get(getattr(part, "id", ""))
                if isinstance(value, str) and "_" in value and value.isidentifier() and value != "error_code":
                    yield value


def _places(node: ast.AST) -> Iterator[ast.expr]:
    """Where a code stands: the first argument, `code=…`, `refuse(row, …)`, `problem = (…, "why")`."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
        yield from (node.value.elts[0] for one in node.targets if getattr(one, "id", "") == "problem")
    if not isinstance(node, ast.Call):
        return
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name == "refuse" and len(node.args) > 1:
        yield node.args[1]
    if name in GIVE_A_CODE:
        yield from node.args[:1]
    for keyword in node.keywords:
        if keyword.arg == "code" and name in GIVE_A_CODE:
            yield keyword.value
        if keyword.arg == "problem" and isinstance(keyword.value, ast.Tuple):
            yield keyword.value.elts[0]


def test_every_code_that_the_program_hands_out_is_explained() -> None:
    handed_out = {code: path.name for path in SOURCES for code in given(path)}
    assert {"content_block_unsupported", "FOLDER_FULL", "SENDER_DIED", "event_refused"} <= set(handed_out)
    unexplained = {code: name for code, name in handed_out.items() if code not in KNOWN}
    assert unexplained == {}, "say in mailout/insight/reporting/codes.py what they mean and what to do"
    assert {code for code, _ in REVOKING.values()} <= KNOWN


def test_nothing_is_explained_that_no_longer_happens() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCES if path.name != "codes.py")
    assert [code for code in (*MESSAGES, *NOTES) if f'"{code}"' not in text] == []


def test_every_explanation_says_what_to_do() -> None:
    assert set(WAITING) == set(DeferReason)
    assert set(STOPPED) == set(AbortCode)
    assert all(words.meaning and words.remedy for words in (*MESSAGES.values(), *NOTES.values()))
    assert all(remedy_of(code) for code in ANSWERS)


def test_every_answer_of_ses_has_a_consequence() -> None:
    assert {row.kind for row in ANSWERS.values()} <= set(DOES)
    assert OutcomeKind.SENT not in DOES


@pytest.mark.parametrize(("code", "told"), [("SES_MESSAGE_REJECTED", True), ("SOMETHING_NEW", False)])
def test_a_report_of_failures_says_what_to_do_about_them(code: str, told: bool) -> None:
    failures = (FailureGroup(code, 3, "said no", ("a@example.org",)),)
    lines = summary_lines(summary(failures=failures))
    (at,) = [n for n, line in enumerate(lines) if code in line]
    assert lines[at + 1] == (f"    {remedy_of(code)}" if told else "")


def test_after_the_last_attempt_nobody_is_told_that_it_is_tried_again() -> None:
    assert "by itself" in remedy_of("SES_SERVICE_UNAVAILABLE")
    for code in ("SES_SERVICE_UNAVAILABLE", "NETWORK_ERROR", "SES_THROTTLING"):
        assert "`mailout queue retry ID`" in remedy_of(code, failed=True)
    assert remedy_of("SES_MESSAGE_REJECTED", failed=True) == remedy_of("SES_MESSAGE_REJECTED")
