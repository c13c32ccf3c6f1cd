"""The table, for the screen and for docs/reliability.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.chaos.matrix import Row
from tests.chaos.runner import Played, Run
from tests.chaos.verdict import Verdict

HEAD = (
    "fault",
    "store",
    "mode",
    "strikes",
    "accepted",
    "twice",
    "lost",
    "unknown",
    "failed",
    "stuck",
    "ledger",
)
INTRO = """# What survives what

One table from one run of `make chaos` ({minutes:.0f} minutes, {kills:,} kills of senders in it);
`make chaos ARGS=NAME` plays one row again. Nothing here is written by hand.

Real processes send through a stand-in for Amazon SES over HTTP (or into a folder), over a real SQLite file or
a real Postgres. While they do, the fault strikes; then the same is started again without it, until nothing is
left to do.

- **accepted**, **twice**: counted by the receiver (its own record, or the files in the folder).
- **lost**: neither accepted, nor waiting, nor known to have failed or to be in doubt.
- **unknown**: an attempt began and nobody knows how it ended. Said to be so, never sent again by itself.
- **failed**: refused for good, or not taken in all its attempts, and said to be so.
- **stuck**: still waiting when all is well again, and nothing says why.
- **ledger**: whether each mailout's counts are those of its messages, and the counters of the limits those of
  the attempts.

"""
MODES = "folder, single, bulk: a letter into a folder, by SES one by one, by SES in bulk"


def rows_of(run: Run) -> Iterable[tuple[str, ...]]:
    """Kills and stops of the sender for each store and mode; of every other fault the sum."""
    seen: dict[str, list[Played]] = {}
    for one in run.scenes:
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
    modes = dict.fromkeys(one.mode for one in played)
    stores = dict.fromkeys(one.store for one in played)
    return (
        f"{row.what} (`{row.name}`)",
        ", ".join(stores),
        "all six" if len(modes) == 6 else ", ".join(modes),
        f"{total.hits:,}",
        f"{total.accepted:,}",
        *(str(number) for number in (total.twice, total.lost, total.unknown, total.failed, total.stuck)),
        f"{broken} broke off" if broken else "off" if total.unbalanced else "balances",
    )


def table(run: Run) -> str:
    """Markdown, which is legible as it is."""
    lines = [HEAD, tuple("---" for _ in HEAD), *rows_of(run)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(run: Run) -> str:
    kills = sum(one.verdict.hits for one in run.scenes if one.row.name == "kill")
    total = sum((one.verdict for one in run.scenes), Verdict())
    bad = [one.line() for one in run.scenes if not one.is_good]
    summary = (
        f"In all {total.scenes:,} scenes, {total.hits:,} strikes, {total.accepted:,} mails accepted:"
        f" **{total.twice} twice, {total.lost} lost, {total.stuck} stuck**, {total.unknown:,} unknown.\n\n"
    )
    faults = "".join(f"- {line}\n" for line in bad)
    return (
        INTRO.format(minutes=run.seconds / 60, kills=kills)
        + summary
        + (f"Not as it should be:\n{faults}\n" if bad else "")
        + table(run)
        + f"\n\nModes: {MODES}; single mails, articles and notifications by SES one by one.\n"
    )
