"""A letter as everybody may see it in a browser: of the content that was sent, nothing rendered anew.

It has no reader: variables show their fallback, and the links that were somebody's own are not in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from html import unescape

from mailout.letters.content.document import cut, preheader_of
from mailout.letters.content.languages import FALLBACK
from mailout.letters.content.layout import PREHEADER, language_asked_for, preheader_in
from mailout.letters.content.model import MARK_CLOSE, MARK_OPEN, Content
from mailout.letters.content.variables import by_fallback

DESCRIPTION_CHARS = 200
PAGES_KEPT = 64
"""Of half a megabyte at most, mostly a tenth of that."""

_OWN = f"{MARK_OPEN}[^:{MARK_CLOSE}]+{MARK_CLOSE}"
"""A mark that is no variable: somebody's own link."""
_OWN_LINKS = re.compile(rf"\s*<p\b[^>]*>(?:(?!</p>)[^{MARK_OPEN}])*{_OWN}(?:(?!</p>).)*</p>", re.DOTALL)
_BODY = re.compile(r"(.*?)</head>\s*(<body\b[^>]*>)(.*)</body>", re.DOTALL)
_CARD = re.compile(r'<td class="card"[^>]*>(.*)</td>\s*</tr>\s*<tr>\s*<td class="footer"', re.DOTALL)
_SCROLLS = re.compile(r'<div class="scroll"')
"""A wide table: in a browser the keyboard must reach it."""
_LANG = re.compile(r'<html\b[^>]*? lang="([A-Za-z-]+)"')
_PICTURE = re.compile(r'<img\b[^>]*? src="(https?://[^"]+)"')


@dataclass(frozen=True, slots=True)
class WebPage:
    """The letter's own page, in the parts between which others are put."""

    title: str
    description: str
    lang: str
    language: str | None  # that its author asked for, or `LANGUAGE` when it was rendered
    picture: str | None
    head: str  # up to </head>
    body_tag: str
    body: str
    letter: str  # what the author wrote: without masthead and footer

    def html(self, *, head: str = "", above: str = "", below: str = "") -> str:
        """With more in its head, above it and below it; all of it safe HTML."""
        body = f"{self.body_tag}\n{above}<main>{self.body}</main>\n{below}</body>"
        return f"{self.head}{head}</head>\n{body}</html>\n"


@lru_cache(maxsize=PAGES_KEPT)
def web_page(content: Content) -> WebPage:
    # One without a fallback shows nothing: such a letter has no link here, unless an old one had.
    html = by_fallback(_OWN_LINKS.sub("", content.html))
    found = _BODY.fullmatch(html.strip().removesuffix("</html>").rstrip())
    if found is None:
        raise AssertionError("The layout is no page any more: it has a head and a body.")
    head, body_tag, body = found.groups()
    card = _CARD.search(body)
    letter = card[1].strip() if card else body
    picture = _PICTURE.search(letter)
    lang = _LANG.search(head)
    return WebPage(
        title=by_fallback(content.subject),
        description=description_of(content),
        lang=lang[1] if lang else FALLBACK,
        language=language_asked_for(content),
        picture=unescape(picture[1]) if picture else None,
        head=head,
        body_tag=body_tag,
        body=_SCROLLS.sub(r'\g<0> tabindex="0"', PREHEADER.sub("", body, count=1)),
        letter=letter,
    )


def description_of(content: Content) -> str:
    """A sentence for lists and search engines: the letter's preheader, else how it begins."""
    said = preheader_in(by_fallback(content.html)) or preheader_of(
        by_fallback(content.text), DESCRIPTION_CHARS
    )
    return cut(said, DESCRIPTION_CHARS)
