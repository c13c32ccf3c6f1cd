"""The dashboard's pages, put together. They work with the `Desk` in `app.state.desk`."""

from __future__ import annotations

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

_parts = (
    *(views, login, home, letters, letter, letter_acts, draft, people, lists, imports, segments, articles),
    *(problems, health, single_mails),
)
routes = [route for part in _parts for route in part.routes.routes]
