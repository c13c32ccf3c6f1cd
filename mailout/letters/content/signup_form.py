"""The form by which strangers join a list, to be put into any page: plain HTML that posts to `/join`."""

from __future__ import annotations

from markupsafe import Markup

from mailout.letters.content.languages import Language

_FORM = Markup("""\
<form action="{action}" method="post" accept-charset="utf-8">
  <input type="hidden" name="list" value="{key}">
  <p><label>{email}<br>
    <input type="email" name="email" required maxlength="254" autocomplete="email"></label></p>
  <p><label>{name}<br>
    <input type="text" name="name" maxlength="100" autocomplete="name"></label></p>
  <p hidden><label>{empty}<br>
    <input type="text" name="website" tabindex="-1" autocomplete="off"></label></p>
  <p><button type="submit">{button}</button></p>
</form>
""")
"""`website` is a trap: no person sees it, and whatever fills it in is a program."""


def signup_form(key: str, public_url: str, words: Language) -> Markup:
    return _FORM.format(
        action=f"{public_url.rstrip('/')}/join",
        key=key,
        email=words.pages["form_email"],
        name=words.pages["form_name"],
        empty=words.pages["form_empty"],
        button=words.pages["form_join"],
    )
