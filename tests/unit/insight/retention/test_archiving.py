"""What may be archived, and whether an archive is whole: decided with data alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mailout.insight.retention.archive_file import ledger_of
from mailout.insight.retention.archiving import why_not
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.delivery.states import COLUMN_OF, State
from mailout.outbox.queue.mailout import Mailout, Status

OVER = Mailout(id="1", kind=Kind.NOTION, ref="page", status=Status.COMPLETED, ledger=Ledger(2, sent=2))
COUNTS = st.dictionaries(st.sampled_from(list(COLUMN_OF)), st.integers(1, 5))


def in_archive(states: Mapping[State, int]) -> Ledger:
    return ledger_of({state.value: n for state, n in states.items()})


@given(states=COUNTS)
def test_an_archive_that_holds_what_the_ledger_counts_is_whole(states: dict[State, int]) -> None:
    counts: dict[str, int] = {}
    for state, n in states.items():
        counts[COLUMN_OF[state].value] = counts.get(COLUMN_OF[state].value, 0) + n
    assert in_archive(states) == Ledger(sum(states.values()), **counts)


@given(states=COUNTS, one=st.sampled_from(list(COLUMN_OF)))
def test_one_message_too_many_is_noticed(states: dict[State, int], one: State) -> None:
    """Messages are deleted on the word of this check."""
    assert in_archive(states | {one: states.get(one, 0) + 1}) != in_archive(states)


@given(states=COUNTS)
def test_the_right_number_in_the_wrong_state_is_noticed(states: dict[State, int]) -> None:
    found = dict(states)
    found[State.FAILED] = found.get(State.FAILED, 0) + found.pop(State.SENT, 0)
    assert (in_archive(found) == in_archive(states)) == (State.SENT not in states)


def test_only_what_is_over_and_told_may_go() -> None:
    assert why_not(OVER, set()) is None
    assert "settle" in (why_not(replace(OVER, ledger=Ledger(2, sent=1, unknown=1)), set()) or "")
    assert "on the way" in (why_not(replace(OVER, ledger=Ledger(2, sent=1, in_flight=1)), set()) or "")
    assert "page" in (why_not(OVER, {"1"}) or "")
