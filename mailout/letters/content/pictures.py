"""Pictures as mails carry them: no wider than readers see, silent about where they were taken, in a form that
every mail program shows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageCms, ImageDraw, ImageOps

COLUMN = 520
"""Pixels between the layout's margins. Outlook knows no max-width: a wider picture must say so itself."""
WIDEST = 2 * COLUMN
"""Sharp on a dense screen."""
FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "AVIF")
"""What is read. No SVG: mail programs do not show it, and it can hold scripts."""
MAX_PIXELS = 50_000_000
"""More than cameras of phones make; decoded it has 200 MB."""
MAX_PICTURE_BYTES = 50 * 2**20
MAX_ANIMATION_BYTES = 3 * 2**20
PHOTO_COLORS = 65_536
"""A PNG with more is a photograph."""
JPEG_QUALITY = 82
RECIPE = b"mailout picture 1"
"""Part of a picture's name: to be changed with anything here that changes its bytes."""
VIDEO_RECIPE = b"mailout video 1"
PLAY_MARK_SHARE = 0.15
"""Of a video's width."""
SMOOTH = 4
"""Times larger than it is shown the mark is drawn: Pillow's own edges are jagged."""


_OTHER_FORMATS = re.compile(
    # Possessive, each part up to its own end: what stands before no <svg is read once, however much it is.
    rb"(?:\xef\xbb\xbf)?\s*+(?:(?:<\?xml(?:(?!\?>).)*+\?>|<!--(?:(?!-->).)*+-->"
    rb"|<!DOCTYPE\s+svg[^\[>]*+(?:\[(?:(?!\]\s*>).)*+\]\s*+)?>)\s*+)*+<svg\b"
    rb"|.{4}ftyp(?:he[iv]|mif1|msf1)"  # HEIC, as phones take pictures
    rb"|II\*\0|MM\0\*|BM.{4}\0{4}|\0\0\x01\0",  # TIFF, BMP, ICO
    re.DOTALL | re.IGNORECASE,
)


class TooLarge(OSError):
    """A picture that would take more memory than a mail is worth."""


@dataclass(frozen=True, slots=True)
class PreparedPicture:
    data: bytes
    suffix: str
    width: int
    height: int
    stopped: bool = False  # it moved, and does so no longer

    @property
    def shown_width(self) -> int:
        return min(self.width, COLUMN)


def require_picture(source: bytes) -> None:
    """Decodes all of it: a name proves nothing. Raises whatever a broken file makes decoders stumble over."""
    with _opened(source) as picture:
        picture.load()


def has_other_format(source: bytes) -> bool:
    """It begins as a picture does that some mail programs show, and this cannot read."""
    return _OTHER_FORMATS.match(source) is not None


def prepare(source: bytes, *, is_video: bool = False) -> PreparedPicture | None:
    """None: no picture that this can read. That of a video is cut to its form and gets a play mark."""
    try:
        return _prepared(source, is_video)
    except TooLarge:
        raise
    except Exception:  # noqa: BLE001 (decoders raise whatever a broken file makes them stumble over)
        return None


def _opened(source: bytes) -> Image.Image:
    try:
        picture = Image.open(BytesIO(source), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise TooLarge(f"it has more than {MAX_PIXELS // 10**6} million pixels") from error
    if len(source) > MAX_PICTURE_BYTES:
        raise TooLarge(f"it has more than {MAX_PICTURE_BYTES // 2**20} MB")
    if picture.width * picture.height > MAX_PIXELS:
        raise TooLarge(f"it has more than {MAX_PIXELS // 10**6} million pixels")
    return picture


def _prepared(source: bytes, is_video: bool) -> PreparedPicture:
    with _opened(source) as picture:
        moves = bool(getattr(picture, "is_animated", False))
        if moves and not is_video and picture.format == "GIF" and len(source) <= MAX_ANIMATION_BYTES:
            return PreparedPicture(source, ".gif", picture.width, picture.height)
        is_drawn = picture.format in ("PNG", "GIF") or source[12:16] == b"VP8L"
        picture.draft("RGB", (WIDEST, WIDEST))  # a JPEG is decoded no larger than it is needed
        still = ImageOps.exif_transpose(picture)
        still = _plain_colors(still)
    if still.mode == "RGB" and is_drawn:
        is_drawn = still.getcolors(PHOTO_COLORS) is not None
    if still.width > WIDEST:
        height = max(1, round(still.height * WIDEST / still.width))
        still = still.resize((WIDEST, height), Image.Resampling.LANCZOS, reducing_gap=3.0)
    if is_video:
        still = _playable(still)
    kept = BytesIO()
    if still.mode == "RGBA" or is_drawn:
        still.save(kept, "PNG", optimize=True)
        suffix = ".png"
    else:
        still.save(kept, "JPEG", quality=JPEG_QUALITY, optimize=True, progressive=True)
        suffix = ".jpg"
    return PreparedPicture(kept.getvalue(), suffix, still.width, still.height, stopped=moves)


def _playable(still: Image.Image) -> Image.Image:
    """Without the black bars that YouTube puts above and below, a white triangle on dark glass over it."""
    width = still.width
    height = min(still.height, round(width * 9 / 16))
    top = (still.height - height) // 2
    still = still.crop((0, top, width, top + height)).convert("RGB")
    across = max(2, round(width * PLAY_MARK_SHARE))
    large = across * SMOOTH
    glass, triangle = Image.new("L", (large, large)), Image.new("L", (large, large))
    ImageDraw.Draw(glass).ellipse((0, 0, large - 1, large - 1), fill=190)
    corners = [(round(large * x), round(large * y)) for x, y in ((0.38, 0.28), (0.38, 0.72), (0.76, 0.5))]
    ImageDraw.Draw(triangle).polygon(corners, fill=255)
    place = ((width - across) // 2, (height - across) // 2)
    for shade, mask in (((0, 0, 0), glass), ((255, 255, 255), triangle)):
        still.paste(shade, place, mask.resize((across, across), Image.Resampling.LANCZOS))
    return still


def _plain_colors(picture: Image.Image) -> Image.Image:
    """RGB, or RGBA where something shines through; nothing else of the file stays."""
    picture = _as_srgb(picture)
    if picture.mode.startswith("I"):  # sixteen bits
        picture = picture.convert("I").point(lambda value: value / 256).convert("L")
    if picture.has_transparency_data:
        plain = picture.convert("RGBA")
        lowest, _ = plain.getchannel("A").getextrema()
        plain = plain if lowest < 255 else plain.convert("RGB")  # type: ignore[operator]
    else:
        plain = picture.convert("RGB")
    plain.info = {}
    return plain


def _as_srgb(picture: Image.Image) -> Image.Image:
    """Without its profile, a picture from a camera with more colours would look pale."""
    profile = picture.info.get("icc_profile")
    if not profile or picture.mode not in ("RGB", "RGBA", "CMYK"):
        return picture
    mode = "RGBA" if picture.mode == "RGBA" else "RGB"
    try:
        given, own = ImageCms.ImageCmsProfile(BytesIO(profile)), ImageCms.createProfile("sRGB")
        return ImageCms.profileToProfile(picture, given, own, outputMode=mode) or picture
    except (ImageCms.PyCMSError, OSError):
        return picture  # a broken profile: its colours are taken as they are
