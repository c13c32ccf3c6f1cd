"""Why a mailout is not enqueued: it was sent, cancelled or rehearsed before, or somebody lacks a variable."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from mailout.audience.port import Lacking
from mailout.errors import Abort, AbortCode, UsageError
from mailout.queue.mailout import Mailout


def already_sent(subject: str) -> Abort:
    return Abort(
        AbortCode.MAILOUT_ALREADY_SENT,
        f"“{subject}” has been sent; a real mailout goes out once.",
        remedy="To send to those that failed: `mailout queue retry`. For a trial: `--test`.",
    )


def cancelled(mailout: Mailout) -> UsageError:
    return UsageError(
        f"This mailout was cancelled on its way ({mailout.id}): some people may have got it.",
        remedy="To send it all the same, give the page or file another id.",
    )


class AlreadyRehearsed(Abort):
    """The same content was written to the folder before."""


def already_rehearsed(mailout: Mailout) -> AlreadyRehearsed:
    return AlreadyRehearsed(
        AbortCode.MAILOUT_ALREADY_SENT,
        f"“{mailout.subject}” has been rehearsed and has not changed since.",
        remedy="To rehearse it all the same: --again. To send it to people: MAILOUT_TRANSPORT=ses.",
    )


def variable_missing(lacking: Lacking, known: Sequence[str]) -> Abort:
    """`known`: what the first of them has instead."""
    name = lacking.attribute
    people = "1 person has" if lacking.people == 1 else f"{lacking.people:,} people have"
    more = " and others" if lacking.people > len(lacking.examples) else ""
    meant = get_close_matches(name, known, n=1, cutoff=0.7)
    hint = f" Did you mean {{{{ {meant[0]} }}}}?" if meant else ""
    return Abort(
        AbortCode.VARIABLE_MISSING,
        f"{people} no value for {{{{ {name} }}}}: {', '.join(lacking.examples)}{more}.{hint}",
        remedy=f"Write what they read instead: {{{{ {name} | friend }}}}. Or import it for them.",
    )
