"""`mailout segments`: a filter by name, from the command line."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from cli.commands.article import _filter
from mailout.app import wiring
from mailout.base.errors import UsageError
from mailout.base.ids import mailout_id
from mailout.base.settings import load_settings
from mailout.letters.audience.port import SubscriberRow
from mailout.letters.audience.segments import read_segment
from mailout.letters.content.port import Kind
from mailout.outbox.queue.mailout import NewMailout
from tests.unit.cli.conftest import Run

WAITS = mailout_id("waits")


@pytest.fixture
def people(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAILOUT_HOME", str(folder / "home"))
    with closing(wiring.open_store(load_settings())) as store:
        cities = {"ana@example.org": "Porto", "bo@example.org": "PORTO", "cy@example.org": "Oslo"}
        store.import_subscribers([SubscriberRow(e, e, attributes={"city": c}) for e, c in cities.items()])
        store.enqueue(
            NewMailout(id=WAITS, kind=Kind.MARKDOWN, ref="waits", subject="It waits", segment="porto")
        )


@pytest.mark.usefixtures("people")
def test_a_segment_from_its_beginning_to_its_end(run: Run) -> None:
    assert "2 of 3 people" in run("segments", "add", "porto", 'city = "porto"').out
    shown = run("segments", "show", "porto", "--json").data
    assert (shown["people"], shown["of"], shown["sample"]) == (2, 3, ["ana@example.org", "bo@example.org"])
    assert shown["waiting"] == [{"id": WAITS, "subject": "It waits"}]
    assert run("segments", "count", "porto", "--json").data == {"people": 2, "of": 3}
    (listed,) = run("segments", "list", "--json").data
    assert (listed["name"], listed["filter"], len(listed["hash"])) == ("porto", 'city = "porto"', 64)
    refused = run("segments", "delete", "porto")
    assert (refused.code, WAITS in refused.err, "It waits" in refused.err) == (2, True, True)
    assert run("queue", "cancel", WAITS, "--yes").code == 0
    assert run("segments", "delete", "porto", "--json").data == {"deleted": "porto"}
    assert run("segments", "list", "--json").data == []


@pytest.mark.usefixtures("people")
def test_a_typing_mistake_is_told(run: Run) -> None:
    warned = run("segments", "add", "x", 'city = "Prto"')
    assert (warned.code, 'No subscriber has city = "prto".' in warned.err) == (0, True)
    for asked, said in (
        (("segments", "add", "x", "ctiy = a"), "Did you mean “city”?"),
        (("segments", "show", "y"), "There is no segment “y”."),
        (("segments", "count"), "Name a segment, or give --filter."),
        (("segments", "count", "--filter", "city ="), "ends too early"),
    ):
        refused = run(*asked)
        assert (refused.code, said in refused.err) == (2, True), refused.err


@pytest.mark.parametrize("key", ["state", "list", "city", "Post-code"])
def test_a_name_given_twice_in_an_articles_filter_is_refused_with_what_to_write(key: str) -> None:
    """Only the last was taken: nobody in Ohio got it."""
    with pytest.raises(UsageError, match=f"{key} is given twice, as OH and as MI") as refused:
        _filter([f"{key}=OH", f"{key}=MI"])
    instead = (refused.value.remedy or "").split("'")[1]
    assert _filter([instead]) == {"filter": instead}
    assert read_segment(instead).tree[0] in ("or", "compare")
    assert _filter([f"{key}=OH", f"{key}=OH"]) == {key: "OH"}


def test_the_old_forms_of_an_articles_filter_stay_beside_the_language_of_segments() -> None:
    assert _filter(["state=OH", "county=Prince George's (East)", "list=a b", "plan=gold"]) == {
        "state": "OH",
        "county": "Prince George's (East)",
        "list": "a b",
        "plan": "gold",
    }
    assert _filter(["state=OH", 'plan = "gold"']) == {"state": "OH", "filter": 'plan = "gold"'}
    assert _filter(["has a or has b", "age>3"]) == {"filter": "(has a or has b) and (age>3)"}
