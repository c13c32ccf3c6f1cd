"""Two senders, crashes, lost answers, power cuts, in every order: nothing is sent twice, nothing is lost."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from tests.model.search import search
from tests.model.world import ALL_RULES, Rules


@pytest.mark.parametrize(("messages", "senders", "faults"), [(1, 2, 2), (2, 1, 2), (2, 2, 1)])
def test_nothing_is_accepted_twice_and_nothing_is_lost(messages: int, senders: int, faults: int) -> None:
    found = search(messages, senders, faults)
    assert found.wrong is None, "\n".join((found.wrong, *found.steps))
    assert found.states > 1_000, "the search did not look far"


@pytest.mark.parametrize("rule", [field.name for field in fields(Rules)])
def test_leaving_out_a_precaution_is_noticed(rule: str) -> None:
    """A search that finds nothing proves nothing unless it finds what is broken."""
    found = search(1, 2, 2, replace(ALL_RULES, **{rule: False}))
    assert found.wrong is not None
    assert found.steps
