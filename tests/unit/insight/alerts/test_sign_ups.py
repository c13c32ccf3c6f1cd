"""Sign-ups: a person hears of a flood, and of confirmations that bounce."""

from __future__ import annotations

from datetime import UTC

import pytest

from mailout.insight.alerts.conditions import alerts
from mailout.insight.alerts.port import AlertKind, Facts, Signs

NOW = 1_794_830_400.0


@pytest.mark.parametrize(("ago", "told"), [(1.0, 1), (3599.0, 1), (3601.0, 0), (None, 0)])
def test_a_flood_is_told_while_it_lasts(ago: float | None, told: int) -> None:
    signs = Signs(NOW, sign_up_brake_at=None if ago is None else NOW - ago)
    found = alerts(Facts(signs), UTC)
    assert [alert.kind for alert in found] == [AlertKind.SIGN_UPS] * told


@pytest.mark.parametrize(
    ("sent", "bounced", "told"),
    [(99, 99, False), (100, 5, False), (100, 6, True), (1000, 60, True), (0, 0, False)],
)
def test_confirmations_that_bounce_have_an_alert_of_their_own(sent: int, bounced: int, told: bool) -> None:
    """SES counts them against the account, whatever they are for."""
    signs = Signs(NOW, confirmations_sent=sent, confirmations_bounced=bounced)
    found = alerts(Facts(signs, max_bounce_rate=0.05), UTC)
    assert bool(found) == told
    if found:
        assert f"{bounced} of {sent:,} confirmations" in found[0].text
