"""What a page says of its mailout."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.insight.page_status.state import PageState, PageStatus, page_state
from mailout.letters.content.port import Kind
from mailout.outbox.delivery.protocol import Ledger
from mailout.outbox.queue.mailout import Mailout, MailoutOutcome, Status

END = 1_794_830_400.0


def mailout(status: Status, **more: object) -> Mailout:
    return Mailout(id="m", kind=Kind.NOTION, ref="page", status=status, **more)  # type: ignore[arg-type]


def done(**more: object) -> Mailout:
    given = {"outcome": MailoutOutcome.SENT, "completed_at": END, "ledger": Ledger(recipients=3, sent=3)}
    return mailout(Status.COMPLETED, **(given | more))


@given(
    st.sampled_from(Status),
    st.sampled_from([None, *MailoutOutcome]),
    st.integers(0, 9),
    st.dictionaries(st.sampled_from(["delivered", "bounced", "unsubscribed"]), st.integers(0, 9)),
)
def test_a_test_run_never_writes_what_could_block_the_real_one(
    status: Status, outcome: MailoutOutcome | None, sent: int, metrics: dict[str, int]
) -> None:
    ledger = Ledger(recipients=sent, sent=sent)
    test = mailout(status, is_test=True, outcome=outcome, ledger=ledger, metrics=metrics, completed_at=END)
    state = page_state(test)
    assert state == PageState(status=state.status, is_test=True, note=state.note)
    assert state.status in (PageStatus.SENDING, PageStatus.DRAFT)


@pytest.mark.parametrize("status", [Status.PENDING, Status.PROCESSING])
def test_while_it_is_under_way_only_the_status_speaks(status: Status) -> None:
    assert page_state(mailout(status)) == PageState(status=PageStatus.SENDING)


def test_a_mailout_that_went_well_is_send_with_its_counts() -> None:
    assert page_state(done()) == PageState(status=PageStatus.SEND, sent_at=END, sent_count=3, failed_count=0)


def test_a_failed_run_has_its_sent_at_so_that_only_retry_goes_on() -> None:
    """Without it, `Ready` would send it to everybody again."""
    ledger = Ledger(recipients=3, sent=0, failed=3)
    state = page_state(done(outcome=MailoutOutcome.FAILED, ledger=ledger))
    assert (state.status, state.sent_at, state.failed_count) == (PageStatus.FAILED, END, 3)


def test_rates_are_shares_of_what_was_sent() -> None:
    metrics = {"delivered": 2, "bounced": 1, "unsubscribed": 1, "complained": 1}
    state = page_state(done(metrics=metrics))
    assert (state.delivered_count, state.bounce_rate, state.unsub_rate) == (2, 0.3333, 0.3333)
    nobody = page_state(done(metrics=metrics, ledger=Ledger()))
    assert (nobody.bounce_rate, nobody.unsub_rate) == (0.0, 0.0)


def test_one_taken_back_in_time_was_not_sent() -> None:
    assert page_state(mailout(Status.CANCELLED, completed_at=END)).sent_at is None
    begun = Ledger(recipients=3, sent=1, suppressed=2)
    assert page_state(mailout(Status.CANCELLED, completed_at=END, ledger=begun)).sent_at == END
