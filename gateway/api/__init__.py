"""The API for programs: single mails and recipients, under `/v1`, with a company's token."""

from __future__ import annotations

from types import ModuleType

from gateway.access import WrongTokens
from gateway.api import recipients, single_mails
from gateway.api.callers import Callers
from mailout.base.settings import Settings
from mailout.kinds.single_mails.single_mails import SingleMailIntake
from mailout.letters.content.from_settings import brand_of, footer_of
from mailout.outbox.queue.limits import Limits
from mailout.store import Store


def served(
    settings: Settings, store: Store, wrong: WrongTokens, limits: Limits
) -> list[tuple[ModuleType, object]]:
    """The modules with the routes, and what these work with."""
    callers = Callers(store, wrong)
    intake = SingleMailIntake(
        lambda: footer_of(settings),
        settings.rehearses,
        brand_of(settings),
        settings.org_name or settings.from_name or "",
    )
    return [
        (single_mails, single_mails.SingleMailApi(store, callers, intake, limits)),
        (recipients, recipients.RecipientApi(store, callers)),
    ]
