"""Companies, tokens and recipients on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict

from mailout.adapters.sqlite.database import Database
from mailout.base.errors import NotFound
from mailout.kinds.single_mails.companies import Company, KnownRecipient, Scope, Token

_COMPANY = "id, limit_per_hour, limit_per_day, created_at"
_KNOWN = "id, company_id, token_hash, scopes, limit_per_minute, created_at, revoked_at"
_RECIPIENT = "company_id, id, external_id, email, name, deleted_at, created_at, updated_at"


class SqliteCompanies:
    """Fulfils `Companies`."""

    db: Database

    def add_company(self, id: str) -> Company:
        with self.db.write() as tx:
            _add_company(tx, id, self.db.clock.now())
            return Company(*tx.execute(f"SELECT {_COMPANY} FROM companies WHERE id = ?", (id,)).fetchone())  # noqa: S608

    def companies(self) -> Sequence[Company]:
        return [Company(*row) for row in self.db.read(f"SELECT {_COMPANY} FROM companies ORDER BY id")]  # noqa: S608

    def set_company_limits(self, id: str, per_hour: int | None, per_day: int | None) -> Company:
        with self.db.write() as tx:
            row = tx.execute(
                "UPDATE companies SET limit_per_hour = ?, limit_per_day = ? WHERE id = ?"  # noqa: S608
                f" RETURNING {_COMPANY}",
                (per_hour, per_day, id),
            ).fetchone()
        if row is None:
            raise NotFound(f"There is no company {id}.", remedy="`mailout companies list` shows them.")
        return Company(*row)

    def add_token(self, token: Token) -> None:
        with self.db.write() as tx:
            now = self.db.clock.now()
            _add_company(tx, token.company_id, now)
            tx.execute(
                "INSERT INTO api_tokens (token_hash, company_id, created_at, id, scopes, limit_per_minute)"
                " VALUES (:token_hash, :company_id, :created_at, :id, :scopes, :limit_per_minute)",
                asdict(token) | {"created_at": now, "scopes": ",".join(token.scopes)},
            )

    def token(self, token_hash: str) -> Token | None:
        rows = self.db.read(f"SELECT {_KNOWN} FROM api_tokens WHERE token_hash = ?", (token_hash,))  # noqa: S608
        return _token(rows[0]) if rows else None

    def tokens(self) -> Sequence[Token]:
        rows = self.db.read(f"SELECT {_KNOWN} FROM api_tokens ORDER BY company_id, id")  # noqa: S608
        return [_token(row) for row in rows]

    def revoke_token(self, id: str) -> bool:
        revoked = self.db.change(
            "UPDATE api_tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL",
            (self.db.clock.now(), id),
        )
        return revoked > 0

    def put_recipient(self, recipient: KnownRecipient) -> bool:
        with self.db.write() as tx:
            before = tx.execute(
                "SELECT id, deleted_at FROM recipients WHERE company_id = ? AND external_id = ?",
                (recipient.company_id, recipient.external_id),
            ).fetchone()
            tx.execute(
                "INSERT INTO recipients (company_id, id, email, external_id, name, created_at, updated_at)"
                " VALUES (:company_id, :id, :email, :external_id, :name, :now, :now)"
                " ON CONFLICT (company_id, id) DO UPDATE SET"
                " email = excluded.email, name = excluded.name, updated_at = excluded.updated_at,"
                " created_at = CASE WHEN deleted_at IS NULL THEN created_at ELSE excluded.created_at END,"
                " deleted_at = NULL",
                asdict(recipient)
                | {"id": before["id"] if before else recipient.id, "now": self.db.clock.now()},
            )
            return before is None or before["deleted_at"] is not None

    def recipient(self, company: str, external_id: str) -> KnownRecipient | None:
        rows = self.db.read(
            f"SELECT {_RECIPIENT} FROM recipients"  # noqa: S608
            " WHERE company_id = ? AND external_id = ? AND deleted_at IS NULL",
            (company, external_id),
        )
        return KnownRecipient(*rows[0]) if rows else None

    def delete_recipient(self, company: str, external_id: str) -> bool:
        deleted = self.db.change(
            "UPDATE recipients SET deleted_at = ?"
            " WHERE company_id = ? AND external_id = ? AND deleted_at IS NULL",
            (self.db.clock.now(), company, external_id),
        )
        return deleted > 0


def _add_company(tx: sqlite3.Connection, id: str, now: float) -> None:
    tx.execute("INSERT INTO companies (id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING", (id, now))


def _token(row: sqlite3.Row) -> Token:
    scopes = tuple(Scope(scope) for scope in row["scopes"].split(","))
    return Token(row["id"], row["company_id"], row["token_hash"], scopes, *row[4:])
