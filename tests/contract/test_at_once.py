"""Two who write the same rows at once, in opposite order: both come through, and nobody hears of it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from mailout.base.errors import MailoutError
from mailout.base.ids import uuid_of
from mailout.letters.audience.port import Choice, ImportRecord, SubscriberRow
from mailout.letters.audience.subscriber_rows import IMPORT_TABLE, subscriber_counts
from mailout.letters.content.model import Content
from mailout.store import Store
from tests.contract.stores import StoreFactory
from tests.contract.test_join import confirmation
from tests.contract.test_single_mails import mail

Act = Callable[[], object]
Race = Callable[[Store, Store, int], tuple[Act, Act]]


def at_once(*acts: Act) -> list[MailoutError]:
    """What went wrong."""
    gate = threading.Barrier(len(acts))
    wrong: list[MailoutError] = []

    def go(act: Act) -> None:
        gate.wait()
        try:
            act()
        except MailoutError as error:
            wrong.append(error)

    threads = [threading.Thread(target=go, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return wrong


def people(n: int) -> list[SubscriberRow]:
    emails = [f"r{n}-{i:04}@example.org" for i in range(300)]
    return [SubscriberRow(email, email, lists=["news"]) for email in emails]


def imports(one: Store, other: Store, n: int) -> tuple[Act, Act]:
    return lambda: one.import_subscribers(people(n)), lambda: other.import_subscribers(people(n))


def import_and_sign_ups(one: Store, other: Store, n: int) -> tuple[Act, Act]:
    late = [row.email_norm for row in people(n)[::-30]]
    return (
        lambda: one.import_subscribers(people(n)),
        lambda: [other.confirm_sign_up(confirmation(email)) for email in late],
    )


def import_and_choices(one: Store, other: Store, n: int) -> tuple[Act, Act]:
    id = uuid_of("import", str(n))
    one.put(IMPORT_TABLE, [ImportRecord(id, "me", "file", {}, {})])
    one.import_subscribers(people(n), import_id=id)
    late = [row.email_norm for row in people(n)[::-4]]
    return (
        lambda: one.import_subscribers(people(n)),
        lambda: [other.choose(email, Choice(language="de")) for email in late],
    )


def single_mails(one: Store, other: Store, n: int) -> tuple[Act, Act]:
    contents = [Content(f"{n} {i}", "x", "y") for i in range(60)]
    mails = [mail(f"a{n}-{i}", content=content) for i, content in enumerate(contents)]
    turned = [mail(f"b{n}-{i}", content=content) for i, content in enumerate(reversed(contents))]
    return lambda: one.accept_single_mails(mails), lambda: other.accept_single_mails(turned)


@pytest.mark.parametrize(
    "race", [imports, import_and_sign_ups, import_and_choices, single_mails], ids=lambda race: race.__name__
)
def test_two_at_once_both_come_through(factory: StoreFactory, store: Store, race: Race) -> None:
    other = factory.open_again()
    for n in range(3):
        assert at_once(*race(store, other, n)) == []
    assert sum(subscriber_counts(store).values()) in (0, 900)
