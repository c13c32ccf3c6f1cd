"""The files of a page: where each is, what it is called, and which of them Notion hosts."""

from __future__ import annotations

from collections.abc import Mapping

from mailout.letters.content.document import Media
from mailout.letters.content.media import media_ref
from mailout.letters.content.notion.blocks import Block, as_mapping
from mailout.letters.content.notion.links import file_name, web_url
from mailout.letters.content.notion.rich_text import Span, Spans
from mailout.letters.content.videos import thumbnail_of, video_ref


class HostedFiles:
    """Collects the hosted files of one page, each once: a synced copy shows the same file again."""

    def __init__(self) -> None:
        self._kept: dict[str, Media] = {}

    @property
    def media(self) -> tuple[Media, ...]:
        return tuple(self._kept.values())

    def host(self, key: str, url: str, name: str) -> str:
        """What stands for a file that Notion hosts until it is kept: its own address lives an hour."""
        if key not in self._kept:
            self._kept[key] = Media(media_ref(len(self._kept) + 1), url, name)
        return self._kept[key].ref

    def file(self, block: Block) -> tuple[str | None, str]:
        """Where the file of an image, video, audio, file or pdf block is, and what it is called."""
        url = _url(block.data)
        name = str(block.data.get("name") or "")
        if url is None:
            return None, name
        if block.data.get("type") != "external":
            name = name or file_name(url)
            return self.host(block.id, url, name), name
        # Addresses such as youtube.com/watch have no file name worth reading.
        guessed = file_name(url)
        return url, name or (guessed if "." in guessed else "")

    def video(self, url: str, fallback: str) -> str | None:
        """What stands for the picture of a video elsewhere; None: nobody knows where that is."""
        source = thumbnail_of(url)
        if source is None:
            return None
        key = f"video {url} {fallback}"
        if key not in self._kept:
            self._kept[key] = Media(video_ref(len(self._kept) + 1), source, url, fallback)
        return self._kept[key].ref

    def icon(self, block: Block) -> Spans:
        """The picture that a callout has for an icon, if it has one."""
        icon = as_mapping(block.data.get("icon"))
        url = _url(icon)
        if url is None:
            return ()
        hosted = icon.get("type") != "external"
        address = self.host(f"{block.id} icon", url, file_name(url)) if hosted else url
        return (Span("•", image=address),)


def _url(file: Mapping[str, object]) -> str | None:
    """`{"type": "file", "file": {"url": …}}`, and the same for `external` and `custom_emoji`."""
    return web_url(as_mapping(file.get(str(file.get("type")))).get("url"))
