"""A trace as tokens: words, arrows, stops, each with its place in the text as it was written.

Knows: letters, markup, arrows in their many spellings, and characters that are not seen.
Does not know: names, or what any word means.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["word", "arrow", "back", "implies", "stop", "line", "comma", "open", "close", "dash", "mark", "name"]


class Token(NamedTuple):
    """``text`` is in lower case. ``name``: of a mention, the entity (kind "name"), else empty."""

    kind: Kind
    text: str
    start: int
    end: int
    capital: bool = False
    name: str = ""


_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\x00-\x08]+"
)
# Every alternative is bounded or a class of one kind of character, so that the time is linear in the text.
_TOKEN = re.compile(
    r"""
    (?P<word>[^\W_]+(?:['’][^\W_]+){0,2})
  | (?P<line>(?:\n|\\n(?!e[gq]?\b|ot\b|u\b|abla\b))[ \t]*(?:(?:[-*+•‣▪◦>]|\(?\d{1,3}[.):]|\#{1,6})[ \t]+)*)
  | (?P<implies>=+>|⇒|⟹|\\(?:Rightarrow|implies|Longrightarrow|therefore)\b|∴|&rArr;)
  | (?P<back><[-=—–]+(?!>)|←|⟵|⇐|\\(?:leftarrow|gets|longleftarrow)\b|&larr;|&lt;-+|<(?=[ \t]))
  | (?P<arrow>[-—–]{1,3}[ ]?&gt;|&gt;|[-—–=]{1,3}>|→|⟶|➔|➜|➡|⇢|▶|►|»|↦|>{1,3}
    |\\(?:rightarrow|to|longrightarrow|mapsto)\b|&rarr;)
  | (?P<tag></?[A-Za-z][^<>\n]{0,80}>|\\(?:(?:text|math)[a-z]{0,9}|boxed|[q]?quad|left|right|begin|end|t)(?![a-z]))
  | (?P<mark>[✓✔☑✅✗✘❌✖↛]|\[[xX]\])
  | (?P<stop>[.!?;:…。！？]{1,16})
  | (?P<comma>[,，、])
  | (?P<open>[(\[]{1,16})
  | (?P<close>[)\]]{1,16})
  | (?P<dash>[-—–]{1,3})
    """,
    re.VERBOSE,
)


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text in order. Linear in its length; never raises. ``start`` and ``end`` count in ``text``."""
    clean, places = _visible(text)
    for match in _TOKEN.finditer(clean):
        kind = match.lastgroup
        if kind == "tag":
            continue
        start, end = match.span()
        if places is not None:
            start, end = _original(places, start), _original(places, end - 1) + 1
        said = match[0]
        yield Token(kind, said.lower(), start, end, kind == "word" and said[0].isupper())  # type: ignore[arg-type]


def _visible(text: str) -> tuple[str, tuple[list[int], list[int]] | None]:
    """The text without characters that are not seen, and where its pieces stood: (place in it, place in ``text``)."""
    if text.isascii() and "\x00" not in text:
        return text, None
    pieces, here, there = [], [], []
    at = length = 0
    for hidden in _INVISIBLE.finditer(text):
        if hidden.start() > at:
            pieces.append(text[at : hidden.start()])
            here.append(length)
            there.append(at)
            length += hidden.start() - at
        at = hidden.end()
    if at < len(text):
        pieces.append(text[at:])
        here.append(length)
        there.append(at)
    return "".join(pieces), (here, there)


def _original(places: tuple[list[int], list[int]], at: int) -> int:
    here, there = places
    piece = bisect_right(here, at) - 1
    return there[piece] + at - here[piece]


def sentences(stream: Iterator[Token]) -> Iterator[list[Token]]:
    """Tokens by sentence. A sentence ends with the token that ends it: a stop other than ``:`` and ``;`` (kept, so
    that a question is known), or a line break, unless an arrow stands on either side of it."""
    sentence: list[Token] = []
    broken: Token | None = None
    for token in stream:
        if token.kind == "line":
            broken = token
            continue
        if broken is not None:
            joined = sentence and (token.kind in ("arrow", "back") or sentence[-1].kind in ("arrow", "back"))
            if sentence and not joined:
                yield [*sentence, broken]
                sentence = []
            broken = None
        sentence.append(token)
        if token.kind == "stop" and token.text[-1] not in ":;":
            yield sentence
            sentence = []
    if sentence:
        yield sentence
