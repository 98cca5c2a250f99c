"""Is a set of pairs fit to measure with? Truth values, balance, and words that give the answer away.

Knows: what a sound pair looks like, the shipped checkers.
Does not know: who answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import mean

from belie.pairs import arithmetic, programs
from belie.pairs.file import Pair, PairSet

#: A checker recomputes what is true of each question of a pair from its text: {"yes": True, "no": False, …}. It may
#: leave questions out, and raises ValueError for a text that it can't read.
Checker = Callable[[Pair], Mapping[str, bool]]
CHECKERS: Mapping[str, Checker] = {"arithmetic": arithmetic.check, "programs": programs.check}

#: What must be true of each question.
TRUE: Mapping[str, bool] = {
    **{"yes": True, "yes_reversed": False, "no": False, "no_reversed": True},
    **{"easy": False, "easy_reversed": True},
}
#: With fewer pairs of a difficulty resampling is not to be trusted.
FEW_PAIRS = 20
#: Twins whose mean lengths (in words) differ by more than this share could be told apart without being read.
_UNLIKE = 0.03
_GIVEAWAY = re.compile(r"\b(yes|no)\b", re.I)


@dataclass(frozen=True, slots=True)
class Fault:
    """``line`` of the file, ``field`` (None: the whole line, or the whole set), and what is wrong."""

    line: int
    field: str | None
    what: str

    def __str__(self) -> str:
        return f"{self.line}: {self.field + ': ' if self.field else ''}{self.what}"


@dataclass(frozen=True, slots=True)
class Findings:
    """``faults`` make a set unusable, ``warnings`` don't. ``checked``: questions whose truth was recomputed, of
    ``questions``."""

    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...]
    checked: int
    questions: int


def examine(pairs: PairSet, checker: Checker | None = None) -> Findings:
    """Everything that is wrong with a set. ``checker`` defaults to the one that the header names."""
    faults: list[Fault] = []
    warnings: list[Fault] = []
    checked = 0
    checker = checker or CHECKERS.get(pairs.header.checker or "")
    if pairs.header.checker is not None and pairs.header.checker not in CHECKERS:
        faults.append(Fault(1, "checker", f"there is none called {pairs.header.checker!r}: {', '.join(CHECKERS)}."))
    seen: dict[str, int] = {}
    for pair, line in zip(pairs.pairs, pairs.lines, strict=True):
        texts = {name: getattr(pair, name) for name in TRUE}
        for name, text in texts.items():
            if text.strip() != text:
                faults.append(Fault(line, name, "it begins or ends with white space."))
            if "?" not in text:
                faults.append(Fault(line, name, "it asks nothing: there is no question mark."))
            if (word := _GIVEAWAY.search(text)) is not None:
                warnings.append(Fault(line, name, f"it holds the word {word[0]!r}, which may pull the answer."))
        for name, other in (("yes", "no"), ("yes", "yes_reversed"), ("no", "no_reversed"), ("easy", "easy_reversed")):
            if texts[name] == texts[other]:
                faults.append(Fault(line, other, f"it is the same as {name!r}, so one of the two truths is wrong."))
        for name in ("yes", "no"):
            if texts[name] in seen:
                faults.append(Fault(line, name, f"line {seen[texts[name]]} asks the same."))
            seen[texts[name]] = line
        if checker is not None:
            try:
                told = checker(pair)
            except ValueError as error:
                faults.append(Fault(line, None, f"the checker can't read it: {error}."))
                continue
            for name, value in told.items():
                checked += 1
                if value != TRUE[name]:
                    truth, wanted = ("Yes", "No") if value else ("No", "Yes")
                    faults.append(Fault(line, name, f"its answer is {truth}, and must be {wanted}."))
    warnings += _balance(pairs)
    return Findings(tuple(faults), tuple(warnings), checked, len(TRUE) * len(pairs.pairs))


def _balance(pairs: PairSet) -> list[Fault]:
    found = []
    for size, count in zip(pairs.sizes, pairs.counts, strict=True):
        if count < FEW_PAIRS:
            found.append(Fault(1, None, f"{count} pairs of difficulty {size}: intervals want at least {FEW_PAIRS}."))
        of_size = [pair for pair in pairs.pairs if pair.difficulty == size]
        yes, no = (mean(len(getattr(pair, name).split()) for pair in of_size) for name in ("yes", "no"))
        if abs(yes - no) > _UNLIKE * max(yes, no):
            found.append(
                Fault(
                    1,
                    None,
                    f"difficulty {size}: `yes` has {yes:.1f} words on average and `no` {no:.1f}: make them alike.",
                )
            )
    return found
