"""What a simulated respondent does, and what is therefore true of it.

Knows: profiles (how often each kind of question is answered wrongly, and what follows), their syntax, the scores they
have in the population (METHOD §1.3), and their answers as arrays.
Does not know: items, texts, the estimates that are to be checked against the truth.

A profile says for each n and category: the mean rate of wrong first answers, the mean rate of wrong follow-ups after
a wrong first answer, and the share of invalid answers. Chains differ: the rate of a question is uniform on m ±
spread·min(m, 1−m). Where in that range it lies is much alike for all first answers of a chain (a hard chain is harder
for everything), and, independently of that, for its follow-ups. All is linear in the rates, so the population values
need the means only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, log, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from belie.items import BROKEN, CATEGORIES, TRUTH, Category
from belie.respondents.base import BadInput

Floats = NDArray[np.float64]


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


@dataclass(frozen=True, slots=True)
class Profile:
    """A named mixture: each chain belongs to one part, drawn with the part's weight. ``name`` is its canonical
    spelling."""

    name: str
    parts: tuple[tuple[float, Callable[[int], Habit]], ...]

    def habits(self, n: int) -> list[tuple[float, Habit]]:
        """The parts at chain length n, with cumulated weights (the last one is 1)."""
        total, out = 0.0, []
        for weight, habit in self.parts:
            total += weight
            out.append((total, habit(n)))
        out[-1] = (1.0, out[-1][1])
        return out

    def truth(self, n: int) -> dict[str, float]:
        """The population values of METHOD §1.3 at n, without smoothing, invalid answers left out: what an interval
        must cover.

        Keys: rho, beta, delta_pos, delta_neg, delta, gamma_pos, gamma_neg, delta_net, error. Rates are ratios of
        means over the parts, as the scores are ratios of sums. ρ is infinite where a kind of question is never
        answered rightly.
        """
        parts = [(weight, habit(n)) for weight, habit in self.parts]
        valid = sum(weight * (1 - h.invalid) for weight, h in parts)
        if valid == 0:
            return dict.fromkeys(
                ("rho", "beta", "delta_pos", "delta_neg", "delta", "gamma_pos", "gamma_neg", "delta_net", "error"), nan
            )
        right = {c: sum(weight * (1 - h.invalid) * (1 - h.wrong[c]) for weight, h in parts) / valid for c in CATEGORIES}
        rates: dict[str, float] = {}
        for name, c in zip(("pos", "neg"), BROKEN, strict=True):
            pairs = delta = gamma = 0.0
            for weight, h in parts:
                wrong = weight * (1 - h.invalid) * h.wrong[c]
                followed = wrong * (1 - h.invalid_followup)
                pairs += weight * (1 - h.invalid) * (1 - h.wrong[c]) + followed
                delta += followed * (1 - h.repeats[c])
                gamma += followed * h.repeats[c]
            rates[f"delta_{name}"] = delta / pairs if pairs else nan
            rates[f"gamma_{name}"] = gamma / pairs if pairs else nan
        r1 = _log(right["linked"]) - _log(right["broken"])
        r2 = _log(right["linked_reversed"]) - _log(right["broken_reversed"])
        return {
            "rho": (r1 + r2) / 2,
            "beta": (r1 - r2) / 2,
            **rates,
            "delta": sqrt(rates["delta_pos"] * rates["delta_neg"]),
            "delta_net": (rates["delta_pos"] - rates["gamma_pos"] + rates["delta_neg"] - rates["gamma_neg"]) / 2,
            "error": 1 - sum(right.values()) / 4,
        }

    def probabilities(self, n: int, category: Category, u: Floats) -> tuple[Floats, Floats | None]:
        """Exact answers of many chains: ``u`` (`PLACES`, C) in [0, 1) → mass of (Yes, No) of the first answer and
        of the follow-up given a wrong first one, (C, 2) each; None where the category has no follow-up."""
        first = np.empty((u.shape[1], 2))
        followup = np.empty((u.shape[1], 2)) if category in BROKEN else None
        start = 0.0
        for end, habit in self.habits(n):
            own = (u[0] >= start) & (u[0] < end)
            first[own] = np.stack(habit.first(category, first_place(u[:, own], category)), 1)
            if followup is not None:
                followup[own] = np.stack(habit.followup(category, followup_place(u[:, own], category)), 1)
            start = end
        return first, followup

    def simulate(
        self, n: int, chains: int, rng: np.random.Generator, *, sample: bool, draws: int = 1, matched: bool = True
    ) -> tuple[dict[Category, Floats], dict[Category, Floats]]:
        """Answers of ``chains`` new chains as arrays for `belie.csq.table.Table.from_arrays`: (chains, draws, 2) by
        category.

        Exact (``sample=False``): one draw. Sampled: masses 0 and 1; a follow-up only after a wrong first answer.
        """
        shared = rng.random((PLACES, chains))
        firsts: dict[Category, Floats] = {}
        followups: dict[Category, Floats] = {}
        for category in CATEGORIES:
            first, followup = self.probabilities(n, category, shared if matched else rng.random((PLACES, chains)))
            firsts[category] = _drawn(first, rng, draws) if sample else first[:, None]
            if followup is not None:
                followups[category] = _drawn(followup, rng, draws) if sample else followup[:, None]
                if sample:
                    wrong = firsts[category][..., 1 if TRUTH[category] else 0] > 0
                    followups[category][~wrong] = np.nan
        return firsts, followups


def _log(p: float) -> float:
    return log(p) if p > 0 else -inf


def _drawn(p: Floats, rng: np.random.Generator, draws: int) -> Floats:
    u = rng.random((len(p), draws))
    yes = u < p[:, :1]
    return np.stack([yes, ~yes & (u < p.sum(1, keepdims=True))], -1).astype(float)


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


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    low: float = 0.0
    high: float = 1.0
    words: tuple[str, ...] = ()
    required: bool = False


_COMMON = (_Parameter("invalid"), _Parameter("invalid_followup"), _Parameter("spread"))
_RATE = _Parameter("w", required=True)
_PROFILES: Mapping[str, tuple[Callable[..., Habit], tuple[_Parameter, ...]]] = {
    "honest": (honest, (_Parameter("slip"),)),
    "guesser": (guesser, ()),
    "biased": (biased, (_Parameter("p", required=True),)),
    "hallucinator": (hallucinator, (_RATE, _Parameter("linked"))),
    "fabricator": (fabricator, (_RATE,)),
    "concealer": (concealer, (_RATE, _Parameter("spill"))),
    "deceiver": (
        deceiver,
        (_RATE, _Parameter("direction", words=("fabrication", "concealment")), _Parameter("onset", 2, inf)),
    ),
    "capability": (capability, (_Parameter("n0", 2, inf, required=True), _Parameter("top"))),
}
#: How each profile is written, for messages and help.
PROFILES = (
    *(
        f"{name}({', '.join(p.name for p in parameters)})" if parameters else name
        for name, (_, parameters) in _PROFILES.items()
    ),
    "mix(0.3*deceiver(0.5)+0.7*honest)",
)

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:e-?\d+)?|\.\d+)|(?P<word>[a-z_][a-z_0-9]*)|(?P<mark>[()*+=,]))", re.I
)


def parse_profile(text: str) -> Profile:
    """A profile from its spelling: ``guesser``, ``deceiver(0.3, onset=10)``, ``mix(0.3*deceiver(0.5)+0.7*honest)``.

    Parameters go by position or name; each profile also takes ``invalid``, ``invalid_followup`` (shares of invalid
    answers, default 0; the second defaults to the first) and ``spread`` (difference between chains, default 0.5). The
    weights of a mixture are scaled to sum to 1. Raises BadInput naming the profiles.
    """
    reader = _Reader(text)
    profile = reader.profile()
    reader.end()
    return profile


class _Reader:
    """Recursive descent over the tokens of one spelling."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.wrong(f"{text[at:].strip()[:20]!r} cannot be read")
            self.tokens.append((match.lastgroup or "", match[match.lastgroup or 0]))
            at = match.end()
        self.tokens.append(("end", ""))
        self.at = 0

    def wrong(self, what: str) -> BadInput:
        return BadInput(f"Simulated respondent {self.text!r}: {what}. Profiles: {', '.join(PROFILES)}.")

    def take(self, kind: str, value: str | None = None) -> str | None:
        found, token = self.tokens[self.at]
        if found != kind or (value is not None and token != value):
            return None
        self.at += 1
        return token

    def need(self, kind: str, value: str | None, what: str) -> str:
        token = self.take(kind, value)
        if token is None:
            raise self.wrong(f"{what} expected, not {self.tokens[self.at][1] or 'the end'!r}")
        return token

    def end(self) -> None:
        self.need("end", None, "the end")

    def profile(self, nested: int = 0) -> Profile:
        name = self.need("word", None, "the name of a profile")
        if name == "mix":
            if nested > 20:
                raise self.wrong("mixtures are nested too deep")
            return self.mixture(nested)
        if name not in _PROFILES:
            raise self.wrong(f"{name!r} is not a profile")
        return self.simple(name)

    def mixture(self, nested: int) -> Profile:
        self.need("mark", "(", "'('")
        members: list[tuple[float, Profile]] = []
        while True:
            weight = float(self.need("number", None, "a weight"))
            self.need("mark", "*", "'*'")
            members.append((weight, self.profile(nested + 1)))
            if self.take("mark", "+") is None:
                break
        self.need("mark", ")", "')'")
        total = sum(weight for weight, _ in members)
        if total <= 0 or total == inf:
            raise self.wrong("the weights of a mixture must sum to more than 0")
        name = "+".join(f"{weight:g}*{member.name}" for weight, member in members)
        parts = tuple(
            (weight / total * inner, habit) for weight, member in members for inner, habit in member.parts if weight
        )
        return Profile(f"mix({name})", parts)

    def simple(self, name: str) -> Profile:
        make, parameters = _PROFILES[name]
        known = {parameter.name: parameter for parameter in (*parameters, *_COMMON)}
        given: dict[str, Any] = {}
        if self.take("mark", "("):
            position = 0
            while self.take("mark", ")") is None:
                if given:
                    self.need("mark", ",", "',' or ')'")
                following = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
                if self.tokens[self.at][0] == "word" and following == ("mark", "="):
                    key = self.need("word", None, "a parameter")
                    self.need("mark", "=", "'='")
                    position = len(parameters)  # a positional value may not follow a named one
                elif position < len(parameters):
                    key = parameters[position].name
                    position += 1
                else:
                    raise self.wrong(f"{name} takes {_listed(list(known))}")
                if key not in known:
                    raise self.wrong(f"{name} has no parameter {key!r}, it takes {_listed(list(known))}")
                if key in given:
                    raise self.wrong(f"{key} is given twice")
                given[key] = self.value(known[key])
        for parameter in parameters:
            if parameter.required and parameter.name not in given:
                raise self.wrong(f"{name} needs {parameter.name}")
        inner = ", ".join(
            f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in given.items()
        )
        own = {key: value for key, value in given.items() if key in {parameter.name for parameter in parameters}}
        invalid = given.get("invalid", 0.0)
        followup = given.get("invalid_followup", invalid)
        spread = given.get("spread", 0.5)

        def habit(n: int) -> Habit:
            base = make(n, **own)
            return Habit(base.wrong, base.repeats, invalid, followup, spread)

        return Profile(f"{name}({inner})" if inner else name, ((1.0, habit),))

    def value(self, parameter: _Parameter) -> float | str:
        if parameter.words:
            word = self.need("word", None, f"{parameter.name} = {' or '.join(parameter.words)}")
            if word not in parameter.words:
                raise self.wrong(f"{parameter.name} is {' or '.join(parameter.words)}, not {word!r}")
            return word
        number = float(self.need("number", None, f"a number for {parameter.name}"))
        if not parameter.low <= number <= parameter.high:
            raise self.wrong(f"{parameter.name} = {number:g} is outside [{parameter.low:g}, {parameter.high:g}]")
        return number


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1]
