"""A short mail around one secret link: in the sender's look, in the reader's language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from mailout.letters.content.brand import BUTTON, Brand
from mailout.letters.content.document import Document, cut, one_line
from mailout.letters.content.languages import Language
from mailout.letters.content.layout import framed
from mailout.letters.content.model import Content, clean, mark
from mailout.outbox.delivery.single_mails import SIGNED_LINK

SUBJECT_CHARACTERS = 150


def link_mail(
    subject: str,
    before: Sequence[str],
    button: str,
    after: Sequence[str],
    *,
    sender: str,
    brand: Brand,
    words: Language,
) -> Content:
    """Paragraphs, the link, paragraphs. The link itself is never in the content: a mark stands there."""
    link, subject = mark(SIGNED_LINK), one_line(cut(subject, SUBJECT_CHARACTERS))
    # `ses:no-track` is for SES: it would lead the link over its own address and report it.
    shown = BUTTON.format(address=link, words=escape(button)).replace("<a ", "<a ses:no-track ")
    above, below = ("".join(f"<p>{escape(part)}</p>" for part in parts) for parts in (before, after))
    text = "\n\n".join([*before, f"{button}:\n{link}", *after]) + "\n"
    document = Document(subject, f"{above}{shown}{below}", text, language=words.code)
    return Content(subject, framed(document, clean(sender), replace(brand, language=words.code)), text)
