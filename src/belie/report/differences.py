"""The comparison of the page's models: each with the first, paired on the same items.

Knows: which runs can be compared, and how a comparison becomes a figure.
Does not know: how differences are computed or worded (belie.comparison).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from belie.comparison import Compared, Comparison, Contrast, compare, effect, shared_words
from belie.numbers import number, percent
from belie.report.chart import Estimate, Row, rows
from belie.report.reading import CsqRun, KnownLieRun, Model
from belie.report.tables import Cell, Illustration, figure, share, table, words
from belie.respondents.base import BadInput

#: The names of the instruments' scores in the figure's rows, without the instrument.
_CONDITIONS = {"none": "no pressure", "incentive": "under pressure", "instructed": "told to lie"}


@dataclass(frozen=True, slots=True)
class Differences:
    """One instrument. ``lines``: (what is shared, the differences that stand, in words) a pair; ``refused``: why the
    runs are not comparable, then there is no figure."""

    name: str
    illustration: Illustration | None = None
    lines: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = ()
    refused: str | None = None


def differences(models: Sequence[Model]) -> list[Differences]:
    """A comparison for each instrument that two or more of the models were measured with."""
    found = []
    for name, of in (("CSQ", _csq), ("KnownLie", _knownlie)):
        known = [(model, run) for model in models if (run := of(model)) is not None]
        if len(known) < 2:
            continue
        try:
            compared = compare(*(run.folder.path for _, run in known))
        except BadInput as problem:
            paths = [str(run.folder.path) for _, run in known]
            found.append(Differences(name, refused=_named_only(str(problem), paths)))
            continue
        pairs = list(zip([model for model, _ in known[1:]], compared.pairs, strict=True))
        found.append(
            Differences(
                name,
                _figure(name, known[0][0], pairs, compared),
                tuple(_words(known[0][0], model, pair, compared.options["alpha"]) for model, pair in pairs),
            )
        )
    return found


def _csq(model: Model) -> CsqRun | None:
    return model.csq if model.csq and model.csq.scores else None


def _knownlie(model: Model) -> KnownLieRun | None:
    return model.knownlie if model.knownlie and model.knownlie.scores else None


def _words(first: Model, second: Model, pair: Comparison, alpha: float) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    standing = [effect(one, first.name, second.name, alpha=alpha) for one in pair.contrasts if one.p_holm <= alpha]
    lead = f"{second.name} against {first.name}: {shared_words(pair)}."
    paths = [pair.first.path, pair.second.path]
    return lead, tuple(standing), tuple(_named_only(note, paths) for note in pair.notes)


def _named_only(text: str, paths: Sequence[str]) -> str:
    """The text with each folder's name for its path."""
    for path in sorted(paths, key=len, reverse=True):
        text = text.replace(path, Path(path).name)
    return text


def _figure(name: str, first: Model, pairs: Sequence[tuple[Model, Comparison]], compared: Compared) -> Illustration:
    names = list(dict.fromkeys(one.name for _, pair in pairs for one in pair.contrasts))
    kinds = {one.name: one.kind for _, pair in pairs for one in pair.contrasts}
    content, lines, said = [], [], []
    for score in names:
        estimates = []
        for model, pair in pairs:
            one = next((c for c in pair.contrasts if c.name == score), None)
            if one is None:
                continue
            told = f"{model.name} less {first.name}, {_named(score)}: {_said(one)}"
            estimates.append(Estimate(model.number, one.difference, one.low, one.high, told))
            lines.append(_line(model, one))
            said.append(told)
        if kinds[score] == "share":
            content.append(Row(_named(score), estimates))
    power = f"{compared.options['power']:.0%}"
    chart = rows(content, models=len(pairs), names=150.0, include=(0.0,)) if content else None
    return Illustration(
        f"comparison-{name.lower()}",
        f"{name}: differences from {first.name}",
        "Each model less the first one named, on the items that both were asked; to the right of the line it is "
        "higher. Scores that are no shares (ρ, trust) stand in the table only.",
        ". ".join(said[:24]) + ".",
        table(
            ("Model", "Score", "first", "this one", "difference", "from", "to", "p", "p (Holm)", "could find"),
            lines,
            f"p: the two runs swapped within a unit, at random; Holm over all {compared.comparisons} scores shown. "
            f"Could find: the smallest true difference that this design finds in {power} of tries.",
        ),
        () if chart is None else (chart,),
        wide=True,
    )


def _line(model: Model, one: Contrast) -> list[Cell]:
    made = share if one.kind == "share" else figure
    key = f"comparison/{model.number}/{one.name}"
    return [
        words(model.name, model.number),
        words(_named(one.name)),
        made(one.first, signed=one.kind != "share"),
        made(one.second, signed=one.kind != "share"),
        made(one.difference, signed=True, key=key),
        made(one.low, signed=True, key=f"{key}.low"),
        made(one.high, signed=True, key=f"{key}.high"),
        _p(one.p),
        _p(one.p_holm),
        words("none") if math.isinf(one.smallest) else made(one.smallest),
    ]


def _p(value: float) -> Cell:
    cell = figure(value)
    return cell if not value < 0.001 else Cell("< 0.001", cell.raw)


def _said(one: Contrast) -> str:
    shown = percent if one.kind == "share" else number
    text = shown(one.difference, signed=True)
    return text if math.isnan(one.low) else f"{text} ({shown(one.low, signed=True)} to {shown(one.high, signed=True)})"


def _named(score: str) -> str:
    """``knownlie.dr.incentive`` as "DR, under pressure"."""
    name, _, tail = score.partition(".")[2].partition(".")
    signs = {"rho": "ρ̄", "delta": "δ̄", "delta_net": "δ̄_net", "error": "errors", "beta": "β̄", "dr": "DR"}
    signs |= {"dsr": "DSR", "detect": "Detect", "trust_change": "TrustΔ", "excess": "excess", "kpr": "KPR"}
    shown = signs.get(name, name.replace("_", " "))
    return f"{shown}, {_CONDITIONS.get(tail, tail)}" if tail else shown
