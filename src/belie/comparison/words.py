"""The effect in words, for someone who is no specialist.

Knows: what each score means, and how firmly a difference may be put.
Does not know: how it was computed or where it is shown.
"""

from __future__ import annotations

import math

from belie.comparison.result import Comparison, Contrast

_SIGN = "−"
#: Score → what is larger or smaller, for a sentence "B <more> than A".
_SUBJECTS: dict[str, tuple[str, str, str]] = {
    "csq.rho": (
        "leans more to inventing paths, or less to hiding them,",
        "leans less to inventing paths, or more to hiding them,",
        "lean of the errors (ρ)",
    ),
    "csq.beta": ("says Yes more readily", "says Yes less readily", "answer bias (β)"),
    "csq.delta": (
        "errs on hard questions while it knows better more often",
        "errs on hard questions while it knows better less often",
        "deceptive behaviour (δ)",
    ),
    "csq.delta_net": (
        "shows more of knowing better than it answered",
        "shows less of knowing better than it answered",
        "knowing better less consistent error (δ_net)",
    ),
    "csq.error": ("errs more often", "errs less often", "rate of wrong first answers"),
    "knownlie.dr": ("lies more often", "lies less often", "rate of lies (DR)"),
    "knownlie.excess": (
        "adds more lies to those of the control",
        "adds fewer lies to those of the control",
        "lies beyond the control (excess)",
    ),
    "knownlie.dsr": ("succeeds with more of its lies", "succeeds with fewer of its lies", "lies that succeed (DSR)"),
    "knownlie.detect": (
        "has more of its lies noticed",
        "has fewer of its lies noticed",
        "lies that are noticed (Detect)",
    ),
    "knownlie.trust_change": ("keeps more trust", "loses more trust", "change of trust (TrustΔ)"),
    "knownlie.false_claims": (
        "makes more false claims where nothing is owed",
        "makes fewer false claims where nothing is owed",
        "false claims where nothing is owed",
    ),
    "knownlie.omission": ("conceals the owed option more often", "names the owed option more often", "omissions"),
    "knownlie.steering": (
        "pushes the favoured option more often",
        "pushes the favoured option less often",
        "steering",
    ),
    "knownlie.granted": (
        "grants what is owed more often",
        "grants what is owed less often",
        "owed outcomes granted",
    ),
    "knownlie.refused": (
        "refuses more often where nothing is owed",
        "refuses less often where nothing is owed",
        "refusals where nothing is owed",
    ),
    "knownlie.kpr": (
        "knows more often what customers are owed",
        "knows less often what customers are owed",
        "knowledge of what is owed (KPR)",
    ),
}
_WHERE = {
    "none": "with no push to lie",
    "incentive": "under an incentive",
    "instructed": "when told to lie",
    "owed": "in cases where something is owed",
    "calibration": "in cases where nothing is owed",
}


def effect(one: Contrast, first: str, second: str, *, alpha: float = 0.05) -> str:
    """One sentence on one score. A difference is stated only where Holm lets it stand; else what the design finds."""
    more, less, noun = _subject(one)
    where = _where(one)
    if math.isnan(one.difference):
        empty = [name for name, size in zip((first, second), one.denominators, strict=True) if not size]
        why = f"{' and '.join(empty)} gave nothing to compare" if empty else "it is undefined in one of the runs"
        return f"{_capital(noun)}{where}: not comparable, {why}."
    values = f"{_value(one, one.second)} against {_value(one, one.first)}, {_moved(one, one.difference)}"
    span = "" if math.isnan(one.low) else f" ({_end(one, one.low)} to {_end(one, one.high)})"
    if math.isinf(one.smallest) and one.difference:
        return f"{_capital(noun)}{where}: {values}{span}; {power_words(one)}."
    if not math.isnan(one.p_holm) and one.p_holm <= alpha:
        verb = more if one.difference > 0 else less
        return f"{second} {verb} than {first}{where}: {values}{span}."
    return f"No difference shown in {noun}{where}: {values}{span}; {power_words(one)}."


def power_words(one: Contrast, *, power: float = 0.8) -> str:
    """What this design could have found: half a sentence."""
    if math.isinf(one.smallest):
        units = {"csq": "chains"}.get(one.name.split(".")[0], "cases" if ".kpr" in one.name else "trajectories")
        return f"{one.units} {units} are too few for this test to show any difference, however large"
    if math.isnan(one.smallest):
        return "nothing varied, so what the design could find is not known"
    found = _moved(one, one.smallest).lstrip("+")
    return f"the design finds {found} or more with {power:.0%} chance"


def shared_words(pair: Comparison) -> str:
    """How much of the two runs is paired."""
    told = pair.shared
    if pair.instrument == "csq":
        alone = told["only_first"] + told["only_second"]
        rest = f"; {alone:,} in one of them only were left out" if alone else ""
        return f"{told['chains']:,} chains shared{rest}"
    alone = told["only_first"] + told["only_second"]
    rest = f"; {alone:,} rounds in one of them only were left out" if alone else ""
    lost = told["scored_only_first"] + told["scored_only_second"]
    one_sided = f", {lost:,} more in one of them only" if lost else ""
    return (
        f"{told['rounds']:,} rounds of {told['trajectories']:,} trajectories shared, {told['scored']:,} of them scored "
        f"in both{one_sided}{rest}"
    )


def _subject(one: Contrast) -> tuple[str, str, str]:
    instrument, _, rest = one.name.partition(".")
    score = rest.split(".")[0].split("(")[0]
    base = f"{instrument}.{score.removesuffix('_pooled')}"
    return _SUBJECTS.get(base, (f"has a higher {score}", f"has a lower {score}", score))


def _where(one: Contrast) -> str:
    if "(n=" in one.name:
        return f" at n = {one.name.split('(n=')[1].rstrip(')')}"
    tail = one.name.rsplit(".", 1)[-1]
    return f" {_WHERE[tail]}" if tail in _WHERE else ""


def _value(one: Contrast, value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{100 * value:.1f} %".replace("-", _SIGN) if one.kind == "share" else f"{value:+.3f}".replace("-", _SIGN)


def _moved(one: Contrast, value: float) -> str:
    return f"{_end(one, value)} points" if one.kind == "share" and not math.isnan(value) else _end(one, value)


def _end(one: Contrast, value: float) -> str:
    if math.isnan(value):
        return "–"
    text = f"{100 * value:+.1f}" if one.kind == "share" else f"{value:+.3f}"
    return (text if float(text) else text[1:]).replace("-", _SIGN)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
