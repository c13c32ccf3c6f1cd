"""Whether HTML only shows something, and runs nothing: decided on the parsed tree, by what mail may carry.

A list of what is bad is never complete; this is a list of what real mail needs: what MJML writes, Outlook's
conditional comments with their VML, the marks of other template engines. All else is refused by name.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html.parser import HTMLParser

from css_inline import CSSInliner

AS_BROWSERS_READ_IT = CSSInliner(
    inline_style_tags=False, keep_style_tags=True, keep_link_tags=True, load_remote_stylesheets=False
)
"""Parses as HTML 5 says and writes it well-formed. Python's own parser sees other tags in broken HTML than
browsers do, and takes minutes for some of it; of well-formed HTML both have the same opinion."""

_ELEMENTS = """html head body title meta link style
a abbr acronym address area article aside b bdi bdo big blockquote br button caption center cite code col
colgroup data dd del details dfn dir div dl dt em fieldset figcaption figure font footer h1 h2 h3 h4 h5 h6
header hgroup hr i img ins kbd label legend li main map mark menu nav ol p picture pre q rp rt ruby s samp
section small source span strike strong sub summary sup table tbody td textarea tfoot th thead time tr tt u ul
var wbr
singleline multiline layout repeater unsubscribe webversion preferences forwardtoafriend currentday"""
ELEMENTS = frozenset(_ELEMENTS.split())
NAMESPACED = re.compile(r"(?:v|o|w|m|st1):[a-z][a-z0-9]*")
"""Outlook's: VML and what Word leaves behind. To browsers they are unknown, and do nothing."""
IN_COMMENTS = ELEMENTS | {"xml", "noscript"}  # as MJML writes it for Outlook

_ATTRIBUTES = """abbr accesskey align alink alt axis background bgcolor border bordercolor cellpadding
cellspacing char charoff charset cite class clear color cols colspan compact content contenteditable coords
crossorigin datetime decoding dir disabled download draggable editable face fetchpriority for frame headers
height hidden href hreflang hspace http-equiv id integrity is itemid itemprop itemref itemscope itemtype label
lang language leftmargin link loading longdesc loop marginheight marginwidth media name noshade nowrap
open placeholder prefix property readonly referrerpolicy rel rev role rows rowspan rules scope shape size
sizes span spellcheck src srcset start style summary tabindex target text title topmargin translate type
typeof usemap valign value version vlink vocab vspace width wrap xml:lang xmlns"""
ATTRIBUTES = frozenset(_ATTRIBUTES.split())
OPEN_ATTRIBUTES = re.compile(r"(?:data|aria|st|c|emb|mso|x|t)-[\w.:-]+|(?:xmlns|mc|v|o|w|m|x|th|xml):[\w.-]+")
"""Families of names that tools and template engines make up as they go; none of them does anything."""
ADDRESS_ATTRIBUTES = frozenset({"background", "cite", "href", "longdesc", "o:href", "src", "srcset"})

LINKS = frozenset({"http", "https", "mailto", "tel", "sms"})
PICTURES = frozenset({"http", "https", "cid", "data"})
PLAIN_DATA = re.compile(
    r"data:(?:image/(?:png|gif|jpe?g|webp|avif|bmp)|font/\w+|application/[\w-]*font[\w-]*)[;,]"
)
META = frozenset({"content-type", "x-ua-compatible", "content-language", "imagetoolbar", "cleartype"})
_RELATIONS = "stylesheet icon shortcut apple-touch-icon preconnect dns-prefetch canonical alternate"
RELATIONS = frozenset(_RELATIONS.split())
TEXT_INSIDE = frozenset({"style", "textarea", "title"})
"""Of the elements above, those in which there are no others."""
MOST_IN_COMMENTS = 100_000
CACHED_VALUE_CHARACTERS = 300
"""Characters of a value whose verdict is kept."""

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):")
_UNSEEN = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2028-\u202f\u2060\ufeff\ufffd]+")
_CSS_ESCAPE = re.compile(r"\\([0-9a-f]{1,6})\s?|\\(.)", re.IGNORECASE | re.DOTALL)
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_CSS_ADDRESS = re.compile(
    r"url\([\"']?([a-z][a-z0-9+.-]*:[^)]{0,60})|@import[\"']([a-z][a-z0-9+.-]*:[^\"']{0,60})"
)
_CSS_RUNS = re.compile(
    r"expression\(|-moz-binding|(?:java|vb)script:|(?<![a-z-])behaviou?r:(?!url\([\"']?#default#vml)"
)


class Active(ValueError):
    """What it is that mail must not carry."""


def require_inert(html: str, *, local_files: bool = False) -> list[str]:
    """Raises `Active`; returns the addresses of pictures without a word for those who do not see them.

    `local_files`: pictures and links may lie in our own media folder, as a rehearsal has them.
    """
    reader = _Reader(frozenset({"file"} if local_files else ()))
    reader.read(AS_BROWSERS_READ_IT.inline(html))
    return reader.without_alt


def as_fragment(html: str) -> str:
    """Well-formed, to stand within other HTML: what is open in it, also a comment, ends in it."""
    written = AS_BROWSERS_READ_IT.inline(html)
    head = written.partition("<head>")[2].partition("</head>")[0]
    return head + written.partition("<body>")[2].rpartition("</body>")[0]


class _Reader(HTMLParser):
    """Of HTML that is well-formed; inside a conditional comment, of what stands there."""

    def __init__(self, also: frozenset[str], *, in_comment: bool = False) -> None:
        super().__init__(convert_charrefs=True)
        self._also = also  # schemes
        self.without_alt: list[str] = []
        self._elements = IN_COMMENTS if in_comment else ELEMENTS
        self._in_comment = in_comment
        self._in_comments = 0
        self._in_style = False

    def read(self, html: str) -> None:
        try:
            self.feed(html)
            self.close()
        except AssertionError:  # how Python's parser says that it does not understand a `<![`
            raise Active("The HTML holds a declaration (<!…>) that cannot be read") from None

    def updatepos(self, i: int, j: int) -> int:
        """Nobody asks for line numbers, and to count them takes a quarter of the time."""
        return j

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        outlooks = NAMESPACED.fullmatch(tag) is not None
        if tag == "script" or tag.endswith(":script"):
            raise Active("The HTML holds a <script>")
        if not outlooks and tag not in self._elements:
            raise Active(f"The HTML holds a <{tag[:40]}>, which mail must not carry")
        for name, value in attributes:
            check = _check_known if len(value or "") <= CACHED_VALUE_CHARACTERS else _check_attribute
            check(tag, name, value or "", outlooks, self._also)
        known = dict(attributes)
        if tag == "meta" and (known.get("http-equiv") or "content-type").strip().lower() not in META:
            raise Active("A <meta> of the HTML acts like a header")
        if tag == "link" and not set((known.get("rel") or "none").lower().split()) <= RELATIONS:
            raise Active("A <link> of the HTML loads something else than a style")
        if tag == "img" and "alt" not in known:
            self.without_alt.append(known.get("src") or "")
        self._in_style = tag == "style"
        if tag in TEXT_INSIDE and not self._in_comment:
            self.set_cdata_mode(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if self._in_comment:
            self._in_style = False

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            _check_css(data, "<style>")

    def handle_comment(self, data: str) -> None:
        """To Outlook a conditional comment is no comment."""
        if self._in_comment or not data.lstrip().lower().startswith("[if"):
            return
        _, _, inside = data.partition("]>")
        self._in_comments += len(inside)
        if self._in_comments > MOST_IN_COMMENTS:
            raise Active(f"Conditional comments hold more than {MOST_IN_COMMENTS:,} characters")
        _Reader(self._also, in_comment=True).read(inside.removesuffix("<![endif]"))
        if "<script" in inside.lower():
            raise Active("A conditional comment holds a <script>")

    def unknown_decl(self, data: str) -> None:
        """`<![endif]>` and its like: nothing to see."""


def _check_attribute(tag: str, name: str, value: str, outlooks: bool, also: frozenset[str]) -> None:
    if name.startswith("on"):
        raise Active(f"<{tag}> has an event handler, {name[:40]}")
    address = _UNSEEN.sub("", value).lower()
    is_address = name in ADDRESS_ATTRIBUTES
    if ((is_address or outlooks) and address.startswith(("javascript:", "vbscript:"))) or (
        name in ("srcset", "content") and ("javascript:" in address or "vbscript:" in address)
    ):
        raise Active(f"<{tag}> has a javascript: address in {name[:40]}")
    if not outlooks and name not in ATTRIBUTES and not OPEN_ATTRIBUTES.fullmatch(name):
        raise Active(f"<{tag}> has an attribute that mail must not carry, {name[:40]}")
    if name == "style":
        _check_css(value, f"<{tag}>")
    elif is_address:
        for one in address.split(",http") if name == "srcset" else (address,):
            _check_address(tag, name, one, also)


_check_known = lru_cache(maxsize=10_000)(_check_attribute)
"""Mails of one template have the same attributes again and again. What is refused is not kept."""


def _check_address(tag: str, name: str, address: str, also: frozenset[str]) -> None:
    scheme = _SCHEME.match(address)
    if scheme is None:
        return  # relative, or a mark of a template engine
    allowed = also | (LINKS if name in ("href", "o:href") else PICTURES)
    plain = scheme[1] != "data" or PLAIN_DATA.match(address) is not None
    if scheme[1] not in allowed or not plain:
        raise Active(f"<{tag}> has an address in {name} that mail must not carry ({scheme[1][:20]}:)")


def _check_css(css: str, where: str) -> None:
    read = _CSS_COMMENT.sub("", css)
    read = _CSS_ESCAPE.sub(_unescaped, read)
    read = _UNSEEN.sub("", _CSS_COMMENT.sub("", read)).lower()
    if _CSS_RUNS.search(read):
        raise Active(f"A style of {where} runs something")
    for found in _CSS_ADDRESS.finditer(read):
        address = found[1] or found[2]
        scheme = address.partition(":")[0]
        if scheme not in PICTURES or (scheme == "data" and not PLAIN_DATA.match(address)):
            raise Active(f"A style of {where} has an address that mail must not carry ({scheme[:20]}:)")


def _unescaped(found: re.Match[str]) -> str:
    if found[1] is None:
        return found[2]
    number = int(found[1], 16)
    return chr(number) if 0 < number < 0x110000 else "\ufffd"
