"""What a person may write into a list, checked: by the command line and by the dashboard alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from os.path import isfile
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mailout.base.errors import NotFound, UsageError
from mailout.base.setting_values import Address, Color, Links, Locale, Url
from mailout.letters.audience.list_rows import LIST_TABLE, List, by_key_or_name, lists, require_own_name
from mailout.letters.audience.port import Subscribers

KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")
LINE_LENGTH = 200
TEXT_LENGTH = 1000
BRAND: Mapping[str, TypeAdapter[Any]] = {
    "logo": TypeAdapter(Url),
    "logo_dark": TypeAdapter(Url),
    "color": TypeAdapter(Color),
    "links": TypeAdapter(Links),
    "language": TypeAdapter(Locale),
}
"""What a list may have of its own beside the footer's line; written as in the `BRAND_*` settings."""
_PAGE = re.compile(r"[0-9a-f]{32}", re.IGNORECASE)
"""Is in every address of a page in Notion, but for its dashes."""
_REPLY_TO: TypeAdapter[str] = TypeAdapter(Address)


def add_list(store: Subscribers, key: str, changes: Mapping[str, Any]) -> List:
    """A new one, or one that an import has made and nobody has described yet."""
    key = key.strip()
    known = {one.key: one for one in lists(store)}
    old = known.get(key)
    if old is not None and old.is_saved:
        raise UsageError(f"There is a list {key} already.", remedy=f"To change it: mailout lists edit {key}")
    if old is None and not KEY.fullmatch(key):
        raise UsageError(
            f"{key!r} cannot be the key of a list.",
            remedy="Use lowercase letters, digits, . _ - and at most 60 characters. People read its name.",
        )
    return _save(store, old or List(key, key), changes)


def list_for(store: Subscribers, written: str) -> tuple[str, bool]:
    """The key of the list that people are put on, and whether it is new. A name means the list that has it:
    a second one of the same name would get its letters, and nobody's unsubscribe."""
    try:
        return by_key_or_name(store, written).key, False
    except NotFound as unknown:
        if not KEY.fullmatch(written.strip()):
            raise UsageError(f"There is no list {written.strip()}.", remedy=unknown.remedy) from None
        return written.strip(), True


def edit_list(store: Subscribers, key_or_name: str, changes: Mapping[str, Any]) -> List:
    """What is not among the changes stays; an empty text takes a value away."""
    return _save(store, by_key_or_name(store, key_or_name), changes)


def own_look(one: List) -> Mapping[str, Any]:
    """What of its brand can be used. Others may write into the table, too: no letter may fail by it."""
    found = {}
    for name in BRAND.keys() & one.brand.keys():
        try:
            found[name] = BRAND[name].validate_python(one.brand[name])
        except ValidationError:
            continue
    return found


def _save(store: Subscribers, old: List, changes: Mapping[str, Any]) -> List:
    plain = {name: _checked(name, value) for name, value in changes.items() if name not in BRAND}
    own = dict(old.brand)
    for name in BRAND.keys() & changes.keys():
        own[name] = _value(BRAND[name], name, changes[name]) if changes[name] else None
    brand = {name: value for name, value in sorted(own.items()) if value}
    new = replace(old, **plain, brand=brand, is_saved=True)
    if not new.name:
        new = replace(new, name=new.key)
    require_own_name(new, lists(store))
    store.put(LIST_TABLE, [new])
    return new


def _checked(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return value
    text = str(value or "").strip()
    if name == "welcome_ref":
        text = _welcome(text)
    most = TEXT_LENGTH if name in ("description", "footer", "welcome_ref") else LINE_LENGTH
    if len(text) > most or (re.search(r"[\x00-\x1f\x7f]", text) and name != "description"):
        raise UsageError(f"{name}: it is one line of at most {most} characters.", remedy="Write it shorter.")
    if name == "reply_to" and text:
        return _value(_REPLY_TO, name, text)
    return text if name in ("name", "description") else text or None


def _welcome(ref: str) -> str:
    """A file by its whole path: who writes the letters to people runs in another folder, perhaps."""
    if isfile(ref):  # noqa: PTH113 (of a name too long Path raises)
        return str(Path(ref).absolute())
    if ref and not _PAGE.search(ref.replace("-", "")):
        raise UsageError(
            f"There is no file or Notion page {ref}.",
            remedy="Write it first, or copy the page's address from Notion.",
        )
    return ref


def _value(kind: TypeAdapter[Any], name: str, value: Any) -> Any:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        said = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"{name}: it {said}.", remedy="Correct it, or leave it empty.") from None
