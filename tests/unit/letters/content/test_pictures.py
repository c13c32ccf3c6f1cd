"""Pictures as readers get them: small, upright, shown everywhere, and silent about where they were taken."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import Any

import pytest
from PIL import Image, ImageCms

from mailout.letters.content.pictures import MAX_ANIMATION_BYTES, WIDEST, TooLarge, has_other_format, prepare

GPS = 0x8825


def photo(width: int = 3000, height: int = 2000, form: str = "JPEG", **how: Any) -> bytes:
    data = BytesIO()
    Image.effect_noise((width, height), 40).convert("RGB").save(data, form, **how)
    return data.getvalue()


def exif(orientation: int) -> Image.Exif:
    given = Image.Exif()
    given[0x0112] = orientation
    given.get_ifd(GPS)[2] = (52.0, 31.0, 12.0)
    return given


def opened(data: bytes) -> Image.Image:
    picture = Image.open(BytesIO(data))
    picture.load()
    return picture


def test_a_photograph_says_nothing_of_where_it_was_taken_and_stands_upright():
    """A photograph of 4.4 MB went out byte for byte, with the address of its taker."""
    source = photo(exif=exif(6))
    assert opened(source).getexif().get_ifd(GPS)
    made = prepare(source)
    assert made is not None
    shown = opened(made.data)
    assert (shown.format, shown.size, made.suffix) == ("JPEG", (WIDEST, round(WIDEST * 3000 / 2000)), ".jpg")
    assert (made.width, made.height) == shown.size
    assert not shown.getexif()
    assert not {"exif", "icc_profile", "comment", "xmp"} & set(shown.info)
    assert len(made.data) < len(source)


@pytest.mark.parametrize(
    ("form", "how", "suffix"),
    [("WEBP", {}, ".jpg"), ("WEBP", {"lossless": True}, ".jpg"), ("AVIF", {}, ".jpg"), ("PNG", {}, ".jpg")],
)
def test_photographs_are_jpeg_whatever_they_came_as(form, how, suffix):
    """Outlook shows neither WebP nor AVIF; a photograph as PNG weighs ten times as much."""
    data = BytesIO()
    noise = [Image.effect_noise((400, 300), 90) for _ in range(3)]
    Image.merge("RGB", noise).save(data, form, **how)
    made = prepare(data.getvalue())
    assert made is not None
    assert (made.suffix, opened(made.data).format, made.width) == (suffix, "JPEG", 400)


@pytest.mark.parametrize("form", ["PNG", "GIF", "WEBP"])
def test_drawings_stay_sharp(form):
    data = BytesIO()
    Image.new("RGB", (640, 480), "teal").save(data, form, **({"lossless": True} if form == "WEBP" else {}))
    made = prepare(data.getvalue())
    assert made is not None
    assert (made.suffix, made.width, made.height) == (".png", 640, 480)


@pytest.mark.parametrize("form", ["PNG", "WEBP", "AVIF"])
def test_what_shines_through_still_does(form):
    data = BytesIO()
    Image.new("RGBA", (90, 60), (0, 128, 128, 90)).save(data, form)
    made = prepare(data.getvalue())
    assert made is not None
    assert opened(made.data).mode == "RGBA"


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "YCbCr"])
def test_pictures_of_every_kind_of_colour_are_shown(mode):
    data = BytesIO()
    form = "JPEG" if mode in ("CMYK", "YCbCr") else "PNG"
    Image.new(mode, (30, 20)).save(data, form)
    made = prepare(data.getvalue())
    assert made is not None
    assert opened(made.data).size == (30, 20)


def test_colours_are_the_webs_own():
    """A profile is dropped with all else; its colours are put into the picture first."""
    data = BytesIO()
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    Image.new("RGB", (30, 20), "teal").save(data, "PNG", icc_profile=lab)
    made = prepare(data.getvalue())
    assert made is not None
    assert "icc_profile" not in opened(made.data).info
    Image.new("RGB", (30, 20), "teal").save(data := BytesIO(), "PNG", icc_profile=b"broken")
    assert prepare(data.getvalue()) is not None


def test_a_small_animation_moves_and_a_large_one_stands_still():
    frames = [Image.effect_noise((900, 700), 90).convert("P") for _ in range(2)]
    small, large = BytesIO(), BytesIO()
    frames[0].resize((60, 40)).save(small, "GIF", save_all=True, append_images=[frames[1].resize((60, 40))])
    assert prepare(small.getvalue()).data == small.getvalue()
    frames[0].save(large, "GIF", save_all=True, append_images=frames * 4)
    assert len(large.getvalue()) > MAX_ANIMATION_BYTES
    made = prepare(large.getvalue())
    assert (made.stopped, made.suffix) == (True, ".png")


def test_too_many_pixels_are_refused_before_they_are_in_memory():
    """A small file can unfold to gigabytes, and take the whole process down."""
    header = struct.pack(">IIBBBBB", 9_000, 9_000, 8, 2, 0, 0, 0)
    png = BytesIO()
    Image.new("RGB", (1, 1)).save(png, "PNG")
    data = bytearray(png.getvalue())
    data[16:29] = header

    data[29:33] = struct.pack(">I", zlib.crc32(b"IHDR" + header))
    with pytest.raises(TooLarge, match="50 million pixels"):
        prepare(bytes(data))


@pytest.mark.parametrize("data", [b"", b"<svg/>", b"GIF89a", photo(60, 40)[:200]])
def test_what_is_no_picture_is_none(data):
    assert prepare(data) is None


def test_a_long_preamble_of_no_picture_is_read_once():
    """Each comment would else double the time."""
    head = b"<?xml version='1.0'?>" + b"<!-- a -->\n" * 5_000
    assert not has_other_format(head + b"<html>")
    assert has_other_format(head + b"<!DOCTYPE svg [<!ENTITY a '>'>]>\n<svg>")
