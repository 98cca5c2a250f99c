"""What is said of a statement right after it: "… is not listed", "(missing)", "✓".

Knows: the words and marks that confirm or deny.
Does not know: what was stated.
"""

from __future__ import annotations

from collections.abc import Sequence

from belie.csq.traces.tokens import Token
from belie.csq.traces.words import WORDS, negates


def remark(sentence: Sequence[Token], at: int, *, governs: bool) -> int:
    """What is said of a statement right after it: 1 it holds, −1 it does not, 0 nothing."""
    if governs or at + 1 >= len(sentence):
        return 0
    at += 1
    if sentence[at].kind == "close":
        at += 1
    rest = sentence[at : at + 6]
    if not rest:
        return 0
    first = rest[0]
    if first.kind == "mark":
        return 1 if first.text in "✓✔☑✅" else -1
    words = [token.text for token in rest if token.kind == "word"]
    if any(token.kind == "name" for token in rest[:2]):
        return 0
    if first.kind in ("open", "dash") or (first.kind == "stop" and first.text in ":"):
        if len(rest) > 1 and rest[1].kind == "mark":
            return 1 if rest[1].text in "✓✔☑✅" else -1
        words = [word for word in words if word not in WORDS.fillers]
        return _said(words[:1], words[1:3], rest)
    if first.kind == "comma":
        if words[:1] != ["which"] and words[:1] != ["that"]:
            return 0
        words = words[1:]
    elif first.kind != "word":
        return 0
    if words and (words[0] in WORDS.auxiliary or negates(words[0])):
        return _said(words[:1] if negates(words[0]) else words[1:2], words[1:4], rest)
    return 0


def _said(head: list[str], rest: list[str], tokens: Sequence[Token]) -> int:
    word = head[0] if head else ""
    if negates(word) or word in WORDS.denying:
        if word == "not" and rest[:1] in (["only"], ["just"]):
            return 0
        if word == "no" and any(token.kind == "name" for token in tokens):
            return 0
        return -1
    if word in WORDS.confirming and not any(token.kind == "name" for token in tokens):
        return 1 if not (rest[:1] and negates(rest[0])) else -1
    return 0
