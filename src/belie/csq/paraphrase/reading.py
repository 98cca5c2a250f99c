"""A reply taken apart: two messages, and the parts of the first.

Knows: the markers and the layout that were asked for, and the small liberties a model takes with them.
Does not know: what any part means.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from belie.csq.paraphrase.fault import Fault

#: Characters. A question of this size has some 800.
LONGEST = 6000

_MARKER = re.compile(r"^\W*(first|second) message\W*$", re.IGNORECASE | re.MULTILINE)
_HTML = re.compile(r"</?[a-zA-Z!][^<>]*>|&(?:[a-z]+|#\d+);")
_BULLET = re.compile(r"^\s*(?:[-*•–—]|\(?(?:\d{1,2}|[a-d])[.)])\s+")
_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "‑": "-", "\u00a0": " "})


class Draft(NamedTuple):
    """The parts of a reply as they stand, not yet judged. Lines without their bullets."""

    question: str
    rules_heading: str
    rules: tuple[str, ...]
    facts_heading: str
    facts: tuple[str, ...]
    again: str
    second: str


def read_reply(reply: str) -> Draft:
    """Takes a reply apart. Raises ``Fault``: empty, length, markup, layout."""
    if not reply.strip():
        raise Fault("empty", "the reply is empty")
    if len(reply) > LONGEST:
        raise Fault("length", f"{len(reply):,} characters")
    text = unicodedata.normalize("NFKC", reply.translate(_QUOTES)).replace("\r\n", "\n")
    html = _HTML.search(text)
    if html:
        raise Fault("markup", html[0])
    first, second = _messages(text)
    lines = [line for line in map(_plain, first.splitlines()) if line]
    headings = [i for i, line in enumerate(lines) if line.endswith(":") and not _BULLET.match(line)]
    headings = [i for i in headings if i > 0]
    if len(headings) != 2:
        raise Fault("layout", f"{len(headings)} heading lines ending in a colon, where 2 are wanted")
    start, middle = headings
    after = [_BULLET.sub("", line) for line in lines[middle + 1 :]]
    if len(after) < 2:
        raise Fault("layout", "no facts after the second heading")
    return Draft(
        question=" ".join(lines[:start]),
        rules_heading=lines[start],
        rules=tuple(_BULLET.sub("", line) for line in lines[start + 1 : middle]),
        facts_heading=lines[middle],
        facts=tuple(after[:-1]),
        again=after[-1],
        second=" ".join(line for line in map(_plain, second.splitlines()) if line),
    )


def _messages(text: str) -> tuple[str, str]:
    """What stands under each of the two markers. Raises ``Fault`` where they are not there once each, in order."""
    markers = list(_MARKER.finditer(text))
    if [marker[1].lower() for marker in markers] != ["first", "second"]:
        raise Fault("layout", "not one line `First message:` and one line `Second message:`")
    first, second = markers
    return text[first.end() : second.start()], text[second.end() :]


def _plain(line: str) -> str:
    """A line without the dress of Markdown: fences, rules, bold type, headings; runs of spaces are one."""
    line = line.strip()
    if re.fullmatch(r"```\w*|[-=_*]{3,}", line):
        return ""
    heading = re.fullmatch(r"#+ *(.+?):?|(?:\*\*|__)([^*_]+?):?(?:\*\*|__):?", line)
    if heading:
        line = f"{heading[1] or heading[2]}".strip(" *")
        line = line if line.endswith((".", "?", ":")) else f"{line}:"
    line = re.sub(r"(\*\*|__)(.+?)\1", r"\2", line)
    return " ".join(re.sub(r"^> ?", "", line).split())
