"""TEST_EMAILS: a test run must reach exactly the people it names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mailout.base.addresses import Dropped, parse_address_list


def test_commas_semicolons_and_white_space_separate() -> None:
    text = "cy@example.org, ana@example.org;bo@example.org dan@example.org\n\teve@example.org,;,"
    names = [address.partition("@")[0] for address in parse_address_list(text).addresses]
    assert names == ["ana", "bo", "cy", "dan", "eve"]


def test_nobody_gets_the_test_twice_for_writing_his_address_twice() -> None:
    assert parse_address_list("Ana@Example.org ana@example.ORG").addresses == ("ana@example.org",)


def test_invalid_ones_are_dropped_and_handed_back_for_the_log() -> None:
    parsed = parse_address_list("ana@example.org, nobody, josé@example.org")
    assert parsed.addresses == ("ana@example.org",)
    assert parsed.rejected == (("nobody", Dropped.NO_AT), ("josé@example.org", Dropped.NON_ASCII_LOCAL))


def test_nothing_written_is_nobody_and_no_complaint() -> None:
    assert parse_address_list(" ,; \n") == ((), ())


@given(
    st.lists(st.from_regex(r"[a-zA-Z]{1,8}@example\.(org|com)", fullmatch=True)),
    st.lists(st.sampled_from([",", ";", " ", "\n", "\t", ", ", " ;\n"]), min_size=1),
)
def test_order_and_separators_do_not_matter(emails: list[str], separators: list[str]) -> None:
    """Two ways to write the same setting must be the same test run."""
    text = "".join(email + separators[n % len(separators)] for n, email in enumerate(emails))
    assert parse_address_list(text).addresses == tuple(sorted({email.lower() for email in emails}))
    assert parse_address_list(text) == parse_address_list(",".join(reversed(emails)))
