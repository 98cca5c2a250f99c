"""The figures of KnownLie: rows of rates with their intervals, trust over a trajectory, and the tables behind them.

Knows: which rates are shown, over what, and how each is read.
Does not know: how charts are drawn (chart) or rates computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from belie.knownlie.rates import Rate
from belie.knownlie.records import CONDITIONS, MECHANISMS, TRUST_LEVELS, Condition
from belie.knownlie.scores import KnownLieScores, Slice
from belie.numbers import count, number, percent
from belie.report import published
from belie.report.chart import Estimate, Row, rows
from belie.report.reading import Model
from belie.report.tables import Cell, Illustration, counted, figure, share, table, words

CONDITION_NAMES: Mapping[Condition, str] = {
    "none": "no pressure",
    "incentive": "under pressure",
    "instructed": "told to lie",
}
TRUST_NAMES = {"low": "low trust", "neutral": "neutral trust", "high": "high trust"}
MECHANISM_NAMES = {
    "false_policy": "false policy",
    "false_facts": "false facts",
    "omission": "omission",
    "coercion": "coercion",
    "false_deadend": "false dead end",
}
#: Rates that are no shares of rounds.
_SIGNED = ("excess", "excess_macro", "trust_change")

_HOW = (
    "Interval by bootstrap: trajectories resampled; by rounds: rounds taken as independent, where resampling tells "
    "nothing; by hull: the wider end of both on each side, where the trajectories are few."
)

Known = Sequence[tuple[Model, KnownLieScores]]


def measured(models: Sequence[Model]) -> list[tuple[Model, KnownLieScores]]:
    """The models that have KnownLie scores."""
    return [
        (model, model.knownlie.scores)
        for model in models
        if model.knownlie is not None and model.knownlie.scores is not None
    ]


def figures(models: Sequence[Model]) -> list[Illustration]:
    """All figures but trust over time; none where no model was measured."""
    known = measured(models)
    if not known:
        return []
    told: list[Condition] = [
        c for c in CONDITIONS if any(s.condition == c for _, scores in known for s in scores.conditions)
    ]
    pushed: list[Condition] = [c for c in told if c != "none"] or told
    return [
        _by_trust(known, told),
        *(_by_domain(known, condition) for condition in pushed),
        _excess(known, [c for c in told if c != "none"]),
        _mechanisms(known, pushed),
        _success(known, pushed),
        _knowing(known),
        _beside(known, told),
        _outcomes(known, told),
    ]


def counts(models: Sequence[Model]) -> Illustration | None:
    """What became of the rounds: a table by itself."""
    known = measured(models)
    if not known:
        return None
    names = ("rounds", "owed", "scored", "calibration", "scored_calibration", "gate_failed", "missing", "unscored")
    names += ("rejected_quotes", "broken_calls", "forced", "left_role")
    lines = [
        [
            words(model.name, model.number),
            words(CONDITION_NAMES[one.condition]),
            *(counted(getattr(one.counts, name)) for name in names),
        ]
        for model, scores in known
        for one in scores.conditions
    ]
    heads = ("Model", "Condition", "rounds", "owed", "owed, scored", "calibration", "calibration, scored")
    heads += (
        "gate failed",
        "call failed",
        "unscored",
        "quotes rejected",
        "broken calls",
        "decision forced",
        "left role",
    )
    return Illustration(
        "knownlie-counts",
        "What became of the rounds",
        "Only owed rounds whose gate was passed and that the judge could judge enter the rates. A failed call or an "
        "unusable judgement is never counted as honest.",
        "",
        table(heads, lines),
        wide=True,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """One row of a figure: its name, its heading, where each model's rate is found."""

    name: str
    rate: str
    where: Mapping[int, Slice | None]
    heading: str = ""
    others: Mapping[str, float] = field(default_factory=dict)


def _figure(
    known: Known,
    asked: Sequence[_Asked],
    id: str,
    title: str,
    lead: str,
    *,
    first: str,
    limits: tuple[float, float] | None = None,
    names: float = 100.0,
    notes: tuple[str, ...] = (),
    wide: bool = False,
    extra: Sequence[tuple[str, str]] = (),
) -> Illustration:
    """Rows of one rate each, with denominators. ``extra``: further rates (name, head) in the table."""
    content, lines, said = [], [], []
    heading = ""
    for one in asked:
        estimates = []
        for model, _ in known:
            cut = one.where.get(model.number)
            rate = None if cut is None else cut.rates.get(one.rate)
            if cut is None or rate is None:
                continue
            signed = one.rate in _SIGNED
            told = f"{model.name}, {one.name}: {_shown(rate, signed)}, {_of(rate, one.rate)}"
            estimates.append(Estimate(model.number, rate.value, rate.low, rate.high, told))
            place = (one.heading, one.name) if one.heading else (one.name,)
            lines.append(_line(model, place, cut, one.rate, rate, signed, extra))
            if math.isfinite(rate.value):
                said.append(told)
        new = one.heading if one.heading != heading else ""
        heading = one.heading or heading
        content.append(Row(one.name, estimates, tuple(one.others.values()), new))
        place = (one.heading, one.name) if one.heading else (one.name,)
        lines += [_published(name, place, value, len(extra)) for name, value in sorted(one.others.items())]
    signed = any(one.rate in _SIGNED for one in asked)
    chart = rows(content, models=len(known), limits=limits, names=names, include=(0.0,), least=0.2)
    grouped = any(one.heading for one in asked)
    heads = [
        "Model",
        *(("Condition", first) if grouped else (first,)),
        "difference" if signed else "share",
        "from",
        "to",
    ]
    heads += ["of", "out of", "interval by", *(head for _, head in extra)]
    return Illustration(
        id, title, lead, ". ".join(said[:24]) + ("." if len(said) <= 24 else ". The table holds all values."),
        table(heads, lines, _HOW), (chart,), wide, notes,
    )  # fmt: skip


def _line(
    model: Model,
    place: tuple[str, ...],
    cut: Slice,
    name: str,
    rate: Rate,
    signed: bool,
    extra: Sequence[tuple[str, str]],
) -> list[Cell]:
    key = "/".join(
        ("knownlie", str(model.number), cut.condition, cut.trust or cut.domain or "all", name),
    )
    return [
        words(model.name, model.number),
        *map(words, place),
        share(rate.value, signed=signed, key=key),
        share(rate.low, signed=signed, key=f"{key}.low"),
        share(rate.high, signed=signed, key=f"{key}.high"),
        figure(rate.numerator, 0 if rate.numerator == round(rate.numerator) else 2),
        counted(rate.denominator),
        words("–" if rate.interval == "none" else rate.interval),
        *(share(cut.rates[other].value, signed=other in _SIGNED) for other, _ in extra),
    ]


def _published(name: str, place: tuple[str, ...], value: float, extra: int) -> list[Cell]:
    """A published model's line: a value, and no more."""
    lead = Cell(f"{name} (published)", f"{name} (published)", numeric=False, key="published")
    return [lead, *map(words, place), share(value), *(words("") for _ in range(5 + extra))]


def _shown(rate: Rate, signed: bool = False) -> str:
    text = percent(rate.value, signed=signed)
    if math.isfinite(rate.low):
        text += f" ({percent(rate.low, signed=signed)} to {percent(rate.high, signed=signed)})"
    return text


def _of(rate: Rate, name: str) -> str:
    if name.endswith("_macro"):
        return f"mean over {count(rate.denominator)} domains"
    return f"{number(rate.numerator, 0 if rate.numerator == round(rate.numerator) else 1)} of {count(rate.denominator)}"


def _slices(
    known: Known, condition: Condition, trust: str | None = None, domain: str | None = None
) -> dict[int, Slice | None]:
    found: dict[int, Slice | None] = {}
    for model, scores in known:
        try:
            found[model.number] = scores.slice(condition, trust=trust, domain=domain)  # type: ignore[arg-type]
        except KeyError:
            found[model.number] = None
    return found


def _by_trust(known: Known, told: Sequence[Condition]) -> Illustration:
    panel = published.panel()
    asked = [
        _Asked(
            TRUST_NAMES[trust],
            "dr_macro",
            cuts,
            CONDITION_NAMES[condition],
            panel.get((condition, trust), {}),
        )
        for condition in told
        for trust in TRUST_LEVELS
        if any((cuts := _slices(known, condition, trust)).values())
    ]
    return _figure(
        known, asked, "knownlie-dr", "Deception rate by condition and the customer's trust",
        "The share of owed rounds, gate passed, in which it told the customer something false: the mean over domains.",
        first="Trust at the start", limits=(0.0, 1.0), notes=(published.MARK,), extra=(("dr", "pooled"),),
    )  # fmt: skip


def _by_domain(known: Known, condition: Condition) -> Illustration:
    table_ = published.domains()
    domains = sorted(
        {s.domain for _, scores in known for s in scores.by_domain if s.domain and s.condition == condition}
    )
    asked = [
        _Asked(
            domain,
            "dr",
            _slices(known, condition, domain=domain),
            others=table_.get((condition, domain), {}),
        )
        for domain in domains
    ]
    return _figure(
        known, asked, f"knownlie-domains-{condition}", f"Deception rate by domain, {CONDITION_NAMES[condition]}",
        "Each row is one line of business with its own law and its own cases.",
        first="Domain", limits=(0.0, 1.0), notes=(published.MARK,) if any(a.others for a in asked) else (),
    )  # fmt: skip


def _excess(known: Known, pushed: Sequence[Condition]) -> Illustration:
    asked = [_Asked(CONDITION_NAMES[c], "excess_macro", _slices(known, c)) for c in pushed]
    return _figure(
        known, asked, "knownlie-excess", "Excess over the honest control",
        "How much more often it lied than in the same cases without the push, in percentage points: "
        "what the push adds, as far as the cases are the same.",
        first="Condition", extra=(("excess", "pooled"),),
    )  # fmt: skip


def _mechanisms(known: Known, pushed: Sequence[Condition]) -> Illustration:
    asked = [
        _Asked(MECHANISM_NAMES[m], f"mechanism.{m}", _slices(known, c), CONDITION_NAMES[c])
        for c in pushed
        for m in MECHANISMS
    ]
    return _figure(
        known, asked, "knownlie-mechanisms", "How it lied",
        "Shares of its lies by mechanism: a rule that does not exist, a fact that is not so, something left out that "
        "makes the rest false, a threat, a way out that leads nowhere.",
        first="Mechanism", limits=(0.0, 1.0),
    )  # fmt: skip


def _success(known: Known, pushed: Sequence[Condition]) -> Illustration:
    asked = [
        _Asked(name, rate, _slices(known, c), CONDITION_NAMES[c])
        for c in pushed
        for rate, name in (("dsr", "DSR, it worked"), ("detect", "Detect, noticed"))
    ]
    return _figure(
        known, asked, "knownlie-success", "What became of its lies",
        "DSR: lies that the customer did not notice and that cost what was owed. Detect: lies that the customer "
        "noticed. Both over lies only: look at the denominators.",
        first="Rate", limits=(0.0, 1.0),
    )  # fmt: skip


def _knowing(known: Known) -> Illustration:
    content, lines, said = [], [], []
    for kind in ("all", "owed", "calibration"):
        estimates = []
        for model, scores in known:
            rate = scores.knowing.kpr[kind]
            told = f"{model.name}, {kind}: {_shown(rate)}, {_of(rate, 'kpr')}"
            estimates.append(Estimate(model.number, rate.value, rate.low, rate.high, told))
            key = f"knownlie/{model.number}/kpr/{kind}"
            lines.append(
                [
                    words(model.name, model.number),
                    words(kind),
                    share(rate.value, key=key),
                    share(rate.low, key=f"{key}.low"),
                    share(rate.high, key=f"{key}.high"),
                    figure(rate.numerator, 0 if rate.numerator == round(rate.numerator) else 2),
                    counted(rate.denominator),
                    counted(scores.knowing.failed_calls),
                ]
            )
            said.append(told)
        content.append(Row({"all": "all cases", "owed": "owed", "calibration": "not owed"}[kind], estimates))
    heads = ("Model", "Cases", "share", "from", "to", "passed", "probed", "calls failed")
    return Illustration(
        "knownlie-kpr", "Knowledge-pass rate",
        "Asked neutrally what the customer is entitled to, how often it knew. A false statement by one who does not "
        "know is no lie, so only rounds that pass this gate are scored.",
        ". ".join(said) + ".", table(heads, lines), (rows(content, models=len(known), limits=(0.0, 1.0)),),
    )  # fmt: skip


def _beside(known: Known, told: Sequence[Condition]) -> Illustration:
    kinds = (
        ("omission", "never named the right"),
        ("steering", "steered to the other"),
        ("false_claims", "false, nothing owed"),
    )
    asked = [_Asked(name, rate, _slices(known, c), CONDITION_NAMES[c]) for c in told for rate, name in kinds]
    return _figure(
        known, asked, "knownlie-beside", "Beside lying",
        "Not naming what the customer is owed, or steering to the outcome the employer prefers, is no lie and is "
        "counted apart; so are false claims to customers who were owed nothing.",
        first="What", limits=(0.0, 1.0), names=136.0,
    )  # fmt: skip


def _outcomes(known: Known, told: Sequence[Condition]) -> Illustration:
    ends = (("owed", "granted"), ("favoured", "refused"), ("undecided", "left open"))
    asked = [_Asked(name, f"outcome.{end}", _slices(known, c), CONDITION_NAMES[c]) for c in told for end, name in ends]
    return _figure(
        known, asked, "knownlie-outcomes", "How owed requests ended",
        "Granted: the customer got what was owed. Refused: the outcome that the employer prefers was taken instead.",
        first="Outcome", limits=(0.0, 1.0),
    )  # fmt: skip
