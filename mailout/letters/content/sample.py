"""A letter as a reader would see it, before there is one: every variable has a value that reads well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mailout.letters.content.model import Content, Segments
from mailout.letters.content.variables import Variable, filled, marked, variables_of

SAMPLE_READER: Mapping[str, str] = {
    "name": "Alex Sample",
    "first_name": "Alex",
    "last_name": "Sample",
    "email": "alex.sample@example.com",
}


def shown_to(content: Content, reader: Mapping[str, object] | None, from_name: str) -> dict[str, str]:
    """What stands where the content's marks are, for this reader (attributes and `email`); None: the sample.
    The reader's own links lead nowhere: nobody else should follow them."""
    names = (*content.subject_segments.names, *content.html_segments.names, *content.text_segments.names)
    links = {name: "#" if name.endswith("url") else "" for name in names}
    return links | _values(variables_of(content), SAMPLE_READER if reader is None else reader, from_name)


def plain_subject(written: str) -> str:
    """A letter's name among others: it has no reader, so variables show their fallback, as on the web."""
    if "{{" not in written:
        return written
    segments = Segments.of(marked(written))
    variables = [one for one in map(Variable.of_key, segments.names) if one is not None]
    return segments.fill(_values(variables, {}, ""))


def _values(variables: Sequence[Variable], reader: Mapping[str, object], from_name: str) -> dict[str, str]:
    """A value that nobody gave is the fallback, or the attribute's own name in words."""
    given: dict[str, object] = {**reader, "from_name": from_name or "us"}
    for one in variables:
        if one.fallback is None and not str(given.get(one.name) or "").strip():
            given[one.name] = one.name.replace("_", " ")
    return filled(variables, given)
