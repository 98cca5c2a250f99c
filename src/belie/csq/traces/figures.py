"""The traces of a run in figures: rates and lengths with their denominators and intervals, and examples (METHOD §1.8).

Knows: what is counted of a trace, that chains are what is resampled, which examples are plainest.
Does not know: how a trace is read (reading), or how figures are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from belie.csq.answers import parse
from belie.csq.asked import design_of
from belie.csq.questions import item_from_id
from belie.csq.scores import Figure, plain
from belie.csq.traces.case import case_of
from belie.csq.traces.reading import TRACES_VERSION, Edge, Reading, read_trace
from belie.csq.traces.source import Source, trace_of
from belie.items import CATEGORIES, Answer, Item
from belie.respondents.base import BadInput
from belie.runs import RunFolder
from belie.statistics import Floats, Resampler, percentile, wilson

#: What is summed up of each trace.
_COLUMNS = (
    *("traces", "words", "told", "tokens", "pairs_read", "fabricated", "edges", "bridging", "reversed"),
    *("false_derivations", "withdrawn", "unknown", "verdicts", "compared", "mismatch", "right_then_wrong"),
    *("both", "hard_words", "easy_words"),
)
_AT = {name: at for at, name in enumerate(_COLUMNS)}


@dataclass(frozen=True, slots=True)
class Measure:
    """``share``: a share of traces; else a mean. ``above`` and ``below`` name what is divided by what."""

    title: str
    above: str
    below: str
    share: bool = True


MEASURES: Mapping[str, Measure] = {
    "words": Measure("words", "words", "traces", False),
    "tokens": Measure("tokens of the reply", "tokens", "told", False),
    "pairs_read": Measure("traces in which a pair was read", "pairs_read", "traces"),
    "fabricated": Measure("with a fabricated edge", "fabricated", "traces"),
    "fabricated_edges": Measure("fabricated edges a trace", "edges", "traces", False),
    "bridging": Measure("with one that joins the pair asked about", "bridging", "traces"),
    "reversed": Measure("with an edge turned round", "reversed", "traces"),
    "false_derivations": Measure("with a false derivation", "false_derivations", "traces"),
    "withdrawn": Measure("with a false edge taken back", "withdrawn", "traces"),
    "unknown": Measure("with a name that nobody holds", "unknown", "traces"),
    "verdicts": Measure("that state a verdict", "verdicts", "traces"),
    "mismatch": Measure("verdict and answer differ", "mismatch", "compared"),
    "right_then_wrong": Measure("right verdict, wrong answer", "right_then_wrong", "compared"),
    "hard_words": Measure("words on the hard question, where both have a trace", "hard_words", "both", False),
    "easy_words": Measure("words on the easy question, where both have a trace", "easy_words", "both", False),
}


@dataclass(frozen=True, slots=True)
class Example:
    """One finding in the trace of one answer. ``quote``: a stretch of the trace; ``mark``: the place of the finding in
    it, None where there is none (a mismatch). ``question``: hard or easy. ``about``: the pair or the name."""

    kind: str
    item: str
    question: str
    draw: int
    about: str
    quote: str
    mark: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Group:
    """Traces of one kind: ``n`` and ``category`` are None where they are taken together; ``question`` is "hard" or
    "easy". ``figures`` by the names of `MEASURES`; ``counts``: the denominators traces, told, compared and both, and
    ``chains``, how many chains they come from."""

    n: int | None
    category: str | None
    question: str
    figures: Mapping[str, Figure]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Traces:
    """What the traces of a run show. ``answers``: how many answers there are, ``silent`` how many of them have no
    trace. ``groups``: all hard ones and all easy ones first, then by n, by category, by both."""

    groups: tuple[Group, ...]
    examples: tuple[Example, ...]
    answers: int
    silent: int
    source: Source
    notes: tuple[str, ...] = field(default=())

    def group(self, n: int | None = None, category: str | None = None, question: str = "hard") -> Group | None:
        """The group of these traces, None where there are none."""
        return next((g for g in self.groups if (g.n, g.category, g.question) == (n, category, question)), None)

    def to_json(self) -> dict[str, Any]:
        """A plain dict: nan → null."""
        return plain({"traces_version": TRACES_VERSION, **asdict(self)})


#: Examples of each kind.
_SHOWN = 3
_AROUND = 120
#: With fewer chains an interval is not to be trusted.
_FEW = 20


def traces_of(
    run: RunFolder,
    *,
    source: Source = "auto",
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
    skip_damaged: bool = False,
    watch: Callable[[int], None] = lambda _: None,
) -> Traces:
    """Read every trace of a run. ``watch`` is told how many answers have been looked at.

    Raises BadInput where the run shows no reasoning, or asked something else than chains.
    """
    tally = _Tally(run, source)
    for count, answer in enumerate(run.journal.answers(skip=skip_damaged), 1):
        tally.add(answer)
        watch(count)
    if not tally.cells:
        aloud = tally.style != "word" and source != "hidden"
        raise BadInput(
            f"No answer of {run.path.name} shows any reasoning"
            + (" before its last line" if aloud else "")
            + (
                ": ask a model that thinks aloud, or any model with --style reason --sample."
                if not aloud and source != "visible"
                else "."
            )
        )
    resampler = Resampler(resamples, seed)
    sizes = sorted({n for n, _, _ in tally.cells})
    groups = [
        group
        for n, category in [(None, None), *((n, None) for n in sizes), *((None, c) for c in CATEGORIES)]
        + [(n, c) for n in sizes for c in CATEGORIES]
        for question in ("hard", "easy")
        if (group := _group(tally.cells, n, category, question, resampler, level)) is not None
    ]
    notes = []
    chains = max(group.counts["chains"] for group in groups)
    if chains < _FEW:
        notes.append(f"The traces come from {chains} chains: too few for intervals to be trusted.")
    return Traces(tuple(groups), tally.examples(), tally.answers, tally.silent, source, tuple(notes))


class _Tally:
    """Sums by cell and chain, and the plainest examples; the same whatever the order of the answers."""

    def __init__(self, run: RunFolder, source: Source) -> None:
        variant = design_of(run.manifest).variant
        world = variant.world
        self.world = world if world.endswith((".yaml", ".yml")) else None
        self.style = variant.style
        self.source: Source = source
        self.cells: dict[tuple[int, str, str], dict[str, Floats]] = {}
        self.answers = self.silent = 0
        self._examples: dict[str, list[tuple[tuple[Any, ...], Example]]] = {}
        self._lengths: dict[tuple[str, int], tuple[str, int]] = {}

    def add(self, answer: Answer) -> None:
        if answer.error is not None or answer.text is None:
            return
        self.answers += 1
        if answer.reasoning is None and (self.source == "hidden" or (self.source == "auto" and self.style == "word")):
            self.silent += 1
            return
        item = item_from_id(answer.item, self.world)
        hard = item.followup is None or (answer.step == "first") == (item.order == "hard_first")
        text = trace_of(answer, self.source, aloud=hard and self.style != "word")
        if text is None:
            self.silent += 1
            return
        case = case_of(item, answer.step, self.world)
        read = read_trace(text, case)
        question = "hard" if hard else "easy"
        row = self._row(item, question)
        said = parse(answer.text)
        compared = read.verdict is not None and said != "invalid"
        differs = compared and read.verdict != said
        truth = "yes" if item.truth else "no"
        told = answer.tokens[1]
        for name, value in {
            "traces": 1,
            "words": read.words,
            "told": told > 0,
            "tokens": told,
            "pairs_read": bool(
                read.held or read.fabricated or read.reversed or read.false_derivations or read.withdrawn
            ),
            "fabricated": bool(read.fabricated),
            "edges": len(read.fabricated),
            "bridging": any(edge.bridges for edge in read.fabricated),
            "reversed": bool(read.reversed),
            "false_derivations": bool(read.false_derivations),
            "withdrawn": bool(read.withdrawn),
            "unknown": bool(read.unknown),
            "verdicts": read.verdict is not None,
            "compared": compared,
            "mismatch": differs,
            "right_then_wrong": differs and read.verdict == truth,
        }.items():
            row[_AT[name]] += value
        self._pair(item, answer.draw, question, read.words)
        self._exemplify(answer, item.n, question, text, read, differs)

    def _row(self, item: Item, question: str) -> Floats:
        cell = self.cells.setdefault((item.n, item.category, question), {})
        return cell.setdefault(item.chain, np.zeros(len(_COLUMNS)))

    def _pair(self, item: Item, draw: int, question: str, words: int) -> None:
        """Lengths of the hard and the easy trace of one item, once both are there: in the row of the hard one."""
        if item.followup is None:
            return
        other = self._lengths.pop((item.id, draw), None)
        if other is None:
            self._lengths[item.id, draw] = (question, words)
            return
        row = self._row(item, "hard")
        hard, easy = (words, other[1]) if question == "hard" else (other[1], words)
        row[_AT["both"]] += 1
        row[_AT["hard_words"]] += hard
        row[_AT["easy_words"]] += easy

    def _exemplify(self, answer: Answer, n: int, question: str, text: str, read: Reading, differs: bool) -> None:
        def keep(kind: str, about: str, edge: Edge | None, rank: int = 0) -> None:
            kept = self._examples.setdefault(kind, [])
            key = (rank, n, answer.item, answer.step, answer.draw)
            if len(kept) < _SHOWN or key < kept[-1][0]:
                start, end = (edge.start, edge.end) if edge else _where(text, about, kind)
                quote, mark = _quoted(text, start, end)
                kept.append((key, Example(kind, answer.item, question, answer.draw, about, quote, mark)))
                kept.sort(key=lambda one: one[0])
                del kept[_SHOWN:]

        for kind, edges in (
            ("fabricated", read.fabricated),
            ("reversed", read.reversed),
            ("false_derivations", read.false_derivations),
        ):
            if edges:
                edge = next((edge for edge in edges if edge.bridges), edges[0])
                keep(kind, f"{edge.a} → {edge.b}", edge, 0 if edge.bridges else 1)
        if read.unknown:
            keep("unknown", read.unknown[0], None)
        if differs:
            keep(
                "mismatch",
                f"the trace comes to {(read.verdict or '').title()}, the answer is {parse(answer.text or '').title()}",
                None,
            )

    def examples(self) -> tuple[Example, ...]:
        order = ("fabricated", "mismatch", "false_derivations", "reversed", "unknown")
        return tuple(example for kind in order for _, example in self._examples.get(kind, ()))


def _where(text: str, about: str, kind: str) -> tuple[int, int]:
    """The place of an unknown name in the trace, or the trace's end."""
    if kind == "unknown":
        at = text.lower().find(about.lower())
        if at >= 0:
            return at, at + len(about)
    return len(text), len(text)


def _quoted(text: str, start: int, end: int) -> tuple[str, tuple[int, int] | None]:
    begin, stop = max(0, start - _AROUND), min(len(text), end + _AROUND)
    if start == end:
        begin = max(0, start - 2 * _AROUND)
    stop = min(stop, begin + 4 * _AROUND + 200)
    lead, tail = "…" if begin else "", "…" if stop < len(text) else ""
    mark = (start - begin + len(lead), min(end, stop) - begin + len(lead)) if end > start else None
    return f"{lead}{text[begin:stop]}{tail}", mark


def _group(
    cells: Mapping[tuple[int, str, str], Mapping[str, Floats]],
    n: int | None,
    category: str | None,
    question: str,
    resampler: Resampler,
    level: float,
) -> Group | None:
    """The figures of all cells that fit; chains are resampled within each n."""
    strata: dict[int, dict[str, Floats]] = {}
    for (size, kind, asked), chains in sorted(cells.items()):
        if n in (None, size) and category in (None, kind) and asked == question:
            stratum = strata.setdefault(size, {})
            for chain, row in chains.items():
                stratum[chain] = stratum[chain] + row if chain in stratum else row
    if not any(row[_AT["traces"]] for stratum in strata.values() for row in stratum.values()):
        return None
    tables = [np.stack([stratum[chain] for chain in sorted(stratum)]) for stratum in strata.values()]
    sums = np.sum([table.sum(0) for table in tables], axis=0)
    draws = np.sum([resampler.sums(table, i) for i, table in enumerate(tables)], axis=0)
    figures = {name: _figure(measure, sums, draws, tables, level) for name, measure in MEASURES.items()}
    counts = {name: int(sums[_AT[name]]) for name in ("traces", "told", "compared", "both")}
    return Group(n, category, question, figures, {**counts, "chains": sum(len(table) for table in tables)})


def _figure(measure: Measure, sums: Floats, draws: Floats, tables: Sequence[Floats], level: float) -> Figure:
    above, below = _AT[measure.above], _AT[measure.below]
    if not sums[below]:
        return Figure(float("nan"))
    value = float(sums[above] / sums[below])
    if measure.share and value in (0.0, 1.0):
        # Nothing varies, so nothing can be resampled: Wilson's bound at the number of chains.
        chains = sum(int((table[:, below] > 0).sum()) for table in tables)
        low, high = wilson(value * chains, chains, level).tolist()
        return Figure(value, low, high)
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = percentile((draws[:, above] / draws[:, below])[:, None], level)[0].tolist()
    return Figure(value, low, high)
