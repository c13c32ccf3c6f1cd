"""What a page becomes, and the files it still needs.

The addresses of files that Notion hosts live an hour, so a mail carries a placeholder until they are kept.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape

from mailout.content.model import clean
from mailout.errors import Abort, AbortCode

SCHEME = "notion-media:"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_PLACEHOLDER = re.compile(rf"{SCHEME}([0-9A-Za-z-]+)")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something of the page that the mail does not show as it was meant."""

    code: str
    message: str
    where: str  # a block's id


@dataclass(frozen=True, slots=True)
class Media:
    """One hosted file. The key stays the same from render to render; the address does not."""

    key: str
    url: str
    kind: str  # image, video, audio, file, pdf, emoji, icon
    name: str


@dataclass(frozen=True, slots=True)
class Rendered:
    """A page's body, without layout or footer."""

    html: str
    text: str
    problems: tuple[Problem, ...] = ()
    media: tuple[Media, ...] = ()


def mailable(written: str) -> str:
    """Without our own marks, control characters and halves of letters: no mail can carry them."""
    return _CONTROL.sub("", clean(written)).encode("utf-8", "replace").decode()


def placeholder(key: str) -> str:
    return f"{SCHEME}{key}"


def replace_media(rendered: Rendered, urls: Mapping[str, str]) -> Rendered:
    """The same with every placeholder replaced by where its file is kept, by key."""
    names = {media.key: media.name for media in rendered.media}
    if lost := [name or key for key, name in names.items() if key not in urls]:
        raise Abort(AbortCode.MEDIA_UNAVAILABLE, f"no address for {', '.join(lost)}")

    def address(found: re.Match[str]) -> str:
        return urls[found[1]] if found[1] in names else found[0]

    return replace(
        rendered,
        html=_PLACEHOLDER.sub(lambda found: escape(address(found)), rendered.html),
        text=_PLACEHOLDER.sub(address, rendered.text),
    )
