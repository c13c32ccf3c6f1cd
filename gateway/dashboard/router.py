"""The dashboard's pages, put together. They work with the `Desk` in `app.state.desk`."""

from __future__ import annotations

from fastapi import APIRouter

from gateway.dashboard import (
    articles,
    draft,
    health,
    home,
    imports,
    letter,
    letter_acts,
    letters,
    lists,
    login,
    people,
    problems,
    segments,
    single_mails,
    views,
)

routes = APIRouter(include_in_schema=False)
for part in (
    *(views, login, home, letters, letter, letter_acts, draft, people, lists, imports, segments, articles),
    *(problems, health, single_mails),
):
    routes.include_router(part.routes)
