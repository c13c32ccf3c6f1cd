"""Signed links: everybody can leave, nobody can make somebody else leave, and no link does another's work."""

import hmac
import json
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailout.base.errors import SettingsError
from mailout.base.signed_links import MAX_LENGTH, SignedLinks, TokenData, Tokens

SECRET = "a secret of some length"
emails = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)


def make_token(email: str, secret: str, list_key: str | None = None) -> str:
    return Tokens([secret]).make(email, list_key)


def read_token(token: str, secrets: list[str]) -> TokenData | None:
    return Tokens(secrets).read(token)


def signed(payload: bytes, secret: str = SECRET) -> str:
    """A token as anybody with the secret could make it, canonical or not."""

    def b64(data: bytes) -> str:
        return urlsafe_b64encode(data).rstrip(b"=").decode()

    return f"{b64(payload)}.{b64(hmac.digest(secret.encode(), payload, 'sha256'))}"


@given(email=emails, list_key=st.none() | st.text(st.characters(codec="utf-8"), max_size=20))
def test_whoever_got_a_token_can_leave_with_it(email, list_key):
    token = make_token(email, SECRET, list_key)
    assert read_token(token, [SECRET]) == TokenData(email.strip().lower(), list_key)


def test_the_token_is_the_documented_format():
    """Other programs that share the secret make and read the same."""
    payload = json.dumps({"email": "ann@example.org", "list_key": "news"}, separators=(",", ":")).encode()
    assert make_token("ann@example.org", SECRET, "news") == signed(payload)
    assert "=" not in make_token("ann@example.org", SECRET)


def test_same_address_same_token_in_any_case():
    assert make_token("Ann@Example.org", SECRET) == make_token("ann@example.org", SECRET)
    assert make_token("ann@example.org", SECRET) != make_token("bob@example.org", SECRET)


def test_old_mail_can_still_be_left_after_the_secret_changed():
    token = make_token("ann@example.org", "the old one")
    assert read_token(token, [SECRET, "the old one"]) == TokenData("ann@example.org")
    assert read_token(token, [SECRET]) is None
    assert make_token("ann@example.org", SECRET) == Tokens([SECRET, "the old one"]).make("ann@example.org")


@given(st.data())
def test_a_token_changed_anywhere_is_refused(data):
    token = make_token("ann@example.org", SECRET, "news")
    place = data.draw(st.integers(0, len(token) - 1))
    character = data.draw(st.characters(codec="utf-8"))
    changed = token[:place] + character + token[place + 1 :]
    if changed != token:
        assert read_token(changed, [SECRET]) is None


@given(st.text(max_size=200))
def test_anything_else_is_a_verdict_and_no_exception(text):
    assert read_token(text, [SECRET]) is None


@pytest.mark.parametrize(
    "token",
    [
        make_token("ann@example.org", SECRET) + "=",
        make_token("ann@example.org", SECRET) + ".",
        make_token("ann@example.org", SECRET) + "\n",
        " " + make_token("ann@example.org", SECRET),
        make_token("ann@example.org", SECRET).partition(".")[0],
        "",
        ".",
        "x" * (MAX_LENGTH + 1),
        make_token("a" * MAX_LENGTH, SECRET),
    ],
)
def test_a_token_has_one_spelling(token):
    assert read_token(token, [SECRET]) is None


@pytest.mark.parametrize(
    ("payload", "list_key"),
    [
        (b'{"email": "ann@example.org"}', None),
        (b'{"email":"Ann@example.org "}', None),
        (b'{"list_key":"a","email":"ann@example.org"}', "a"),
        (b'{\n  "email": "ann\\u0040example.org",\n  "list_key": "general"\n}', "general"),
        (b'{"email":"ann@example.org","list_key":null}', None),
        (b'{"email":"ann@example.org","issued":1700000000}', None),
    ],
)
def test_a_link_that_an_older_sender_signed_still_ends_the_mail(payload: bytes, list_key: str | None) -> None:
    assert read_token(signed(payload), [SECRET]) == TokenData("ann@example.org", list_key)
    assert read_token(signed(payload, "another"), [SECRET]) is None


@pytest.mark.parametrize(
    "payload",
    [
        b'{"email":"ann@example.org","list_key":1}',
        b'{"email":1}',
        b'{"email":"\\ud800"}',
        b'{"list_key":"a"}',
        b'["ann@example.org"]',
        b"null",
        b"\xff",
        b"",
        b"[" * 1400,
    ],
)
def test_even_a_signed_payload_must_be_one_that_we_write(payload):
    assert read_token(signed(payload), [SECRET]) is None


@pytest.mark.parametrize("secrets", [[], [""], [SECRET, ""]])
def test_an_empty_secret_signs_nothing(secrets):
    """With an empty key anybody could unsubscribe anybody."""
    with pytest.raises(SettingsError, match="UNSUBSCRIBE_SECRET"):
        Tokens(secrets)


# ── The message that a link stands in ──

ID = "0b1c2d3e-4f50-8123-9abc-def012345678"


def test_a_message_is_read_back_with_every_secret_that_still_counts() -> None:
    written = Tokens(["old"]).make_message(ID)
    assert len(written) == 43
    assert Tokens([SECRET, "old"]).read_message(written) == ID
    assert Tokens([SECRET]).read_message(written) is None


def test_no_other_message_can_be_named() -> None:
    tokens = Tokens([SECRET])
    written = tokens.make_message(ID)
    for place, letter in enumerate(written):
        changed = written[:place] + ("A" if letter != "A" else "B") + written[place + 1 :]
        assert tokens.read_message(changed) is None
    for other in ("", written[:-1], written + "A", written + "=", tokens.make("ann@example.org"), "ж"):
        assert tokens.read_message(other) is None


payloads = st.dictionaries(
    st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"), max_size=30)
)


@given(payload=payloads)
def test_a_link_gives_back_what_was_signed_also_after_the_secret_was_changed(payload):
    token = SignedLinks([SECRET], "join").make(payload)
    assert SignedLinks([SECRET], "join").read(token) == payload
    assert SignedLinks(["a newer one", SECRET], "join").read(token) == payload
    assert SignedLinks(["a newer one"], "join").read(token) is None


def test_a_link_for_one_purpose_opens_nothing_else():
    token = SignedLinks([SECRET], "join").make({"email": "ada@example.org"})
    assert SignedLinks([SECRET], "sign-in").read(token) is None
    assert Tokens([SECRET]).read(token) is None
    assert SignedLinks([SECRET], "join").read(Tokens([SECRET]).make("ada@example.org")) is None


@given(st.data())
def test_a_changed_link_is_no_link(data):
    links = SignedLinks([SECRET], "view")
    token = links.make({"mailout": "m", "at": 5})
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("abcXYZ019-_.").filter(lambda one: one != token[place]))
    assert links.read(token[:place] + letter + token[place + 1 :]) is None


def test_a_link_that_is_too_old_or_from_the_future_is_refused():
    links = SignedLinks([SECRET], "join")
    token = links.make({"at": 1000})
    assert links.read_fresh(token, 1000, 60) == links.read_fresh(token, 1060, 60) == {"at": 1000}
    assert links.read_fresh(token, 1061, 60) is links.read_fresh(token, 999, 60) is None
