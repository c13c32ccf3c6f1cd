"""Acts of the store that need nothing of their own here: `x(a, b)` is the SQL function `mailout_x(a, b)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from types import NoneType
from typing import Any, Protocol, TypeVar, get_type_hints

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from mailout.adapters.supabase import codec

SQL_NAMES = {
    "changes": "news",
    "confirmation": "given",
    "content_hash": "content_id",
    "email_norm": "address",
    "limit": "most",
    "mailout_id": "campaign_id",
    "new": "mailout",
    "one": "given",
    "record": "given",
    "replace": "instead",
}
"""Parameters with another name there, where ours is a column's or a word of SQL."""

StoreClass = TypeVar("StoreClass", bound=type)
Declared = Callable[..., Any]


def pass_on(store: StoreClass) -> StoreClass:
    """A class decorator: every act that is only declared (in a room's port) goes to its SQL function."""
    for name in dir(store):
        owner = next(one for one in store.__mro__ if name in vars(one) or one is object)
        if Protocol in owner.__bases__ and inspect.isfunction(vars(owner)[name]) and name[0] != "_":
            setattr(store, name, _passed_on(vars(owner)[name]))
    return store


def _passed_on(declared: Declared) -> Declared:
    signature = inspect.signature(declared)

    @wraps(declared)
    def act(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs)
        given.apply_defaults()
        params = {SQL_NAMES.get(name, name): value for name, value in given.arguments.items()}
        del params["self"]
        return _reader(declared)(self.rpc(f"mailout_{declared.__name__}", to_jsonable_python(params)))

    return act


@cache
def _reader(declared: Declared) -> Callable[[Any], Any]:
    """What makes the answer what the act promises."""
    promised = get_type_hints(declared)["return"]
    if hasattr(promised, "of"):
        return lambda answer: promised.of(codec.row(answer))
    if promised is NoneType:
        return lambda answer: None
    if promised is bool:
        return bool  # a function without a row to return from answers null
    validate = TypeAdapter(promised).validate_python
    return lambda answer: validate(codec.row(answer) if isinstance(answer, dict) else answer)
