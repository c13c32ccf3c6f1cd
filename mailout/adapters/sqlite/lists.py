"""Who is on a list, on SQLite. `general` is everybody's: who has no row for it is on it, too."""

from __future__ import annotations

SAVE_LIST = """INSERT INTO lists (key, name, description, public, from_name, reply_to, footer, brand, archive,
        welcome_ref)
    VALUES (:key, :name, :description, :public, :from_name, :reply_to, :footer, :brand, :archive,
        :welcome_ref)
    ON CONFLICT (key) DO UPDATE SET name = excluded.name, description = excluded.description,
        public = excluded.public, from_name = excluded.from_name, reply_to = excluded.reply_to,
        footer = excluded.footer, brand = excluded.brand, archive = excluded.archive,
        welcome_ref = excluded.welcome_ref"""


def on_list(person: str) -> str:
    """A condition: the address in this column is on `:list_key`. No list at all is `general`."""
    return f"""CASE WHEN coalesce(:list_key, 'general') = 'general'
    THEN NOT EXISTS (SELECT 1 FROM subscriptions l WHERE l.email = {person} AND l.list_key = 'general'
                     AND l.unsubscribed_at IS NOT NULL)
    ELSE EXISTS (SELECT 1 FROM subscriptions l WHERE l.email = {person} AND l.list_key = :list_key
                 AND l.unsubscribed_at IS NULL) END"""  # noqa: S608 (a column's name, written in our own code)
