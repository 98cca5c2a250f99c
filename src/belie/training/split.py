"""What may be trained on and what is measured: by case and domain, by chain and n or world.

Knows: how cases and chains are dealt, always the same for a seed; what a split on disk holds.
Does not know: rounds, answers, texts.

Whole domains (and chain lengths, and worlds) are held out, so that transfer is measured; in the others a share of the
cases (chains) is, so that learning is. Twins (an owed case and the calibration case made from it) are never parted.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from belie.respondents.base import BadInput

#: Raised whenever the same cases would be dealt otherwise.
SPLIT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Split:
    """``trained``: cases as "domain/case", chains as "n3/s0/00000" (without their world: one chain in other words is
    the same chain). Everything else is held out."""

    seed: int = 0
    cases: frozenset[str] = frozenset()
    chains: frozenset[str] = frozenset()
    held_domains: tuple[str, ...] = ()
    held_n: tuple[int, ...] = ()
    held_worlds: tuple[str, ...] = ()

    def trains_case(self, domain: str, case: str) -> bool:
        return f"{domain}/{case}" in self.cases

    def trains_chain(self, key: str) -> bool:
        return key in self.chains

    def to_json(self) -> dict[str, Any]:
        return {
            "split_version": SPLIT_VERSION,
            "seed": self.seed,
            "held_domains": list(self.held_domains),
            "held_n": list(self.held_n),
            "held_worlds": list(self.held_worlds),
            "trained_cases": sorted(self.cases),
            "trained_chains": sorted(self.chains),
        }

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        """A split from what `to_json` made. Raises BadInput."""
        try:
            if told["split_version"] != SPLIT_VERSION:
                raise BadInput(f"This split is of version {told['split_version']}; this Belie knows {SPLIT_VERSION}.")
            return cls(
                int(told["seed"]),
                frozenset(told["trained_cases"]),
                frozenset(told["trained_chains"]),
                tuple(told["held_domains"]),
                tuple(told["held_n"]),
                tuple(told["held_worlds"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"The split of a data set is damaged ({error}): make the data anew.") from error


def held_domains(domains: Iterable[str], seed: int, share: float = 0.25) -> tuple[str, ...]:
    """The domains that are held out whole: the share of them, rounded down but at least one of two or more."""
    known = sorted(set(domains))
    count = max(math.floor(share * len(known) + 1e-9), 1) if share > 0 and len(known) > 1 else 0
    return tuple(sorted(sorted(known, key=lambda name: _lot(seed, "domain", name))[:count]))


def trained_cases(
    families: Mapping[str, Mapping[str, str]], held: Sequence[str], seed: int, share: float = 0.25
) -> frozenset[str]:
    """Of each domain that is not held out, the cases to train on: ``families[domain][case]`` names what stays together,
    and the ``share`` of families (rounded up, never all) is held out."""
    trained = set()
    for domain, cases in families.items():
        if domain in held:
            continue
        names = sorted(set(cases.values()), key=lambda name: _lot(seed, domain, name))
        count = min(math.ceil(share * len(names) - 1e-9), len(names) - 1)
        kept = set(names[count:])
        trained |= {f"{domain}/{case}" for case, family in cases.items() if family in kept}
    return frozenset(trained)


def trained_chains(
    keys: Mapping[int, Iterable[str]], held_n: Sequence[int], seed: int, share: float = 0.5
) -> frozenset[str]:
    """Of the chains at each n that is not held out (``keys[n]``) the ones to train on; a ``share`` is held out."""
    trained: set[str] = set()
    for n, chains in keys.items():
        if n not in held_n:
            names = sorted(set(chains), key=lambda name: _lot(seed, "chain", name))
            trained |= set(names[math.ceil(share * len(names) - 1e-9) :])
    return frozenset(trained)


def _lot(seed: int, kind: str, name: str) -> bytes:
    return hashlib.sha256(f"{seed}|{kind}|{name}".encode()).digest()
