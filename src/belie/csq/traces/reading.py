"""A trace read against the facts of its question: edges made up or turned round, false conclusions, names that nobody
holds, and the answer that it comes to (METHOD §1.8).

Knows: the facts of one question and what follows from them.
Does not know: who wrote the trace, or what was answered in the end (figures).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from belie.csq.traces.asking import fragment, open_question
from belie.csq.traces.case import Case, Pair
from belie.csq.traces.grammar import statements
from belie.csq.traces.lexicon import Lexicon, lexicon
from belie.csq.traces.names import Names
from belie.csq.traces.settled import settled
from belie.csq.traces.statement import Statement
from belie.csq.traces.tokens import Token, sentences, tokens
from belie.csq.traces.words import WORDS, negates
from belie.csq.world import load_world

#: Raised whenever a trace could be read differently. Written into every result.
TRACES_VERSION = 1

Verdict = Literal["yes", "no"]


class Edge(NamedTuple):
    """A pair that a trace states, and the place in it, ``start`` to ``end``. ``bridges``: see `Case.bridges`."""

    a: str
    b: str
    start: int
    end: int
    bridges: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What one trace says. Every pair counts once, and only if it stands at the end of the trace.

    ``held``: pairs that the facts hold or that follow from them. ``fabricated``: told as facts, and false.
    ``reversed``: the facts hold them the other way round. ``false_derivations``: concluded, and false (the pair asked
    about left out: that is ``verdict``). ``withdrawn``: false, told, and taken back in the trace. ``unknown``: names
    that the question does not hold. ``verdict``: the answer to the question that the trace last settles on.
    """

    words: int
    held: tuple[Pair, ...]
    fabricated: tuple[Edge, ...]
    reversed: tuple[Edge, ...]
    false_derivations: tuple[Edge, ...]
    withdrawn: tuple[Edge, ...]
    unknown: tuple[str, ...]
    verdict: Verdict | None


def read_trace(text: str, case: Case) -> Reading:
    """Read one trace. Never raises; time is linear in its length."""
    names, words = Names(load_world(case.world), case.entities), lexicon(case.world)
    reader = _Reader(case, names)
    for sentence in sentences(tokens(text)):
        reader.take(names.mark(sentence, words), words)
    return reader.reading(len(text.split()))


class _Reader:
    """Takes sentence after sentence, and keeps what stands."""

    def __init__(self, case: Case, names: Names) -> None:
        self.case, self.names = case, names
        self.standing: dict[Pair, Statement] = {}
        self.withdrawn: dict[Pair, Statement] = {}
        self.unknown: dict[str, None] = {}
        self.wanted: tuple[Token, bool] | None = None  # whom the sentence before asked about
        self.asked: list[Statement] = []  # what the sentence before asked
        self.latest: list[Pair] = []  # told last, for "wait, no"
        self.since = 9  # sentences since then
        self.questioned = False  # whether the sentence before was a question
        self.verdict: Verdict | None = None
        self.ended: list[Verdict | None] = []  # what the last two sentences settle on
        self.bare: set[Pair] = set()  # the pair asked about, where its sentence gave an answer

    def take(self, sentence: list[Token], words: Lexicon) -> None:
        for token in sentence:
            if token.kind == "name" and not self.names.known(token.name):
                self.unknown.setdefault(token.name)
        found = statements(sentence, words) or self._named(sentence)
        if found and not WORDS.taking_back.isdisjoint(token.text for token in sentence[:6]):
            self._retract(sentence)
        self.wanted = open_question(sentence, words)
        answered = self._answer(sentence) if self.asked else False
        self.asked = []
        if found and any(token.text in ("yes", "no", "answer", "true", "false") for token in sentence):
            self.bare |= {(one.a, one.b) for one in found if (one.a, one.b) == self.case.asked}
        for one in found:
            if one.force == "asked":
                self.asked.append(one)
            elif one.force != "supposed":
                self._stand(one)
        if found:
            told = [(one.a, one.b) for one in found if one.force in ("told", "derived") and not one.negative]
            if told:
                self.latest, self.since = told, 0
            else:
                self.since += 1
        else:
            answered = self._retract(sentence) or answered
            self.since += 1
        firm = settled(sentence, self.case.asked, words)
        answers_other = self.questioned and (firm is None or not firm.firm)
        self.questioned = sentence[-1].kind == "stop" and "?" in sentence[-1].text
        if firm is not None and not answered and not answers_other and not self._on_asked(found):
            value = firm.value if firm.what == "answer" else firm.value == self.case.asks_can
            told_verdict: Verdict = "yes" if value else "no"
            if firm.firm:
                self.verdict, self.ended = told_verdict, []
            else:
                self.ended = [*self.ended[-1:], told_verdict]
        elif any(token.kind in ("word", "name") for token in sentence):
            self.ended = [*self.ended[-1:], None]

    def _named(self, sentence: Sequence[Token]) -> list[Statement]:
        """ "Who can A contact? B and C." """
        if self.wanted is None:
            return []
        one, forward = self.wanted
        return [
            Statement(
                *((one.name, other.name) if forward else (other.name, one.name)), "told", False, other.start, other.end
            )
            for other in fragment(sentence)
        ]

    def _on_asked(self, found: Sequence[Statement]) -> bool:
        return any((one.a, one.b) == self.case.asked and one.force in ("told", "derived") for one in found)

    def _answer(self, sentence: Sequence[Token]) -> bool:
        """A question put to itself is answered: "Can A contact B? No."."""
        said = sentence
        if len(sentence) > 2 and sentence[0].text in ("a", "answer") and sentence[1].text == ":":
            said = sentence[2:]
        first = next(
            (t for t in said if t.kind in ("word", "name", "mark") and t.text not in ("well", "hmm", "so")), None
        )
        if first is None or first.kind == "name":
            return False
        if not any(token.kind == "name" for token in sentence) and self._declines(sentence):
            self._settle(False)
            return True
        following = sentence[sentence.index(first) + 1 :]
        if first.text == "no" and following and following[0].kind in ("word", "name"):
            return False
        if first.text in ("yes", "correct", "right", "true", "✓", "✔", "☑", "✅", "yep", "yeah"):
            holds = True
        elif first.text in ("no", "nope", "false", "wrong", "✗", "✘", "❌", "✖"):
            holds = False
        else:
            return False
        self._settle(holds)
        return True

    def _settle(self, holds: bool) -> None:
        for one in self.asked:
            self._stand(replace(one, force="told", negative=one.negative if holds else not one.negative))

    @staticmethod
    def _declines(sentence: Sequence[Token]) -> bool:
        """ "I don't see it", "it isn't there", "I don't think so"."""
        words = [token.text for token in sentence if token.kind == "word"]
        return (
            len(words) <= 8
            and any(negates(word) for word in words)
            and not {"it", "that", "so", "one", "there"}.isdisjoint(words)
            and words[0] not in ("yes", "but", "if")
        )

    def _stand(self, one: Statement) -> None:
        pair = (one.a, one.b)
        if one.a == one.b:
            return
        if one.undirected and not self.case.follows(pair) and self.case.follows((one.b, one.a)):
            pair = (one.b, one.a)
        if pair == self.case.asked and not (one.negative and one.direct):
            self.verdict, self.ended = ("yes" if (not one.negative) == self.case.asks_can else "no"), []
        if not one.negative:
            self.standing.setdefault(pair, one)
            return
        before = self.standing.get(pair)
        if before is not None and not (one.direct and before.force == "derived"):
            self.withdrawn[pair] = self.standing.pop(pair)

    def _retract(self, sentence: Sequence[Token]) -> bool:
        """ "Wait, no: there is no such link" takes back what was told last."""
        if self.since > 2 or not self.latest:
            return False
        words = {token.text for token in sentence if token.kind == "word"}
        denies = not WORDS.denials.isdisjoint(words) or any(word.endswith(("n't", "n’t")) for word in words)
        if not denies:
            return False
        turning = not WORDS.retracting.isdisjoint(words)
        if (turning and not words.isdisjoint(WORDS.of_edges)) or (
            not words.isdisjoint(WORDS.pointing) and not words.isdisjoint(WORDS.of_edges - {"no", "there", "there's"})
        ):
            pair = self.latest[-1]
            if pair in self.standing:
                self.withdrawn[pair] = self.standing.pop(pair)
            if pair == self.case.asked:
                self.verdict = None
            self.latest = self.latest[:-1]
            return True
        return False

    def reading(self, count: int) -> Reading:
        case = self.case
        held: list[Pair] = []
        fabricated, turned, concluded = [], [], []
        last, facts = list(self.standing)[-1:], frozenset(case.facts)
        for pair, one in self.standing.items():
            edge = Edge(*pair, one.start, one.end, case.bridges(pair))
            if case.follows(pair):
                held.append(pair)
            elif (pair[1], pair[0]) in facts:
                turned.append(edge)
            elif pair == case.asked and (one.force == "derived" or pair in self.bare or pair in last):
                continue
            elif one.force == "derived":
                concluded.append(edge)
            else:
                fabricated.append(edge)
        taken = [
            Edge(*pair, one.start, one.end, case.bridges(pair))
            for pair, one in self.withdrawn.items()
            if pair not in self.standing and not case.follows(pair) and pair != case.asked
        ]
        verdict = self.verdict
        for late in self.ended:
            verdict = late or verdict
        return Reading(
            count,
            tuple(held),
            tuple(fabricated),
            tuple(turned),
            tuple(concluded),
            tuple(taken),
            tuple(self.unknown),
            verdict,
        )
