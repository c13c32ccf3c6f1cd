"""What routes work with, one of each kind for an app: `app.state.parts`.

FastAPI examines a module's routes once, and those that are made for an app, because they know its store,
again for each app. So routes are methods, and their `self` is found by the request.
"""

from __future__ import annotations

from typing import Any, TypeVar

from fastapi import Depends, Request

Kind = TypeVar("Kind")


def own(kind: type[Kind]) -> Any:
    """A dependency: the part of this kind, of the app that was asked."""

    async def find(request: Request) -> Kind:
        found: Kind = request.app.state.parts[kind]
        return found

    return Depends(find)
