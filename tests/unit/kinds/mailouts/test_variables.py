"""From `{{ first_name }}` to each reader's own mail, or to a refusal before the queue knows of it."""

from __future__ import annotations

import email
import email.policy
import json
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from mailout.adapters.ses.letters import prepare
from mailout.app import wiring
from mailout.app.engine import Engine
from mailout.base.errors import Abort, AbortCode, NotFound
from mailout.base.settings import load_settings
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.content import content_rows
from mailout.letters.content.variables import variables_of
from mailout.outbox.delivery import outbox_rows
from mailout.outbox.delivery.port import Mail
from mailout.outbox.delivery.protocol import Attempt, Claimed
from mailout.outbox.queue import queue_rows
from mailout.outbox.queue.mailout import DeferReason
from tests.clocks import FakeClock
from tests.stubs.ses_mail import render
from tests.transports import delivering

BODY = "Dear {{ first_name | friend }}, `{{ code }}` in {{ city }}. Yours, {{ from_name }} to {{ email }}"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "MAILOUT_HOME": str(tmp_path / "home"),
        "FROM_EMAIL": "news@example.org",
        "FROM_NAME": "The Harbour",
        "ORG_NAME": "The Harbour",
        "ORG_ADDRESS": "1 Quay",
        "UNSUBSCRIBE_BASE_URL": "https://mail.example.org/unsubscribe",
        "UNSUBSCRIBE_SECRET": "a secret of some length",
        "TEST_EMAILS": "editor@example.org",
        "SEND_RATE_PER_SEC": "0",
    }


@pytest.fixture
def engine(env: dict[str, str]) -> Iterator[Engine]:
    engine = wiring.build(load_settings(env=env), FakeClock())
    engine.store.import_subscribers(
        [
            SubscriberRow(
                "ann@example.org",
                "ann@example.org",
                attributes={"first_name": "Ann <3", "city": "Porto", "secret": "not used"},
            ),
            SubscriberRow("bob@example.org", "bob@example.org", from_name="Bo", attributes={"city": "Faro"}),
        ]
    )
    yield engine
    engine.store.close()


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    path = tmp_path / "letter.md"
    path.write_text(
        f"---\nid: letter\nsubject: For {{{{ first_name | you }}}}\n---\n\n{BODY}\n", encoding="utf-8"
    )
    return path


def mails(engine: Engine) -> dict[str, EmailMessage]:
    files = engine.settings.mailout_home.glob("outbox/*/*.eml")
    read = [email.message_from_bytes(file.read_bytes(), policy=email.policy.default) for file in files]
    return {str(mail["To"]).strip("<>"): mail for mail in read if isinstance(mail, EmailMessage)}


def text_of(mail: EmailMessage, kind: str = "plain") -> str:
    part = mail.get_body((kind,))
    assert part is not None
    return part.get_content()


def test_each_reader_gets_their_own_in_subject_html_and_text(engine: Engine, letter: Path) -> None:
    mailout = engine.intake.enqueue(str(letter))
    assert mailout.subject == "For {{ first_name | you }}"
    engine.deliver(mailout.id)
    sent = mails(engine)
    ann, bob = sent["ann@example.org"], sent["bob@example.org"]
    assert (ann["Subject"], bob["Subject"]) == ("For Ann <3", "For you")
    assert "Dear Ann <3, {{ code }} in Porto. Yours, The Harbour to ann@example.org" in text_of(ann)
    assert "Dear friend, {{ code }} in Faro. Yours, Bo to bob@example.org" in text_of(bob)
    assert "Dear Ann &lt;3, " in text_of(ann, "html")
    rows = {row["email"]: row["variables"] for row in outbox_rows.messages(engine.store, mailout.id)}
    assert "not used" not in str(rows)


def test_who_lacks_a_value_stops_it_before_the_queue_with_their_number_and_three_of_them(
    engine: Engine, letter: Path
) -> None:
    others = [f"p{n}@example.org" for n in range(5)]
    engine.store.import_subscribers([SubscriberRow(one, one, attributes={"City": "X"}) for one in others])
    for attempt in (lambda: engine.intake.validate(str(letter)), lambda: engine.intake.enqueue(str(letter))):
        with pytest.raises(Abort, match=r"5 people have no value for \{\{ city \}\}") as refused:
            attempt()
        assert refused.value.code is AbortCode.VARIABLE_MISSING
        assert "p0@example.org, p1@example.org, p2@example.org and others" in str(refused.value)
        assert "Did you mean {{ City }}?" in str(refused.value)
    assert not queue_rows.mailouts(engine.store)


@pytest.mark.parametrize("braces", ["{{ first_name | you }", "{ city }}", "{{ email }", "{{ **city** }}"])
def test_braces_around_a_variable_that_is_known_stop_a_real_letter_and_no_test(
    engine: Engine, letter: Path, braces: str
) -> None:
    """Everybody would read “Dear {{ first_name | friend }”."""
    letter.write_text(f"---\nsubject: s\n---\nDear {braces}, {{ set }}, {{{{ 1st }}}}", encoding="utf-8")
    with pytest.raises(Abort, match="readers would see its braces") as refused:
        engine.intake.enqueue(str(letter))
    assert refused.value.code is AbortCode.VARIABLE_MISSING
    assert "1st" not in str(refused.value), "that nobody knows is a finding"
    assert engine.intake.enqueue(str(letter), True).is_test


def test_a_misspelt_variable_is_told_although_it_has_a_fallback(engine: Engine, letter: Path) -> None:
    """Nobody would notice that everybody reads the fallback."""
    written = letter.read_text("utf-8")
    misspelt = "{{ frist_name | you }}, {{ First_Name | z }} of {{ plot | }}"
    letter.write_text(
        written + misspelt + " [x](https://example.org/{{ frist_name | you }})", encoding="utf-8"
    )
    engine.intake.validate(str(letter))
    found = {one.where: one.message for one in engine.intake.findings(str(letter))}
    assert set(found) == {"{{ First_Name | z }}", "{{ frist_name | you }}", "{{ plot |  }}"}
    for name in ("{{ First_Name | z }}", "{{ frist_name | you }}"):
        assert "Did you mean {{ first_name }}?" in found[name]
    assert "Correct its name, or import the values." in found["{{ plot |  }}"]
    letter.write_text(written, encoding="utf-8")
    engine.intake.validate(str(letter))
    assert not engine.intake.findings(str(letter)), "one person with a name is enough"


def test_why_a_letter_has_no_web_page_is_said_with_what_to_write(env: dict[str, str], letter: Path) -> None:
    """`{{ first_name | friend }}` helps nobody who wrote `{{ email }}`."""
    engine = wiring.build(load_settings(env=env | {"PUBLIC_URL": "https://mail.example.org"}), FakeClock())
    letter.write_text("---\nsubject: s\n---\n{{ from_name }} to {{ email }} in {{ city }}", encoding="utf-8")
    document, _ = engine.intake.letters.draft(engine.intake.letters.read(str(letter)))
    assert {one.where: one.message.partition("may read: ")[2] for one in document.problems} == {
        "{{ from_name }}": "{{ from_name | our team }}.",
        "{{ email }}": "{{ email | your address }}.",
        "{{ city }}": "{{ city | your city }}.",
    }
    engine.store.close()


def test_a_test_run_shows_the_names_and_needs_no_values(engine: Engine, letter: Path) -> None:
    engine.store.import_subscribers([SubscriberRow("p@example.org", "p@example.org")])
    engine.deliver(engine.intake.enqueue(str(letter), True).id)
    mail = mails(engine)["editor@example.org"]
    assert mail["Subject"] == "[Test] For [first_name]"
    assert "Dear [first_name], {{ code }} in [city]" in text_of(mail)


def test_bulk_mail_says_the_same_as_single_mail(engine: Engine, letter: Path) -> None:
    mailout = engine.intake.enqueue(str(letter))
    content = content_rows.content(engine.store, mailout.content_hash or "")
    claimed = Claimed(
        attempt=Attempt("00000000-0000-5000-8000-000000000000", 1),
        seq=1,
        number=1,
        email="eve@example.org",
        content_hash=content.hash,
        mailout_id=mailout.id,
        company_id="",
        from_name=None,
        variables={"city": "{{ v0 }} & \\{{"},
        slot=None,
    )
    mail: Mail = engine.sending._composer(mailout)(claimed)
    prepared = prepare(content)
    assert variables_of(content)
    simple = prepared.simple(mail.values)
    data = json.loads(prepared.template.data(mail.values))
    bulk = {part: render(text, data) for part, text in prepared.template.content.items()}
    assert bulk == {
        "Subject": simple["Subject"]["Data"],
        "Html": simple["Body"]["Html"]["Data"],
        "Text": simple["Body"]["Text"]["Data"],
    }
    assert "in {{ v0 }} & \\{{." in bulk["Text"]
    assert "in {{ v0 }} &amp; \\{{." in bulk["Html"]


def test_preview_as_somebody_shows_what_that_person_gets(
    engine: Engine, env: dict[str, str], letter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in env.items():
        monkeypatch.setenv(name, value)

    def preview(*options: str) -> str:
        shown = CliRunner().invoke(app, ["preview", str(letter), "--out", "out", *options])
        assert shown.exit_code == 0, shown.output
        assert "{{ first_name" not in shown.output, "as all of it, the preheader shows what that person reads"
        return Path("out/message.txt").read_text(encoding="utf-8")

    assert "Dear [first_name], {{ code }} in [city]" in preview()
    assert "Dear Ann <3, {{ code }} in Porto" in preview("--as", "Ann@Example.org")
    with pytest.raises(NotFound):
        CliRunner().invoke(
            app, ["preview", str(letter), "--out", "out", "--as", "no@example.org"], catch_exceptions=False
        )


def test_a_variable_that_comes_after_the_audience_was_frozen_is_filled_for_everybody(
    env: dict[str, str], engine: Engine, letter: Path
) -> None:
    """`REQUIRE_TEST`: an edited letter waits for its test, and by then it may ask for something else."""
    settings = load_settings(env=env | {"REQUIRE_TEST": "true"})
    strict = wiring.build(settings, FakeClock(), transport=delivering(settings, FakeClock()))
    written = letter.read_text("utf-8")
    letter.write_text(written.replace("{{ city }}", "town"), encoding="utf-8")
    id = strict.intake.enqueue(str(letter)).id
    strict.deliver(id)
    assert strict.store.mailout(id).defer_reason is DeferReason.UNTESTED
    letter.write_text(written, encoding="utf-8")
    strict.deliver(strict.intake.enqueue(str(letter), test=True).id)
    assert strict.intake.enqueue(str(letter)).id == id
    strict.deliver(id)
    assert strict.store.mailout(id).ledger.sent == 2
    assert "in Porto." in text_of(mails(engine)["ann@example.org"])
    strict.store.close()


def test_an_edited_letter_that_asks_for_what_people_lack_is_refused_and_nobody_is_lost(
    env: dict[str, str], engine: Engine, letter: Path
) -> None:
    settings = load_settings(env=env | {"REQUIRE_TEST": "true"})
    strict = wiring.build(settings, FakeClock(), transport=delivering(settings, FakeClock()))
    id = strict.intake.enqueue(str(letter)).id
    strict.deliver(id)
    letter.write_text(letter.read_text("utf-8") + "Born {{ birthday }}.", encoding="utf-8")
    with pytest.raises(Abort, match="2 people have no value"):
        strict.intake.enqueue(str(letter))
    assert strict.store.mailout(id).ledger.pending == 2, "it waits as it was"
    strict.store.close()
