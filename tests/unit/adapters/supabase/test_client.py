"""The way to Supabase over HTTP: what each answer means, and that nothing is asked twice."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from unittest.mock import Mock

import httpx
import pytest

from mailout.adapters.supabase.client import SupabaseRpc
from mailout.base.errors import (
    NotFound,
    SettingsError,
    StoreDamaged,
    StoreError,
    StoreMismatch,
    StoreUnavailable,
    TransitionRefused,
)

SECRET = "sb_secret_not_a_real_one"


class Stub(BaseHTTPRequestHandler):
    """Answers every call with what the test has set, and remembers it."""

    answer: ClassVar[tuple[int, Any]] = (200, None)
    answers: ClassVar[list[tuple[int, Any]]] = []
    """These come first, each once."""
    kind: ClassVar[str] = "application/json; charset=utf-8"
    silence: ClassVar[threading.Event | None] = None
    """No answer until it ends, when nobody listens any more."""
    calls: ClassVar[list[tuple[str, dict[str, str], Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.calls.append((self.path, {key.lower(): value for key, value in self.headers.items()}, body))
        if self.silence:
            self.silence.wait()
            return
        status, answer = self.answers.pop(0) if self.answers else self.answer
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", self.kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def stub() -> type[Stub]:
    class Fresh(Stub):
        calls: ClassVar[list[tuple[str, dict[str, str], Any]]] = []

    return Fresh


@pytest.fixture
def url(stub: type[Stub]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), stub)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def rpc(url: str) -> Iterator[SupabaseRpc]:
    made = SupabaseRpc(url, SECRET, timeout=httpx.Timeout(30))
    yield made
    made.close()


def test_a_call_names_the_function_its_parameters_and_the_key(rpc: SupabaseRpc, stub: type[Stub]) -> None:
    """Newer secret keys go the same way as the older service role keys."""
    stub.answer = (200, {"moved": 3})
    assert rpc("mailout_settle", {"ids": ["a"], "wait": 1.5, "note": None}) == {"moved": 3}
    ((path, headers, body),) = stub.calls
    assert (path, body) == ("/rest/v1/rpc/mailout_settle", {"ids": ["a"], "wait": 1.5, "note": None})
    assert headers["apikey"] == SECRET


@pytest.mark.parametrize("answer", [None, 7, "text", True, [1, 2]])
def test_an_answer_comes_back_as_it_is(rpc: SupabaseRpc, stub: type[Stub], answer: object) -> None:
    stub.answer = (200, answer)
    assert rpc("mailout_anything", {}) == answer


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("text/html", b"<html>Sign in to this network</html>"),
        ("text/html", b""),
        ("application/json", b""),
        ("application/json", b'[{"email": "a@exam'),
        ("application/json", b'"2026-11-1'),
    ],
)
def test_what_is_not_supabases_answer_does_not_count_as_done(
    rpc: SupabaseRpc, stub: type[Stub], kind: str, answer: bytes
) -> None:
    """Else a reader is told that they are unsubscribed, and an operator that all is paused."""
    stub.kind, stub.answer = kind, (200, answer)
    with pytest.raises(StoreUnavailable, match=r"Something other than Supabase answered at 127\.0\.0\.1\."):
        rpc("mailout_unsubscribe", {})
    assert len(stub.calls) == 1


def test_a_function_that_answers_nothing_is_done(rpc: SupabaseRpc, stub: type[Stub]) -> None:
    stub.kind, stub.answer = "", (204, b"")
    rpc("mailout_pause_all", {"paused": True})


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520, 429])
def test_an_outage_is_worth_waiting_for_and_never_asked_twice(
    rpc: SupabaseRpc, stub: type[Stub], status: int
) -> None:
    """A step repeated behind our back could begin messages that nobody knows of."""
    stub.answer = (status, {"code": "57014", "message": "canceling statement due to statement timeout"})
    with pytest.raises(StoreUnavailable):
        rpc("mailout_step", {"step": {}})
    assert len(stub.calls) == 1


@pytest.mark.parametrize(
    ("status", "code", "remedy"),
    [
        (500, "57014", "statement_timeout"),
        (503, "53300", "compute size"),
        (503, "53100", "enlarge the disk"),
        (405, "25006", "read-only, usually because its disk is full"),
        (503, "PGRST002", None),
        (500, "XX000", None),
    ],
)
def test_an_outage_is_told_in_the_databases_words(
    rpc: SupabaseRpc, stub: type[Stub], status: int, code: str, remedy: str | None
) -> None:
    """Else somebody waits for ever behind “500 Internal Server Error”, and the disk stays full."""
    stub.answer = (status, {"code": code, "message": "no room for you", "hint": None, "details": None})
    with pytest.raises(StoreUnavailable, match=rf"no room for you \({code}\)") as raised:
        rpc("mailout_step", {"step": {}})
    assert (remedy or "") in (raised.value.remedy or "")
    assert len(stub.calls) == 1


def test_a_damaged_database_is_nothing_to_wait_for(rpc: SupabaseRpc, stub: type[Stub]) -> None:
    stub.answer = (500, {"code": "XX001", "message": "could not read block 3", "hint": None, "details": None})
    with pytest.raises(StoreDamaged, match="could not read block 3"):
        rpc("mailout_step", {"step": {}})


def test_a_redirection_is_no_answer_of_supabase(rpc: SupabaseRpc, stub: type[Stub]) -> None:
    stub.kind, stub.answer = "text/html", (302, b"<p>Please sign in to this hotel.</p>")
    with pytest.raises(StoreUnavailable, match="Something other than Supabase"):
        rpc("mailout_step", {"step": {}})


@pytest.mark.parametrize("status", [400, 402, 405, 407])
def test_a_status_that_looks_like_a_databases_code_is_nothing_to_wait_for(
    rpc: SupabaseRpc, stub: type[Stub], status: int
) -> None:
    stub.kind, stub.answer = "text/html", (status, b"<p>Bad request</p>")
    with pytest.raises(StoreError) as raised:
        rpc("mailout_step", {"step": {}})
    assert not isinstance(raised.value, StoreUnavailable)


def test_who_may_take_a_minute_is_waited_for(url: str, stub: type[Stub]) -> None:
    """Else somebody is told that nobody was forgotten, while the database goes on and forgets them."""
    stub.silence = threading.Event()
    hasty = SupabaseRpc(url, SECRET, timeout=httpx.Timeout(0.3))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(hasty, "mailout_forget", {})
        with pytest.raises(StoreUnavailable):
            hasty("mailout_unsubscribe", {})
        assert not waiting.done()
        stub.silence.set()
    assert isinstance(waiting.exception(), StoreUnavailable)
    hasty.close()


def test_no_answer_in_time_is_an_outage_too(url: str, stub: type[Stub]) -> None:
    """A timeout under a second must be one: the client's own setting would have made it 0."""
    stub.silence = threading.Event()
    hasty = SupabaseRpc(url, SECRET, timeout=httpx.Timeout(0.3))
    with pytest.raises(StoreUnavailable, match="does not answer"):
        hasty("mailout_step", {"step": {}})
    stub.silence.set()
    hasty.close()
    while not stub.calls:  # it may be busy still with taking it
        time.sleep(0.01)
    assert len(stub.calls) == 1


def test_what_went_wrong_ends_with_one_full_stop(rpc: SupabaseRpc, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "Server disconnected without sending a response."
    monkeypatch.setattr(httpx.Client, "send", Mock(side_effect=httpx.RemoteProtocolError(said)))
    with pytest.raises(StoreUnavailable) as raised:
        rpc("mailout_now", {})
    assert str(raised.value) == f"Supabase does not answer: {said}"


def test_nobody_listening_is_an_outage() -> None:
    rpc = SupabaseRpc("http://127.0.0.1:9", SECRET)
    with pytest.raises(StoreUnavailable):
        rpc("mailout_now", {})
    rpc.close()


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (
            401,
            {
                "message": "Invalid API key",
                "hint": "Double check your Supabase `anon` or `service_role` key.",
            },
        ),
        (403, {"code": "42501", "message": "permission denied for function mailout_now"}),
    ],
)
def test_a_wrong_key_says_so_and_what_to_set(
    rpc: SupabaseRpc, stub: type[Stub], status: int, answer: object
) -> None:
    stub.answer = (status, answer)
    with pytest.raises(StoreMismatch, match="SUPABASE_SERVICE_ROLE_KEY") as raised:
        rpc("mailout_now", {})
    assert "\n" not in str(raised.value)
    assert SECRET not in str(raised.value)


def test_a_missing_migration_names_the_command(rpc: SupabaseRpc, stub: type[Stub]) -> None:
    message = "Could not find the function public.mailout_schema_version in the schema cache"
    stub.answer = (404, {"code": "PGRST202", "message": message, "hint": None, "details": None})
    with pytest.raises(StoreMismatch, match="supabase db push"):
        rpc("mailout_schema_version", {})
    assert len(stub.calls) == 1


MISSING = (404, {"code": "PGRST202", "message": "Could not find the function", "hint": None, "details": None})


@pytest.mark.parametrize("refusal", [MISSING, (403, b"<html>Forbidden</html>"), (401, {"message": "No."})])
def test_a_refusal_of_what_was_known_is_asked_again_before_it_counts(
    rpc: SupabaseRpc, stub: type[Stub], monkeypatch: pytest.MonkeyPatch, refusal: tuple[int, Any]
) -> None:
    """While PostgREST loads its schema again, it knows no function for seconds: no reason to end a run."""
    monkeypatch.setattr("mailout.adapters.supabase.rpc._PAUSE_SECONDS", 0.0)
    stub.answers = [(200, 7), refusal, refusal, (200, 8)]
    assert [rpc("mailout_step", {}), rpc("mailout_step", {})] == [7, 8]
    stub.answer = refusal
    with pytest.raises(StoreMismatch):
        rpc("mailout_step", {})


def test_an_address_with_a_path_is_told_how_it_looks(rpc: SupabaseRpc, stub: type[Stub]) -> None:
    """Some pages of Supabase show it with /rest/v1."""
    message = "Invalid path specified in request URL"
    stub.answer = (404, {"code": "PGRST125", "message": message, "hint": None, "details": None})
    with pytest.raises(StoreMismatch, match=r"SUPABASE_URL.*https://<project>.supabase.co"):
        rpc("mailout_now", {})


@pytest.mark.parametrize("given", [float("inf"), float("nan"), "a\ud800b"])
def test_what_is_no_json_is_refused_in_words(rpc: SupabaseRpc, stub: type[Stub], given: object) -> None:
    with pytest.raises(StoreError, match="JSON"):
        rpc("mailout_put", {"given": [given]})
    assert stub.calls == []


@pytest.mark.parametrize(
    ("code", "error"),
    [("PT409", TransitionRefused), ("PT404", NotFound), ("PT400", StoreError)],
)
@pytest.mark.parametrize("status", [400, 500])
def test_what_the_functions_refuse_keeps_its_meaning(
    rpc: SupabaseRpc, stub: type[Stub], status: int, code: str, error: type[StoreError]
) -> None:
    stub.answer = (status, {"code": code, "message": "It cannot be.", "hint": "Wait.", "details": None})
    with pytest.raises(error, match="It cannot be") as raised:
        rpc("mailout_settle", {})
    assert type(raised.value) is error


def test_what_a_constraint_refuses_is_no_outage(rpc: SupabaseRpc, stub: type[Stub]) -> None:
    """Waiting would not help: the same mailout twice stays twice."""
    stub.answer = (409, {"code": "23505", "message": "duplicate key value", "hint": None, "details": None})
    with pytest.raises(StoreError, match="duplicate key") as raised:
        rpc("mailout_enqueue", {})
    assert not isinstance(raised.value, StoreUnavailable)
    assert len(stub.calls) == 1


@pytest.mark.parametrize("code", ["40P01", "40001"])
@pytest.mark.parametrize("status", [400, 500])
def test_what_the_database_has_surely_undone_is_asked_again(
    rpc: SupabaseRpc, stub: type[Stub], status: int, code: str
) -> None:
    """A deadlock is nobody's outage: the other one is done in a moment. PostgREST gives it the status 500."""
    collided = (status, {"code": code, "message": "deadlock detected", "hint": None, "details": None})
    stub.answers = [collided, collided]
    stub.answer = (200, 7)
    assert rpc("mailout_step", {"step": {}}) == 7
    assert len(stub.calls) == 3


def test_who_collides_again_and_again_hears_of_it(
    rpc: SupabaseRpc, stub: type[Stub], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mailout.adapters.supabase.rpc._PAUSE_SECONDS", 0.0)
    stub.answer = (500, {"code": "40P01", "message": "deadlock detected", "hint": None, "details": None})
    with pytest.raises(StoreUnavailable, match="deadlock"):
        rpc("mailout_step", {"step": {}})
    assert 1 < len(stub.calls) < 10


def test_an_address_that_is_none_is_a_setting_to_mend() -> None:
    with pytest.raises(SettingsError, match="SUPABASE_URL"):
        SupabaseRpc("project.supabase.co", SECRET)
