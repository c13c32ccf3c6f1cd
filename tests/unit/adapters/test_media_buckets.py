"""Pictures in the cloud: where a mail points to, there must be the very bytes, as what they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from mailout.adapters.aws import AwsAccess
from mailout.adapters.media_s3 import MediaBucket
from mailout.adapters.media_supabase import MediaSupabase
from mailout.letters.content.port import MediaStore
from tests.stubs.process import start_stub

PNG = b"\x89PNG and so on"
NAME = hashlib.sha256(PNG).hexdigest()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with start_stub("tests.stubs.objects") as stub:
        yield stub.url


@pytest.fixture(params=["s3", "supabase"])
def bucket(url: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., MediaStore]]:
    made: list[MediaBucket | MediaSupabase] = []

    def make(name: str, media_base_url: str | None = None) -> MediaStore:
        if request.param == "supabase":
            made.append(MediaSupabase(url, "sb_secret_x", name, media_base_url=media_base_url))
        else:
            aws = AwsAccess(region="eu-west-1", access_key_id="from-dotenv", secret_access_key="x")
            made.append(MediaBucket(name, aws, endpoint_url=url, media_base_url=media_base_url))
        return made[-1]

    make.kind = request.param  # type: ignore[attr-defined]
    yield make
    for one in made:
        one.close()


def asked(url: str, what: str) -> Any:
    return httpx.get(f"{url}/control/{what}", trust_env=False).json()


def test_a_picture_is_there_as_a_picture_before_the_mail_points_to_it(
    bucket: Callable[..., MediaStore], url: str
) -> None:
    name = f"pictures-{bucket.kind}"  # type: ignore[attr-defined]
    address = bucket(name).keep(PNG, "Harbour.PNG")
    assert address.startswith(url)
    assert address.endswith(f"/{name}/{NAME}.png")
    kept = asked(url, "objects")[f"{name}/{NAME}.png"]
    assert kept["sha256"] == NAME
    assert kept["type"] == "image/png"
    assert "max-age=31536000" in kept["cache"]
    assert httpx.get(address, trust_env=False).status_code == 200


def test_the_same_bytes_travel_once(bucket: Callable[..., MediaStore], url: str) -> None:
    name = f"once-{bucket.kind}"  # type: ignore[attr-defined]
    store = bucket(name)
    assert store.keep(PNG, "a.png") == store.keep(PNG, "b.png")
    calls = [call["method"] for call in asked(url, "calls") if call["key"].startswith(name)]
    assert len([method for method in calls if method in ("PUT", "POST")]) == 1


def test_our_keys_are_used_even_if_they_stand_only_in_the_settings(
    bucket: Callable[..., MediaStore], url: str
) -> None:
    name = f"keys-{bucket.kind}"  # type: ignore[attr-defined]
    bucket(name).keep(PNG, "a.png")
    who = {call["who"] for call in asked(url, "calls") if call["key"].startswith(name)}
    assert all("from-dotenv" in one or one == "Bearer sb_secret_x" for one in who)


def test_mails_can_point_to_an_address_in_front_of_the_bucket(bucket: Callable[..., MediaStore]) -> None:
    address = bucket("fronted", "https://media.example.org/").keep(PNG, "a.png")
    assert address == f"https://media.example.org/{NAME}.png"


def test_a_web_page_is_a_download(bucket: Callable[..., MediaStore], url: str) -> None:
    """HTML that opens under our address could ask readers for anything in our name."""
    bucket(f"downloads-{bucket.kind}").keep(b"<script>", "a.html")  # type: ignore[attr-defined]
    kept = asked(url, "objects")
    kinds = {one["type"] for key, one in kept.items() if key.startswith("downloads") and key.endswith("html")}
    assert kinds == {"application/octet-stream"}


def test_a_bucket_of_amazons_own_has_its_own_address() -> None:
    aws = AwsAccess(region="eu-west-1", access_key_id="x", secret_access_key="x")
    store = MediaBucket("pictures", aws, endpoint_url=None, media_base_url=None)
    assert store.address("a.png") == "https://pictures.s3.eu-west-1.amazonaws.com/a.png"
    store.close()


@pytest.mark.parametrize("name", ["closed", "broken"])
def test_what_cannot_be_kept_is_an_error_that_stops_the_mailout(
    bucket: Callable[..., MediaStore], name: str
) -> None:
    with pytest.raises(OSError, match="does not take it"):
        bucket(name).keep(PNG, "a.png")


def test_nobody_at_home_is_an_error_of_the_same_kind() -> None:
    away = MediaSupabase("http://127.0.0.1:9", "k", "b", media_base_url=None)
    with pytest.raises(OSError, match="does not answer"):
        away.keep(PNG, "a.png")
    away.close()
