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
NAMED = "link."
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
    """Signs and reads cookies. The key is slow to make: a stolen cookie must not lead to the password."""

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
        self._passwords = {role: _bytes(one) for role, one in given.items() if one is not None}
        self._keys = {role: _key(role, password) for role, password in self._passwords.items()}
        self._now = now
        self._people = people or {}
        self._named = SignedLinks(secrets, "session") if self._people else None
        self._forms = SignedLinks(secrets, "form") if self._people else None

    @property
    def open(self) -> bool:
        """Whether anybody can sign in at all."""
        return self.has_password or bool(self._people)

    @property
    def has_password(self) -> bool:
        return bool(self._keys)

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
        said = f"{role.value}.{int(self._now() + SESSION_SECONDS)}.{token_urlsafe(18)}"
        return f"{said}.{self._sign(role, 'session', said)}"

    def begin_named(self, email: str) -> str:
        """The cookie's value, of who signed in by a link."""
        if self._named is None:
            raise ValueError("nobody may sign in by a link")
        ends_at = int(self._now() + SESSION_SECONDS)
        return NAMED + self._named.make({"email": email, "ends_at": ends_at, "nonce": token_urlsafe(18)})

    def read(self, cookie: str | None) -> LoginSession | None:
        """None: it is not ours, or it has ended, or its password was changed, or its address taken out."""
        if cookie is not None and cookie.startswith(NAMED):
            return self._read_named(cookie)
        said, _, signature = (cookie or "").rpartition(".")
        name, _, rest = said.partition(".")
        role = next((one for one in self._keys if one.value == name), None)
        if role is None or not hmac.compare_digest(
            self._sign(role, "session", said).encode(), signature.encode()
        ):
            return None
        ends_at = float(rest.partition(".")[0])
        if ends_at <= self._now():
            return None
        return LoginSession(
            role, self._sign(role, "form", said), hashlib.sha256(said.encode()).hexdigest(), ends_at
        )

    def _read_named(self, cookie: str) -> LoginSession | None:
        if self._named is None or self._forms is None:
            return None
        said = self._named.read(cookie.removeprefix(NAMED))
        role = None if said is None else self._people.get(said["email"])
        if said is None or role is None or said["ends_at"] <= self._now():
            return None
        id = hashlib.sha256(cookie.encode()).hexdigest()
        csrf = hashlib.sha256(self._forms.make({"session": id}).encode()).hexdigest()
        return LoginSession(role, csrf, id, said["ends_at"], said["email"])

    def _sign(self, role: Role, purpose: str, said: str) -> str:
        return hmac.new(self._keys[role], f"{purpose} {said}".encode(), hashlib.sha256).hexdigest()


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


def _bytes(secret: SecretStr) -> bytes:
    return secret.get_secret_value().encode()


def _key(role: Role, password: bytes) -> bytes:
    salt = f"mailout dashboard session {role.value}".encode()
    return hashlib.scrypt(password, salt=salt, n=2**14, r=8, p=1, dklen=32)
