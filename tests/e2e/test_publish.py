"""`mailout publish` and `unpublish` as a person meets them."""

from __future__ import annotations

from contextlib import closing

from tests.e2e.conftest import Commands
from tests.gateway.letters import letter

WEB = {"PUBLIC_URL": "https://mail.example.org"}


def test_a_letter_is_published_and_its_address_is_said_and_taken_off_again(mailout: Commands) -> None:
    with closing(mailout.store()) as store:
        id = letter(store, "Boats are back", public=False)
    done = mailout("publish", id[:8], **WEB)
    assert done.code == 0
    assert f"https://mail.example.org/archive/boats-are-back-{id[:6]}" in done.out
    assert mailout("publish", id, "--json", **WEB).data == {
        "id": id,
        "public": True,
        "address": f"https://mail.example.org/archive/boats-are-back-{id[:6]}",
    }
    assert "not in the archive any more" in mailout("unpublish", id, **WEB).out
    assert mailout("unpublish", id, "--json", **WEB).data == {"id": id, "public": False}


def test_what_cannot_be_published_says_why_and_what_to_do(mailout: Commands) -> None:
    with closing(mailout.store()) as store:
        named = letter(store, "Dear {{ first_name }}", public=False)
    refused = mailout("publish", named, **WEB)
    assert refused.code == 2
    assert "{{ first_name }} has no fallback" in refused.one_line
    nowhere = mailout("publish", named)
    assert nowhere.code == 2
    assert "PUBLIC_URL" in nowhere.one_line
