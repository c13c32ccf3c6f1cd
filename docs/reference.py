"""`make docs` makes docs/settings.md and docs/errors.md. The words are where the things are, once.

A setting is explained in `.env.example`, an enum's member in the comment beside it, a remedy in
`mailout/insight/reporting/codes.py` or `mailout/outbox/delivery/error_codes.py`.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mailout.adapters.ses import error_map
from mailout.base import errors
from mailout.base.addresses import Dropped
from mailout.base.errors import AbortCode, CheckSkipped, MailoutError
from mailout.base.settings import Settings
from mailout.insight.reporting.codes import MESSAGES, NOTES, STOPPED, remedy_of
from mailout.insight.reporting.phrases import WHY
from mailout.outbox.delivery.error_codes import ANSWERS
from mailout.outbox.delivery.protocol import OutcomeKind
from mailout.outbox.queue.mailout import WAITS_FOR_A_PERSON, DeferReason

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / ".env.example"
NOT_TO_BE_SHOWN = "change-me"

_RESUME = "then `mailout queue resume ID`."
WAITING: Mapping[DeferReason, str] = {
    DeferReason.RATE_PER_HOUR: "Nothing: it goes on at the next full hour. Or raise `LIMIT_PER_HOUR`,"
    f" {_RESUME}",
    DeferReason.DAILY_LIMIT: "Nothing: it goes on the next day. Or raise `LIMIT_PER_DAY` or `WARMUP`,"
    f" {_RESUME}",
    DeferReason.OUTSIDE_HOURS: "Nothing: it goes on when `SEND_WINDOW` opens on one of `SEND_DAYS`. Or"
    f" change these, {_RESUME}",
    DeferReason.QUOTA_EXHAUSTED: "Nothing: it goes on when the quota frees. Or ask AWS for more.",
    DeferReason.TRANSIENT_ERRORS: "Nothing: it tries again by itself. If it lasts, see `mailout doctor`.",
    DeferReason.PAUSED: "When it may go on, `mailout queue resume ID`.",
    DeferReason.REPUTATION: f"Find out where these addresses came from, clean the list, {_RESUME}",
    DeferReason.CONFIGURATION_ERROR: f"`mailout queue show ID` says what is wrong: fix it, {_RESUME}",
    DeferReason.DUPLICATE_CONTENT: "`mailout queue resume ID` if it is meant; else `… cancel ID`.",
    DeferReason.UNTESTED: "Send a test of it: `mailout send REF --test`; then it goes on.",
}
"""What to do about a mailout that waits."""
DOES: Mapping[OutcomeKind, str] = {
    OutcomeKind.PERMANENT: "the message has failed",
    OutcomeKind.TRANSIENT: "the message is tried again, up to `MAX_ATTEMPTS`",
    OutcomeKind.THROTTLED: (
        "sending slows down; it costs no attempt, unless the message alone is throttled: then every fifth"
        " time. After a minute of nothing else the mailout waits: `transient_errors`"
    ),
    OutcomeKind.QUOTA: "the mailout waits: `quota_exhausted`",
    OutcomeKind.STOP: "the mailout waits: `configuration_error`",
    OutcomeKind.UNKNOWN: "the message is unknown, and never sent again by itself",
}
"""What mailout does about an answer of SES."""


def main() -> None:
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


def pages() -> dict[Path, str]:
    made = {"settings.md": settings_page(), "errors.md": errors_page()}
    return {HERE / name: "\n".join(lines) + "\n" for name, lines in made.items()}


# ── Settings ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Explained:
    """Settings that stand together under one explanation."""

    section: str
    text: str
    values: Sequence[tuple[str, str]]  # names, and what the line shows


def explained(example: str) -> Iterator[Explained]:
    """Read `.env.example`: `# ── section ──`, `# words`, `#NAME=value`."""
    section, words, values = "", list[str](), list[tuple[str, str]]()
    for line in [*example.splitlines(), ""]:
        setting = re.fullmatch(r"#([A-Z0-9_]+)=(.*)", line)
        if setting:
            values.append((setting[1], setting[2]))
            continue
        if values:
            yield Explained(section, " ".join(words), values)
            words, values = [], []
        if found := re.fullmatch(r"# ── (.+?) ─+", line):
            section = found[1]
            words = []
        elif line.startswith("# "):
            words.append(line.removeprefix("# "))
        else:
            words = []


def settings_page() -> Iterator[str]:
    yield "<!-- Made by `make docs` from .env.example: change it there. -->"
    yield "# Settings"
    yield ""
    yield "They are read from the environment and from `.env` in the folder you are in; the environment goes"
    yield "first, and an empty value counts as unset. A wrong one is named with its remedy before anything is"
    yield "sent; `mailout doctor` goes through them all."
    yield ""
    yield "Prefect's own settings may stand there too: `PREFECT_API_URL`, `PREFECT_API_AUTH_STRING` or"
    yield "`PREFECT_API_KEY`, and `PREFECT_UI_URL`. Without them `mailout up` starts a Prefect server"
    yield "of its own ([running.md](running.md))."
    sections: dict[str, list[Explained]] = defaultdict(list)
    for one in explained(EXAMPLE.read_text(encoding="utf-8")):
        sections[one.section].append(one)
    for section, members in sections.items():
        yield ""
        yield f"## {section}"
        yield from _table(("setting", "default", "what it does"), map(_setting_row, members))


def _setting_row(one: Explained) -> Sequence[str]:
    names = "<br>".join(f"`{name}`" for name, _ in one.values)
    return names, "<br>".join(_default(name, shown) for name, shown in one.values), one.text


def _default(name: str, shown: str) -> str:
    """The line shows the default, or (where there is none) an example."""
    if Settings.model_fields[name.lower()].default not in (None, (), ""):
        return f"`{shown}`"
    return "unset" if NOT_TO_BE_SHOWN in shown else f"unset; like `{shown}`"


# ── Codes ────────────────────────────────────────────────────────────────────────────────────────


def errors_page() -> Iterator[str]:
    yield "<!-- Made by `make docs` from the code: change the words there. -->"
    yield "# Codes, and what to do about each"
    yield ""
    yield "`mailout status`, `mailout queue show ID`, the errors database and the report show them. `ID` is a"
    yield "mailout's id or the beginning of it, its file or its page."
    yield from _chapter(
        "A mailout waits", "It goes on by itself at the time it names, or waits for a person."
    )
    yield from _table(("reason", "meaning", "how long", "what to do"), map(_waiting_row, DeferReason))
    yield from _chapter("A mailout stops before its first message", "Nothing was sent to anybody.")
    stopped = meanings(AbortCode)
    yield from _table(CODE, ((f"`{one}`", stopped[one], STOPPED[one]) for one in AbortCode))
    yield from _chapter(
        "SES answered", "AWS's own names are in brackets; a message keeps them as `originalCode`."
    )
    yield from _table(("code", "what mailout does", "what to do"), map(_ses_row, sorted(ANSWERS)))
    yield from _chapter("A message went no further", "Beside what SES answers.")
    yield from _table(CODE, ((f"`{code}`", *words) for code, words in MESSAGES.items()))
    yield from _chapter("Worth knowing", "Where one stops a real letter, it says so.")
    yield from _table(CODE, ((f"`{code}`", *words) for code, words in NOTES.items()))
    yield from _chapter(
        "An address is left out", "Correct the row and import it again; `--rejects FILE` lists them."
    )
    dropped = meanings(Dropped)
    yield from _table(("reason", "meaning"), ((f"`{one}`", _plain(dropped[one])) for one in Dropped))
    yield from _chapter(
        "Exit codes", "0 done, 75 deferred, 130 Ctrl-C, 143 SIGTERM, 141 nobody read on; and:"
    )
    yield from _table(("code", "when"), _exit_rows())


CODE = ("code", "meaning", "what to do")
NO_END = (MailoutError, CheckSkipped)  # no command ends with these


def _chapter(title: str, about: str) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield about
    yield ""


def _waiting_row(reason: DeferReason) -> Sequence[str]:
    how_long = "until a person says so" if reason in WAITS_FOR_A_PERSON else meanings(DeferReason)[reason]
    return f"`{reason}`", WHY[reason], how_long, WAITING[reason]


def _ses_row(code: str) -> Sequence[str]:
    row = ANSWERS[code]
    theirs = sorted(name for name, one in error_map.TABLE.items() if one.code == code)
    named = f"`{code}`" + (f"<br>({', '.join(theirs)})" if theirs else "")
    return named, DOES[row.kind], remedy_of(code)


def _exit_rows() -> Iterator[Sequence[str]]:
    kinds: dict[int, list[str]] = defaultdict(list)
    for kind in vars(errors).values():
        if inspect.isclass(kind) and issubclass(kind, MailoutError) and kind not in NO_END:
            kinds[kind.exit_code].append(str(kind.__doc__).splitlines()[0].rstrip("."))
    for code, said in sorted(kinds.items()):
        yield f"{code}", "; ".join(said)


def meanings(kind: type[StrEnum]) -> dict[StrEnum, str]:
    """What stands beside each member."""
    said = re.findall(r'^    ([A-Z_]+) = ".*"  # (.+)$', inspect.getsource(kind), re.MULTILINE)
    return {kind[name]: meaning for name, meaning in said}


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(head)
    yield "|" + "---|" * len(head)
    yield from map(_row, rows)


def _plain(text: str) -> str:
    return text.replace("<", "&lt;")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


if __name__ == "__main__":
    main()
