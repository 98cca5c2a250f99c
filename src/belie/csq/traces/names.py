"""Who is mentioned: full names, one part alone, slips of spelling, and names that no fact holds.

Knows: the entities of one question and the parts that its world's names are made of.
Does not know: what is said of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from belie.csq.traces.lexicon import Lexicon
from belie.csq.traces.tokens import Token
from belie.csq.traces.words import WORDS
from belie.csq.world import World

_POSSESSIVE = ("'s", "’s")


class Names:
    """The entities of a question, told apart from invented ones.

    A part alone stands for its entity where it is one of the question's and written with a capital. Two parts that
    belong to no one entity are an entity never mentioned; so is a part of the world's lists that the question lacks,
    and two capitalised words where an entity is spoken of .
    """

    def __init__(self, world: World, entities: Sequence[str]) -> None:
        self._parts: dict[str, str] = {}
        self._whole: dict[tuple[str, str], str] = {}
        twice: set[str] = set()
        for entity in entities:
            first, _, second = entity.partition(" ")
            self._whole[first.lower(), second.lower()] = entity
            for part in {first.lower(), second.lower()}:
                if part in self._parts:
                    twice.add(part)
                self._parts[part] = entity
        for part in twice:
            del self._parts[part]
        self._firsts = frozenset(part.lower() for part in world.entities.first)
        self._seconds = frozenset(part.lower() for part in world.entities.second)
        parts = self._firsts | self._seconds | set(self._parts)
        self._telling = parts | {part + mark for part in parts for mark in _POSSESSIVE}

    def known(self, name: str) -> bool:
        """Whether the question holds this entity."""
        first, _, second = name.lower().partition(" ")
        return (first, second) in self._whole

    def mark(self, sentence: list[Token], words: Lexicon) -> list[Token]:
        """The sentence with each mention as one token of kind "name": entities, names that hold a part of the world's
        names, and others where an entity is spoken of."""
        marked = self._own(sentence)
        if not any(token.kind in ("name", "arrow", "back") for token in marked):
            return marked
        out: list[Token] = []
        at = 0
        while at < len(marked):
            token = marked[at]
            if token.capital and token.kind == "word" and at + 1 < len(marked):
                name = self._strange(token, marked[at + 1])
                if name and _spoken_of(marked, at, words):
                    out.append(Token("name", marked[at + 1].text, token.start, marked[at + 1].end, True, name))
                    at += 2
                    continue
            own = token.text in words.own
            if (
                token.capital
                and token.kind == "word"
                and not own
                and self._strange_one(token)
                and _alone(marked, at, words)
            ):
                out.append(token._replace(kind="name", name=self._strange_one(token)))
                at += 1
                continue
            out.append(token)
            at += 1
        return out

    def _own(self, sentence: list[Token]) -> list[Token]:
        """The mentions that hold a part of the world's names."""
        if not any(token.text in self._telling for token in sentence):
            return sentence
        out: list[Token] = []
        at = 0
        while at < len(sentence):
            token = sentence[at]
            if token.kind != "word":
                out.append(token)
                at += 1
                continue
            following = sentence[at + 1] if at + 1 < len(sentence) else None
            if following is not None and following.kind == "dash" and following.end - following.start == 1:
                after = sentence[at + 2] if at + 2 < len(sentence) else None
                # "Badel-Balmore" without a space
                if after is not None and after.start - token.end == 1 and self._pair(token, after):
                    out.append(_mention(token, after, self._pair(token, after)))
                    at += 3
                    continue
            if following is not None and following.kind == "word" and (name := self._pair(token, following)):
                out.append(_mention(token, following, name))
                at += 2
                continue
            if token.capital and (name := self._part(token.text)):
                out.append(_mention(token, token, name))
            else:
                out.append(token)
            at += 1
        return out

    def _strange(self, first: Token, second: Token) -> str:
        """The name that two neighbouring words would be, if they look like one that nobody holds; else empty."""
        if not (first.capital and second.capital and first.kind == second.kind == "word"):
            return ""
        if second.start - first.end != 1 or first.text in WORDS.ordinary or second.text in WORDS.ordinary:
            return ""
        if not (first.text.isalpha() and _bare(second.text).isalpha()) or min(len(first.text), len(second.text)) < 3:
            return ""
        return f"{first.text.title()} {_bare(second.text).title()}"

    def _strange_one(self, token: Token) -> str:
        """The one-word name that this would be, if nobody holds it and it is no ordinary word; else empty."""
        word = _bare(token.text)
        ordinary = word in WORDS.ordinary or word in WORDS.forward or token.text.isupper()
        return word.title() if word.isalpha() and len(word) >= 3 and not ordinary else ""

    def _pair(self, first: Token, second: Token) -> str:
        one, two = first.text, _bare(second.text)
        entity = self._whole.get((one, two))
        if entity is not None:
            return entity
        if not (first.capital and second.capital):
            return ""
        holder, other = self._parts.get(one), self._parts.get(two)
        is_first, is_second = one in self._firsts, two in self._seconds
        if is_first and is_second:
            return f"{one.title()} {two.title()}"
        if holder is not None and is_first and other is None and _slip(two, holder.partition(" ")[2].lower()):
            return holder
        if other is not None and is_second and holder is None and _slip(one, other.partition(" ")[0].lower()):
            return other
        if (is_first and two not in WORDS.ordinary and self._parts.get(two) is None and two not in self._firsts) or (
            is_second and one not in WORDS.ordinary and one not in self._seconds
        ):
            return f"{one.title()} {two.title()}" if second.start - first.end == 1 else ""
        return ""

    def _part(self, word: str) -> str:
        word = _bare(word)
        entity = self._parts.get(word)
        if entity is not None:
            return entity
        if (word in self._firsts or word in self._seconds) and word not in WORDS.ordinary:
            return word.title()
        return ""


def _spoken_of(sentence: Sequence[Token], at: int, words: Lexicon) -> bool:
    """Whether the two words from ``at`` on stand where an entity would: beside an arrow or a joining word."""
    before = sentence[max(0, at - 3) : at]
    after = sentence[at + 2 : at + 5]
    if (before and before[-1].kind in ("arrow", "back")) or (after and after[0].kind in ("arrow", "back")):
        return True
    left = [token.text for token in before if token.kind == "word"]
    right = [token.text for token in after if token.kind == "word"]
    return (bool(left) and (left[-1] in ("from", "to", "through", "via", "by") or words.joins(left[-1]) != 0)) or any(
        words.joins(word) for word in right[:3]
    )


def _alone(sentence: Sequence[Token], at: int, words: Lexicon) -> bool:
    """Whether one word stands where an entity would: an object, or a subject, of a joining word, or beside an arrow."""
    if not any(token.kind == "name" for token in sentence):
        return False
    before = sentence[at - 1] if at else None
    after = sentence[at + 1 : at + 3]
    if before is not None and (
        before.kind in ("arrow", "back") or (before.kind == "word" and words.joins(before.text))
    ):
        return True
    texts = [token.text for token in after]
    if not after or after[0].kind in ("arrow", "back"):
        return bool(after)
    return words.joins(texts[0]) != 0 or (texts[0] == "can" and len(texts) > 1 and words.joins(texts[1]) != 0)


def _mention(first: Token, last: Token, name: str) -> Token:
    return Token("name", last.text, first.start, last.end, True, name)


def _bare(word: str) -> str:
    """Without a possessive ending."""
    return word[:-2] if word.endswith(_POSSESSIVE) else word


def _slip(written: str, meant: str) -> bool:
    """Whether one edit (one letter more, less or other), or a cut or drawn-out ending, makes the one of the other."""
    if written[:1] != meant[:1] or abs(len(written) - len(meant)) > 2:
        return False
    if len(written) >= 4 and (meant.startswith(written) or written.startswith(meant)):
        return True
    if abs(len(written) - len(meant)) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(written, meant, strict=False)) if a != b), None)
    if at is None:
        return True
    return written[at + 1 :] == meant[at + 1 :] or written[at:] == meant[at + 1 :] or written[at + 1 :] == meant[at:]
