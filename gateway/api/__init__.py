"""The API for programs: single mails and recipients, under `/v1`, with a company's token."""

from __future__ import annotations

from fastapi import FastAPI

from gateway.access import WrongTokens
from gateway.api import recipients, single_mails
from gateway.api.callers import Callers
from gateway.api.problems import ApiProblem, answer_problem
from mailout.base.settings import Settings
from mailout.kinds.single_mails.single_mails import SingleMailIntake
from mailout.letters.content.from_settings import brand_of, footer_of
from mailout.outbox.delivery.port import REHEARSING
from mailout.store import Store


def include(app: FastAPI, settings: Settings, store: Store, wrong: WrongTokens) -> None:
    callers = Callers(store, wrong)
    intake = SingleMailIntake(
        lambda: footer_of(settings),
        settings.mailout_transport == REHEARSING,
        brand_of(settings),
        settings.org_name or settings.from_name or "",
    )
    app.include_router(single_mails.router(store, callers, intake))
    app.include_router(recipients.router(store, callers))
    app.add_exception_handler(ApiProblem, answer_problem)
