"""`doctor` before anybody is asked: what the settings alone give away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mailout.adapters.sqlite import SqliteStore
from mailout.base.errors import CheckSkipped, StoreUnavailable
from mailout.base.settings import Settings, load_settings
from mailout.insight.doctor.checks import Check, checked
from mailout.insight.doctor.setup_checks import (
    clock_check,
    disk_check,
    people_checks,
    python_check,
    reach_checks,
    settings_checks,
)
from mailout.letters.audience.port import SubscriberRow
from mailout.outbox.feedback.port import StatusChange
from tests.clocks import FakeClock
from tests.environment import SENDER
from tests.new_sqlite import open_new

GOOD = {
    **SENDER,
    "PUBLIC_URL": "https://mail.example.org",
    "ADMIN_EMAIL": "admin@example.org",
}


def levels(settings: Settings) -> dict[str, str]:
    return {check.name: check.level for check in settings_checks(settings)}


def test_good_settings_are_good() -> None:
    assert set(levels(load_settings(env=GOOD)).values()) == {"ok"}


BOUNCED = StatusChange("bounced", 86_400.0, "Permanent", "General")
COMPLAINED = StatusChange("unsubscribed", 86_400.0, complained=True)


@pytest.mark.parametrize("is_subscriber", [True, False])
@pytest.mark.parametrize(
    ("change", "event", "why"),
    [(BOUNCED, "bounce", "bounced on 2 Jan 1970"), (COMPLAINED, "spamreport", "complained on 2 Jan 1970")],
)
def test_who_should_hear_of_problems_and_is_never_written_to_is_named(
    tmp_path: Path, change: StatusChange, event: str, why: str, is_subscriber: bool
) -> None:
    """Every alert would be suppressed, and count as told."""
    ours = ("admin@example.org", "ana@example.org")
    settings = load_settings(
        env={**GOOD, "SIGN_IN_ADMINS": "ana@example.org, bo@example.org", "UNSUBSCRIBE_SECRET": "s" * 24}
    )
    with closing(open_new(tmp_path / "mailout.db", FakeClock())) as store:
        if is_subscriber:
            store.import_subscribers([SubscriberRow(email, email) for email in ours])
        assert list(reach_checks(settings, store)) == []
        store.change_statuses(dict.fromkeys(ours, change))
        if not is_subscriber:
            _tell(store, event, *ours)
        found = [(one.name, one.level, one.message) for one in reach_checks(settings, store)]
    assert found == [
        ("ADMIN_EMAIL", "fail", f"admin@example.org {why}: alerts do not reach it"),
        ("SIGN_IN_ADMINS", "fail", f"ana@example.org {why}: sign-in links do not reach it"),
    ]


def _tell(store: SqliteStore, event: str, *emails: str) -> None:
    detail = '{"bounceType": "Permanent"}' if event == "bounce" else "{}"
    with store.db.write() as tx:
        tx.executemany(
            "INSERT INTO delivery_events (id, email, event_type, detail, event_at)"
            " VALUES (?1, ?1, ?2, ?3, 86400)",
            [(email, event, detail) for email in emails],
        )


@pytest.mark.parametrize(("proxies", "level"), [("127.0.0.1", "ok"), ("", "warn")])
def test_visitors_behind_a_proxy_that_nobody_trusts_share_one_limit(proxies: str, level: str) -> None:
    """The thirty-first reader of an hour would get no confirmation, and nobody would know why."""
    assert (
        levels(load_settings(env={**GOOD, "SIGNUP": "true", "TRUSTED_PROXIES": proxies}))["SIGNUP"] == level
    )


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ((3, 11, 7), "warn"),
        ((3, 11, 10), "ok"),
        ((3, 12, 5), "warn"),
        ((3, 12, 6), "ok"),
        ((3, 13, 0), "ok"),
        ((3, 14, 1), "ok"),
    ],
)
def test_a_python_that_a_stranger_can_keep_busy_is_named(version: tuple[int, int, int], level: str) -> None:
    found = python_check(version)
    assert found.level == level
    assert bool(found.remedy) == (level == "warn")


def test_what_a_mailout_would_stop_at_is_a_failure_with_a_remedy() -> None:
    checks = list(settings_checks(load_settings(env={})))
    failed = {check.name for check in checks if check.level == "fail"}
    needed = {"FROM_EMAIL", "ORG_NAME", "ORG_ADDRESS", "UNSUBSCRIBE_BASE_URL", "UNSUBSCRIBE_SECRET"}
    assert failed == needed
    assert all(check.remedy for check in checks if check.level != "ok")


def test_pictures_on_this_machine_alone_are_no_pictures_for_real_readers() -> None:
    local = {name: value for name, value in GOOD.items() if name != "PUBLIC_URL"}
    assert levels(load_settings(env=local))["media"] == "warn"
    assert levels(load_settings(env=local | {"MAILOUT_TRANSPORT": "ses"}))["media"] == "fail"
    assert levels(load_settings(env=local | {"MEDIA_BUCKET": "b"}))["media"] == "ok"


def test_a_mailout_that_would_wait_unseen_is_a_warning() -> None:
    """The mailout waits for a person, who looks a week later."""
    alone = {name: value for name, value in GOOD.items() if name != "ADMIN_EMAIL"}
    assert levels(load_settings(env=alone))["ADMIN_EMAIL"] == "warn"


def test_a_wrong_test_address_and_a_misspelt_name_are_pointed_at() -> None:
    found = levels(
        load_settings(env=GOOD | {"TEST_EMAILS": "nobody, a@example.org", "SEND_RAT_PER_SEC": "5"})
    )
    assert (found["TEST_EMAILS"], found["settings"]) == ("warn", "warn")


def test_what_we_may_not_look_at_is_a_warning() -> None:
    """A key that may only send is no reason to fail."""

    def look() -> Iterator[Check]:
        raise CheckSkipped("We may not look.", remedy="Allow it.")
        yield

    assert list(checked("queue", look)) == [Check("queue", "warn", "We may not look.", "Allow it.")]


def test_an_address_of_this_machine_shows_readers_no_pictures() -> None:
    local = GOOD | {"PUBLIC_URL": "http://localhost:8080"}
    assert "PUBLIC_URL" not in levels(load_settings(env=local))
    sends = levels(load_settings(env=local | {"MAILOUT_TRANSPORT": "ses"}))
    assert (sends["PUBLIC_URL"], sends["media"]) == ("fail", "fail")


def test_a_link_that_mail_programs_will_not_show_as_a_button_is_pointed_at() -> None:
    plain = GOOD | {"UNSUBSCRIBE_BASE_URL": "http://mail.example.org/unsubscribe"}
    assert levels(load_settings(env=plain))["UNSUBSCRIBE_BASE_URL"] == "ok"
    assert levels(load_settings(env=plain | {"MAILOUT_TRANSPORT": "ses"}))["UNSUBSCRIBE_BASE_URL"] == "warn"


def test_a_secret_that_can_be_guessed_is_pointed_at() -> None:
    """Whoever signs links unsubscribes anybody; `change-me` is what the example says."""
    found = [*settings_checks(load_settings(env=GOOD | {"UNSUBSCRIBE_SECRET": "change-me"}))]
    (told,) = [check for check in found if check.level == "warn"]
    assert told.name == "UNSUBSCRIBE_SECRET"
    assert "change-me" not in str(told)


def test_a_part_that_cannot_even_look_has_failed() -> None:
    """One part's outage must not hide what the others have to say."""

    def look() -> Iterator[Check]:
        yield Check("store", "ok", "opened")
        raise StoreUnavailable("It is away.", remedy="Wait.")

    assert list(checked("store", look)) == [
        Check("store", "ok", "opened"),
        Check("store", "fail", "It is away.", "Wait."),
    ]


def test_a_clock_that_is_off_is_told_which_way() -> None:
    assert clock_check(0.4).level == "ok"
    assert clock_check(7.0).message.startswith("7 s behind")
    assert clock_check(-7.0).message.startswith("7 s ahead")
    assert clock_check(-7.0).level == "warn"


def test_a_disk_is_full_before_it_is_full() -> None:
    """Without room for a journal nothing may be sent: better known the day before."""
    assert [disk_check(free).level for free in (5 * 10**9, 5 * 10**8, 5 * 10**7)] == ["ok", "warn", "fail"]


def test_people_who_are_on_the_list_in_vain_are_counted() -> None:
    found = list(people_checks(3, {"invalid": 2, "duplicate": 1}))
    assert [check.level for check in found] == ["ok", "warn", "warn"]
    assert "2 active ones get no mail" in found[1].message
    assert [check.level for check in people_checks(0, {})] == ["warn"]


def test_people_whose_status_nobody_knows_are_named_since_they_get_no_mail() -> None:
    (_, found) = people_checks(3, {}, {"subscribed": 2, "Active": 1})
    assert (found.level, found.message) == (
        "warn",
        "3 people have a status that mailout does not know (“Active”, “subscribed”): they get no mail",
    )
    assert "active, unsubscribed or bounced" in found.remedy
