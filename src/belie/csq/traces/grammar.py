"""What a sentence states of its entities: who leads to whom, told or concluded, denied, supposed or asked.

Knows: how mentions and joining words stand together. A sentence is read from left to right; a mention is a subject, an
object, one more of either (after "and"), a way ("through B"), or an object that is the next subject (arrows, "who").
Does not know: the facts (reading), or what answer the trace comes to (settled).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from belie.csq.traces.asking import asked_of
from belie.csq.traces.lexicon import Lexicon
from belie.csq.traces.remarks import remark
from belie.csq.traces.statement import Force, Statement
from belie.csq.traces.tokens import Token
from belie.csq.traces.words import WORDS, negates

#: So many subjects are led to the same objects at most; of a longer list the last.
_TOGETHER = 8
#: With these alone the joining word of the pair before is meant again.
_TAILS = frozenset({"from", "on", "into", "of", "than", "for"})


def statements(sentence: Sequence[Token], lexicon: Lexicon) -> list[Statement]:
    """What one sentence (mentions marked) states of pairs, in order."""
    if sum(token.kind == "name" for token in sentence) < 2 and not any(token.text == "there" for token in sentence):
        return []
    walk = _Walk(sentence, lexicon)
    for at, token in enumerate(sentence):
        walk.step(at, token)
    return asked_of(sentence, _steps(walk.found), walk.found_at)


@dataclass(slots=True)
class _Walk:
    """The state of a walk through one sentence; ``step`` takes one token on."""

    sentence: Sequence[Token]
    lexicon: Lexicon
    found: list[Statement] = field(default_factory=list)
    found_at: list[int] = field(default_factory=list)
    subjects: list[Token] = field(default_factory=list)
    waiting: list[Token] = field(default_factory=list)  # "A, B" before it is known whether "and C" follows
    last: Token | None = None
    last_at: int = -1
    reasoned: int = 0  # statements before the last "because"
    role: Literal["none", "subject", "object", "way", "goal", "pair"] = "none"
    turn: int = 0  # of the joining word since the last mention
    held: int = 0  # of the joining word that the last object had
    tail: str = ""  # the last word before the last object
    joined_by: str = ""
    gap: list[str] = field(default_factory=list)
    arrow: int = 0
    arrows: bool | None = None  # whether the sentence holds any
    comma: bool = False
    broken: bool = False
    relative: bool = False
    pronoun: bool = False
    from_: bool = False
    anchored: bool = False  # the subject was led in by "from"
    owned: bool = False  # the subject was led in by "the contacts of"
    via: bool = False
    between: bool = False
    negative: bool = False
    negative_at: int = -1
    doubtful: bool = False
    supposed: bool = False
    asked: bool = False
    asked_at: int = -1
    asked_strongly: bool = False
    concluding: bool = False
    because: bool = False
    telling: bool = False
    direct: bool = False
    far: bool = False
    emitted_at: int = -1

    def step(self, at: int, token: Token) -> None:
        kind = token.kind
        if kind == "name":
            self._mention(at, token)
        elif kind == "word":
            self._word(at, token.text)
        elif kind in ("arrow", "back"):
            self.arrow = 1 if kind == "arrow" else -1
        elif kind == "implies":
            self._implies()
        elif kind == "comma":
            self._comma(at)
        elif kind == "stop":
            self._stop(token.text)
        elif kind == "mark" and token.text == "↛":
            self.arrow, self.negative, self.negative_at = 1, True, at
        elif kind == "dash":
            self.gap.append("-")

    # Words

    def _word(self, at: int, word: str) -> None:
        following = self.sentence[at + 1] if at + 1 < len(self.sentence) else None
        then = following.text if following is not None and following.kind == "word" else ""
        self.gap.append(word)
        if negates(word):
            self._negator(at, word, following, then)
        elif word in self.lexicon.supposing:
            self.supposed = True
            if word in ("if", "unless") and self.role == "object":
                for place in range(len(self.found) - 1, -1, -1):  # "A can contact B only if …"
                    if self.found_at[place] != self.emitted_at:
                        break
                    self.found[place] = replace(self.found[place], force="supposed")
        elif (
            word in WORDS.asking
            and not (word in self.lexicon.seeking and self.sentence[at - 1].kind == "name")
            and not (word in WORDS.settled_by_that and then == "that")
        ):
            self.asked, self.asked_at = True, at
            self.asked_strongly = word in WORDS.asking_strongly
        elif word in WORDS.turning:
            self._clause(keep_subject=True)
            self.asked = False
        elif word in WORDS.because and self._gives_reason(at, word, following):
            pass
        elif word in ("via", "through"):
            self.via = self.concluding = True
        elif (
            word in WORDS.concluding
            and not (word == "so" and then == "far")
            and not (word == "making" and then == "it")
        ):
            self._conclude()
        elif word in WORDS.relative or (word == "that" and at and self.sentence[at - 1].kind == "name"):
            self.relative, self.pronoun = True, False
            self._fresh_negation()
        elif word in WORDS.pronouns:
            self.pronoun = True
        elif word == "from":
            self.from_ = True
            if self.turn and self.joined_by in WORDS.backward_from:
                self.turn = -1
        elif word == "there" and self.from_ and self.last is not None:
            self.subjects, self.anchored, self.role, self.from_ = [self.last], True, "subject", False
            self.gap.clear()
            self.pronoun = False
            self._fresh_negation()
        elif word == "by" and self.turn and self.joined_by[-2:] in ("ed", "en", "le", "wn", "nt", "ht"):
            self.turn = -self.turn
        elif word == "between":
            self.between = True
        elif word == "for" and at == 0:
            self.asked, self.asked_at = True, at  # "for A to contact B, …"
        elif word == "to" and at == 0 and then and self.lexicon.joins(then):
            self.asked, self.asked_at = True, at
        elif word in WORDS.together:
            if self.role == "object":
                self.turn = 0
                self.broken = True
        else:
            if word in WORDS.telling:
                self.telling = True
            if word in ("direct", "directly"):
                self.direct = True
            if word in self.lexicon.far:
                self.far = True
            turn = self.lexicon.joins(word)
            if not turn and at and self.sentence[at].capital and word not in WORDS.ordinary:
                self.pronoun = True  # somebody, or something, that is no entity as far as can be seen
            if turn and (not self.turn or turn == -1):
                self.turn, self.joined_by = turn, word

    def _negator(self, at: int, word: str, following: Token | None, then: str) -> None:
        if word in ("no", "nope") and (following is None or following.kind not in ("word", "name")):
            self.asked = False  # "the statement: no, it is not true that …"
            return
        if (word == "not" and then in ("only", "just")) or word in ("nor", "except", "unlike"):
            if word == "nor":
                self.negative, self.negative_at = True, at
            return
        if self.negative and self.negative_at > self.emitted_at and word not in ("or", "any"):
            self.doubtful = True
        self.negative, self.negative_at = True, at
        if word in ("nobody", "none", "nothing"):
            self.pronoun = True
        if self.role == "object":
            self.broken = self.broken or self.comma

    def _gives_reason(self, at: int, word: str, following: Token | None) -> bool:
        if self.found and self.found_at and word in ("because", "since"):
            for place, one in enumerate(self.found[self.reasoned :], self.reasoned):
                if one.force == "told" and not one.negative:
                    self.found[place] = replace(one, force="derived")
            self.reasoned = len(self.found)
            self._clause()
            self.concluding = False
            return True
        if not self.found and (at <= 1 or word == "because") and not (word == "as" and following is None):
            self.because = True
            return True
        return False

    def _conclude(self) -> None:
        if self.role == "subject" and not self.comma and not self.broken and self.last is not None:
            # "A therefore can contact B", "A can thus contact B": the clause goes on.
            self.concluding = True
            return
        self._clause()
        self.concluding, self.because, self.telling = True, False, False

    def _implies(self) -> None:
        if self.arrows is None:
            self.arrows = any(token.kind in ("arrow", "back") for token in self.sentence)
        if self.arrows and self.role != "subject":
            self._clause()
            self.concluding, self.arrow = True, 0
        else:
            self.arrow = 1

    def _comma(self, at: int) -> None:
        self.comma = True
        if self.because and self.last_at >= 0 and not self._next_word(at, ("and", "or", "but")):
            self.because, self.concluding = False, True
        if self.role == "object":
            self.turn = 0
            self.broken = True
        elif self.role == "subject" and self.turn and self.negative_at > self.last_at:
            self._clause()  # "A contacts nobody,"
        if self.asked and self.asked_at < self.emitted_at:
            following = self.sentence[at + 1] if at + 1 < len(self.sentence) else None
            if following is None or following.text not in ("or", "nor"):
                self.asked = False
        if self.sentence[0].text in ("to", "for") and self.asked_at == 0:
            self.asked = False

    def _next_word(self, at: int, these: tuple[str, ...]) -> bool:
        return at + 1 < len(self.sentence) and self.sentence[at + 1].text in these

    def _stop(self, text: str) -> None:
        if text[-1] == ":" and self.last is not None and self.role == "subject" and set(self.gap) <= {"from"}:
            if self.sentence[0] is self.last or self.anchored:
                self.turn = self.turn or 1  # "A: B, C", one line of a list of neighbours
            return
        if text[-1] == ":" and self.owned and self.role == "subject":
            self.turn = 1  # "contacts of A: B, C"
            return
        if text[-1] == ":" and self.turn and self.role == "subject":
            return  # "A can contact: B, C"
        strongly = self.asked and self.asked_strongly and text[-1] == ":"
        missing = self.negative and self.last is None and text[-1] == ":"  # "Missing: A → B"
        self._clause()
        self.negative = missing
        self.supposed, self.asked, self.concluding, self.because, self.telling = False, strongly, False, False, False

    def _clause(self, *, keep_subject: bool = False) -> None:
        """A new clause begins: what was denied or half said before does not reach into it."""
        self.negative = self.doubtful = self.direct = self.far = self.pronoun = self.relative = False
        self.turn, self.arrow, self.from_, self.between, self.via = 0, 0, False, False, False
        self.broken = True
        if not keep_subject:
            self.subjects, self.waiting, self.role, self.anchored = [], [], "none", False
            self.last = None

    def _fresh_negation(self) -> None:
        if self.negative and self.negative_at < self.emitted_at:
            self.negative = self.doubtful = False

    # Mentions

    def _mention(self, at: int, token: Token) -> None:
        if self.via:
            self._way()
        elif self.arrow and self.last is not None:
            self._emit(at, [self.last], token, self.arrow)
        elif self._is_tuple(at):
            self.subjects, self.role = [token], "subject"
        elif self.role == "subject" and self.last is not None and self._closes_tuple(at):
            self._emit(at, [self.last], token, 1)
        elif self.role == "pair":
            self._emit(at, self.subjects, token, 1, undirected=True)
        elif self.between:
            self._subject(at, token)
            self.role, self.between = "pair", False
        elif self.role == "goal" and self.gap and self.gap[-1] == "from" and self.last is not None:
            self._emit(at, [token], self.last, 1)
            self.role = "none"
        elif (turn := self._joins(at)) and (subjects := self._who()):
            self._emit(at, subjects, token, turn)
        elif self._one_more(at) and self.subjects:
            self._emit(at, self.subjects, token, self.held or 1)
        else:
            self._subject(at, token)
        self.last, self.last_at = token, at
        self.gap.clear()
        self.arrow, self.comma, self.broken, self.relative, self.via = 0, False, False, False, False
        if self.role != "way":
            self.turn = 0
        if self.role == "object":
            self.from_ = False

    def _way(self) -> None:
        """A way: "A can contact C through B", "through B, A can contact C"."""
        self.concluding = True
        if self.role == "object":
            for place in range(len(self.found) - 1, -1, -1):
                if self.found[place].force == "told":
                    self.found[place] = replace(self.found[place], force="derived")
                break
        elif self.role == "none":
            self.subjects = []
            return
        self.role = "way" if self.role == "subject" else self.role

    def _joins(self, at: int) -> int:
        """Whether the words since the last mention join it (or its subject) to this one: 1, −1 or 0."""
        if self.last is None or not (self.subjects or self.role == "object"):
            return 0
        led = self.broken and not self.relative and self.gap[-1:] == ["from"] and self.turn != -1
        if led and not (self.turn and WORDS.articles.isdisjoint(self.gap)):
            return 0  # "…, and there is a link from": a new subject
        if self.comma and any(
            one.turn == 1 and len(one.before) > 1 and self._ends(one.before) for one in self.lexicon.templates
        ):
            return 0  # "…, a plane leaves": a new subject
        if self.turn:
            return self.turn
        gap = self.gap
        if self.role == "subject" and self.tail in _TAILS and gap == [self.tail]:
            return self.held  # "A inherits from B, B from C"
        if self.owned and set(gap) <= {"is", "are"}:
            return 1
        if gap == ["-"] and not self.comma:
            return 1
        if "to" in gap and (self.anchored or gap == ["to"] or (self.role == "object" and set(gap) <= WORDS.chaining)):
            return 1
        for one in self.lexicon.templates:
            if one.between and tuple(gap[-len(one.between) :]) == tuple(w for w in one.between if w != ","):
                rest = tuple(word.text for word in self.sentence[at + 1 : at + 1 + len(one.after)])
                if one.after and one.after != rest:
                    continue
                if not one.after and (not one.before or not self._led_by(one.before[-1])):
                    continue
                return one.turn
        return 0

    def _ends(self, words: tuple[str, ...]) -> bool:
        return tuple(self.gap[-len(words) :]) == words

    def _led_by(self, word: str) -> bool:
        return self.last_at > 0 and self.sentence[self.last_at - 1].text == word

    def _who(self) -> list[Token]:
        """The subjects of a joining word that stands before this mention."""
        assert self.last is not None
        if self.relative:
            return [self.last]
        if self.pronoun:
            return []
        if self.role == "object" and not self.broken and not self.comma:
            return [self.last]
        if self.role == "object" and not self.turn:  # "…, then to C": on from the last one
            return [self.last]
        return self.subjects

    def _one_more(self, at: int) -> bool:
        """Whether this mention is one more object: "A can contact B, C and D"."""
        if self.role != "object" or not set(self.gap) <= WORDS.together | {"to"} or not (self.comma or self.gap):
            return False
        if self.relative or self._governs(at):
            return False
        if "then" in self.gap and self.last is not None:
            self.subjects = [self.last]
        return True

    def _governs(self, at: int) -> bool:
        """Whether a joining word of its own follows this mention, and another mention after it."""
        joined = False
        for place in range(at + 1, min(len(self.sentence), at + 25)):
            token = self.sentence[place]
            if token.kind == "name":
                if not joined:
                    gap = tuple(word.text for word in self.sentence[at + 1 : place] if word.kind == "word")
                    joined = any(gap == one.between for one in self.lexicon.templates) or (
                        self.tail in _TAILS and gap == (self.tail,)
                    )
                return joined
            if token.kind in ("arrow", "back", "implies"):
                joined = True
            elif token.kind in ("comma", "stop") or (
                token.kind == "word" and token.text in WORDS.relative | {"and", "or"}
            ):
                if not joined:
                    return False
            elif token.kind == "word" and (self.lexicon.joins(token.text) or token.text == "to"):
                joined = True
        return False

    def _is_tuple(self, at: int) -> bool:
        s = self.sentence
        return (
            0 < at < len(s) - 3
            and s[at - 1].kind == "open"
            and s[at + 1].kind == "comma"
            and s[at + 2].kind == "name"
            and s[at + 3].kind == "close"
        )

    def _from_another(self, at: int) -> bool:
        """Whether "from" and another mention follow: "reach B from A"."""
        rest = self.sentence[at + 1 : at + 3]
        return len(rest) == 2 and rest[0].text == "from" and rest[1].kind == "name" and self.turn != 0

    def _closes_tuple(self, at: int) -> bool:
        return at >= 3 and self._is_tuple(at - 2)

    def _subject(self, at: int, token: Token) -> None:
        together = self.gap and self.gap[-1] in ("and", "or", "nor") and self.role == "subject"
        if together and set(self.gap) <= WORDS.together:
            self.subjects = [*(self.waiting or self.subjects), token][-_TOGETHER:]
            self.waiting = []
            return
        if self.role == "subject" and self.comma and not self.gap:
            self.waiting = [*(self.waiting or self.subjects), token][-_TOGETHER:]
        else:
            self.waiting = []
            if not (self.gap and self.gap[0] in ("or", "nor")):
                self._fresh_negation()
            if self.asked and self.asked_at < self.emitted_at and self.comma:
                self.asked = False
        if self.role in ("object", "subject"):
            self.direct = self.telling = self.far = False
        goal = not self.subjects and self._from_another(at)
        goal = goal or (
            bool(self.gap) and self.gap[-1] in ("to", "for", "into") and not self.subjects and not self.from_
        )
        self.role = "goal" if goal else "subject"
        self.owned = self.gap[-1:] == ["of"] and self.turn != 0
        self.subjects, self.pronoun = [token], False
        self.anchored, self.from_ = self.from_, False

    # What is said

    def _emit(self, at: int, subjects: list[Token], token: Token, turn: int, *, undirected: bool = False) -> None:
        after = remark(self.sentence, at, governs=self._governs(at))
        negative = self.negative
        force: Force = "told"
        then = self.sentence[at + 1].text if at + 1 < len(self.sentence) else ""
        if then in WORDS.conditional or self.supposed or (self.doubtful and negative):
            force = "supposed"
        elif self.asked:
            force = "asked"
            if after:
                force, negative = "told", negative != (after < 0)
        elif after < 0:
            negative = not negative
        if force == "told" and (self.concluding or self.far) and not self._told_outright(at):
            force = "derived"
        for subject in subjects:
            a, b = (subject, token) if turn == 1 else (token, subject)
            start, end = min(a.start, b.start), max(a.end, b.end)
            self.found.append(Statement(a.name, b.name, force, negative, start, end, self.direct, undirected))
            self.found_at.append(at)
        self.subjects, self.held, self.role = list(subjects), turn, "object"
        self.tail = self.gap[-1] if self.gap else ""
        self.emitted_at, self.waiting, self.pronoun = at, [], False

    def _told_outright(self, at: int) -> bool:
        """Told as a given fact: "directly", "it is stated that", "(fact 3)"."""
        if self.telling:
            return True
        nearby = self.sentence[at + 1 : at + 3]
        return len(nearby) == 2 and nearby[0].kind == "open" and nearby[1].text in ("fact", "facts", "given", "line")


def _steps(found: list[Statement]) -> list[Statement]:
    """Steps that follow on one another ("so the path is A → B → C") are told, not concluded."""
    out = list(found)
    for at, one in enumerate(found):
        if one.force != "derived" or one.negative:
            continue
        before, after = (found[at - 1] if at else None), (found[at + 1] if at + 1 < len(found) else None)
        linked = (before is not None and before.force == "derived" and before.b == one.a and not before.negative) or (
            after is not None and after.force == "derived" and after.a == one.b and not after.negative
        )
        if linked:
            out[at] = replace(one, force="told")
    return out
