"""`rpc` over HTTPS with supabase-py. POST alone, so nothing is repeated behind our back.

What was surely undone or refused is asked again by `until_free`, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
from postgrest.exceptions import APIError
from supabase import Client, ClientOptions

from mailout.adapters.supabase.rpc import Collided, error_of, is_code, until_free
from mailout.base.errors import SettingsError, StoreError, StoreMismatch, StoreUnavailable

REQUEST_TIMEOUT = httpx.Timeout(15.0, connect=5.0)
"""Longer than the database's own 8 s, so that it is the database that gives up first."""
LONG_ACTS = {
    f"mailout_{act}": httpx.Timeout(65.0, connect=5.0)
    for act in ("set_content", "apply_events", "forget", "discard_unbegun", "undo_import", "erase_sign_ups")
}
"""These may take it a minute."""
_BROKEN = ("{", "[", '"')
"""How JSON that was cut off begins: supabase-py returns as text what it cannot parse."""


class SupabaseRpc:
    """Fulfils `Rpc`. The key is a legacy service role key or a newer secret one (`sb_secret_…`)."""

    def __init__(self, url: str, key: str, *, timeout: httpx.Timeout = REQUEST_TIMEOUT) -> None:
        if not url.startswith(("http://", "https://")):
            raise SettingsError(
                "SUPABASE_URL is not an address.", remedy="It looks like https://<project>.supabase.co."
            )
        # HTTP/1.1, and idle connections are dropped early: a stale one looks like a lost answer.
        self._http = httpx.Client(
            timeout=timeout,
            limits=httpx.Limits(keepalive_expiry=20.0),
            event_hooks={"request": [_be_patient], "response": [_check_status]},
        )
        client = Client(
            url,
            key,
            ClientOptions(
                auto_refresh_token=False,
                persist_session=False,
                postgrest_client_retry=False,
                httpx_client=self._http,
            ),
        )
        self._has_answered = False
        self._postgrest = client.postgrest  # made here, once: later, threads would race for it

    def __call__(self, name: str, params: Mapping[str, Any]) -> Any:
        # It knew this schema and this key: refused now, the API may be loading the schema again.
        passing = (Collided, StoreMismatch) if self._has_answered else (Collided,)
        answer = until_free(lambda: self._call(name, params), *passing)
        self._has_answered = True
        return answer

    def _call(self, name: str, params: Mapping[str, Any]) -> Any:
        try:
            answer = self._postgrest.rpc(name, dict(params)).execute().data
        except httpx.HTTPError as error:
            raise StoreUnavailable(
                f"Supabase does not answer: {str(error).rstrip('.') or type(error).__name__}."
            ) from error
        except APIError as error:
            raise error_of(error.code, error.message or "no reason given", error.hint) from error
        except ValueError as error:  # infinity; half of a character
            raise StoreError(f"What Supabase was told or has answered is not JSON: {error}.") from error
        if isinstance(answer, str) and answer.startswith(_BROKEN):
            raise _strange(self._postgrest.base_url.host)
        return answer

    def close(self) -> None:
        self._http.close()


def _be_patient(request: httpx.Request) -> None:
    """supabase-py has one time limit for all calls."""
    if limit := LONG_ACTS.get(request.url.path.rpartition("/")[2]):
        request.extensions["timeout"] = limit.as_dict()


def _check_status(response: httpx.Response) -> None:
    """supabase-py forgets the status of an answer: tell an outage and a wrong key while it is known."""
    status = response.status_code
    if response.is_success:
        kind = response.headers.get("content-type", "")
        if status != 204 and not (kind.startswith("application/json") and response.read()):
            raise _strange(response.url.host)
        return
    if status >= 500 or status in (408, 429):
        if not _is_databases_word(response):
            raise StoreUnavailable(f"Supabase does not answer: {status} {response.reason_phrase}.")
    elif response.is_redirect:
        raise _strange(response.url.host)
    elif status in (401, 403):
        raise error_of(str(status), f"{status} {response.reason_phrase}")


def _strange(host: str | None) -> StoreUnavailable:
    """A proxy or a sign-in page of the network: whether anything was done, nobody knows."""
    return StoreUnavailable(
        f"Something other than Supabase answered at {host}.",
        remedy="Check this machine's network and its proxy, then SUPABASE_URL.",
    )


def _is_databases_word(response: httpx.Response) -> bool:
    """The database, or the API before it, says what is wrong: `error_of` knows whether that is an outage."""
    response.read()
    try:
        code = response.json().get("code")
    except (ValueError, AttributeError):
        return False
    return isinstance(code, str) and is_code(code)
