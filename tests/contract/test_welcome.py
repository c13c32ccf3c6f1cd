"""A list's welcome letter: one to each who joins, whatever is killed when, and none to who has left."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base import error_log
from mailout.base.settings import Settings
from mailout.base.signed_links import SignedLinks, Tokens
from mailout.letters.audience import list_rows
from mailout.letters.audience.list_rows import LIST_TABLE, List
from mailout.letters.content.from_settings import brand_of
from mailout.letters.content.languages import language
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.states import State
from mailout.readers.confirmations import PURPOSE, ConfirmationMails
from mailout.readers.port import WELCOME_SECONDS, Confirmed
from mailout.store import Store
from tests.clocks import FakeClock
from tests.contract.crashes import Killed, Machine
from tests.contract.stores import StoreFactory
from tests.contract.test_join import ANN, confirm

SECRET = "the secret of these tests"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "hello.md").write_text(
        "---\nsubject: Welcome\n---\nHello {{ name | reader }}, nice to have you.\n"
    )
    return tmp_path


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(
        mailout_home=home,
        signup=True,
        public_url="https://mail.example.org",
        unsubscribe_secret=SECRET,
        unsubscribe_base_url="https://mail.example.org/unsubscribe",
        org_name="Harbour Association",
        org_address="1 Quay Street",
        from_email="news@example.org",
        send_rate_per_sec=0,
    )


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(factory: StoreFactory, clock: FakeClock, home: Path) -> Store:
    made = factory.make(clock)
    made.put(
        LIST_TABLE,
        [List("news", "News", public=True, from_name="The newsroom", welcome_ref=str(home / "hello.md"))],
    )
    return made


@pytest.fixture
def engine(settings: Settings, clock: FakeClock, store: Store) -> Engine:
    return wiring.build(settings, clock, store=store, inline=True)


def mails(home: Path, subject: str) -> Sequence[Any]:
    found = (
        message_from_bytes(file.read_bytes(), policy=policy.default)
        for file in sorted((home / "outbox").rglob("*.eml"))
    )
    return [mail for mail in found if subject in str(mail["Subject"])]


def send(engine: Engine) -> None:
    engine.sending.send_single_mails(5.0, until_idle=True)


def test_a_new_reader_is_welcomed_once(engine: Engine, store: Store, home: Path, clock: FakeClock) -> None:
    confirm(store)
    assert (engine.welcomes.write(), engine.welcomes.write()) == (1, 0)
    send(engine)
    (mail,) = mails(home, "Welcome")
    assert "Hello Ann, nice to have you." in mail.get_body(("plain",)).get_content()
    assert mail["To"] == ANN
    assert "The newsroom" in mail["From"]
    token = re.search(r"token=([\w.-]+)", mail["List-Unsubscribe"])[1]
    assert Tokens([SECRET]).read(token).list_key == "news", "its link leaves this list alone"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    store.unsubscribe(ANN, None)
    clock.wall += 60
    assert confirm(store, at=store.now() - 1) is Confirmed.JOINED
    assert engine.welcomes.write() == 0, "who comes back knows us"


def test_two_looks_at_once_write_one_letter(
    settings: Settings, clock: FakeClock, factory: StoreFactory, store: Store
) -> None:
    confirm(store)
    engines = [wiring.build(settings, clock, store=factory.open_again(), inline=True) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda one: one.welcomes.write(), engines))
    assert len(store.select(outbox_rows.MESSAGES, {"email": ANN})) == 1


@pytest.mark.parametrize("leaves", ["news", None])
@pytest.mark.parametrize("when", ["before it is written", "before it is sent"])
def test_who_leaves_before_gets_none(
    engine: Engine, store: Store, home: Path, leaves: str | None, when: str
) -> None:
    confirm(store)
    if when == "before it is sent":
        engine.welcomes.write()
    store.unsubscribe(ANN, leaves)
    engine.welcomes.write()
    send(engine)
    assert not mails(home, "Welcome")
    states = {row["state"] for row in store.select(outbox_rows.MESSAGES)}
    assert states <= {State.SUPPRESSED}


def test_a_pause_of_everything_holds_it(engine: Engine, store: Store, home: Path) -> None:
    confirm(store)
    engine.welcomes.write()
    store.pause_all(True)
    send(engine)
    assert not mails(home, "Welcome")


def test_who_joined_long_ago_is_not_welcomed_late(
    engine: Engine, store: Store, clock: FakeClock, home: Path
) -> None:
    """A list that is given a letter today must not write to everybody who ever joined it."""
    store.put(LIST_TABLE, [List("news", "News", public=True)])
    confirm(store)
    clock.wall += WELCOME_SECONDS + 1
    store.put(LIST_TABLE, [List("news", "News", public=True, welcome_ref=str(home / "hello.md"))])
    assert engine.welcomes.write() == 0


def test_a_letter_that_cannot_be_read_holds_up_its_own_list_alone(
    engine: Engine, store: Store, home: Path, clock: FakeClock
) -> None:
    store.put(LIST_TABLE, [List("daily", "Daily", public=True, welcome_ref=str(home / "gone.md"))])
    confirm(store, ANN, "daily", "news")
    assert [engine.welcomes.write() for _ in range(3)] == [1, 0, 0]
    (error,) = error_log.errors(store)
    assert (error.code, "Daily" in error.message or "daily" in error.message) == ("welcome_unavailable", True)
    clock.wall += 90_000
    engine.welcomes.write()
    assert len(error_log.errors(store)) == 2, "once a day while it lasts"
    (home / "gone.md").write_text("---\nsubject: Welcome\n---\nHello {{ city }}.\n")
    assert engine.welcomes.write() == 0, "nobody gets a letter with a gap in it"
    (home / "gone.md").write_text("---\nsubject: Welcome\n---\nHello.\n")
    assert engine.welcomes.write() == 1


# ── Kill anything anywhere ──


class Dies:
    """The store as a process sees it that is killed at its so-manieth act, before or after the commit.

    To be killed at a question leaves what to be killed at the next act leaves.
    """

    ASKS = ("now", "select", "single_mails_waiting")

    def __init__(self, store: Store, at: int, *, after: bool) -> None:
        self._store, self._at, self._after, self.calls = store, at, after, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name in self.ASKS or not callable(found):
            return found

        def call(*args: Any, **more: Any) -> Any:
            self.calls += 1
            if self.calls > self._at or (self.calls == self._at and not self._after):
                raise Killed
            answer = found(*args, **more)
            if self.calls == self._at:
                raise Killed
            return answer

        return call


def live(store: Any, settings: Settings, clock: FakeClock, machine: Machine) -> None:
    """All that a gateway and a sender do for one sign-up, from the form to the welcome letter."""
    engine = wiring.build(settings, clock, store=store, journals=machine, inline=True)
    engine.sending.reap()
    made = ConfirmationMails("Harbour", "1 Quay", brand_of(settings), ZoneInfo("UTC"), is_rehearsal=True)
    lists = [one for one in list_rows.public_lists(store) if one.key == "news"]
    words = language("en")
    asked = made.sign_up(ANN, lists, name="Ann", page="p", network="n", words=words, now=engine.store.now())
    store.ask_sign_up(asked)
    send(engine)
    for mail in mails(settings.mailout_home, "confirm"):
        token = re.search(r"token=([\w.-]+)", mail.get_body(("plain",)).get_content())[1]
        payload = SignedLinks([SECRET], PURPOSE).read(token)
        assert store.confirm_sign_up(made.confirmation(payload)) in (Confirmed.JOINED, Confirmed.KNOWN)
    engine.welcomes.write()
    send(engine)


def points(calls: int) -> Iterator[tuple[int, bool]]:
    return ((at, after) for at in range(1, calls + 1) for after in (False, True))


def test_whatever_is_killed_there_is_one_confirmation_and_one_welcome(
    factory: StoreFactory, settings: Settings, home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    calls = 10**9
    for at, after in [(10**9, True), *points(60)]:
        if at > calls and at != 10**9:
            break
        folder = tmp_path_factory.mktemp("home")
        clock = FakeClock()
        store = factory.make(clock)
        store.put(LIST_TABLE, [List("news", "News", public=True, welcome_ref=str(home / "hello.md"))])
        mine = settings.model_copy(update={"mailout_home": folder})
        dies = Dies(store, at, after=after)
        machine = Machine(folder / "journal")
        try:
            live(dies, mine, clock, machine)
        except Killed:
            machine.die()
            clock.wall += 300
            clock.steady += 300
            live(store, mine, clock, Machine(folder / "journal"))
        else:
            calls = dies.calls
            assert calls > 10
        assert len(mails(folder, "confirm")) == 1, (at, after)
        assert len(mails(folder, "Welcome")) == 1, (at, after)
