"""A short mail around one secret link: in the sender's look, in the reader's language."""

from __future__ import annotations

from html import escape

from mailout.letters.content.brand import BUTTON, Brand
from mailout.letters.content.document import Document
from mailout.letters.content.layout import framed
from mailout.letters.content.model import Content, clean


def link_mail(
    subject: str, before: str, button: str, after: str, *, link: str, sender: str, brand: Brand, lang: str
) -> Content:
    """`link` is a mark: the link itself is never in the content."""
    # `ses:no-track` is for SES: it would lead the link over its own address and report it.
    shown = BUTTON.format(address=link, words=escape(button)).replace("<a ", "<a ses:no-track ")
    html = f"<p>{escape(before)}</p>{shown}<p>{escape(after)}</p>"
    text = f"{before}\n\n{link}\n\n{after}\n"
    document = Document(subject, html, text, language=lang)
    return Content(clean(subject), framed(document, clean(sender), brand, as_given=True), text)
