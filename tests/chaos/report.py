"""The table, for the screen and for docs/reliability.md."""

from __future__ import annotations

import fcntl
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from tests.chaos.jobs import MODES as EVERY_MODE
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
- **lost**: neither accepted, nor waiting, nor known to have failed or to be in doubt. Also a stranger who was
  told that they have joined and is not subscribed, or who is owed a confirmation or a welcome letter.
- **unknown**: an attempt began and nobody knows how it ended. Recorded so, never sent again by itself.
- **failed**: recorded as not sent, and the receiver does not have it; the codes in brackets say why. Refused
  for good, or not taken in all its attempts. Of a notification also: its sender stood still for so long that
  its producer was told `outcome_unknown`, and when it woke, the call had never left. A person requeues it.
- **stuck**: still waiting when all is well again, after what waits for a person was resumed.
- **misreported**: recorded as failed although the receiver has it, failed without a code, deliveries counted
  wrongly, or a producer's row that does not say what became of its mail. Also anybody who is subscribed
  without having confirmed it, or by half; and a page of the archive on the web that shows a letter which is
  not public, or does not show one which is, once its first message is sent.
- **ledger**: whether each mailout's counts are those of its messages, the counters of the limits those of the
  attempts, and the counts of sign-ups those of the strangers.

"""
PAGE = ROOT / "docs" / "reliability.md"
RESULTS = (":(exclude)docs/reliability.md", ":(exclude)docs/benchmarks.md", ":(exclude)bench.json")
"""What runs like this one write: they change nothing of the code that was run."""
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
        "all six" if set(modes) == set(EVERY_MODE) else ", ".join(modes),
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
        + f"\n\nModes: {MODES}; single mails, articles, notifications and sign-ups by SES one by one.\n"
    )


def write_page(run: Run) -> None:
    """All but the section of `make soak`."""
    _rewrite(lambda before: page(run) + "\n" * (SOAK in before) + "".join(before.partition(SOAK)[1:]))


def write_soak(section: str) -> None:
    _rewrite(lambda before: f"{before.partition(SOAK)[0].rstrip()}\n\n{SOAK}\n\n{section}")


def _rewrite(new: Callable[[str], str]) -> None:
    """Both may run at once: who comes second reads what the first one has written."""
    with PAGE.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = new(file.read())
        file.truncate(0)
        file.write(text)


def _commit() -> str:
    """Of the code that was run, if it is a checkout."""
    git = ["git", "-C", str(ROOT)]
    try:
        at = subprocess.check_output([*git, "rev-parse", "--short", "HEAD"], text=True)
        changed = subprocess.check_output([*git, "status", "--porcelain", "--", ".", *RESULTS], text=True)
    except (OSError, subprocess.CalledProcessError):
        return "no commit"
    return f"commit {at.strip()}{' with changes' if changed else ''}"
