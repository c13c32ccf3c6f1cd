"""The dashboard in a real browser: what moves, what must not run, and who can read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from mailout.insight.history.history_rows import keep_written_pages
from mailout.insight.history.port import WrittenPage
from mailout.letters.audience import subscriber_rows
from mailout.outbox.delivery.states import State
from mailout.outbox.queue import queue_rows, segment_names
from mailout.outbox.queue.mailout import Status
from tests.browser.axe import AXE, violations
from tests.browser.conftest import PATIENCE, SCHEMES, follow
from tests.contract.articles import settle_in
from tests.contract.test_single_mails import mail
from tests.dashboard.conftest import ADMIN, EDITOR, Site, site
from tests.dashboard.scene import PAGE, SCRIPT, Scene
from tests.dashboard.test_articles_page import asked_for
from tests.dashboard.test_drafts import desk, notion
from tests.dashboard.test_sign_in import ANA, by_link, mailed
from tests.producer.database import ProducerDatabase

__all__ = ["desk", "notion"]

BUYER = "buyer-of-something-with-a-long-address@example.org"


@pytest.fixture(scope="module")
def dashboard(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(filled, tmp_path_factory.mktemp("browser") / "home") as opened:
        keep_written_pages(
            opened.store, [WrittenPage(PAGE, SCRIPT, "Draft", is_ready=False, list_key=SCRIPT)]
        )
        opened.store.keep_refusals({("/ses-events", SCRIPT): 3})
        opened.store.accept_single_mails([mail("a", email=BUYER)])
        yield opened


@pytest.fixture(scope="module")
def tab(browser: Browser, dashboard: Site) -> Iterator[Page]:
    """Signed in; whatever goes wrong on a page, in any test, is said at the end."""
    dashboard.sign_in()
    context = browser.new_context(base_url=dashboard.address)
    context.set_default_timeout(PATIENCE)
    context.add_init_script(AXE)
    take_cookies(context, dashboard)
    opened = context.new_page()
    wrong: list[tuple[str, str]] = []
    opened.on("pageerror", lambda error: wrong.append((opened.url, str(error))))
    opened.on("console", lambda line: wrong.append((opened.url, line.text)) if line.type == "error" else None)
    yield opened
    context.close()
    # A policy that refuses something of ours says so here; the mail's own frame is meant to refuse.
    assert [one for one in wrong if not re.search("404|sandboxed|NotSameOrigin", one[1])] == []


def take_cookies(context: BrowserContext, site: Site) -> None:
    """The site's own client has signed in."""
    cookies = [(one.name, one.value or "") for one in site.client.cookies.jar]
    context.add_cookies([{"name": name, "value": value, "url": site.address} for name, value in cookies])


def serious(page: Page) -> list[list[str]]:
    """The mail's own frame is left out."""
    return [one for one in violations(page, iframes=False) if one[1] in ("serious", "critical")]


def addresses(dashboard: Site) -> list[str]:
    ids = dashboard.ids
    letters = [f"/letters/{ids[name]}" for name in ("sent", "failed", "going", "odd", "test")]
    shown = ("drafts", "trials", "failed", "numbers")
    lists = ["/lists", "/lists/one?key=newsletter", "/lists/one?key=general"]
    lists += ["/letters", *(f"/letters?show={one}" for one in shown), "/people", "/people/import"]
    lists += [f"/draft?ref={PAGE}", "/single-mails?state=pending"]
    segment_names.save(dashboard.store, "few", 'email contains "person00" and in list newsletter')
    lists += ["/segments", "/segments?name=few"]
    people = ["/person?email=odd@example.org", f"/person?email={BUYER}"]
    return ["/", *lists, *letters, f"/letters/{ids['sent']}?view=text", *people, "/problems", "/system"]


def test_sign_in_and_out(browser: Browser, dashboard: Site) -> None:
    context = browser.new_context(base_url=dashboard.address)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto("/letters")
    page.get_by_label("Password").fill("not this one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("That is not the password.")
    page.get_by_label("Password").fill(ADMIN)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Letters")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_have_text("You are signed out.")
    page.goto("/")
    expect(page).to_have_url(re.compile("/login"))
    page.get_by_label("Password").fill(EDITOR)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Letters")).to_be_visible()
    expect(page.get_by_role("link", name="People")).to_have_count(0)
    page.goto("/people")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not allowed")
    page.goto(f"/letters/{dashboard.ids['test']}")
    expect(page.get_by_text("Send to")).to_have_count(0)
    page.eval_on_selector("form[action$='/test'] input[name=csrf]", "field => field.value = '0'.repeat(64)")
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Not allowed")
    assert queue_rows.asked(dashboard.store, waiting=0) == []
    context.close()


def test_a_send_moves_live_and_is_paused_and_resumed(page: Page, dashboard: Site) -> None:
    """Nobody reloads: the page hears of it."""
    id = dashboard.ids["going"]
    page.goto("/")
    left = dashboard.store.mailout(id).ledger.sent
    facts = page.locator("p.facts")
    expect(facts).to_contain_text(f"{left} of")
    Scene(dashboard.store, dashboard.home).send(id, [State.SENT] * 7)
    expect(facts).to_contain_text(f"{left + 7} of")
    page.goto(f"/letters/{id}")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.get_by_role("status")).to_have_text(
        "It is paused. Messages that are being sent are finished."
    )
    expect(page.get_by_text("somebody paused it").first).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("status")).to_have_text("It goes on within a minute.")
    assert dashboard.store.mailout(id).defer_reason is None


def test_one_is_taken_back_after_a_second_thought(page: Page, dashboard: Site) -> None:
    id = dashboard.ids["planned"]
    page.goto(f"/letters/{id}")
    expect(page.get_by_role("button", name="Cancel this letter")).to_be_hidden()
    page.get_by_text("Cancel…").click()
    page.get_by_role("button", name="Cancel this letter").click()
    expect(page.get_by_role("status")).to_contain_text("Cancelled.")
    assert dashboard.store.mailout(id).status is Status.CANCELLED


def test_a_guarded_send_by_keyboard(page: Page, dashboard: Site) -> None:
    page.goto(f"/letters/{dashboard.ids['test']}")
    size = dashboard.store.audience_size("newsletter")
    page.get_by_text(f"Send to {size} people…").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Type how many people get it").fill("12")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Nothing is sent")
    page.get_by_text(f"Send to {size} people…").click()
    page.get_by_label("Type how many people get it").fill(str(size))
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("It goes out within a minute")
    assert len(queue_rows.asked(dashboard.store, waiting=0)) == 1
    expect(page.get_by_text("Requested: the page is being read")).to_be_visible()
    page.goto(f"/letters/{dashboard.ids['test']}")
    page.get_by_role("button", name="Send a test").click()
    expect(page.get_by_role("status")).to_contain_text("is on its way")
    assert len(queue_rows.asked(dashboard.store, waiting=0)) == 2


def test_doubts_are_settled_and_failures_retried(page: Page, dashboard: Site) -> None:
    id = dashboard.ids["failed"]
    page.goto(f"/letters/{id}")
    page.get_by_label("They did not arrive, and nothing more is sent to them.").check()
    page.get_by_role("button", name="Settle").click()
    expect(page.get_by_role("status")).to_have_text("They are settled as failed.")
    page.get_by_role("button", name="Retry 4 failed").click()
    expect(page.get_by_role("status")).to_contain_text("4 messages are tried again")
    ledger = dashboard.store.mailout(id).ledger
    assert (ledger.unknown, ledger.failed, ledger.pending) == (0, 0, 4)


def test_a_person_is_forgotten_with_the_address_typed(page: Page, dashboard: Site) -> None:
    page.goto("/person?email=person031@example.org")
    page.get_by_text("Forget…").click()
    page.get_by_label("Type the address").fill("person031@example.org")
    page.get_by_role("button", name="Forget this person").click()
    expect(page.get_by_role("status")).to_contain_text("The person is forgotten.")
    page.goto("/person?email=person031@example.org")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")


def test_an_import_with_a_wrong_column_set_right_answered_and_taken_back(page: Page, dashboard: Site) -> None:
    page.goto("/people/import")
    page.get_by_label("A CSV file").set_input_files(
        {
            "name": "people.csv",
            "mimeType": "text/csv",
            "buffer": b"Mail,Who,Off\nzoe@example.org,Zoe,\nyan@example.org,,x\n",
        }
    )
    follow(page.get_by_role("button", name="Show preview"))
    assert serious(page) == []
    page.get_by_label("Who", exact=True).select_option("first_name")
    page.get_by_label("Those without x").check()
    follow(page.get_by_role("button", name="Continue"))
    assert serious(page) == []
    follow(page.get_by_role("button", name="Import 2 people"))
    expect(page.get_by_role("status")).to_contain_text("2 new")
    assert subscriber_rows.subscriber(dashboard.store, "zoe@example.org")["attributes"]["first_name"] == "Zoe"
    assert subscriber_rows.subscriber(dashboard.store, "yan@example.org")["status"] == "unsubscribed"
    page.goto("/people/import")
    assert serious(page) == []
    page.get_by_text("Undo…").click()
    page.get_by_role("button", name="Undo this import").click()
    expect(page.get_by_role("status")).to_contain_text("Removed: 1 person")


def test_a_mail_with_a_script_does_not_run_it(page: Page, dashboard: Site) -> None:
    """The frame's own rules hold, whatever the checks before it let through."""
    with dashboard.store.db.write() as tx:
        tx.execute(
            "INSERT INTO contents VALUES ('evil', 'x', ?, 'x', 0)",
            ("<body><p>hello</p><script>top.hacked=1;document.title='ran'</script></body>",),
        )
        tx.execute("UPDATE campaign_queue SET content_hash = 'evil' WHERE id = ?", (dashboard.ids["odd"],))
    answer = page.goto(f"/letters/{dashboard.ids['odd']}/mail")
    assert answer is not None
    assert page.title() != "ran"
    expect(page.get_by_text("hello")).to_be_visible()
    with dashboard.store.db.write() as tx:
        tx.execute(
            "UPDATE campaign_queue SET content_hash = (SELECT content_hash FROM campaign_queue WHERE id = ?)"
            " WHERE id = ?",
            (dashboard.ids["sent"], dashboard.ids["odd"]),
        )


def test_everybody_can_read_every_page_and_nothing_in_it_runs(page: Page, dashboard: Site) -> None:
    """axe-core finds nothing serious on a phone of 320 px, in light and, on every third page, in dark; and no
    script runs that is in a subject, a list, a name, an error, a note, a payload."""
    page.set_viewport_size({"width": 320, "height": 700})
    seen = 0
    for place, address in enumerate(addresses(dashboard)):
        page.emulate_media(color_scheme="light")
        page.goto(address)
        seen += SCRIPT in page.content() or SCRIPT.split(">")[0] in (page.text_content("main") or "")
        assert page.evaluate("window.hacked") is None, address
        for scheme in SCHEMES[: 2 if place % 3 == 0 else 1]:
            page.emulate_media(color_scheme=scheme)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 320, (address, scheme, wide)
            found = serious(page)
            assert found == [], (address, scheme, found)
    assert seen >= 6


def test_articles_and_notifications_can_be_read(browser: Browser, filled: Path, tmp_path: Path) -> None:
    producer = ProducerDatabase(tmp_path / "seats.db")
    producer.one("somebody-with-a-long-address@a-long-name.example.org")
    producer.sql("UPDATE open_event_notifications SET fanout_status = 'failed'")
    with site(filled, tmp_path / "home", notify_db=producer.path) as opened:
        settle_in(opened.store)
        batch = asked_for(opened)
        context = browser.new_context(base_url=opened.address, viewport={"width": 320, "height": 700})
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.add_init_script(AXE)
        page.goto("/login")
        page.get_by_label("Password").fill(ADMIN)
        follow(page.get_by_role("button", name="Sign in"))
        for address in ("/articles", f"/articles/{batch}", "/notifications"):
            page.goto(address)
            assert page.evaluate("document.documentElement.scrollWidth") <= 320, address
            assert serious(page) == [], address
        page.get_by_text("Requeue…").click()
        page.get_by_role("button", name="Requeue it").click()
        expect(page.get_by_role("status")).to_contain_text("is pending again")
        page.goto(f"/articles/{batch}")
        page.get_by_role("link", name="The budget in Upper Arlington").click()
        frame = page.frame_locator("iframe")
        expect(frame.get_by_text("The town.")).to_be_visible()
        follow(page.get_by_role("button", name="Sign out"))
        for _ in range(9):
            opened.sign_in("not this one")
        page.get_by_label("Password").fill("nor this one")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("That is not the password.")
        page.get_by_label("Password").fill(ADMIN)
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("Too many wrong passwords.")
        assert serious(page) == []
        context.close()
    assert [row["fanout_status"] for row in producer.rows()] == ["pending"]


def test_somebody_signs_in_by_a_link_in_the_browser_that_asked(
    browser: Browser, filled: Path, tmp_path: Path
) -> None:
    with by_link(filled, tmp_path / "home") as opened:
        first, second = (
            browser.new_context(base_url=opened.address, viewport={"width": 320, "height": 700})
            for _ in range(2)
        )
        for context in (first, second):
            context.set_default_timeout(PATIENCE)
            context.add_init_script(AXE)
        page = first.new_page()
        page.goto("/letters")
        assert serious(page) == []
        page.get_by_label("E-mail address").fill(ANA)
        page.keyboard.press("Enter")
        expect(page.get_by_role("status")).to_contain_text("a mail with a link is on its way")
        (link,) = mailed(opened)
        elsewhere = second.new_page()
        elsewhere.goto(link)
        expect(elsewhere.get_by_role("alert")).to_contain_text("the browser in which you asked for it")
        page.goto(link)
        expect(page.get_by_text(f"Sign in as {ANA}?")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        assert serious(page) == []
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("link", name="People")).to_be_visible()
        page.goto(link)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("was used already")
        first.close()
        second.close()


def test_it_works_without_script(browser: Browser, dashboard: Site) -> None:
    context = browser.new_context(base_url=dashboard.address, java_script_enabled=False)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto("/login")
    page.get_by_label("Password").fill(ADMIN)
    follow(page.get_by_role("button", name="Sign in"))
    page.goto("/people?q=person01")
    follow(page.get_by_role("link", name="person010@example.org"))
    page.get_by_role("button", name="Unsubscribe…").click()
    page.get_by_role("button", name="Unsubscribe from everything").click()
    expect(page.get_by_role("status")).to_contain_text("gets no more mail")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("gets mail again")
    page.goto("/system")
    expect(page.get_by_text("FROM_EMAIL")).to_be_visible()
    expect(page.get_by_text("UNSUBSCRIBE_SECRET")).to_be_visible()
    context.close()


def test_a_segment_is_made_changed_and_deleted_by_hand(page: Page, dashboard: Site) -> None:
    page.goto("/segments")
    page.get_by_text("Add a segment…").click()
    page.get_by_label("Name").fill("a & b")
    page.get_by_label("Who is meant", exact=True).fill('email contains "person00"')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("The segment is saved.")
    expect(page.get_by_role("heading", level=2)).to_have_text("a & b")
    page.get_by_label("Another filter").fill('email contains "nobody-has-this"')
    page.locator("form", has=page.get_by_label("Another filter")).get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("No subscriber has email contains")
    expect(page.locator("main")).to_contain_text("0 of")
    page.get_by_text("Delete…").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("status")).to_contain_text("The segment is deleted.")
    expect(page.locator("main")).not_to_contain_text("a & b")


def test_on_a_phone_a_draft_s_mail_comes_before_its_status(browser: Browser, desk: Site) -> None:
    context = browser.new_context(base_url=desk.address, viewport={"width": 390, "height": 800})
    take_cookies(context, desk)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(f"/draft?ref={PAGE}&read=1")
    tops = [page.locator(id).bounding_box() for id in ("#mail", "#stands", "#before")]
    context.close()
    assert all(tops)
    assert [one["y"] for one in tops if one] == sorted(one["y"] for one in tops if one)
