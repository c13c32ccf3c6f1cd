"""The string that Prefect's server of ours asks for, and everybody who speaks to it knows.

Whoever may call Prefect's API can run any command as this user, through the variables of a flow run. So no
server of ours answers without it, wherever it listens.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from mailout.base.errors import SettingsError

AUTH_FILE = "prefect-auth"
OF_SERVER, OF_CLIENT, KEY = "PREFECT_SERVER_API_AUTH_STRING", "PREFECT_API_AUTH_STRING", "PREFECT_API_KEY"
THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "::1"})


def auth_string(home: Path) -> str:
    """From `MAILOUT_HOME/prefect-auth`, which is made when it is asked for the first time."""
    path = home / AUTH_FILE
    try:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # two commands may start at once
            os.fchmod(file.fileno(), 0o600)
            if not (found := file.read().strip()):
                found = f"mailout:{secrets.token_urlsafe(32)}"
                file.seek(0)
                file.write(f"{found}\n")
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read or written: {error.strerror}.",
            remedy=f"Let this user own it, or set {OF_SERVER} and {OF_CLIENT}.",
        ) from error
    return found


def for_own_server(home: Path, env: Mapping[str, str]) -> dict[str, str]:
    """What both sides of a server of ours need. What somebody has set stays."""
    string = env.get(OF_SERVER) or env.get(OF_CLIENT) or auth_string(home)
    return {OF_SERVER: string, OF_CLIENT: string}


def for_server_at(url: str, home: Path, env: Mapping[str, str]) -> dict[str, str]:
    """For one that is there already: on this machine it may be `mailout up`'s. No other server gets it."""
    if env.get(OF_CLIENT) or env.get(KEY) or urlsplit(url).hostname not in THIS_MACHINE:
        return {}
    return {OF_CLIENT: auth_string(home)} if (home / AUTH_FILE).exists() else {}
