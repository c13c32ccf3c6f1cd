"""What would stop a letter whose time has not come: its page says so now, while somebody can put it right."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from mailout.base.errors import MailoutError, SourceUnavailable, StoreError
from mailout.insight.history.history_rows import keep_note, note_value
from mailout.insight.page_status.writer_notes import refusal
from mailout.kinds.mailouts.mailouts import MailoutIntake
from mailout.letters.content.document import Problem, problem_line

log = logging.getLogger("mailout.requests")

CHECKED_PAGES = "pages checked early"
"""Among the store's notes: as of which edit."""
EDIT_SECONDS = 60.0
"""Notion tells the minute of an edit: within it there may be another."""
NOT_READ = 0.0
PAGES_AT_ONCE = 3


def check_early(intake: MailoutIntake) -> None:
    """Pages that ask to be sent later, as they were last found: each once, and again after an edit.

    A few in each run, when all else is done; those that could not be read come after the others.
    """
    later = intake.pages.reporter.later if intake.pages.reporter else None
    if later is None or intake.pages.away:
        return
    before = {one["ref"]: one["edited"] for one in note_value(intake.store, CHECKED_PAGES)}
    checked = {ref: edited for ref, edited in before.items() if ref in later}
    new = [ref for ref in later if ref not in checked]
    due = [*new, *(ref for ref, edited in checked.items() if edited != later[ref])]
    for ref in due[:PAGES_AT_ONCE]:
        try:
            is_told = intake.pages.show_findings(ref, _found(intake, ref))
        except StoreError:
            raise
        except SourceUnavailable as error:
            log.info("%s could not be checked before its time: %s", ref, error)
            checked.pop(ref, None)
            checked[ref] = NOT_READ
            _keep(intake, checked)
            return
        if is_told and later[ref] + EDIT_SECONDS <= intake.store.now():
            checked[ref] = later[ref]
            _keep(intake, checked)
    if checked.keys() != before.keys():
        _keep(intake, checked)


def _keep(intake: MailoutIntake, checked: Mapping[str, float]) -> None:
    keep_note(intake.store, CHECKED_PAGES, [{"ref": ref, "edited": at} for ref, at in checked.items()])


def _found(intake: MailoutIntake, ref: str) -> list[Problem]:
    try:
        reading = intake.letters.reading(intake.letters.read(ref))
        stops: list[Exception] = [*intake.refusals(reading)]
        findings = reading.findings if reading.is_rendered else ()
    except (StoreError, SourceUnavailable):
        raise
    except Exception as error:  # what nobody foresaw must not stop the queue
        unforeseen = None if isinstance(error, MailoutError) else error
        log.warning("%s would not be sent: %s", ref, error, exc_info=unforeseen)
        stops, findings = [error], ()
    said = [f"This letter would not be sent. {_while_ready(refusal(error, None))}" for error in stops]
    others = [one for one in findings if not any(problem_line(one) in stop for stop in said)]
    return [*(Problem("cannot_be_sent", one) for one in said), *others]


def _while_ready(said: str) -> str:
    """Without the last step: the page is Ready."""
    return re.sub(r"(?:, then| and|\.? Then) set (?:the page to )?Ready again", "", said)
