"""Media in a folder: kept once, under an address that lasts."""

import hashlib

import pytest

from mailout.adapters.media_folder import MediaFolder

NAME = hashlib.sha256(b"x").hexdigest()


@pytest.mark.parametrize(
    ("media_base_url", "public_url", "address"),
    [
        ("https://cdn.example.org/m/", "https://example.org", f"https://cdn.example.org/m/{NAME}.png"),
        (None, "https://example.org/", f"https://example.org/media/{NAME}.png"),
    ],
)
def test_a_reader_finds_it_where_it_is_served(tmp_path, media_base_url, public_url, address):
    store = MediaFolder(tmp_path, media_base_url=media_base_url, public_url=public_url)
    assert store.keep(b"x", "A Picture.PNG") == address


def test_without_an_address_the_mail_points_to_the_file(tmp_path):
    store = MediaFolder(tmp_path / "my media", media_base_url=None, public_url=None)
    assert store.keep(b"x", "a.png") == (tmp_path / "my media" / f"{NAME}.png").as_uri()


def test_the_same_bytes_are_kept_once_and_never_touched_again(tmp_path):
    store = MediaFolder(tmp_path, media_base_url=None, public_url=None)
    first = store.keep(b"x", "a.png")
    before = (tmp_path / f"{NAME}.png").stat().st_ino
    assert store.keep(b"x", "b.png") == first
    assert [(path.name, path.stat().st_ino) for path in tmp_path.iterdir()] == [(f"{NAME}.png", before)]


@pytest.mark.parametrize("name", ["a", "../x.p/ng", "a.png?x", "a.", "a.<svg>", "a.toolongextension"])
def test_a_strange_name_gives_no_extension(tmp_path, name):
    store = MediaFolder(tmp_path, media_base_url="https://x", public_url=None)
    assert store.keep(b"x", name) == f"https://x/{NAME}"
