"""The answer that a sentence settles on in its own words: "the answer is no", "there is no path", "the claim is true".

Knows: the words of a conclusion.
Does not know: statements about the pair asked about (reading takes those first), or what is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from belie.csq.traces.lexicon import Lexicon
from belie.csq.traces.tokens import Token
from belie.csq.traces.words import WORDS, negates


class Settled(NamedTuple):
    """``what``: "answer" (``value``: Yes) or "reach" (``value``: there is a way). ``firm``: said as a conclusion; what
    is not counts only at the end of a trace."""

    what: Literal["answer", "reach"]
    value: bool
    firm: bool


_TRUTH = {"true": True, "correct": True, "right": True, "false": False, "incorrect": False, "wrong": False}


def settled(sentence: Sequence[Token], asked: tuple[str, str], lexicon: Lexicon) -> Settled | None:
    """What a sentence settles on. ``asked``: the pair asked about; a sentence on others settles nothing."""
    if not sentence or (sentence[-1].kind == "stop" and "?" in sentence[-1].text):
        return None
    names = {token.name for token in sentence if token.kind == "name"}
    words = [token.text for token in sentence if token.kind == "word"]
    if not words or not WORDS.unsettled.isdisjoint(words):
        return None
    said = _yes_or_no(sentence)
    if any(word in WORDS.answer for word in words):
        at = max(place for place, token in enumerate(sentence) if token.text in WORDS.answer)
        after = _yes_or_no(sentence[at:])
        if after is None or any(token.text == "not" for token in sentence[at:]):
            return None
        return Settled("answer", after, True)
    firm = any(word in WORDS.concluding and word != "via" for word in words)
    if said is not None:
        first = next(
            (token.text for token in sentence if token.kind in ("word", "name") and token.text not in WORDS.lead), ""
        )
        if first in ("yes", "no") or (firm and words[-1] in ("yes", "no")):
            return Settled("answer", said, firm)
    if not names <= set(asked):
        return None
    claim = not WORDS.claim.isdisjoint(words[:-1])
    if (claim or (firm and WORDS.way.isdisjoint(words))) and words[-1] in _TRUTH:
        return Settled("answer", _TRUTH[words[-1]] != any(negates(word) for word in words[:-1]), True)
    if sum(token.kind == "name" for token in sentence) > 1:
        return None
    return _way(words, firm, asked[1] in names, lexicon)


def _way(words: Sequence[str], firm: bool, goal: bool, lexicon: Lexicon) -> Settled | None:
    way = next((at for at, word in enumerate(words) if word in WORDS.way), None)
    if way is not None:
        near, rest = words[max(0, way - 3) : way], words[way + 1 :]
        if (
            near[-1:] == ["no"]
            or ("there" in words[:way] and any(negates(word) for word in near))
            or (any(negates(word) for word in rest[:3]) and not WORDS.complete.isdisjoint(rest))
        ):
            return Settled("reach", False, firm)
        if not WORDS.incomplete.isdisjoint(rest):
            return Settled("reach", False, firm)
        if not any(negates(word) for word in words) and (
            near[-2:-1] in (["is"], ["there's"]) or not WORDS.complete.isdisjoint(rest)
        ):
            return Settled("reach", True, firm)
        return None
    if firm or goal:
        joined = [at for at, word in enumerate(words) if lexicon.joins(word)]
        if joined:
            denied = any(negates(word) for word in words[max(0, joined[-1] - 5) : joined[-1]])
            return Settled("reach", not denied, firm)
    return None


def _yes_or_no(sentence: Sequence[Token]) -> bool | None:
    """The yes or no that stands by itself in the sentence; None where there is none, or both."""
    found = set()
    for at, token in enumerate(sentence):
        if token.text == "yes":
            found.add(True)
        elif token.text == "no":
            following = sentence[at + 1] if at + 1 < len(sentence) else None
            if following is None or following.kind not in ("word", "name"):
                found.add(False)
    return found.pop() if len(found) == 1 else None
