"""Who is on a list, on SQLite. `general` is everybody's: who has no row for it is on it, too."""

from __future__ import annotations


def on_list(person: str, key: str = ":list_key", also: str | None = None) -> str:
    """A condition: the address in this column is on the list of this parameter, or on one of `also` (a
    parameter with JSON). No list at all is `general`."""
    found = f"""CASE WHEN coalesce({key}, 'general') = 'general'
    THEN NOT EXISTS (SELECT 1 FROM subscriptions l WHERE l.email = {person} AND l.list_key = 'general'
                     AND l.unsubscribed_at IS NOT NULL)
    ELSE EXISTS (SELECT 1 FROM subscriptions l WHERE l.email = {person} AND l.list_key = {key}
                 AND l.unsubscribed_at IS NULL) END"""  # noqa: S608 (a column's name, written in our own code)
    if also is None:
        return found
    return f"""({found} OR ({also} <> '[]' AND EXISTS (SELECT 1 FROM subscriptions l WHERE l.email = {person}
        AND l.unsubscribed_at IS NULL AND l.list_key IN (SELECT value FROM json_each({also})))))"""  # noqa: S608
