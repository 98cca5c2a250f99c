"""What a wanted half-width will take: items, calls, tokens, cost, time, from a pilot run or a simulated profile.

Knows: how the widths seen so far scale (stopping), what a chain cost so far, what the paper's design takes.
Does not know: prices and rates that nobody told it: what follows from them is None.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np

from belie.csq.asked import design_of
from belie.csq.questions import Variant, chain_items
from belie.csq.run import table_of
from belie.csq.scores import plain
from belie.csq.stopping import (
    PAPER_CHAINS,
    Spread,
    Wanted,
    allocation,
    equal_chains,
    half_widths,
    spreads,
)
from belie.csq.table import Cell, Counts, Level, Table
from belie.csq.world import load_world
from belie.items import BROKEN, CATEGORIES, TRUTH, Answer, Category
from belie.respondents.base import BadInput
from belie.respondents.profiles import Profile
from belie.runs import RunFolder

#: Characters a token, where nothing better is known: English text in current tokenizers.
CHARACTERS_A_TOKEN = 4.0
#: Chains at each n that a simulated profile is planned from; a pilot run needs at least the second number.
SIMULATED_CHAINS, FEWEST_CHAINS = 2000, 20

Price = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Load:
    """What some chains at one n take, or all of them (``n`` None). Calls count follow-ups; tokens are (prompt,
    completion), cost is in US dollars. ``half_width`` by figure: of ρ(n) and δ(n), or of ρ̄ and δ̄."""

    n: int | None
    chains: int
    items: int
    calls: float
    tokens: tuple[float, float]
    cost: float | None
    seconds: float | None
    half_width: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Unit:
    """What one chain at an n takes, its follow-ups included: tokens (prompt, completion), cost in US dollars."""

    tokens: tuple[float, float]
    cost: float | None


@dataclass(frozen=True, slots=True)
class Plan:
    """``loads``: one an n, then all; ``paper``: the same for the paper's design, one sampled answer an item and 1,000
    items a cell; ``paper_way``: all that the wanted width takes with one sampled answer an item and as many chains at
    every n. ``asked``: items that the pilot holds already, which count. ``reached``: whether ``max_items`` allows it.
    """

    source: str
    wanted: Wanted
    exact: bool
    loads: tuple[Load, ...]
    paper: tuple[Load, ...]
    paper_way: Load | None
    asked: int
    reached: bool
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """A plain dict."""
        return plain(asdict(self))


def plan_run(run: RunFolder, wanted: Wanted, *, price: Price | None = None, rate: float | None = None) -> Plan:
    """A plan from a pilot: its own calls, tokens, cost and rate. What it has asked stays and counts.

    ``price`` in US dollars per million (prompt, completion) tokens and ``rate`` in answers a second replace what the
    pilot shows. Raises BadInput for a run of fewer than 20 chains at an n.
    """
    design = design_of(run.manifest)
    table = table_of(run)
    for level in table.levels:
        if min(int(cell.answered.sum()) for cell in level.cells.values()) < FEWEST_CHAINS:
            raise BadInput(
                f"{run.path} has answers to fewer than {FEWEST_CHAINS} chains at n = {level.n}: too few to plan from. "
                f"Ask more, such as --chains {Wanted(1).pilot}."
            )
    notes = []
    units, answers = _units(run.journal.answers(), {level.n: len(level.chains) for level in table.levels})
    found = spreads(table, wanted.level)
    if not any(sum(unit.tokens) for unit in units.values()):
        units = _estimated(found, design.variant)
        notes.append(_ESTIMATED)
    if rate is None:
        rate = _rate(run, answers)
        if rate is None:
            notes.append("The pilot's own rate is not known (it was interrupted, or too short): --rate gives a time.")
    return _plan(str(run.path), table, found, wanted, units, design.variant, price, rate, True, notes)


def plan_profile(
    profile: Profile,
    wanted: Wanted,
    sizes: Sequence[int],
    *,
    sample: bool = False,
    variant: Variant | None = None,
    price: Price | None = None,
    rate: float | None = None,
    seed: int = 0,
) -> Plan:
    """A plan from a simulated profile, answered exactly or (``sample``) one drawn answer an item. Tokens are estimated
    from the texts. Deterministic for a seed."""
    variant = variant or Variant()
    planted = profile.under(variant.label(load_world(variant.world)))
    rng = np.random.default_rng(seed)
    both = {
        n: planted.simulate(n, SIMULATED_CHAINS, rng, sample=sample, matched=variant.matched) for n in sorted(sizes)
    }
    first, followup = ({n: arrays[i] for n, arrays in both.items()} for i in (0, 1))
    table = Table.from_arrays(first, followup, matched=variant.matched, exact=not sample)
    found = [one.as_if(wanted.pilot) for one in spreads(table, wanted.level)]
    units = _estimated(found, variant)
    return _plan(f"sim/{profile.name}", table, found, wanted, units, variant, price, rate, False, [_ESTIMATED])


_ESTIMATED = f"Tokens are estimated from the texts, {CHARACTERS_A_TOKEN:g} characters a token and one token an answer."


def _plan(
    source: str,
    table: Table,
    found: list[Spread],
    wanted: Wanted,
    units: Mapping[int, Unit],
    variant: Variant,
    price: Price | None,
    rate: float | None,
    pilot: bool,
    notes: list[str],
) -> Plan:
    unknown = [one.n for one in found if not all(one.known)]
    if unknown:
        notes.append(
            f"At n = {', '.join(map(str, unknown))} a kind of question has no valid or no right answer: ρ or δ has no "
            "width there."
        )
    most = None if wanted.max_items is None else wanted.max_items // len(CATEGORIES)
    chains = allocation(found, wanted.half_width, stop_on=wanted.stop_on, most=most)
    loads = _loads(found, chains, units, price, rate)
    widths, _ = half_widths([one.as_if(chains[one.n]) for one in found], wanted.stop_on)

    words = spreads(drawn(table), wanted.level) if table.exact else found
    word_units = _estimated(words, variant) if table.exact else units
    paper = _loads(words, dict.fromkeys(chains, PAPER_CHAINS), word_units, price, rate)
    paper_way = None
    if not unknown:
        same = equal_chains(words, wanted.half_width, wanted.stop_on)
        paper_way = _loads(words, dict.fromkeys(chains, same), word_units, price, rate)[-1]
    asked = sum(len(level.chains) for level in table.levels) * len(CATEGORIES) if pilot else 0
    reached = not unknown and max(widths.values()) <= wanted.half_width * (1 + 1e-9)
    return Plan(source, wanted, table.exact, loads, paper, paper_way, asked, reached, tuple(notes))


def _loads(
    found: Sequence[Spread],
    chains: Mapping[int, int],
    units: Mapping[int, Unit],
    price: Price | None,
    rate: float | None,
) -> tuple[Load, ...]:
    loads = []
    for one in found:
        count, unit = chains[one.n], units[one.n]
        tokens = (unit.tokens[0] * count, unit.tokens[1] * count)
        if price is not None:
            cost = (tokens[0] * price[0] + tokens[1] * price[1]) / 1e6
        else:
            cost = None if unit.cost is None else unit.cost * count
        calls = one.calls * count
        widths, _ = half_widths([one.as_if(count)], "each")
        loads.append(Load(one.n, count, count * len(CATEGORIES), calls, tokens, cost, rate and calls / rate, widths))
    widths, _ = half_widths([one.as_if(chains[one.n]) for one in found])
    costs, times = [load.cost for load in loads], [load.seconds for load in loads]
    total = Load(
        None,
        sum(load.chains for load in loads),
        sum(load.items for load in loads),
        sum(load.calls for load in loads),
        (sum(load.tokens[0] for load in loads), sum(load.tokens[1] for load in loads)),
        None if None in costs else sum(cost for cost in costs if cost is not None),
        None if None in times else sum(time for time in times if time is not None),
        widths,
    )
    return (*loads, total)


def drawn(table: Table, times: int = 10, seed: int = 0) -> Table:
    """What one sampled answer an item would be, from a table of probabilities: each chain drawn ``times`` times."""
    rng = np.random.default_rng(seed)
    levels = []
    for level in table.levels:
        cells: dict[Category, Cell] = {c: _drawn(level.cells[c], c, times, rng) for c in CATEGORIES}
        levels.append(Level(level.n, level.chains * times, cells))
    return replace(table, levels=tuple(levels), draws=1, exact=False)


def _drawn(cell: Cell, category: Category, times: int, rng: np.random.Generator) -> Cell:
    def again(values: Any) -> Any:
        return np.tile(values, times)

    yes, no, there = again(cell.yes), again(cell.no), again(cell.answered)
    right, wrong = (yes, no) if TRUTH[category] else (no, yes)
    u = rng.random(len(yes))
    is_right = (u < right) & (there > 0)
    is_wrong = (u >= right) & (u < right + wrong) & (there > 0)
    hit, miss = is_right.astype(float), is_wrong.astype(float)
    counts = {"expected": len(yes), "answered": int(there.sum()), "absent": int(len(yes) - there.sum())}
    zero = np.zeros(len(yes))
    pairs = (zero, zero, zero, zero)
    if category in BROKEN:
        wrong_right, wrong_wrong = again(cell.wrong_right), again(cell.wrong_wrong)
        knew = is_wrong & (u < right + wrong_right)
        stayed = is_wrong & ~knew & (u < right + wrong_right + wrong_wrong)
        pairs = (there, knew.astype(float), stayed.astype(float), (is_right | knew | stayed).astype(float))
        counts |= {"followups_needed": int(is_wrong.sum()), "followups_answered": int(is_wrong.sum())}
    yes, no = (hit, miss) if TRUTH[category] else (miss, hit)
    return Cell(again(cell.expected), there, yes, no, *pairs, counts=Counts(**counts))


def _units(answers: Iterable[Answer], chains: Mapping[int, int]) -> tuple[dict[int, Unit], int]:
    """What a chain took at each n of a pilot, and how many answers there were."""
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    count = 0
    for answer in answers:
        count += answer.error is None
        at = sums[int(answer.item.split("/n", 1)[1].split("/", 1)[0])]
        at[0] += answer.tokens[0]
        at[1] += answer.tokens[1]
        at[2] += answer.cost
    costly = any(at[2] for at in sums.values())
    return {
        n: Unit((sums[n][0] / many, sums[n][1] / many), sums[n][2] / many if costly else None)
        for n, many in chains.items()
    }, count


def _estimated(found: Sequence[Spread], variant: Variant) -> dict[int, Unit]:
    """The same from the texts of one chain at each n."""
    units = {}
    for one in found:
        items = chain_items(variant, one.n, 0, 0)
        first = sum(len(item.question) for item in items)
        second = sum(len(item.question) + len(item.followup or "") for item in items if item.category in BROKEN)
        each = max((one.calls - len(CATEGORIES)) / len(BROKEN), 0)
        units[one.n] = Unit(((first + each * second) / CHARACTERS_A_TOKEN, one.calls), None)
    return units


def _rate(run: RunFolder, answers: int) -> float | None:
    """Answers a second of a run that went through without a break; None where that can't be told."""
    manifest = run.manifest
    if manifest.status != "complete" or manifest.finished is None:
        return None
    seconds = (datetime.fromisoformat(manifest.finished) - datetime.fromisoformat(manifest.created)).total_seconds()
    return answers / seconds if seconds >= 5 else None
