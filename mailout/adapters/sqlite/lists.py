"""Lists on SQLite: who is on one and wants letters now. Who has no row for `general` is on it, too."""

from __future__ import annotations

SAVE_LIST = """INSERT INTO lists (key, name, description, public, from_name, reply_to, footer, brand, archive,
        welcome_ref)
    VALUES (:key, :name, :description, :public, :from_name, :reply_to, :footer, :brand, :archive,
        :welcome_ref)
    ON CONFLICT (key) DO UPDATE SET name = excluded.name, description = excluded.description,
        public = excluded.public, from_name = excluded.from_name, reply_to = excluded.reply_to,
        footer = excluded.footer, brand = excluded.brand, archive = excluded.archive,
        welcome_ref = excluded.welcome_ref"""


JOIN_LIST = """INSERT INTO subscriptions (email, list_key, joined_at) VALUES (?, ?, ?)
    ON CONFLICT (email, list_key) DO UPDATE SET unsubscribed_at = NULL, joined_at = excluded.joined_at
    WHERE unsubscribed_at IS NOT NULL"""
"""By a person's own act. Nothing changes for who is on it."""


def awake(person: str, *, snoozed: bool = False) -> str:
    """A condition: this subscriber has asked for no pause that lasts at `:now`; or (`snoozed`) for one."""
    asleep = f"{person}.snoozed_until > :now"
    return asleep if snoozed else f"({person}.snoozed_until IS NULL OR NOT {asleep})"


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
