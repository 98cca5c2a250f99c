"""Ten contradictions a model: the hard question, its wrong answer, the easy question, its right answer.

Knows: which pairs are the plainest, and where the path of a chain breaks.
Does not know: how the path is drawn as SVG (path.html).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from belie.csq.answers import parse
from belie.csq.asked import item_of, unit_of
from belie.csq.questions import Chain, Variant, draw_chain
from belie.csq.world import load_world
from belie.items import BROKEN, Answer, Item, Step, word
from belie.pairs.file import read_pairs
from belie.report.chart import WIDTH
from belie.report.reading import CsqRun

#: How many are shown of each model, and how many of one length are kept while looking.
SHOWN, _KEPT = 10, 10
#: A wrong first answer of less probability is no contradiction worth showing.
_RARE = 0.05
#: What is kept of a reply while looking.
_TEXT = 20_000


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    kind: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chain as a row of dots. ``edges``: (x, x) of neighbours that a fact joins; ``gap``: the pair that none joins.

    ``asked``: where the easy question's pair stands. Names are set at the places given with them.
    """

    dots: tuple[Dot, ...]
    edges: tuple[tuple[float, float], ...]
    gap: tuple[float, float]
    asked: tuple[float, float]
    ends: tuple[str, str]
    easy: tuple[str, str]
    alt: str
    width: float = WIDTH


@dataclass(frozen=True, slots=True)
class Contradiction:
    """``line`` and ``easy`` are the hard and the easy question, each with the line that stood before it; ``said`` and
    ``then`` what it answered to them, and ``said_p``/``then_p`` with what probability (None where sampled)."""

    item: Item
    line: str
    easy: str
    truth: str
    said: str
    then: str
    said_p: float | None
    then_p: float | None
    drawing: Drawing | None
    reasoning: str | None = None


def contradictions(run: CsqRun, count: int = SHOWN) -> list[Contradiction]:
    """The plainest contradictions, from every length in turn, the longest chain first; fewer where there are fewer.
    Where the easy question came first: those of a right first answer and a wrong second one.

    An exact answer counts by p(first wrong) · p(follow-up right | first wrong), if a wrong first answer has `_RARE` and
    the right follow-up is the likelier one; a sampled one if it happened.
    """
    manifest = run.folder.manifest
    rebuilt = item_of(manifest)
    best: dict[int, list[tuple[float, str, Answer, Answer]]] = {}
    easy_first = manifest.options.get("order") == "easy_first"
    for mass, first, second in _pairs(run, "followup" if easy_first else "first"):
        n = int(first.item.split("/")[1][1:])
        kept = best.setdefault(n, [])
        # of equal ones the lower id stays, so that the same run always shows the same ten
        entry = (mass, _reverse(first.item), first, second)
        if len(kept) < _KEPT:
            heapq.heappush(kept, entry)
        elif entry[:2] > kept[0][:2]:
            heapq.heapreplace(kept, entry)
    queues = [sorted(best[n], key=lambda entry: entry[:2], reverse=True) for n in sorted(best, reverse=True)]
    chosen = []
    while len(chosen) < count and any(queues):
        for queue in queues:
            if queue and len(chosen) < count:
                chosen.append(queue.pop(0))
    drawn = None if unit_of(manifest) == "pairs" else Variant.of(manifest.options)
    return [_shown(rebuilt(first.item), drawn, first, second) for _, _, first, second in chosen]


def _reverse(item: str) -> str:
    return "".join(chr(0x10FFFF - ord(char)) for char in item)


def _pairs(run: CsqRun, hard: Step) -> Iterator[tuple[float, Answer, Answer]]:
    """Answers to hard and easy questions of which the first is wrong and the second right, with their weight."""
    waiting: dict[tuple[str, int], Answer] = {}
    later: dict[tuple[str, int], Answer] = {}
    for answer in run.folder.journal.answers(skip=True):
        category = answer.item.rpartition("/")[2]
        if category not in BROKEN or answer.error is not None or answer.draw:
            continue
        truth = category == "broken_reversed"
        right = _mass(answer, truth)
        wrong = _mass(answer, not truth)
        key = (answer.item, answer.draw)
        if answer.step == hard and wrong >= _RARE:
            second = later.pop(key, None)
            if second is None:
                waiting[key] = _short(answer)
            else:
                yield wrong * _mass(second, truth), answer, second
        elif answer.step != hard and right > 0.5:
            first = waiting.pop(key, None)
            if first is None:
                later[key] = _short(answer)
            else:
                yield _mass(first, not truth) * right, first, answer


def _mass(answer: Answer, yes: bool) -> float:
    if answer.p is not None:
        return answer.p[0 if yes else 1]
    return float(parse(answer.text or "") == ("yes" if yes else "no"))


def _short(answer: Answer) -> Answer:
    if answer.text is None or len(answer.text) <= _TEXT:
        return answer
    return Answer(answer.item, answer.step, answer.draw, text=answer.text[:_TEXT], reasoning=answer.reasoning)


def _shown(item: Item, variant: Variant | None, first: Answer, second: Answer) -> Contradiction:
    """``variant`` is that of a chain; own pairs have none, and nothing is drawn of them."""
    wrong, right = word(not item.truth), word(item.truth)
    chain = None
    if variant is not None:
        n, seed, index = item.chain.split("/")[1:4]
        number, _, own = index.partition("~")
        chain = draw_chain(variant, int(n[1:]), int(seed[1:]), int(number), own)
    asked = [_questions(item.question), item.followup or ""]
    if variant is not None:
        treated = (variant.treatment != "none", variant.treated == "both")
        texts = (item.question, item.followup or "")
        asked = [" ".join(text.split("\n\n")[: 1 + line]) for text, line in zip(texts, treated, strict=True)]
    line, easy = reversed(asked) if item.order == "easy_first" else asked
    return Contradiction(
        item,
        line,
        easy,
        right,
        wrong if first.text is None else first.text,
        right if second.text is None else second.text,
        _mass(first, not item.truth) if first.p is not None else None,
        _mass(second, item.truth) if second.p is not None else None,
        chain and drawing(chain),
        first.reasoning,
    )


def _questions(text: str) -> str:
    """The lines of a text that ask."""
    return " ".join(line for line in text.splitlines() if "?" in line)


def drawing(chain: Chain) -> Drawing:
    """The chain as it lies between its two ends, with its gap and the pair of the easy question."""
    n, gap = chain.n, chain.gap
    left, right = 12.0, WIDTH - 12.0
    # The missing step is drawn three steps wide, so that it is seen in long chains too.
    step = (right - left) / (n - 1 + 2)
    at = [round(left + step * (i + (2 if i > gap else 0)), 1) for i in range(n)]
    start, end = chain.followup
    dots = tuple(
        Dot(x, "end" if i in (0, n - 1) else "easy" if i in (start, end) else "between") for i, x in enumerate(at)
    )
    names = chain.entities
    alt = (
        f"A chain of {n}: from {names[0]} facts lead on to {names[gap]}; nothing leads from there to {names[gap + 1]}, "
        f"from which facts lead on to {names[-1]}. The easy question asks about {names[start]} and {names[end]}."
    )
    return Drawing(
        dots,
        tuple((at[i], at[i + 1]) for i in range(n - 1) if i != gap),
        (at[gap], at[gap + 1]),
        (at[start], at[end]),
        (names[0], names[-1]),
        (names[start], names[end]),
        alt,
    )


def worlds(runs: Sequence[CsqRun]) -> list[str]:
    """The titles of the worlds that were asked about."""
    return sorted({_title(run.folder.manifest.options) for run in runs})


def _title(options: Mapping[str, Any]) -> str:
    if options.get("pairs") is not None:
        return read_pairs(options["pairs"]).header.title
    return load_world(options["world"]).title
