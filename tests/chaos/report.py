"""The table, for the screen and for docs/reliability.md."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from tests.chaos.matrix import Row
from tests.chaos.runner import Played, Run, failures
from tests.chaos.verdict import Verdict

ROOT = Path(__file__).parents[2]
HEAD = (
    *("fault", "store", "mode", "strikes", "accepted", "twice", "lost", "unknown", "failed", "stuck"),
    *("misreported", "ledger"),
)
INTRO = """# What survives what

Written by `make chaos`: {scenes} scenes, {kills:,} processes killed, {minutes:.0f} minutes on {cores} cores,
mailout {version}, {commit}, Python {python}. `make chaos ARGS=NAME` plays one row again, and
`make chaos ARGS=NAME:STORE:MODE` one scene of it.

Real processes send through a stand-in for Amazon SES over HTTP (or into a folder), over a real SQLite file or
a real Postgres. While they do, the fault strikes; then the same is started again without it, until nothing is
left to do.

- **accepted**, **twice**: counted by the receiver (its own record, or the files in the folder).
- **lost**: neither accepted, nor waiting, nor known to have failed or to be in doubt.
- **unknown**: an attempt began and nobody knows how it ended. Recorded so, never sent again by itself.
- **failed**: recorded as not sent, and the receiver does not have it; the codes in brackets say why. Refused
  for good, or not taken in all its attempts. Of a notification also: its sender stood still for so long that
  its producer was told `outcome_unknown`, and when it woke, the call had never left. A person requeues it.
- **stuck**: still waiting when all is well again, after what waits for a person was resumed.
- **misreported**: recorded as failed although the receiver has it, failed without a code, deliveries counted
  wrongly, or a producer's row that does not say what became of its mail.
- **ledger**: whether each mailout's counts are those of its messages, and the counters of the limits those of
  the attempts.

"""
PAGE = ROOT / "docs" / "reliability.md"
SOAK = "## An hour of it"
"""The section that `make soak` writes: it stays when the rest is written anew."""
MODES = "folder, single, bulk: a letter into a folder, by SES one by one, by SES in bulk"


def rows_of(run: Run) -> Iterable[tuple[str, ...]]:
    """Kills and stops of the sender for each store and mode; of every other fault the sum."""
    seen: dict[str, list[Played]] = {}
    for one in run.played:
        seen.setdefault(one.row.name, []).append(one)
    for played in seen.values():
        row = played[0].row
        if row.name in ("kill", "stop"):
            for one in played:
                yield _cells(row, [one])
        else:
            yield _cells(row, played)
    for row in run.impossible:
        yield (f"{row.what} (`{row.name}`)", *("not possible here",) * (len(HEAD) - 1))


def _cells(row: Row, played: Sequence[Played]) -> tuple[str, ...]:
    total = sum((one.verdict for one in played), Verdict())
    broken = sum(bool(one.failure) for one in played)
    modes = dict.fromkeys(one.scene.mode for one in played)
    stores = dict.fromkeys(one.scene.store for one in played)
    return (
        f"{row.what} (`{row.name}`)",
        ", ".join(stores),
        "all six" if len(modes) == 6 else ", ".join(modes),
        f"{total.hits:,}",
        f"{total.accepted:,}",
        *(str(number) for number in (total.twice, total.lost, total.unknown)),
        failures(total),
        *(str(number) for number in (total.stuck, total.misreported)),
        f"{broken} broke off" if broken else "off" if total.unbalanced else "balances",
    )


def table(run: Run) -> str:
    """Markdown, which is legible as it is."""
    lines = [HEAD, tuple("---" for _ in HEAD), *rows_of(run)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(run: Run) -> str:
    total = sum((one.verdict for one in run.played), Verdict())
    summary = (
        f"In all {total.scenes:,} mailings, {total.hits:,} strikes, {total.accepted:,} mails accepted:"
        f" **{total.twice} twice, {total.lost} lost, {total.stuck} stuck, {total.misreported} misreported**,"
        f" {total.unknown:,} unknown.\n\n"
    )
    bad = "".join(f"- {one.scene.name}: {'; '.join(one.problems)}\n" for one in run.bad)
    return (
        INTRO.format(
            scenes=len(run.played),
            kills=run.kills,
            minutes=run.seconds / 60,
            cores=os.cpu_count(),
            version=version("mailout"),
            commit=_commit(),
            python=platform.python_version(),
        )
        + summary
        + (f"Not as it should be:\n{bad}\n" if bad else "")
        + table(run)
        + f"\n\nModes: {MODES}; single mails, articles and notifications by SES one by one.\n"
    )


def write_page(run: Run) -> None:
    kept = PAGE.read_text(encoding="utf-8").partition(SOAK)[1:] if PAGE.exists() else ()
    PAGE.write_text(page(run) + "\n" * any(kept) + "".join(kept), encoding="utf-8")


def write_soak(section: str) -> None:
    before = PAGE.read_text(encoding="utf-8").partition(SOAK)[0].rstrip("\n")
    PAGE.write_text(f"{before}\n\n{SOAK}\n\n{section}", encoding="utf-8")


def _commit() -> str:
    """Of the code that was run, if it is a checkout."""
    git = ["git", "-C", str(ROOT)]
    try:
        at = subprocess.check_output([*git, "rev-parse", "--short", "HEAD"], text=True)
        changed = subprocess.check_output([*git, "status", "--porcelain"], text=True)
    except (OSError, subprocess.CalledProcessError):
        return "no commit"
    return f"commit {at.strip()}{' with changes' if changed else ''}"
