"""From run folders to a comparison.

Knows: run folders; that a folder may hold one run or one of each instrument; what is refused.
Does not know: how a score is compared (csq, knownlie).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from belie.comparison.csq import csq_contrasts, csq_names
from belie.comparison.knownlie import knownlie_contrasts, knownlie_names
from belie.comparison.matching import mismatches
from belie.comparison.result import Compared, Comparison, Contrast, Side, together
from belie.csq.run import table_of
from belie.csq.table import Table
from belie.knownlie.journal import read_rounds
from belie.knownlie.records import Round
from belie.respondents.base import BadInput
from belie.runs import RunFolder
from belie.runs.manifest import Instrument

INSTRUMENTS: tuple[Instrument, ...] = ("csq", "knownlie")


def runs_in(path: str | Path) -> dict[Instrument, RunFolder]:
    """The run in a folder by its instrument, or, where the folder holds no run itself, those in its subfolders.

    Raises BadInput where there is none, or two of one instrument.
    """
    path = Path(path)
    inside = sorted(found.parent for found in path.glob("*/manifest.json")) if path.is_dir() else []
    folders = [path] if (path / "manifest.json").exists() or not inside else inside
    runs: dict[Instrument, RunFolder] = {}
    for folder in folders:
        run = RunFolder.open(folder)
        if run.manifest.instrument in runs:
            raise BadInput(f"{path} holds several {run.manifest.instrument} runs: name the folder of one run.")
        runs[run.manifest.instrument] = run
    return runs


def compare(
    *runs: str | Path,
    scores: Iterable[str] | None = None,
    by_n: bool = False,
    force: bool = False,
    level: float = 0.95,
    power: float = 0.8,
    resamples: int = 2000,
    permutations: int | None = None,
    seed: int = 0,
) -> Compared:
    """Compare two or more runs: each with the first, on the items that both hold (METHOD §3, paired).

    ``scores``: names such as ``delta_net``, ``delta_net(n=20)``, ``dr.incentive`` (the instrument may stand in front);
    Holm goes over those and no others. By default the overall scores of CSQ (at each n too with ``by_n``), and DR,
    excess, DSR, Detect, TrustΔ of each condition and KPR of KnownLie. ``force`` compares what must not be compared
    (other task versions, worlds, judges, customers) and marks the result. Raises BadInput with the reason otherwise,
    and for runs that share nothing.
    """
    if len(runs) < 2:
        raise BadInput("A comparison needs at least two runs: belie compare A B.")
    if not 0 < level < 1 or not 0 < power < 1:
        raise BadInput(f"Level and power must lie between 0 and 1, not {level:g} and {power:g}.")
    opened = [runs_in(path) for path in runs]
    wanted = None if scores is None else [qualified(name) for name in scores]
    pairs: list[Comparison] = []
    alpha = 1 - level
    labels = _labels(opened)
    for second, label in zip(opened[1:], labels[1:], strict=True):
        both: list[Instrument] = [
            instrument for instrument in INSTRUMENTS if instrument in opened[0] and instrument in second
        ]
        if not both:
            kinds = [", ".join(side) for side in (opened[0], second)]
            raise BadInput(f"One is a {kinds[0]} run and the other a {kinds[1]} run: compare runs of one instrument.")
        for instrument in both:
            own = None if wanted is None else [name for name in wanted if name.startswith(f"{instrument}.")]
            if own == []:
                continue
            pairs.append(
                _pair(
                    (opened[0][instrument], second[instrument]),
                    (labels[0], label),
                    own,
                    by_n=by_n,
                    force=force,
                    level=level,
                    resamples=resamples,
                    permutations=permutations or 5000,
                    seed=seed,
                )
            )
    if not pairs:
        raise BadInput(f"None of the scores named belongs to these runs: {', '.join(wanted or [])}.")
    options = {
        "level": level,
        "resamples": resamples,
        "permutations": permutations or 5000,
        "seed": seed,
        "force": force,
    }
    return together(pairs, alpha=alpha, power=power, options=options)


def qualified(name: str) -> str:
    """A score's full name: ``dr.incentive`` is ``knownlie.dr.incentive``, ``delta_net`` is ``csq.delta_net``."""
    name = name.replace(" ", "")
    if name.startswith(("csq.", "knownlie.")):
        return name
    from belie.comparison.knownlie import BY_CONDITION

    head = name.split(".")[0].split("(")[0]
    return f"knownlie.{name}" if head in BY_CONDITION or head == "kpr" else f"csq.{name}"


def _pair(
    folders: tuple[RunFolder, RunFolder],
    labels: tuple[str, str],
    names: list[str] | None,
    *,
    by_n: bool,
    force: bool,
    level: float,
    resamples: int,
    permutations: int,
    seed: int,
) -> Comparison:
    one, other = folders
    refused, noted = mismatches(one.manifest, other.manifest)
    if refused and not force:
        raise BadInput(
            f"{one.path} and {other.path} are not comparable: {'; '.join(refused)}. "
            "Ask both alike, or use --force to compare them all the same (the result is marked)."
        )
    rules = {"level": level, "resamples": resamples, "permutations": permutations, "seed": seed}
    if one.manifest.instrument == "csq":
        tables = (_table(one), _table(other))
        names = names or csq_names(tables[0], by_n=by_n and names is None)
        contrasts, shared = csq_contrasts(*tables, names, same=_is_one(one, other), **rules)
    else:
        sides = (_rounds(one), _rounds(other))
        contrasts, shared = knownlie_contrasts(*sides, names or knownlie_names(*sides), **rules)
    notes = [f"They also differ in this: {difference}." for difference in noted]
    notes += _cautions(folders, labels, contrasts)
    return Comparison(
        one.manifest.instrument,
        _side(one, labels[0]),
        _side(other, labels[1]),
        shared,
        tuple(contrasts),
        tuple(refused),
        tuple(notes),
    )


def _table(run: RunFolder) -> Table:
    return table_of(run)


def _rounds(run: RunFolder) -> list[Round]:
    rounds = read_rounds(run.path)
    if not rounds:
        raise BadInput(f"{run.path} holds no rounds yet: nothing to compare.")
    return rounds


def _cautions(
    folders: tuple[RunFolder, RunFolder],
    labels: tuple[str, str],
    contrasts: Sequence[Contrast],
) -> list[str]:
    said = []
    for run, label in zip(folders, labels, strict=True):
        if run.status != "complete":
            said.append(f"{label} ({run.path}) is {run.status}: only what both runs hold is compared.")
    if _is_one(*folders):
        said.append("This is one run compared with itself: every difference is 0 by construction.")
    helpless = [one.name for one in contrasts if not math.isnan(one.difference) and one.units < 6]
    if helpless:
        said.append(f"Fewer than 6 units to swap for {', '.join(helpless)}: no test can find a difference there.")
    return said


def _is_one(one: RunFolder, other: RunFolder) -> bool:
    return one.path.resolve() == other.path.resolve()


def _side(run: RunFolder, label: str) -> Side:
    manifest = run.manifest
    return Side(str(run.path), label, manifest.respondent, run.status, manifest.created)


def _labels(opened: Sequence[dict[Instrument, RunFolder]]) -> list[str]:
    """A name for each run: its respondent, with the folder where two have the same, and a number where even that is."""
    names = [next(iter(runs.values())).manifest.respondent for runs in opened]
    folders = [next(iter(runs.values())).path.name for runs in opened]
    told = [f"{n} ({f})" if names.count(n) > 1 else n for n, f in zip(names, folders, strict=True)]
    return [f"{label} [{i}]" if told.count(label) > 1 else label for i, label in enumerate(told, 1)]
