"""Questions that a trace puts to itself: what of a sentence is asked, whom it asks about, and answers in one word.

Knows: how a question is told from what is stated before it.
Does not know: how it is answered (reading).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from belie.csq.traces.lexicon import Lexicon
from belie.csq.traces.statement import Statement
from belie.csq.traces.tokens import Token
from belie.csq.traces.words import WORDS


def asked_of(sentence: Sequence[Token], found: list[Statement], places: list[int]) -> list[Statement]:
    """In a question, what is asked: all of it, or what stands after the last "so", ":" or "can" of an inversion."""
    if not found or sentence[-1].kind != "stop" or "?" not in sentence[-1].text:
        return found
    words = [token for token in sentence if token.kind in ("word", "name")]
    if len(sentence) >= 3 and sentence[-2].text in WORDS.tags and sentence[-3].kind in ("comma", "dash"):
        return found
    begin = 0
    if words and words[0].text not in WORDS.inverting:
        for at, token in enumerate(sentence):
            if token.kind == "stop" or (
                token.kind == "word" and (token.text in WORDS.concluding or token.text in WORDS.turning)
            ):
                begin = at if at < len(sentence) - 1 else begin
            elif token.kind == "word" and token.text in WORDS.inverting and at and sentence[at - 1].kind == "comma":
                begin = at
    return [
        replace(one, force="asked") if place >= begin and one.force in ("told", "derived") else one
        for one, place in zip(found, places, strict=True)
    ]


def open_question(sentence: Sequence[Token], lexicon: Lexicon) -> tuple[Token, bool] | None:
    """Of "who can A contact?" (A, True), of "who can contact A?" (A, False): whom it asks about, and whether those
    wanted are led to. None for any other sentence."""
    if (
        not sentence
        or "?" not in sentence[-1].text
        or not WORDS.asking_whom.intersection(token.text for token in sentence[:4])
    ):
        return None
    names = [at for at, token in enumerate(sentence) if token.kind == "name"]
    if len(names) != 1:
        return None
    joins = [at for at, token in enumerate(sentence) if token.kind == "word" and lexicon.joins(token.text)]
    if not joins:
        return None
    forward = names[0] < joins[-1] or sentence[names[0] - 1].text == "from"
    if any(token.text == "by" for token in sentence):
        forward = not forward
    return sentence[names[0]], forward


def fragment(sentence: Sequence[Token]) -> list[Token]:
    """The mentions of a sentence that holds nothing else but "and", "or" and marks; else none."""
    if any(token.kind == "word" and token.text not in ("and", "or", "only") for token in sentence):
        return []
    if any(token.kind in ("arrow", "back") for token in sentence[1:]):
        return []
    return [token for token in sentence if token.kind == "name"]
