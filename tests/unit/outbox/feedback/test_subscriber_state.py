"""Any order of the same news ends in the same standing."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from mailout.outbox.feedback.port import StatusChange
from mailout.outbox.feedback.subscriber_state import SubscriberState, after

MOMENTS = st.sampled_from([1.0, 2.0, 3.0])
BOUNCES = st.builds(
    StatusChange,
    st.just("bounced"),
    MOMENTS,
    bounce_type=st.sampled_from(["Permanent", "Transient", None]),
    bounce_subtype=st.sampled_from(["General", "MailboxFull", None]),
)
DEPARTURES = st.builds(StatusChange, st.just("unsubscribed"), MOMENTS, complained=st.booleans())
NEWS = st.lists(BOUNCES | DEPARTURES, max_size=6)


def end(news: list[StatusChange]) -> SubscriberState:
    return reduce(after, news, SubscriberState())


@given(NEWS.flatmap(lambda news: st.tuples(st.just(news), st.permutations(news))))
def test_any_order_ends_in_the_same_state(orders: tuple[list[StatusChange], list[StatusChange]]) -> None:
    assert end(orders[0]) == end(orders[1])


@given(NEWS)
def test_hearing_it_twice_changes_nothing(news: list[StatusChange]) -> None:
    assert end([*news, *news]) == end(news)


@given(NEWS)
def test_the_strongest_status_stays_with_the_latest_bounce(news: list[StatusChange]) -> None:
    found = end(news)
    bounces = [heard for heard in news if heard.status == "bounced"]
    if bounces:
        assert found.status == "bounced"
        assert found.status_updated_at == max(heard.at for heard in bounces)
        latest = [heard for heard in bounces if heard.at == found.status_updated_at]
        assert (found.bounce_type, found.bounce_subtype) in {
            (h.bounce_type, h.bounce_subtype) for h in latest
        }
    elif news:
        assert found.status == "unsubscribed"


@given(NEWS)
def test_a_complaint_stays_on_record_whatever_comes_after_it(news: list[StatusChange]) -> None:
    complaints = [heard.at for heard in news if heard.complained]
    assert end(news).complained_at == max(complaints, default=None)
