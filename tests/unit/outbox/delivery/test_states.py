"""The table of states, held against itself."""

from __future__ import annotations

import pytest

from mailout.outbox.delivery.states import COLUMN_OF, DOUBTFUL, TRANSITIONS, WAITING, Column, State, allowed

PASSED_THROUGH = {State.RECEIVED, State.VALIDATED}


def test_every_state_a_message_rests_in_counts_in_the_ledger() -> None:
    """A state without a column would unbalance the ledger."""
    assert set(COLUMN_OF) == set(State) - PASSED_THROUGH
    assert set(COLUMN_OF.values()) == set(Column)


def test_the_table_knows_every_resting_state_and_leads_to_no_other() -> None:
    assert set(TRANSITIONS) == set(COLUMN_OF)
    assert {after for afters in TRANSITIONS.values() for after in afters} <= set(COLUMN_OF)


@pytest.mark.parametrize("state", list(State))
def test_no_state_leads_to_itself(state: State) -> None:
    assert not allowed(state, state)


def test_a_sent_message_never_waits_again_but_through_a_rejection() -> None:
    """SENT → waiting would be a second letter."""
    assert TRANSITIONS[State.SENT] == {State.FAILED}


def test_only_what_waits_can_begin() -> None:
    """An unknown or failed message is sent again only after a person has made it wait."""
    assert {before for before in State if allowed(before, State.SENT_ATTEMPT)} == set(WAITING)


def test_only_a_begun_attempt_becomes_unknown() -> None:
    assert {before for before in State if allowed(before, State.UNKNOWN)} == {State.SENT_ATTEMPT}


def test_what_is_in_doubt_can_take_every_outcome() -> None:
    outcomes = {State.SENT, State.FAILED, State.RETRY_SCHEDULED, State.PENDING, State.VALIDATION_FAILED}
    for state in DOUBTFUL:
        assert outcomes <= TRANSITIONS[state]


@pytest.mark.parametrize("state", [State.SUPPRESSED, State.VALIDATION_FAILED])
def test_who_left_and_what_is_wrong_stay_so(state: State) -> None:
    assert not TRANSITIONS[state]


@pytest.mark.parametrize("state", sorted(PASSED_THROUGH))
def test_nothing_rests_in_a_state_that_is_passed_through(state: State) -> None:
    assert not any(allowed(before, state) or allowed(state, before) for before in State)
