"""Which slices an article consists of, for whom, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mailout.letters.content.article import document_of
from mailout.letters.content.slices import Article, PublishStatus, Slice, assemble, live, slice_id

OHIO = "ocd-division/country:us/state:oh"
FRANKLIN = f"{OHIO}/county:franklin"
ARLINGTON = f"{OHIO}/place:upper_arlington"
NOW = 1_000_000.0


def part(section: int = 1, scope: str | None = None, **fields: Any) -> Slice:
    fields = {"publish_status": PublishStatus.PUBLISHED, "body_md": f"{section} {scope}", **fields}
    one = Slice(article_key="budget", section_order=section, scope_ocd_id=scope, **fields)
    return replace(one, id=fields.get("id") or slice_id(one.place))


def article(slices: Sequence[Slice], *places: str) -> Article:
    found = assemble(slices, places, NOW)
    assert isinstance(found, Article)
    return found


PLACES = st.sampled_from([None, "ocd-division/country:us", OHIO, FRANKLIN, ARLINGTON])
TIMES = st.one_of(st.none(), st.sampled_from([NOW - 10, NOW, NOW + 10]))
SLICES = st.lists(
    st.builds(
        part,
        st.integers(1, 3),
        PLACES,
        sort_index=st.integers(0, 2),
        is_headline=st.booleans(),
        title=st.sampled_from([None, "One", "Two"]),
        dek=st.sampled_from([None, "A line"]),
        publish_status=st.sampled_from(PublishStatus),
        publish_at=TIMES,
        expires_at=TIMES,
    ),
    unique_by=lambda one: one.place,
    max_size=12,
)
BELONGS = st.sets(st.sampled_from(["ocd-division/country:us", OHIO, FRANKLIN, ARLINGTON, "elsewhere"]))


@given(SLICES, BELONGS, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(slices: list[Slice], places: set[str], random: Any) -> None:
    shuffled = list(slices)
    random.shuffle(shuffled)
    assert assemble(shuffled, places, NOW) == assemble(slices, places, NOW)


@given(SLICES, BELONGS)
def test_exactly_the_live_slices_of_ones_places_are_in_it(slices: list[Slice], places: set[str]) -> None:
    meant = [
        one
        for one in slices
        if one.publish_status is PublishStatus.PUBLISHED
        and (one.publish_at is None or one.publish_at <= NOW)
        and (one.expires_at is None or one.expires_at > NOW)
        and (one.scope_ocd_id is None or one.scope_ocd_id in places)
    ]
    found = assemble(slices, places, NOW)
    if isinstance(found, Article):
        assert sorted(found.slices, key=lambda one: one.id) == sorted(meant, key=lambda one: one.id)
        assert found.has_title == (found.title in {one.title for one in meant})
        assert found.title in {one.title for one in meant} | {one.dek for one in meant} | {"Budget"}
    else:
        assert not meant


@given(SLICES, BELONGS)
def test_sections_follow_each_other_broad_before_narrow(slices: list[Slice], places: set[str]) -> None:
    found = assemble(slices, places, NOW)
    if isinstance(found, Article):
        keys = [(s.section_order, len(s.scope_ocd_id or ""), s.sort_index, s.id) for s in found.slices]
        assert keys == sorted(keys)
        assert found.body == "\n\n".join(one.body_md for one in found.slices)


@given(SLICES, BELONGS)
def test_the_headline_is_the_narrowest_that_is_marked_or_the_first_with_a_title_or_dek(
    slices: list[Slice], places: set[str]
) -> None:
    found = assemble(slices, places, NOW)
    if not isinstance(found, Article):
        return
    worded = [one for one in found.slices if one.title or one.dek]
    marked = [one for one in worded if one.is_headline]
    if marked:
        narrowest = max(len(one.scope_ocd_id or "") for one in marked)
        among = [one for one in marked if len(one.scope_ocd_id or "") == narrowest]
        chosen = min(among, key=lambda one: (one.section_order, one.sort_index, one.id))
    elif worded:
        chosen = worded[0]
    else:
        assert (found.title, found.dek) == ("Budget", None)
        return
    assert found.title == (chosen.title or chosen.dek)
    if chosen.title and chosen.dek:
        assert found.dek == chosen.dek


def test_a_slice_is_sent_from_its_first_moment_until_before_its_last() -> None:
    one = part(publish_at=10.0, expires_at=20.0)
    assert [bool(live([one], now)) for now in (9.9, 10.0, 19.9, 20.0)] == [False, True, True, False]


def test_a_narrower_headline_goes_before_a_broader_one_wherever_it_stands() -> None:
    slices = [
        part(1, None, is_headline=True, title="Everywhere"),
        part(9, FRANKLIN, is_headline=True, title="In Franklin", dek="The county's own"),
    ]
    assert article(slices, OHIO, FRANKLIN).title == "In Franklin"
    assert article(slices, OHIO).title == "Everywhere"


def test_a_headline_without_a_title_is_none() -> None:
    slices = [part(1, OHIO, is_headline=True), part(2, None, title="Still here")]
    assert article(slices, OHIO).title == "Still here"


def test_who_has_slices_gets_them_also_without_a_title() -> None:
    """The subject is then the first dek, else the article's key; who has no slice gets nothing."""
    bare, with_dek = part(1, OHIO), part(2, OHIO, dek="The line below")
    assert article([bare, with_dek], OHIO).title == "The line below"
    assert article([bare], OHIO).title == bare.article_key.replace("-", " ").capitalize()
    assert not article([bare], OHIO).has_title
    assert assemble([bare], [], NOW) is None


def test_the_dek_may_come_from_another_slice_than_the_title() -> None:
    slices = [part(1, OHIO, is_headline=True, title="Roads"), part(2, None, dek="What is built")]
    found = article(slices, OHIO)
    assert (found.title, found.dek) == ("Roads", "What is built")


def test_a_link_stands_below_its_slice() -> None:
    slices = [
        part(1, title="Roads [new]", body_md="One.", link_url="https://example.org/a_(b)"),
        part(2, body_md="Two."),
    ]
    html = document_of(article(slices)).html_body
    assert '<a href="https://example.org/a_(b)">Roads [new]</a>' in html
    assert html.index("One.") < html.index("Roads [new]</a>") < html.index("Two.")


def test_a_long_headline_is_cut_at_a_word_in_the_subject_and_whole_in_the_letter() -> None:
    title = " ".join(["Council"] * 22)  # 175 characters
    document = document_of(article([part(title=title, dek="What it decided")]))
    assert len(document.subject) <= 150
    assert document.subject.endswith("Council…")
    assert f"<h1>{title}</h1>" in document.html_body
    assert document.preheader == "What it decided"


def test_what_authors_write_is_text_and_markdown_never_html_or_front_matter() -> None:
    slices = [
        part(title="<b>1. Bold & *brave*</b>", body_md="---\n\nsubject: no\n\n<script>alert(1)</script>")
    ]
    html = document_of(article(slices)).html_body
    assert "<h1>&lt;b&gt;1. Bold &amp; *brave*&lt;/b&gt;</h1>" in html
    assert "<script" not in html
    assert "subject: no" in html


def test_slices_come_together_as_one_block() -> None:
    """A list that goes on in the next slice is one list: they are rendered together, not one by one."""
    slices = [part(1, title="T", body_md="- one"), part(2, body_md="- two")]
    assert document_of(article(slices)).html_body.count("<ul>") == 1


def test_a_contact_block_keeps_its_lines_in_the_text_part() -> None:
    """Joined into one line, a name, an address and a number are hard to read and to call."""
    contact = "Ida Berg\n[Write to her](https://example.org/ida)\n+1 555 0100"
    found = document_of(article([part(1, title="Roads", body_md=f"Ask:\n\n{contact}")]))
    assert "Ida Berg\nWrite to her (https://example.org/ida)\n+1 555 0100" in found.text_body
