"""What to do about a code, for all of them: `status` tells it, and docs/errors.md is made from it.

What the codes of an enum mean is said beside its members; what SES's mean for a message, in `error_codes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mailout.base.errors import AbortCode
from mailout.outbox.delivery.error_codes import ANSWERS
from mailout.outbox.delivery.protocol import OutcomeKind


class Help(NamedTuple):
    meaning: str
    remedy: str


_SETTLE = "SES's event settles it; else look whether it arrived: `mailout queue settle ID --as …`."

STOPPED: Mapping[AbortCode, str] = {
    AbortCode.SUBJECT_REQUIRED: "Give it a subject: the page's title, or `subject:` in the file.",
    AbortCode.EMPTY_BODY: "Write something.",
    AbortCode.TEST_EMAILS_EMPTY: "Set `TEST_EMAILS` to one or more valid addresses.",
    AbortCode.MAILOUT_ALREADY_SENT: "Another letter needs another page, or another `id:` in the file; a"
    " copy of a sent page, an empty `sent_at`. For those who failed: `mailout queue retry ID`.",
    AbortCode.FOOTER_ENV_MISSING: "Set or correct what it names: `ORG_NAME`, `ORG_ADDRESS`,"
    " `UNSUBSCRIBE_BASE_URL`, `UNSUBSCRIBE_SECRET`, `PUBLIC_URL` or `MEDIA_BASE_URL`.",
    AbortCode.MEDIA_UNAVAILABLE: "Put the picture where the text says, or give it an https address; share the"
    " page of a synced block; see that `PUBLIC_URL` or the bucket is right; then send again.",
    AbortCode.VARIABLE_MISSING: "Give the variable a fallback, `{{ first_name | friend }}`, or import the"
    " values: `mailout subscribers import`. Take it out of an article's slice: articles have no such values.",
    AbortCode.INVALID_TEMPLATE: "At most 512 KB and a subject of 150 characters; no script, no `javascript:`"
    " address, no event handler. Take it out, then send again.",
}

MESSAGES: Mapping[str, Help] = {
    "INVALID_EMAIL": Help("the address cannot be written to", "Correct the address in the subscribers list."),
    "CONTENT_UNREADABLE": Help(
        "the store could not read what the mail says", "Repair the store, then: `mailout messages retry ID`."
    ),
    "INVALID_PAYLOAD": Help(
        "the message cannot be put together",
        "Shorten or correct UNSUBSCRIBE_BASE_URL: its links must fit into a header.",
    ),
    "INVALID_TEMPLATE": Help(
        "a variable of the content has no value for this recipient",
        "Give the recipient a value for every variable of the content.",
    ),
    "RECIPIENT_NOT_FOUND": Help(
        "the recipient is not there, was deleted, is another company's, or has another address by now",
        "Look the recipient up, and send it anew to the address they have.",
    ),
    "FOLDER_FULL": Help("the disk has no room for another file", "Free some space: it goes on by itself."),
    "FOLDER_UNWRITABLE": Help(
        "the outbox folder takes no file", "Let this user write to `MAILOUT_HOME`/outbox, then send again."
    ),
    "SENDER_DIED": Help("its sender died during the call", _SETTLE),
    "OUTCOME_UNKNOWN": Help("it was handed over and no answer came back", _SETTLE),
    "MESSAGE_REJECTED": Help(
        "SES took the message and then rejected it: it found a virus in it",
        "Look at the files and links of the letter; send another one.",
    ),
    "RENDERING_FAILURE": Help(
        "SES could not fill the message's template",
        "Set `SES_MODE=single`, `mailout queue retry ID`, and report this.",
    ),
    "NO_CODE": Help(
        "it failed, and nobody said why", "`mailout status --message ID` shows every step it took."
    ),
}
"""Of single messages, beside SES's own."""

NOTES: Mapping[str, Help] = {
    "attribute_dropped": Help(
        "an attribute of an HTML tag has no effect in a mail and was removed",
        "Nothing, unless the letter looks wrong: see `mailout preview`.",
    ),
    "cells_dropped": Help(
        "a table row has more cells than the table has columns; the others are not shown",
        "Give the header as many cells as the longest row.",
    ),
    "code_words": Help("words beside the ``` of a code block are not shown", "Write them above the block."),
    "comment_dropped": Help(
        "readers do not see an HTML comment", "Remove the `<!-- -->` if the words are for them."
    ),
    "content_block_unsupported": Help(
        "a block of the page has no form in mail; its words are there, if it has any",
        "Look at `mailout preview`; write it with another kind of block.",
    ),
    "content_too_long": Help("only the first blocks of the page are in the mail", "Shorten the page."),
    "edited_after_sending": Help(
        "the page or file was edited after some people got the letter: nobody gets the change",
        "Nothing, or cancel the letter and send the change as another one.",
    ),
    "equation_as_source": Help(
        "an equation cannot be written in letters; readers see its source",
        "Write it in simpler terms, or put it in as a picture.",
    ),
    "headline_missing": Help(
        "people get slices without a title: a dek or the article's key is the subject",
        "Give one of their slices a title; `mailout article census` counts them.",
    ),
    "welcome_unavailable": Help(
        "a list's welcome letter cannot be read or filled in; those who joined wait for it, up to a week",
        "Correct the letter or the list: `mailout lists edit KEY --welcome REF`.",
    ),
    "html_clipped": Help("Gmail hides what comes after about 102,000 bytes", "Shorten the letter."),
    "link_dropped": Help(
        "a link leads nowhere in a mail; its words are there",
        "Write the whole address, with `https://`, or `mailto:`.",
    ),
    "link_unused": Help("a link was defined that the letter does not use", "Use it, or remove its line."),
    "note_unused": Help("a footnote was written that nothing points to", "Point to it, or remove it."),
    "picture_dropped": Help(
        "a picture lies where mail cannot reach it",
        "Put the file beside the letter, or give its whole `https://` address.",
    ),
    "picture_stopped": Help(
        "an animated picture is shown without its motion", "Save it as a GIF of at most 3 MB."
    ),
    "picture_unreadable": Help(
        "a picture is in a format that most mail programs do not show: a real letter stops",
        "Save it as JPEG or PNG.",
    ),
    "pictures_heavy": Help("the pictures of a letter weigh a lot together", "Use fewer or smaller ones."),
    "picture_without_alt": Help(
        "whoever does not see this picture learns nothing of it", "Give it a caption, or a text in the `[]`."
    ),
    "variable_unknown": Help(
        "nobody has a value for a variable, so everybody reads its fallback",
        "Correct the variable's name, or import the values.",
    ),
    "video_without_picture": Help(
        "a video's picture could not be had; readers see a link to it",
        "Check that the video is public; or put in a picture of it that links to it.",
    ),
    "set_to_done_by_hand": Help(
        "a page was set to `Sent` (or `Send`) by hand and has never been sent",
        "That status means done; to send the page, set `Ready`.",
    ),
    "no_web_page": Help(
        "a variable without a fallback: the letter has no page on the web and no link to it",
        "Write what everybody may read: `{{ first_name | friend }}`.",
    ),
    "subject_long": Help(
        "a subject is over 60 characters", "Say the most important first, or make it shorter."
    ),
    "link_private": Help(
        "a link leads into a private Notion workspace", "Publish the page and link to that, or take it out."
    ),
    "link_without_scheme": Help("an address is written without `https://`", "Write it whole."),
    "pictures_without_text": Help(
        "a letter has pictures and hardly any words", "Say the essential in words too."
    ),
    "placeholder_text": Help(
        "`TK`, `TODO` or lorem ipsum is still in a letter", "Write what was meant, or take it out."
    ),
    "variable_unfilled": Help(
        "braces that are no variable: readers would see them",
        "Write `{{ name }}`, two braces on each side; `\\{{` is a brace that is meant.",
    ),
    "contrast_low": Help(
        "coloured words have a contrast under 4.5", "Choose another colour for them or for what is behind."
    ),
    "cannot_be_sent": Help(
        "a mailout that was asked for was refused", "The message says why; fix it, then ask again."
    ),
    "event_unreadable": Help(
        "something in the inbox is no event of SES", "See who else writes to the topic or the queue."
    ),
    "event_refused": Help(
        "the store refused an event; it is among the dead letters", "Report it with the text of the message."
    ),
    "unknown_event_type": Help(
        "SES reported something that this version does not know; nothing was changed", "Nothing; or upgrade."
    ),
    "sns_subscription_ended": Help(
        "somebody ended the topic's subscription: no more events come",
        "Subscribe it again, if that was not meant.",
    ),
    "usage_drift": Help(
        "a counter says less than the messages charged to it, which cannot be",
        "Report it; limits may be overstepped by the difference until the hour or day ends.",
    ),
}
"""In the errors database and in `mailout status`. Where one stops a real letter, it says so."""

_TRIED_AGAIN = (OutcomeKind.TRANSIENT, OutcomeKind.THROTTLED)
_BY_ITSELF: Mapping[OutcomeKind, str] = {
    OutcomeKind.TRANSIENT: "Nothing: it is tried again by itself.",
    OutcomeKind.THROTTLED: "Nothing; if it happens often, lower `SEND_RATE_PER_SEC`.",
    OutcomeKind.UNKNOWN: _SETTLE,
}


def remedy_of(code: str, *, failed: bool = False) -> str:
    """What a person can do about a message's code; empty for one that we do not know.

    `failed`: it was the message's last attempt, so nothing happens by itself any more.
    """
    if code in MESSAGES:
        return MESSAGES[code].remedy
    row = ANSWERS.get(code)
    if row is None:
        return ""
    if failed and row.kind in _TRIED_AGAIN:
        return "All its attempts are spent: when the cause is gone, `mailout queue retry ID` sends it again."
    return row.remedy or _BY_ITSELF.get(row.kind, "")
