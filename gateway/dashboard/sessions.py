"""Who is signed in: a signed cookie. One made with a role's password ends with the password; one made for an
address ends when the address is taken out of the settings."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from secrets import token_urlsafe

from pydantic import SecretStr

from mailout.base.signed_links import SignedLinks
from mailout.insight.history import history_rows
from mailout.insight.history.port import History

COOKIE = "mailout_session"
SESSION_SECONDS = 12 * 3600.0
SIGN_OUT_POLL_SECONDS = 5.0
"""How long another gateway may still take a cookie whose owner has signed out."""
SESSIONS_KEPT = 10_000
NAMED = "link"
"""How the cookie of somebody begins who signed in by a link."""


class Role(StrEnum):
    """What somebody may do."""

    ADMIN = "admin"  # everything
    EDITOR = "editor"  # sees letters, previews and tests; no people, no sending to them


@dataclass(frozen=True, slots=True)
class LoginSession:
    role: Role
    csrf: str  # stands in every form of this session
    id: str  # a hash: the store cannot give the cookie away
    ends_at: float
    email: str | None = None  # of who signed in by a link

    @property
    def is_admin(self) -> bool:
        return self.role is Role.ADMIN

    @property
    def name(self) -> str:
        """For the log of acts: a password is not one person's."""
        return self.email or self.role.value


class Sessions:
    """Signs and reads cookies: `admin.…` and `editor.…` with a key of the role's password, `link.…` with the
    secrets of all links. A password's key is slow to make: a stolen cookie must not lead to the password."""

    def __init__(
        self,
        admin: SecretStr | None,
        editor: SecretStr | None = None,
        now: Callable[[], float] = time.time,
        people: Mapping[str, Role] | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        """`people` may sign in by a link, by normalised address; `secrets` sign their cookies."""
        given = {Role.ADMIN: admin, Role.EDITOR: editor if admin else None}
        self._passwords = {role: one.get_secret_value().encode() for role, one in given.items() if one}
        self._now = now
        self._people = people or {}
        keys: dict[str, Sequence[str]] = {
            role.value: [_key(role, password)] for role, password in self._passwords.items()
        }
        keys |= {NAMED: secrets} if self._people else {}
        self._cookies = {kind: SignedLinks(key, "session") for kind, key in keys.items()}
        self._forms = {kind: SignedLinks(key, "form") for kind, key in keys.items()}

    @property
    def open(self) -> bool:
        """Whether anybody can sign in at all."""
        return self.has_password or bool(self._people)

    @property
    def has_password(self) -> bool:
        return bool(self._passwords)

    def role_of(self, password: str) -> Role | None:
        """Whose password it is; every one is compared, each in constant time."""
        digest = hashlib.sha256(password.encode()).digest()
        found = None
        for role, known in self._passwords.items():
            if hmac.compare_digest(hashlib.sha256(known).digest(), digest):
                found = found or role
        return found

    def begin(self, role: Role) -> str:
        """The cookie's value."""
        return self._make(role.value)

    def begin_named(self, email: str) -> str:
        """The cookie's value, of who signed in by a link."""
        return self._make(NAMED, email=email)

    def _make(self, kind: str, **who: str) -> str:
        said = {"ends_at": int(self._now() + SESSION_SECONDS), "nonce": token_urlsafe(18), **who}
        return f"{kind}.{self._cookies[kind].make(said)}"

    def read(self, cookie: str | None) -> LoginSession | None:
        """None: it is not ours, or it has ended, or its password was changed, or its address taken out."""
        kind, _, token = (cookie or "").partition(".")
        said = self._cookies[kind].read(token) if kind in self._cookies else None
        if said is None or said["ends_at"] <= self._now():
            return None
        role = self._people.get(said["email"]) if kind == NAMED else Role(kind)
        if role is None:
            return None
        id = hashlib.sha256(f"{kind}.{token}".encode()).hexdigest()
        csrf = hashlib.sha256(self._forms[kind].make({"session": id}).encode()).hexdigest()
        return LoginSession(role, csrf, id, said["ends_at"], said.get("email"))


class SignedOut:
    """Who signed out: the store knows it, for all gateways. Only cookies that are ours are looked up."""

    def __init__(self, store: History, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._looked: dict[str, float] = {}  # when a session was last found not to have ended

    def end(self, session: LoginSession) -> None:
        self._store.end_login(session.id, session.ends_at)
        self._looked.pop(session.id, None)

    def has(self, session: LoginSession) -> bool:
        now = self._monotonic()
        if now - self._looked.get(session.id, -SIGN_OUT_POLL_SECONDS) < SIGN_OUT_POLL_SECONDS:
            return False
        if history_rows.login_ended(self._store, session.id):
            return True
        if len(self._looked) >= SESSIONS_KEPT:
            self._looked.clear()
        self._looked[session.id] = now
        return False


def _key(role: Role, password: bytes) -> str:
    salt = f"mailout dashboard session {role.value}".encode()
    return hashlib.scrypt(password, salt=salt, n=2**14, r=8, p=1, dklen=32).hex()
