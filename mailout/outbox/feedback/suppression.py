"""The provider's suppression list and ours: what each can tell the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Protocol

from mailout.base.addresses import address_of
from mailout.letters.audience import subscriber_rows
from mailout.letters.audience.port import SubscriberColumns
from mailout.outbox.feedback.port import FeedbackStore, StatusChange


class Reason(StrEnum):
    """Why SES suppresses an address, in its own words."""

    BOUNCE = "BOUNCE"
    COMPLAINT = "COMPLAINT"

    def change(self, at: float) -> StatusChange:
        """What that says of a subscriber."""
        if self is Reason.COMPLAINT:
            return StatusChange("unsubscribed", at, complained=True)
        return StatusChange("bounced", at, "Permanent", "OnAccountSuppressionList")


class SuppressionList(Protocol):
    def pages(self) -> Iterator[Mapping[str, StatusChange]]: ...
    def put(self, email: str, reason: Reason) -> None: ...


def pull(store: FeedbackStore, there: SuppressionList) -> tuple[int, int]:
    """Take over what the provider knows: how many it has, how many subscribers stand differently now."""
    listed = changed = 0
    for page in there.pages():
        changes = {address: change for email, change in page.items() if (address := address_of(email))}
        listed += len(page)
        changed += store.change_statuses(changes)
    return listed, changed


def to_push(store: FeedbackStore) -> Iterator[tuple[str, Reason]]:
    """Whom the provider should know of: who complained, and whose address is dead."""
    after = ""
    while page := subscriber_rows.subscribers(store, after=after, limit=1000):
        for row in page:
            reason = reason_for(row)
            if reason is not None:
                yield row["email_norm"], reason
        after = page[-1]["email_norm"]


def reason_for(row: SubscriberColumns) -> Reason | None:
    if row["complained_at"] is not None:
        return Reason.COMPLAINT
    dead = row["status"] == "bounced" and row["bounce_type"] == "Permanent"
    # What came from the provider's list is on it already.
    return Reason.BOUNCE if dead and row["bounce_subtype"] != "OnAccountSuppressionList" else None
