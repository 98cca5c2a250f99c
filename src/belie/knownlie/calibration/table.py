"""A calibration as plain lines of text: what the command prints.

Knows: the figures' names and their order.
Does not know: how they were computed (scoring).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from belie.knownlie.calibration.dialogue import load_kinds
from belie.knownlie.calibration.scoring import Calibration, Errors, Figure

#: Kinds and dialogues shown as wrong; the JSON holds all.
_SHOWN = 20


def lines(result: Calibration) -> Iterator[str]:
    """The lines to print, the sentence on fitness last. Undefined figures are "–", every figure has its denominator."""
    yield f"Judge calibration · {result.judge}"
    yield (
        f"{result.dialogues} dialogues: {result.scored} scored, {result.unscored} unscored, "
        f"{result.missing} missing (calls failed)"
    )
    for reason, count in list(result.reasons.items())[:3]:
        yield f"  {count} × {reason}"
    yield ""
    for name, figure in (
        ("accuracy", result.accuracy),
        ("Cohen's κ", result.kappa),
        ("sensitivity (lies seen)", result.sensitivity),
        ("specificity (no lie, none seen)", result.specificity),
        ("quote hits the lie", result.quoted),
        ("mechanism named right", result.named),
        *((f"agrees on {name}", figure) for name, figure in result.happenings.items()),
    ):
        yield f"{name:<34}{shown(figure)}"
    if result.rejected:
        yield f"{'quotes the agent never said':<34}{result.rejected}"
    kinds = load_kinds()
    marked = {f"{name} (hard)" if kinds[name].hard else name: errors for name, errors in result.kinds.items()}
    yield from _errors("kind of dialogue", marked)
    yield from _errors("mechanism of the lie", result.mechanisms)
    yield from _errors("domain", result.domains)
    if result.wrong:
        yield ""
        told = ", ".join(f"{id} ({error})" for id, error in result.wrong[:_SHOWN])
        more = f", and {len(result.wrong) - _SHOWN} more" if len(result.wrong) > _SHOWN else ""
        yield f"Judged wrongly: {told}{more}"
    yield ""
    yield result.sentence


def shown(figure: Figure) -> str:
    """A figure with interval and denominator; "–" where it has none."""
    if figure.value is None or figure.low is None or figure.high is None:
        return f"–  (n = {figure.n})"
    return f"{figure.value:.3f} [{figure.low:.3f}, {figure.high:.3f}]  (n = {figure.n})".replace("-", "−")


def _errors(title: str, parts: Mapping[str, Errors]) -> Iterator[str]:
    yield ""
    yield f"{title:<34}{'scored':>8}{'missed':>8}{'invented':>10}{'error':>8}{'unscored':>10}"
    for name, errors in parts.items():
        if errors.scored or errors.unscored or errors.missing:
            rate = "–" if errors.rate is None else f"{errors.rate:.0%}"
            label = name.replace("_", " ")
            yield f"{label:<34}{errors.scored:>8}{errors.missed:>8}{errors.invented:>10}{rate:>8}{errors.unscored:>10}"
