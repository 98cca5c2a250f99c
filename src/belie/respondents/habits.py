"""How often each kind of question is answered wrongly at one length, and what follows: the habits of simulated
respondents.

Knows: rates by category, the differences between chains, and the named habits.
Does not know: mixtures, planted effects, spellings (profiles), items.

Chains differ: the rate of a question is uniform on m ± spread·min(m, 1−m). Where in that range it lies is much alike
for all first answers of a chain (a hard chain is harder for everything), and, independently of that, for its
follow-ups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from belie.items import BROKEN, CATEGORIES, TRUTH, Category


@dataclass(frozen=True, slots=True)
class Habit:
    """Rates at one n, each in [0, 1]: ``wrong`` by category, ``repeats`` (a wrong follow-up after a wrong first
    answer) by broken category, ``invalid`` and ``invalid_followup`` the shares of answers that are neither Yes nor
    No."""

    wrong: Mapping[Category, float]
    repeats: Mapping[Category, float]
    invalid: float = 0.0
    invalid_followup: float = 0.0
    spread: float = 0.5

    def first(self, category: Category, u: Any) -> tuple[Any, Any]:
        """Mass of Yes and of No of a chain at position ``u`` in [0, 1) (a number or an array)."""
        return _masses(_rate(self.wrong[category], self.spread, u), self.invalid, TRUTH[category])

    def followup(self, category: Category, u: Any) -> tuple[Any, Any]:
        """The same for the follow-up, given a wrong first answer."""
        return _masses(_rate(self.repeats[category], self.spread, u), self.invalid_followup, TRUTH[category])


#: Uniform numbers that place a chain: its part of a mixture; its first answers and its follow-ups as a whole; then each
#: of the four first answers and of the two follow-ups by itself.
PLACES = 9


def first_place(u: Any, category: Category) -> Any:
    """Position in [0, 1) of a first answer, from the ``PLACES`` numbers of its chain (last axis first: ``u[i]``):
    uniform, and within a quarter of those of the chain's other questions (going round)."""
    return (u[1] + u[3 + CATEGORIES.index(category)] / 4) % 1.0


def followup_place(u: Any, category: Category) -> Any:
    """The same for a follow-up."""
    return (u[2] + u[7 + BROKEN.index(category)] / 4) % 1.0


def _rate(mean: float, spread: float, u: Any) -> Any:
    return mean + spread * min(mean, 1 - mean) * (2 * u - 1)


def _masses(wrong: Any, invalid: float, truth: bool) -> tuple[Any, Any]:
    right, wrong = (1 - invalid) * (1 - wrong), (1 - invalid) * wrong
    return (right, wrong) if truth else (wrong, right)


def _same(rate: float) -> dict[Category, float]:
    return dict.fromkeys(CATEGORIES, rate)


def _split(linked: float, broken: float) -> dict[Category, float]:
    return {category: broken if category in BROKEN else linked for category in CATEGORIES}


def honest(_n: int, slip: float = 0.0) -> Habit:
    """Right but for slips, in hard and easy questions alike."""
    return Habit(_same(slip), _same(slip))


def guesser(_n: int) -> Habit:
    """A coin, whatever is asked."""
    return Habit(_same(0.5), _same(0.5))


def biased(_n: int, p: float) -> Habit:
    """Says Yes with probability p, whatever is asked."""
    wrong: dict[Category, float] = {category: 1 - p if TRUTH[category] else p for category in CATEGORIES}
    return Habit(wrong, wrong)


def hallucinator(_n: int, w: float, linked: float | None = None) -> Habit:
    """Wrong on hard questions with rate w (``linked``: another rate where a path exists) and stays with it when asked
    the easy one."""
    return Habit(_split(w if linked is None else linked, w), _same(1.0))


def fabricator(_n: int, w: float) -> Habit:
    """Claims a path that is not there with rate w, and knows better in the follow-up. Never hides one."""
    return Habit(_split(0.0, w), _same(0.0))


def concealer(_n: int, w: float, spill: float = 0.4) -> Habit:
    """Hides a path that is there with rate w. δ is seen on broken questions only, where there is nothing to hide: it
    errs there with the smaller rate spill·w and knows better in the follow-up. So ρ = ln((1−w)/(1−spill·w)) < 0 and δ
    = spill·w."""
    return Habit(_split(w, spill * w), _same(0.0))


def deceiver(n: int, w: float, direction: str = "fabrication", onset: float = 3) -> Habit:
    """A fabricator(w) or, with ``direction=concealment``, a concealer(w), from n = ``onset`` on; honest below."""
    rate = w if n >= onset else 0.0
    return concealer(n, rate) if direction == "concealment" else fabricator(n, rate)


def capability(n: int, n0: float, top: float = 0.5) -> Habit:
    """Right up to n0; beyond, errs at random in all hard questions with a rate that grows towards ``top``:
    top·(1 − n0/n). Always right in the easy ones."""
    return Habit(_same(top * max(0.0, 1 - n0 / n)), _same(0.0))
