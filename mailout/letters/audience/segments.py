"""The language of segments: from `city = "Porto" and not got "spring-letter"` to one tree.

`segment_tree` describes the tree and says what it means.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

from lark import Lark, Token, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args
from lark.exceptions import VisitError
from lark.visitors import Transformer_NonRecursive

from mailout.letters.audience.segment_tree import (
    JOINED,
    LONGEST_FILTER,
    WHITE_SPACE,
    SegmentError,
    Tree,
    day_of,
    fold,
    leaves,
    nesting,
    number_of,
)

MOST_CONDITIONS = 200
DEEPEST_NESTING = 20
"""SQLite reads a condition with a stack of a hundred."""

GRAMMAR = r"""
start: either
?either: both
    | both (_OR both)+ -> or
?both: negated
    | negated (_AND negated)+ -> and
?negated: condition
    | _NOT negated -> not
?condition: "(" either ")"
    | _HAS text -> has
    | _IN _LIST text -> list
    | _IN _PLACE text -> place
    | _GOT text -> got
    | _CLICKED text -> clicked
    | _NEVER _MAILED -> never_mailed
    | text (OPERATOR | CONTAINS | BEFORE | AFTER) text -> compared
    | text _IN "(" text ("," text)* ")" -> among

?text: WORD | QUOTED

OPERATOR: "!=" | "<=" | ">=" | "=" | "<" | ">"
QUOTED: /"(?:[^"\\]|\\.)*"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|»[^«]*«/s
    | /(?:'[^']*'|‘[^’]*’|‚[^‘’]*[‘’])(?=[\s(),=!<>]|\Z)/s
_AND.2: /and(?![^\s()"])/i
_OR.2: /or(?![^\s()"])/i
_NOT.2: /not(?![^\s()"])/i
_HAS.2: /has(?![^\s()"])/i
_IN.2: /in(?![^\s()"])/i
_LIST.2: /list(?![^\s()"])/i
_PLACE.2: /place(?![^\s()"])/i
_GOT.2: /got(?![^\s()"])/i
_CLICKED.2: /clicked(?![^\s()"])/i
_NEVER.2: /never(?=\s+mailed(?![^\s()"]))/i
_MAILED.2: /mailed(?![^\s()"])/i
CONTAINS.2: /contains(?![^\s()"])/i
BEFORE.2: /before(?![^\s()"])/i
AFTER.2: /after(?![^\s()"])/i
WORD: /(?!['‘’‚`´])[^\s()",=!<>“”„«»]+(?<!['‘’‚`´])/
%ignore /\s+/
"""

APOSTROPHES = "'‘’‚`´"
"""Inside a word each is a part of it (O'Brien); at its beginning or end it is a quotation mark."""
QUOTATION_MARKS = f'"“”„«»{APOSTROPHES}'

EXAMPLE = 'city = "Porto" and joined after 2026-01-01'


@dataclass(frozen=True, slots=True)
class Filter:
    """What a person wrote, and the tree that it means. Letters are named as they were written."""

    text: str
    tree: Tree


def read_segment(written: str) -> Filter:
    """SegmentError says what is wrong, and where."""
    text = " ".join(written.split("\n")).strip()
    if not text:
        raise SegmentError("The filter is empty.", remedy=f"Write who is meant: {EXAMPLE}")
    if len(text) > LONGEST_FILTER:
        raise SegmentError(
            f"The filter has {len(text):,} characters; {LONGEST_FILTER:,} are the most.",
            remedy="Mark these people with an attribute when you import them, and ask for that.",
        )
    if any(unicodedata.category(one) in ("Cc", "Cs") and one not in WHITE_SPACE for one in text):
        raise SegmentError("The filter holds an invisible control character.", remedy="Write it anew.")
    try:
        tree = _ToTree().transform(_parser().parse(text))
    except UnexpectedInput as error:
        raise _not_understood(text, error) from None
    except VisitError as error:
        raise error.orig_exc from None
    if nesting(tree) > DEEPEST_NESTING:
        raise SegmentError(
            f"The filter is nested more than {DEEPEST_NESTING} deep.",
            remedy="Write it with fewer parentheses.",
        )
    if (conditions := sum(1 for _ in leaves(tree))) > MOST_CONDITIONS:
        raise SegmentError(
            f"The filter has {conditions} conditions; {MOST_CONDITIONS} are the most.",
            remedy='Several values of one field are one condition: city in ("Porto", "Lisboa").',
        )
    return Filter(text, tree)


@cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr")


@v_args(inline=True)
class _ToTree(Transformer_NonRecursive[Token, Tree]):
    """Of what the grammar finds, the tree: most parts have the same name in both."""

    def __default__(self, data: Token, children: list[Any], meta: object) -> Tree:
        return [str(data), *(_text(one) if isinstance(one, Token) else one for one in children)]

    def start(self, tree: Tree) -> Tree:
        return tree

    def place(self, ocd_id: Token) -> Tree:
        return ["place", _text(ocd_id).lower(), ""]

    def never_mailed(self) -> Tree:
        return ["not", ["mailed"]]

    def among(self, field: Token, *values: Token) -> Tree:
        return _compare(field, "in", values)

    def compared(self, field: Token, operator: Token, value: Token) -> Tree:
        said = operator.lower()
        if said in ("before", "after"):
            if _value(value)[0] != "day":
                raise SegmentError(
                    f"`{said}` needs a day, and {_text(value)!r} is none.",
                    remedy=f"Write it as {_text(field)} {said} 2026-01-31, without quotes.",
                )
            said = {"before": "<", "after": ">"}[said]
        if said in ("<", "<=", ">", ">=") and _value(value)[0] == "text":
            raise SegmentError(
                f"`{said}` compares numbers and days, and {_text(value)!r} is neither.",
                remedy=f"Write it without quotes: {_text(field)} {said} 65.",
            )
        if said == "!=":
            return ["not", _compare(field, "in", [value])]
        return _compare(field, "in" if said == "=" else said, [value])


def _compare(field: Token, operator: str, values: Any) -> Tree:
    name, meant = _text(field), [_value(one) for one in values]
    if operator == "contains":
        meant = [["text", fold(_text(one))] for one in values]
    if name == JOINED and any(kind != "day" for kind, _ in meant):
        raise SegmentError(
            "`joined` is a day.", remedy="Compare it with one, without quotes: joined after 2026-01-31."
        )
    if any(kind == "text" and not value.strip() for kind, value in meant):
        raise SegmentError(
            f"{name} is compared with nothing.", remedy=f"Who has no value: not has {_shown(name)}."
        )
    return ["compare", name, operator, meant]


def _value(token: Token) -> Tree:
    """In quotes it is text; else a number or a day if it looks like one."""
    written = _text(token).strip(WHITE_SPACE)
    if token.type == "QUOTED":
        return ["text", fold(written)]
    if number_of(written) is not None:
        return ["number", written]
    if len(written) == 10 and day_of(written) is not None:
        try:
            return ["day", date.fromisoformat(written).isoformat()]
        except ValueError:
            raise SegmentError(f"{written} is no day of the calendar.", remedy="Correct it.") from None
    return ["text", fold(written)]


def _text(token: Token) -> str:
    if token.type != "QUOTED":
        return str(token)
    inner = str(token)[1:-1]
    return inner.replace('\\"', '"').replace("\\\\", "\\") if token.startswith('"') else inner


def _shown(name: str) -> str:
    """As it is written in a filter: in quotes, unless it is one plain word."""
    is_plain = name and not set(name) & {*" \t(),=!<>", *QUOTATION_MARKS}
    return name if is_plain else json.dumps(name, ensure_ascii=False)


def _not_understood(text: str, error: UnexpectedInput) -> SegmentError:
    place = error.pos_in_stream or 0
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        return SegmentError(
            f"The filter ends too early: {text[-40:]}", remedy=f"A whole one is, for instance: {EXAMPLE}"
        )
    if isinstance(error, UnexpectedCharacters) and text[place] in QUOTATION_MARKS:
        begun = re.search(r"[^\s(),=!<>]*\Z", text[:place])
        start = begun.start() if begun else place
        return SegmentError(
            f"The quotation marks cannot be read: {text[start : start + 40]}",
            remedy="""Put the whole value in double quotes, with a space after it: "O'Brien".""",
        )
    return SegmentError(
        f"The filter cannot be read from character {place + 1} on: {text[place : place + 40]}",
        remedy=f'Write it like {EXAMPLE}; put a name or value with spaces in quotes, "like this".',
    )
