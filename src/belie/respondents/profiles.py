"""What a simulated respondent does, and what is therefore true of it.

Knows: profiles (mixtures of habits), their syntax, the scores they have in the population (METHOD §1.3), and their
answers as arrays.
Does not know: items, texts, the estimates that are to be checked against the truth.

A profile says for each n and category: the mean rate of wrong first answers, the mean rate of wrong follow-ups after
a wrong first answer, and the share of invalid answers; chains differ about these means (habits). All is linear in the
rates, so the population values need the means only.

An effect is planted with ``when``: what is done depends on the world and the variant that an item's id names (the
label before its n), so that an experiment finds what was put there, and nothing else.
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
from belie.respondents.habits import (
    PLACES,
    Habit,
    biased,
    capability,
    concealer,
    deceiver,
    fabricator,
    first_place,
    followup_place,
    guesser,
    hallucinator,
    honest,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Clause:
    """A condition of ``when``: a world (``world=flights``), or a word of a label (``sycophancy``, ``k4``, ``p3``);
    a word also stands for what it begins (``sycophancy_both``)."""

    word: str
    world: bool = False

    def applies(self, label: str) -> bool:
        world, *extras = label.split("+")
        if self.world:
            return world.rpartition("-")[0] == self.word
        return any(extra == self.word or extra.startswith(f"{self.word}_") for extra in extras)

    def __str__(self) -> str:
        return f"world={self.word}" if self.world else self.word


@dataclass(frozen=True, slots=True)
class Profile:
    """A named mixture: each chain belongs to one part, drawn with the part's weight. ``name`` is its canonical
    spelling. ``branches``: under which condition it is another profile instead (`under`); everything else here is
    about what it is under none of them."""

    name: str
    parts: tuple[tuple[float, Callable[[int], Habit]], ...]
    branches: tuple[tuple[Clause, Profile], ...] = ()

    def under(self, label: str) -> Profile:
        """The profile for items of this label, such as ``contacts-1+sycophancy``: the first branch that applies."""
        for test, profile in self.branches:
            if test.applies(label):
                return profile.under(label)
        return self

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
    "when(sycophancy: fabricator(0.3); world=flights: honest; else: honest)",
)

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:e-?\d+)?|\.\d+)|(?P<word>[a-z_][a-z_0-9]*)|(?P<mark>[()*+=,:;]))", re.I
)


def parse_profile(text: str) -> Profile:
    """A profile from its spelling: ``guesser``, ``deceiver(0.3, onset=10)``, ``mix(0.3*deceiver(0.5)+0.7*honest)``.

    Parameters go by position or name; each profile also takes ``invalid``, ``invalid_followup`` (shares of invalid
    answers, default 0; the second defaults to the first) and ``spread`` (difference between chains, default 0.5). The
    weights of a mixture are scaled to sum to 1. ``when(sycophancy: …; world=flights: …; else: …)`` plants an effect.
    Raises BadInput naming the profiles.
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
        if name == "when":
            if nested:
                raise self.wrong("when(…) stands around a mixture, not in it")
            return self.planted()
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

    def planted(self) -> Profile:
        self.need("mark", "(", "'('")
        branches: list[tuple[Clause, Profile]] = []
        while self.take("word", "else") is None:
            test = self.test()
            if test in [known for known, _ in branches]:
                raise self.wrong(f"{test} is given twice")
            self.need("mark", ":", "':'")
            branches.append((test, self.profile()))
            self.need("mark", ";", "';', and else: at the end,")
        self.need("mark", ":", "':'")
        other = self.profile()
        self.need("mark", ")", "')'")
        if not branches or other.branches:
            raise self.wrong("when(…) names a condition and ends in else: with a plain profile")
        name = "; ".join(f"{test}: {profile.name}" for test, profile in (*branches, ("else", other)))
        return Profile(f"when({name})", other.parts, tuple(branches))

    def test(self) -> Clause:
        word = self.need("word", None, "a condition, such as sycophancy or world=flights,")
        if word != "world":
            return Clause(word)
        self.need("mark", "=", "'='")
        return Clause(self.need("word", None, "the name of a world"), world=True)

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
